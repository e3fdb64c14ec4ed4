"""Data sets as focus-classify tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from study.errors import RequestError, unknown
from study.tasks.base_images import BaseImages, cache_root
from study.tasks.cifar import (
    CIFAR10,
    CIFAR10_FOREGROUND,
    CIFAR100,
    CIFAR100_FOREGROUND,
    load_cifar10,
    load_cifar100,
)
from study.tasks.digits import DIGITS_FOREGROUND, load_digits
from study.tasks.linear_orthogonal import (
    BACKGROUND_AXES,
    LARGEST_NUM_CLASSES,
    base_vectors,
    foreground_names,
)
from study.tasks.mosaics import MosaicTask


@dataclass(frozen=True)
class TaskInfo:
    """What is known of a task before its data is at hand.

    Attributes:
        input_shape: of one segment: (channels, height, width).
        foreground: names of the foreground classes.
        load: (data_dir, cache_dir) -> base images.
        download: folder that a download ends in; None: nothing is downloaded.
    """

    input_shape: tuple[int, int, int]
    foreground: tuple[str, ...]
    load: Callable[[str | None, str | None], BaseImages]
    download: str | None = None

    @property
    def num_classes(self) -> int:
        return len(self.foreground)


_TASKS = {
    "digits": TaskInfo((1, 8, 8), DIGITS_FOREGROUND, load_digits),
    "cifar10": TaskInfo((3, 32, 32), CIFAR10_FOREGROUND, load_cifar10, CIFAR10.folder),
    "cifar100": TaskInfo((3, 32, 32), CIFAR100_FOREGROUND, load_cifar100, CIFAR100.folder),
}

_LINEAR_ORTHOGONAL = "linear-orthogonal"
NAMES = (*_TASKS, _LINEAR_ORTHOGONAL)


def info(name: str, num_classes: int | None = None) -> TaskInfo:
    """What is known of a task without its data.

    Args:
        name: one of `NAMES`.
        num_classes: C of linear-orthogonal, which is made up with any number of classes.

    Raises:
        RequestError: no such task; or a number of classes where the task has its own, or none
            where it has not.
    """
    if name not in NAMES:
        raise unknown("task", name, NAMES)
    if name == _LINEAR_ORTHOGONAL:
        return _linear_orthogonal(num_classes)
    if num_classes is not None:
        raise RequestError(
            f"{name} has {_TASKS[name].num_classes} classes of its own; num_classes is for "
            f"{_LINEAR_ORTHOGONAL}. Leave it out, or write --set num_classes=none."
        )
    return _TASKS[name]


def _linear_orthogonal(num_classes: int | None) -> TaskInfo:
    if num_classes is None or not 2 <= num_classes <= LARGEST_NUM_CLASSES:
        raise RequestError(
            f"{_LINEAR_ORTHOGONAL} takes num_classes from 2 to {LARGEST_NUM_CLASSES:,}, got "
            f"{'none' if num_classes is None else num_classes}. Give it with --set num_classes=C."
        )
    count = num_classes
    return TaskInfo(
        (1, 1, count + BACKGROUND_AXES), foreground_names(count), lambda *_: base_vectors(count)
    )


def takes_data_dir(name: str) -> bool:
    """Whether a task reads a data set that may lie in any directory."""
    return name in _TASKS and _TASKS[name].download is not None


def at_hand(name: str, data_dir: str | None = None, cache_dir: str | None = None) -> bool:
    """Whether `load` would go without a download."""
    if not takes_data_dir(name) or data_dir is not None:
        return True
    folder = _TASKS[name].download
    assert folder is not None
    return (cache_root(cache_dir) / "downloads" / folder).is_dir()


def load(
    name: str,
    data_dir: str | None = None,
    cache_dir: str | None = None,
    num_classes: int | None = None,
) -> MosaicTask:
    """The task with its data.

    Args:
        name: one of `NAMES`.
        data_dir: where the data set lies; None: bundled, cached or downloaded. Tasks that are
            made up take none.
        cache_dir: where downloads and prepared data are kept; None: the user's cache directory.
        num_classes: see `info`.

    Raises:
        RequestError: no such task; or its data is not at hand, damaged or too small.
    """
    known = info(name, num_classes)
    return MosaicTask(name, known.load(data_dir, cache_dir), known.foreground)
