"""Data sets as focus-classify tasks. Their names are known without PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from study.cell import NO_OPTIONS, Options
from study.errors import RequestError, unknown
from study.tasks.base import UNKNOWN_DIGEST, Facts, Task
from study.tasks.mosaics.base_images import BaseImages, made_up_images
from study.tasks.mosaics.cifar import (
    CIFAR10,
    CIFAR10_FOREGROUND,
    CIFAR100,
    CIFAR100_FOREGROUND,
    data_set,
    load_cifar10,
    load_cifar100,
)
from study.tasks.mosaics.digits import DIGITS_FOREGROUND, load_digits
from study.tasks.mosaics.linear_orthogonal import (
    BACKGROUND_AXES,
    LARGEST_NUM_CLASSES,
    base_vectors,
    foreground_names,
)
from study.tasks.posts import hatexplain
from study.tasks.sources import fetched
from study.tasks.sources.cache import absolute as absolute
from study.tasks.sources.fetched import DataSet


@dataclass(frozen=True)
class TaskInfo:
    """What is known of a task before its data is at hand.

    Attributes:
        input_shape: of one segment of a mosaic: (channels, height, width); of a text (words,).
        classes: names of the classes; of mosaics, those of the foreground.
        load: (data_dir, cache_dir) -> the task.
        made_up: (facts, count) -> the same with noise for data, at least `count` inputs a split.
        nominal: what is supposed of its data before they are at hand.
    """

    input_shape: tuple[int, ...]
    classes: tuple[str, ...]
    load: Callable[[str | None, str | None], Task]
    made_up: Callable[[Facts, int], Task]
    nominal: Facts

    @property
    def num_classes(self) -> int:
        return len(self.classes)


_IMAGES: dict[str, tuple[tuple[int, ...], tuple[str, ...], Callable[..., BaseImages]]] = {
    "digits": ((1, 8, 8), DIGITS_FOREGROUND, load_digits),
    "cifar10": ((3, 32, 32), CIFAR10_FOREGROUND, load_cifar10),
    "cifar100": ((3, 32, 32), CIFAR100_FOREGROUND, load_cifar100),
}
"""Task -> shape of an image, foreground classes, loader."""

_DATA_SETS: dict[str, DataSet] = {
    "cifar10": data_set(CIFAR10),
    "cifar100": data_set(CIFAR100),
    "hatexplain": hatexplain.DATA_SET,
}
"""Tasks whose data lie somewhere else."""

_LINEAR_ORTHOGONAL = "linear-orthogonal"
_HATEXPLAIN = "hatexplain"
_HATEXPLAIN_POSTS = {"train": 15_383, "validation": 1_922, "test": 1_924}
_HATEXPLAIN_WORDS, _HATEXPLAIN_LENGTH = 24_991, 23  # of the training split; words a post
NAMES = (*_IMAGES, _LINEAR_ORTHOGONAL, _HATEXPLAIN)


def info(name: str, options: Options = NO_OPTIONS) -> TaskInfo:
    """What is known of a task without its data.

    Args:
        name: one of `NAMES`.
        options: what its data depend on, see `study.cell.Cell`.

    Raises:
        RequestError: no such task; or an option that it does not have, or lacks.
    """
    if name not in NAMES:
        raise unknown("task", name, NAMES)
    if name != _LINEAR_ORTHOGONAL and options.num_classes is not None:
        classes = hatexplain.CLASSES if name == _HATEXPLAIN else _IMAGES[name][1]
        raise RequestError(
            f"{name} has {len(classes)} classes of its own; num_classes is for "
            f"{_LINEAR_ORTHOGONAL}. Leave it out, or write --set num_classes=none."
        )
    if name == _HATEXPLAIN:
        return _text(name, options)
    for option in ("label_rule", "rationale_rule", "min_count"):
        if getattr(options, option) is not None:
            raise RequestError(
                f"{option} is for {_HATEXPLAIN}, not for {name}. Leave it out, or write "
                f"--set {option}=none."
            )
    if name == _LINEAR_ORTHOGONAL:
        return _linear_orthogonal(options.num_classes)
    return _mosaics(name, *_IMAGES[name])


def _mosaics(
    name: str,
    shape: tuple[int, ...],
    foreground: tuple[str, ...],
    read: Callable[[str | None, str | None], BaseImages],
) -> TaskInfo:
    from study.tasks.mosaics.mosaics import MosaicTask

    return TaskInfo(
        shape,
        foreground,
        load=lambda *where: MosaicTask(name, read(*where), foreground),
        made_up=lambda *_: MosaicTask(name, made_up_images(shape, foreground), foreground),
        nominal=Facts(UNKNOWN_DIGEST, shape, sizes={}, lengths={}),
    )


def _linear_orthogonal(num_classes: int | None) -> TaskInfo:
    if num_classes is None or not 2 <= num_classes <= LARGEST_NUM_CLASSES:
        raise RequestError(
            f"{_LINEAR_ORTHOGONAL} takes num_classes from 2 to {LARGEST_NUM_CLASSES:,}, got "
            f"{'none' if num_classes is None else num_classes}. Give it with --set num_classes=C."
        )
    count = num_classes
    return _mosaics(
        _LINEAR_ORTHOGONAL,
        (1, 1, count + BACKGROUND_AXES),
        foreground_names(count),
        lambda *_: base_vectors(count),
    )


def _text(name: str, options: Options) -> TaskInfo:
    from study.tasks.posts.texts import made_up_texts, nominal_facts, text_task

    label_rule, rationale_rule = options.label_rule, options.rationale_rule
    if label_rule is None or rationale_rule is None or options.min_count is None:
        raise RequestError(
            f"{name} takes a label_rule, a rationale_rule and a min_count, none is none. Leave "
            "them out, or give them with --set."
        )

    def load(data_dir: str | None, cache_dir: str | None) -> Task:
        posts = hatexplain.load_posts(data_dir, cache_dir, label_rule, rationale_rule)
        return text_task(name, posts, options)

    nominal = nominal_facts(_HATEXPLAIN_WORDS, _HATEXPLAIN_POSTS, _HATEXPLAIN_LENGTH)
    return TaskInfo(
        nominal.input_shape,
        hatexplain.CLASSES,
        load=load,
        made_up=lambda facts, count: made_up_texts(name, facts, count),
        nominal=nominal,
    )


def takes_data_dir(name: str) -> bool:
    """Whether a task reads a data set that may lie in any directory."""
    return name in _DATA_SETS


def at_hand(name: str, data_dir: str | None = None, cache_dir: str | None = None) -> bool:
    """Whether `load` would neither download nor copy anything from shared storage.

    Raises:
        RequestError: shared storage cannot be read, or has no files of the data set.
    """
    return not takes_data_dir(name) or fetched.at_hand(_DATA_SETS[name], data_dir, cache_dir)


def load(
    name: str,
    data_dir: str | None = None,
    cache_dir: str | None = None,
    options: Options = NO_OPTIONS,
) -> Task:
    """The task with its data.

    Args:
        name: one of `NAMES`.
        data_dir: directory or URL where the data set lies, the latter is copied to the cache;
            None: bundled, cached or downloaded. Tasks that are made up take none.
        cache_dir: where downloads and prepared data are kept; None: the user's cache directory;
            a URL keeps downloads for all machines, the rest is in the user's cache directory.
        options: what its data depend on, see `study.cell.Cell`.

    Raises:
        RequestError: no such task; or its data is not at hand, damaged or too small.
    """
    return info(name, options).load(data_dir, cache_dir)
