"""CIFAR-10 and CIFAR-100: their files, prepared form and download through torchvision."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.mosaics.layouts import FileNames, find, may_belong, read
from study.tasks.sources.cached import fingerprint
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import NO_PLACES, Places

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
CIFAR10_FOREGROUND = ("airplane", "automobile", "bird")

# fmt: off
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

CIFAR10 = FileNames(
    title="CIFAR-10",
    class_names=CIFAR10_CLASSES,
    folder="cifar-10-batches-py",
    train=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test=("test_batch",),
    meta="batches.meta",
    meta_key="label_names",
    label_key="labels",
    label_column="label",
)
CIFAR100 = FileNames(
    title="CIFAR-100",
    class_names=CIFAR100_CLASSES,
    folder="cifar-100-python",
    train=("train",),
    test=("test",),
    meta="meta",
    meta_key="fine_label_names",
    label_key="fine_labels",
    label_column="fine_label",
    misspelt={"cra": "crab"},  # in Hugging Face's copy
)

_MAX_VALUE = 255
_PREPARED_VERSION = 2
"""Part of the prepared form's name; raise it when the readers return something else."""


def load_cifar10(places: Places = NO_PLACES) -> BaseImages:
    """CIFAR-10, images of 32 x 32 x 3.

    Args:
        places: of the data set, in a layout of `study.tasks.mosaics.layouts`, and of the cache,
            for downloads and prepared images.

    Raises:
        RequestError: it is not at hand and cannot be downloaded; or its files are incomplete,
            damaged, or of another data set.
    """
    return _load("cifar10", CIFAR10, places)


def load_cifar100(places: Places = NO_PLACES) -> BaseImages:
    """CIFAR-100 with its 100 fine classes; see `load_cifar10`."""
    return _load("cifar100", CIFAR100, places)


def _load(task: str, names: FileNames, places: Places) -> BaseImages:
    cache = places.cache
    return read_data_set(
        data_set(names), places, lambda folder: _load_from(folder, task, names, cache)
    )


def data_set(names: FileNames) -> DataSet:
    """CIFAR-10 or CIFAR-100 as a data set that is found, copied or downloaded."""
    return DataSet(
        title=names.title,
        folder=names.folder,
        accepted=names.accepted_layouts,
        belongs=functools.partial(may_belong, names=names),
        download=functools.partial(_download, names),
    )


def _load_from(data_dir: Path, task: str, names: FileNames, cache: Path) -> BaseImages:
    found = find(data_dir, names)

    def read_files() -> BaseImages:
        train, test = read(found, names)
        return BaseImages.create(
            *train,
            *test,
            class_names=names.class_names,
            max_value=_MAX_VALUE,
            source=str(data_dir),
        )

    known = fingerprint(f"{_PREPARED_VERSION} {found.layout}", found.files)
    return prepared(cache / "prepared" / f"{task}-{known}", read_files)


def _download(names: FileNames, folder: Path, where: str) -> None:
    """Downloads the official archive and leaves its files in `folder`.

    Raises:
        RequestError: it cannot be downloaded, see `downloading`.
    """
    remedy = f"Pass it with --data-dir DIR: {names.accepted_layouts}."
    with downloading(names.title, 170, folder, where, remedy):
        from torchvision import datasets

        images = {"CIFAR-10": datasets.CIFAR10, "CIFAR-100": datasets.CIFAR100}[names.title]
        with tempfile.TemporaryDirectory(dir=folder) as unpacked:
            images(unpacked, download=True)
            for path in (Path(unpacked) / names.folder).iterdir():
                path.rename(folder / path.name)
