"""CIFAR-10 and CIFAR-100: their classes, and their download through torchvision."""

from __future__ import annotations

import tempfile
from pathlib import Path

from study.tasks.mosaics.layouts import ImageSet, may_belong
from study.tasks.sources.downloading import downloading

CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
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
_CIFAR100_BACKGROUND = (
    "apple", "bed", "bicycle", "bottle", "bowl", "bridge", "bus", "can", "castle", "chair",
    "clock", "cloud", "couch", "cup", "forest", "house", "keyboard", "lamp", "lawn_mower",
    "maple_tree", "motorcycle", "mountain", "mushroom", "oak_tree", "orange", "orchid",
    "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "road", "rocket",
    "rose", "sea", "skyscraper", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tractor", "train", "tulip", "wardrobe", "willow_tree",
)  # fmt: skip
CIFAR100_CLASSES = tuple(sorted((*CIFAR100_FOREGROUND, *_CIFAR100_BACKGROUND)))
"""In the order of their labels."""

SIDE = 32
"""Height and width of their images."""


def _cifar(
    title: str, kind: str, folder: str, label_column: str, class_names: tuple[str, ...]
) -> ImageSet:
    """A data set as torchvision's class of that kind downloads and keeps it."""
    accepted = (
        f"{folder}/ as torchvision keeps it, Hugging Face Parquet (train*.parquet and "
        "test*.parquet), or class folders (train/<class>/*.png and test/<class>/*.png)"
    )

    def download(partial: Path, where: str) -> None:
        remedy = f"Pass it with --data-dir DIR (data_dir in Python): {accepted}."
        with downloading(title, 170, partial, where, remedy):
            from torchvision import datasets

            with tempfile.TemporaryDirectory(dir=partial) as unpacked:
                getattr(datasets, kind)(unpacked, download=True)
                for path in (Path(unpacked) / folder).iterdir():
                    path.rename(partial / path.name)

    return ImageSet(
        title=title,
        folder=folder,
        accepted=accepted,
        belongs=may_belong,
        download=download,
        layouts=(kind, "Parquet", "folders of splits", "class folders"),
        label_columns=(label_column,),
        class_names=class_names,
    )


CIFAR10 = _cifar("CIFAR-10", "CIFAR10", "cifar-10-batches-py", "label", CIFAR10_CLASSES)
CIFAR100 = _cifar("CIFAR-100", "CIFAR100", "cifar-100-python", "fine_label", CIFAR100_CLASSES)
