"""The declared tasks of one-shot images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Options
from study.tasks.one_shot.characters import Characters, load_digits
from study.tasks.one_shot.omniglot import DATA_SET, SIDE, load_omniglot
from study.tasks.sources.places import Places
from study.tasks.task import ONE_SHOT, Declaration, TaskInfo, pixels


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
        from study.tasks.one_shot.episodes import LABELS, OneShotTask

        side = options["pixels"]
        return TaskInfo(LABELS, lambda places: OneShotTask(name, read(places, side), channels))

    return info


TASKS: Mapping[str, Declaration] = {
    "omniglot": Declaration(
        ONE_SHOT,
        _info_of("omniglot", 3, load_omniglot),
        {"pixels": pixels(4, SIDE, default=32)},
        DATA_SET,
    ),
    "digits-one-shot": Declaration(
        ONE_SHOT,
        _info_of("digits-one-shot", 1, load_digits),
        {"pixels": pixels(4, 64, default=8)},
    ),
}
