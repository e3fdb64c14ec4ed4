"""The declared tasks of captions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from study.cell import Options
from study.cell.declared import Axis, Name
from study.tasks.captions.encoders import ENCODERS
from study.tasks.captions.mscoco import DATA_SET
from study.tasks.sources.places import FILES
from study.tasks.task import CAPTIONS, Declaration, TaskInfo, min_count


def _mscoco(options: Options) -> TaskInfo:
    from study.tasks.captions.caption_task import caption_task

    return TaskInfo((), partial(caption_task, options))


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
