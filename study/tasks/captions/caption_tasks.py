"""The declared tasks of captions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from study.cell import Options
from study.cell.declared import Axis, Name
from study.cell.network_settings import FIRST_WORD
from study.tasks.captions.encoders import ENCODERS
from study.tasks.captions.mscoco import DATA_SET
from study.tasks.sources.places import FILES
from study.tasks.task import (
    CAPTIONS,
    UNKNOWN_DIGEST,
    Declaration,
    Facts,
    TaskInfo,
    min_count,
)

# Of 2014: captions of its training images, and of the halves of its validation images.
_SIZES = {"train": 414_113, "validation": 101_327, "test": 101_327}
_WORDS, _LENGTH = 8_733, 12  # the paper's vocabulary; mean words of a caption, with the end


def _mscoco(options: Options) -> TaskInfo:
    from study.tasks.captions.caption_task import caption_task, made_up_captions

    lengths = {_LENGTH: _SIZES["train"]}
    nominal = Facts(UNKNOWN_DIGEST, (_WORDS + FIRST_WORD,), _SIZES, lengths)
    load = partial(caption_task, options)
    made_up = partial(made_up_captions, options["encoder"])
    return TaskInfo((), load, made_up, nominal)


TASKS: Mapping[str, Declaration] = {
    "mscoco": Declaration(
        CAPTIONS,
        _mscoco,
        {
            "min_count": min_count(5),
            "encoder": Axis(
                "network that turns images into regions",
                Name(tuple(ENCODERS)),
                ("vgg19",),
                column="of the image",
            ),
        },
        DATA_SET,
        FILES,
    ),
}
