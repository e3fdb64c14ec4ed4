"""The declared task of captions."""

from __future__ import annotations

import math
from functools import partial

from chapters.captions.data.mscoco import DATA_SET
from chapters.captions.encoders.encoders import ENCODERS
from chapters.captions.evaluation.caption_scores import require_scorers
from chapters.captions.modality import CAPTIONS
from study.cell import Cell, Options
from study.cell.declared import Axis, Name
from study.tasks.task import Declaration, TaskInfo, min_count


def _mscoco(options: Options) -> TaskInfo:
    from chapters.captions.data.caption_task import caption_task

    return TaskInfo((), partial(caption_task, options))


MSCOCO = Declaration(
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
    {
        "weights": "pretrained weights of the encoder of captions; default: downloaded",
        "category_words": "words of each category of captions; default: beside the data",
    },
    why_not="chapters.captions.task:why_not",
    requires="chapters.captions.evaluation.caption_scores:require_scorers",
    at_hand="chapters.captions.encoders.encoders:at_hand",
    artifacts="study.tracking.run_files:heat_map",  # what was written is in the report
)


def why_not(cell: Cell) -> str | None:
    """Why a cell that writes captions cannot run; None if it can.

    Raises:
        RequestError: the packages that score captions are not installed.
    """
    encoder = cell.options["encoder"]
    require_scorers()
    if math.isqrt(cell.m) ** 2 != cell.m:
        return f"the regions of an image are a square grid, so m={cell.m} must be a square number"
    trained = cell.schedule.phases[0].encoder_lr is not None
    if not (trained or ENCODERS[encoder].pretrained):
        return f"the {encoder} encoder has no weights of its own: give it an encoder_lr"
    return None
