"""VGG19 up to its last convolution (Simonyan & Zisserman, 2015), as torchvision publishes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from study.tasks.sources import data_set
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import Places

T = TypeVar("T")

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)

URL = "https://download.pytorch.org/models/vgg19-dcbb9e9d.pth"
"""`torchvision.models.VGG19_Weights.IMAGENET1K_V1.url`."""

_SHA256 = "dcbb9e9d"
"""Of the file, the beginning, which is in its name."""

PREFIX = "features."
"""Of the layers' names in the file."""

_FILE = "vgg19.pth"

_BLOCKS = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))
"""(channels, number of convolutions) between poolings."""


def layers() -> nn.Sequential:
    """The layers `features[:36]` of torchvision's VGG19: all but the last pooling."""
    made: list[nn.Module] = []
    channels = 3
    for out, count in _BLOCKS:
        for _ in range(count):
            made += [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(inplace=True)]
            channels = out
        made.append(nn.MaxPool2d(2))
    return nn.Sequential(*made[:-1])


def read_weights(places: Places, read: Callable[[Path], T]) -> T:
    """Reads the file of weights at its place, or the download.

    Raises:
        RequestError: it cannot be downloaded; or from `read`.
    """
    if places.weights is not None:
        return read(Path(places.weights))
    return read_data_set(_DOWNLOAD, _cache(places), lambda folder: read(folder / _FILE))


def at_hand(places: Places) -> bool:
    """Whether nothing is downloaded."""
    return places.weights is not None or data_set.at_hand(_DOWNLOAD, _cache(places))


def _cache(places: Places) -> Places:
    return Places(cache_dir=places.cache_dir)


def _download(folder: Path, where: str) -> None:
    """Downloads the file into `folder`.

    Raises:
        RequestError: it cannot be downloaded, see `downloading`.
    """
    remedy = (
        f"It is {URL}: pass the file with --weights FILE, or --set encoder=lite0, whose weights "
        "are in a package."
    )
    with downloading(_DOWNLOAD.title, 575, folder, where, remedy):
        torch.hub.download_url_to_file(URL, str(folder / _FILE), _SHA256, progress=False)


_DOWNLOAD = DataSet(
    title="VGG19's weights file",
    folder="vgg19-weights",
    accepted=_FILE,
    belongs=lambda name: name == _FILE,
    download=_download,
)
