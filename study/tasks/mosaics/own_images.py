"""Images of your own: prepared once at the size that is asked for."""

from __future__ import annotations

import shlex
from pathlib import Path

from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.labelled_images import classes_text
from study.tasks.mosaics.layouts import IMAGE_SUFFIXES, LAYOUTS, ImageSet, may_belong

TASK = "images"

PIXELS = 32
"""Height and width to which images are resized, unless another size is asked for."""
LEAST_PIXELS = 4

VALIDATION_SHARE = 0.25
"""Of the train images of each class, as of the digits: images of one's own may be few."""

_TITLE = "images of your own"
_ACCEPTED = (
    "class folders (DIR/<class>/*.png, or DIR/train/<class>/*.png and DIR/test/<class>/*.png; "
    f"{', '.join(IMAGE_SUFFIXES)}), Hugging Face Parquet (an image column and a label column), "
    "hf://datasets/ORG/NAME, and CIFAR's or MNIST's files as torchvision keeps them"
)


def _refuse_download(folder: Path, where: str) -> None:
    """See `study.tasks.sources.data_set.DataSet`.

    Raises:
        RequestError: always.
    """
    raise RequestError(
        f"images takes {_TITLE}: pass them with --data-dir DIR (data_dir in Python). Accepted: "
        f"{_ACCEPTED}."
    )


OWN_IMAGES = ImageSet(
    title=_TITLE,
    folder=TASK,
    accepted=_ACCEPTED,
    belongs=may_belong,
    download=_refuse_download,
    any_of_the_hub=True,
    layouts=tuple(LAYOUTS),
    label_columns=("label", "labels"),
)


def unchosen(base: BaseImages) -> RequestError:
    """The error for images whose foreground is not chosen; it lists the classes."""
    example = shlex.quote(f"foreground={'+'.join(base.class_names[:2])}")
    return RequestError(
        "images takes a foreground, the classes that are labels: two or more of "
        f"{classes_text(base)}. Give it with --set {example}; all other classes are then "
        "background."
    )
