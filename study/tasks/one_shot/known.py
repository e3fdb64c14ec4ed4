"""The declared tasks of one-shot images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Options
from study.tasks.base import ONE_SHOT, UNKNOWN_DIGEST, Declaration, Facts, TaskInfo, pixels
from study.tasks.one_shot.characters import Characters, made_up_characters
from study.tasks.one_shot.digits import load_digits
from study.tasks.one_shot.omniglot import DATA_SET, SIDE, load_omniglot
from study.tasks.sources.places import Places

_Read = Callable[[Places, int], Characters]

_LEAST_PIXELS = 4
_LARGEST_DIGIT = 64


def _info(name: str, channels: int, read: _Read, options: Options) -> TaskInfo:
    """A task of one-shot images.

    Args:
        name: of the task.
        channels: of an image, as published; the grey value is repeated.
        read: (places of its files, pixels) -> the drawings.
        options: of its data.
    """
    from study.tasks.one_shot.episodes import LABELS, OneShotTask

    def task(characters: Characters) -> OneShotTask:
        return OneShotTask(name, characters, channels)

    side = options["pixels"]
    shape = (channels, side, side)
    return TaskInfo(
        shape,
        LABELS,
        load=lambda places: task(read(places, side)),
        made_up=lambda _, __: task(made_up_characters(side)),
        nominal=Facts(UNKNOWN_DIGEST, shape, sizes={}, lengths={}),
    )


def _omniglot(options: Options) -> TaskInfo:
    return _info("omniglot", 3, load_omniglot, options)


def _digits(options: Options) -> TaskInfo:
    return _info("digits-one-shot", 1, load_digits, options)


TASKS: Mapping[str, Declaration] = {
    "omniglot": Declaration(
        ONE_SHOT, _omniglot, {"pixels": pixels(_LEAST_PIXELS, SIDE, 32)}, DATA_SET
    ),
    "digits-one-shot": Declaration(
        ONE_SHOT, _digits, {"pixels": pixels(_LEAST_PIXELS, _LARGEST_DIGIT, 8)}
    ),
}
