"""The declared tasks of one-shot images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from chapters.paths.one_shot.characters import Characters, load_digits
from chapters.paths.one_shot.modality import ONE_SHOT
from chapters.paths.one_shot.omniglot import DATA_SET, SIDE, load_omniglot
from study.cell import Options
from study.tasks.sources.places import Places
from study.tasks.task import Declaration, TaskInfo, pixels

_WHY_NOT = "chapters.paths.one_shot.modality:why_not"


def _info_of(
    name: str, channels: int, read: Callable[[Places, int], Characters]
) -> Callable[[Options], TaskInfo]:
    """Declares a task of one-shot images.

    Args:
        name: of the task.
        channels: of an image, as published; the grey value is repeated.
        read: (places of its files, pixels) -> the drawings.
    """

    def info(options: Options) -> TaskInfo:
        from chapters.paths.one_shot.episodes import LABELS, OneShotTask

        side = options["pixels"]
        return TaskInfo(LABELS, lambda places: OneShotTask(name, read(places, side), channels))

    return info


TASKS: Mapping[str, Declaration] = {
    "omniglot": Declaration(
        ONE_SHOT,
        _info_of("omniglot", 3, load_omniglot),
        {"pixels": pixels(4, SIDE, default=32)},
        DATA_SET,
        why_not=_WHY_NOT,
    ),
    "digits-one-shot": Declaration(
        ONE_SHOT,
        _info_of("digits-one-shot", 1, load_digits),
        {"pixels": pixels(4, 64, default=8)},
        why_not=_WHY_NOT,
    ),
}
