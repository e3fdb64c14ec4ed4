"""The declared tasks of mosaics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from study.cell import Options
from study.errors import RequestError
from study.tasks.base import MOSAICS, UNKNOWN_DIGEST, Declaration, Facts, TaskInfo
from study.tasks.mosaics import cifar, digits
from study.tasks.mosaics.base_images import BaseImages, made_up_images
from study.tasks.mosaics.linear_orthogonal import (
    BACKGROUND_AXES,
    LARGEST_NUM_CLASSES,
    base_vectors,
    foreground_names,
)
from study.tasks.sources.places import Places

_Read = Callable[[Places], BaseImages]


def _info(
    name: str, shape: tuple[int, int, int], foreground: tuple[str, ...], read: _Read
) -> TaskInfo:
    """A task of mosaics from images of a shape (C, H, W) and the names of foreground classes."""
    from study.tasks.mosaics.mosaics import MosaicTask

    return TaskInfo(
        shape,
        foreground,
        load=lambda places: MosaicTask(name, read(places), foreground),
        made_up=lambda _, count: MosaicTask(
            name, made_up_images(shape, foreground, count), foreground
        ),
        nominal=Facts(UNKNOWN_DIGEST, shape, sizes={}, lengths={}),
    )


def _digits(_: Options) -> TaskInfo:
    return _info("digits", (1, 8, 8), digits.DIGITS_FOREGROUND, digits.load_digits)


def _cifar10(_: Options) -> TaskInfo:
    return _info("cifar10", (3, 32, 32), cifar.CIFAR10_FOREGROUND, cifar.load_cifar10)


def _cifar100(_: Options) -> TaskInfo:
    return _info("cifar100", (3, 32, 32), cifar.CIFAR100_FOREGROUND, cifar.load_cifar100)


def _linear_orthogonal(options: Options) -> TaskInfo:
    count = options.num_classes
    if count is None or not 2 <= count <= LARGEST_NUM_CLASSES:
        raise RequestError(
            f"linear-orthogonal takes num_classes from 2 to {LARGEST_NUM_CLASSES:,}, got "
            f"{'none' if count is None else count}. Give it with --set num_classes=C."
        )
    shape = (1, 1, count + BACKGROUND_AXES)
    return _info(
        "linear-orthogonal", shape, foreground_names(count), lambda _: base_vectors(count)
    )


TASKS: Mapping[str, Declaration] = {
    "digits": Declaration(MOSAICS, _digits),
    "cifar10": Declaration(MOSAICS, _cifar10, data_set=cifar.data_set(cifar.CIFAR10)),
    "cifar100": Declaration(MOSAICS, _cifar100, data_set=cifar.data_set(cifar.CIFAR100)),
    "linear-orthogonal": Declaration(MOSAICS, _linear_orthogonal, {"num_classes": None}),
}
