"""The declared tasks of one-shot images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Options
from study.errors import RequestError
from study.tasks.base import ONE_SHOT, UNKNOWN_DIGEST, Declaration, Facts, TaskInfo
from study.tasks.one_shot.characters import Characters, made_up_characters
from study.tasks.one_shot.digits import load_digits
from study.tasks.one_shot.omniglot import DATA_SET, SIDE, load_omniglot
from study.tasks.sources.places import Places

_Read = Callable[[Places, int], Characters]

_LEAST_PIXELS = 4
_LARGEST_DIGIT = 64


def _info(name: str, channels: int, largest: int, read: _Read, options: Options) -> TaskInfo:
    """A task of one-shot images.

    Args:
        name: of the task.
        channels: of an image, as published; the grey value is repeated.
        largest: height and width to which images can be resized.
        read: (places of its files, pixels) -> the drawings.
        options: of its data.

    Raises:
        RequestError: the pixels are missing, too few or too many.
    """
    pixels = options.pixels
    if pixels is None or not _LEAST_PIXELS <= pixels <= largest:
        raise RequestError(
            f"{name} takes pixels from {_LEAST_PIXELS} to {largest}, got "
            f"{'none' if pixels is None else pixels}. Leave it out, or give it with --set "
            "pixels=P."
        )
    from study.tasks.one_shot.episodes import LABELS, OneShotTask

    def task(characters: Characters) -> OneShotTask:
        return OneShotTask(name, characters, channels)

    shape = (channels, pixels, pixels)
    return TaskInfo(
        shape,
        LABELS,
        load=lambda places: task(read(places, pixels)),
        made_up=lambda _, __: task(made_up_characters(pixels)),
        nominal=Facts(UNKNOWN_DIGEST, shape, sizes={}, lengths={}),
    )


def _omniglot(options: Options) -> TaskInfo:
    return _info("omniglot", 3, SIDE, load_omniglot, options)


def _digits(options: Options) -> TaskInfo:
    return _info("digits-one-shot", 1, _LARGEST_DIGIT, load_digits, options)


TASKS: Mapping[str, Declaration] = {
    "omniglot": Declaration(ONE_SHOT, _omniglot, {"pixels": 32}, DATA_SET),
    "digits-one-shot": Declaration(ONE_SHOT, _digits, {"pixels": 8}),
}
