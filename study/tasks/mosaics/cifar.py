"""CIFAR-10 and CIFAR-100: their classes, and their download through torchvision."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.labelled_images import MAX_VALUE, Read, load
from study.tasks.mosaics.layouts import OFFICIAL, Wanted, may_belong
from study.tasks.sources.data_set import DataSet
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import NO_PLACES, Places

# fmt: off
CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)
CIFAR100_CLASSES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle",
    "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
    "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox",
    "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom",
    "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road",
    "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake",
    "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle",
    "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)
# fmt: on

CIFAR10_FOREGROUND = ("airplane", "automobile", "bird")

CIFAR100_FOREGROUND_SUPERCLASSES = {
    "aquatic mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large omnivores and herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
}
CIFAR100_FOREGROUND = tuple(
    name for names in CIFAR100_FOREGROUND_SUPERCLASSES.values() for name in names
)

SIDE = 32


def _wanted(title: str, kind: str, label_column: str, class_names: tuple[str, ...]) -> Wanted:
    accepted = (
        f"{OFFICIAL[kind].folder}/ as torchvision keeps it, Hugging Face Parquet (train*.parquet "
        "and test*.parquet), or class folders (train/<class>/*.png and test/<class>/*.png)"
    )
    misspelt = {"cra": "crab"}  # in Hugging Face's copy
    return Wanted(title, accepted, (kind,), (label_column,), class_names, misspelt)


CIFAR10 = _wanted("CIFAR-10", "CIFAR10", "label", CIFAR10_CLASSES)
CIFAR100 = _wanted("CIFAR-100", "CIFAR100", "fine_label", CIFAR100_CLASSES)


def load_cifar10(places: Places = NO_PLACES) -> BaseImages:
    """CIFAR-10, images of 32 x 32 x 3.

    Args:
        places: of the data set, in a layout of `study.tasks.mosaics.layouts`, and of the cache,
            for downloads and prepared images.

    Raises:
        RequestError: it is not at hand and cannot be downloaded; or its files are incomplete,
            damaged, or of another data set.
    """
    return load("cifar10", data_set(CIFAR10), CIFAR10, places, SIDE, _create)


def load_cifar100(places: Places = NO_PLACES) -> BaseImages:
    """CIFAR-100 with its 100 fine classes; see `load_cifar10`."""
    return load("cifar100", data_set(CIFAR100), CIFAR100, places, SIDE, _create)


def _create(read: Read) -> BaseImages:
    assert read.test is not None  # of a published data set
    source, names = str(read.data_dir), read.class_names
    return BaseImages.create(
        *read.train, *read.test, class_names=names, max_value=MAX_VALUE, source=source
    )


def data_set(wanted: Wanted) -> DataSet:
    """CIFAR-10 or CIFAR-100 as a data set that is found, copied or downloaded."""
    folder = OFFICIAL[wanted.official[0]].folder
    download = functools.partial(_download, wanted)
    return DataSet(wanted.title, folder, wanted.accepted, may_belong, download)


def _download(wanted: Wanted, folder: Path, where: str) -> None:
    """Downloads the official archive and leaves its files in `folder`.

    Raises:
        RequestError: it cannot be downloaded, see `downloading`.
    """
    remedy = f"Pass it with --data-dir DIR: {wanted.accepted}."
    with downloading(wanted.title, 170, folder, where, remedy):
        from torchvision import datasets

        (kind,) = wanted.official
        with tempfile.TemporaryDirectory(dir=folder) as unpacked:
            getattr(datasets, kind)(unpacked, download=True)
            for path in (Path(unpacked) / OFFICIAL[kind].folder).iterdir():
                path.rename(folder / path.name)
