"""The declared tasks of mosaics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from study.cell import NO_OPTIONS, Options
from study.cell.declared import NONE, Axis, Text
from study.tasks.mosaics import cifar, digits, own_images
from study.tasks.mosaics.base_images import VALIDATION_SHARE, BaseImages
from study.tasks.mosaics.classes import REST, background_names, foreground_names, joined
from study.tasks.mosaics.labelled_images import load as load_images
from study.tasks.sources.data_set import DataSet
from study.tasks.sources.places import Places
from study.tasks.task import MOSAICS, Declaration, Modality, TaskInfo, pixels

_Read = Callable[[Places], BaseImages]


def mosaics_of(
    name: str,
    foreground: tuple[str, ...],
    read: _Read,
    validation_share: float = VALIDATION_SHARE,
    options: Options = NO_OPTIONS,
    classes: tuple[str, ...] = (),
    modality: Modality = MOSAICS,
) -> TaskInfo:
    """A task of mosaics.

    Args:
        name: of the task.
        foreground: names of the foreground classes, unless options name others.
        read: places of its files -> the images.
        validation_share: of the train images of each class, kept for validation.
        options: may name the classes of foreground and background.
        classes: all class names, so that an unknown one is refused before the data is at hand;
            empty: the data tell them.
        modality: of its inputs.
    """
    from study.tasks.mosaics.mosaics import MosaicTask

    background = options.get("background", REST)
    if "foreground" in options or "background" in options:
        given = options.get("foreground", joined(foreground))
        foreground = foreground_names(given, background)
        if classes:
            background_names(foreground, background, classes, name)

    def load(places: Places) -> MosaicTask:
        base = read(places)
        others = background_names(foreground, background, base.class_names, name)
        return MosaicTask(name, base, foreground, validation_share, others, modality)

    return TaskInfo(foreground, load)


def _own_images(options: Options) -> TaskInfo:
    side = options["pixels"]

    def read(places: Places) -> BaseImages:
        base = load_images(own_images.OWN_IMAGES, places, side)
        if "foreground" not in options:
            raise own_images.unchosen(base)
        return base

    share = own_images.VALIDATION_SHARE
    return mosaics_of(own_images.TASK, _TO_BE_CHOSEN, read, share, options)


_PIXELS = pixels(own_images.LEAST_PIXELS, 1_024, own_images.PIXELS)

_TO_BE_CHOSEN = ("first", "second")
"""Stand for the foreground of your own images until they can list their classes."""


def of_images(
    name: str,
    foreground: tuple[str, ...],
    read: Callable[[Places], BaseImages],
    classes: tuple[str, ...],
    validation_share: float = VALIDATION_SHARE,
    data_set: DataSet | None = None,
    modality: Modality = MOSAICS,
) -> Declaration:
    """A task of mosaics of labelled images, which the axes foreground and background may choose.

    Args:
        name: of the task.
        foreground: names of the foreground classes; label k is the k-th of them.
        read: places of its files -> the images, by `BaseImages.create`.
        classes: names of all classes.
        validation_share: of the train images of each class, kept for validation.
        data_set: that it reads; None: it is bundled or made up.
        modality: of its inputs, such as `study.tasks.MOSAICS` with further measures.
    """

    def info(options: Options) -> TaskInfo:
        return mosaics_of(name, foreground, read, validation_share, options, classes, modality)

    return Declaration(modality, info, _classes(joined(foreground)), data_set)


def _classes(usual: str | None = None) -> dict[str, Axis]:
    """The axes of the classes; `usual` is the foreground, unless it has to be chosen."""
    foreground = (
        "classes that are labels, e.g. 1+2+3; none: those of the paper, or for your own images a "
        "list of the classes"
    )
    background = "classes of the other segments; rest or none: all others"
    return {
        "foreground": Axis(foreground, Text(), (None,), (NONE,), usual=usual),
        "background": Axis(background, Text(), (None,), (NONE,), usual=REST),
    }


TASKS: Mapping[str, Declaration] = {
    "digits": of_images(
        "digits",
        digits.DIGITS_FOREGROUND,
        digits.load_digits,
        digits.DIGITS_CLASSES,
        digits.VALIDATION_SHARE,
    ),
    **{
        name: of_images(
            name,
            foreground,
            functools.partial(load_images, images, pixels=cifar.SIDE),
            images.class_names,
            data_set=images,
        )
        for name, foreground, images in (
            ("cifar10", cifar.CIFAR10_FOREGROUND, cifar.CIFAR10),
            ("cifar100", cifar.CIFAR100_FOREGROUND, cifar.CIFAR100),
        )
    },
    own_images.TASK: Declaration(
        MOSAICS, _own_images, {**_classes(), "pixels": _PIXELS}, own_images.OWN_IMAGES
    ),
}
