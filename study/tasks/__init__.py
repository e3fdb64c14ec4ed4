"""Data sets as focus-classify tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from study.errors import unknown
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


def info(name: str) -> TaskInfo:
    """What is known of a task without its data.

    Raises:
        RequestError: no such task.
    """
    if name not in _TASKS:
        raise unknown("task", name, _TASKS)
    return _TASKS[name]


def at_hand(name: str, data_dir: str | None = None, cache_dir: str | None = None) -> bool:
    """Whether `load` would go without a download."""
    folder = info(name).download
    if data_dir is not None or folder is None:
        return True
    return (cache_root(cache_dir) / "downloads" / folder).is_dir()


def load(name: str, data_dir: str | None = None, cache_dir: str | None = None) -> MosaicTask:
    """The task with its data.

    Args:
        name: digits, cifar10 or cifar100.
        data_dir: where the data set lies; None: bundled, cached or downloaded.
        cache_dir: where downloads and prepared data are kept; None: the user's cache directory.

    Raises:
        RequestError: no such task; or its data is not at hand, damaged or too small.
    """
    known = info(name)
    return MosaicTask(name, known.load(data_dir, cache_dir), known.foreground)
