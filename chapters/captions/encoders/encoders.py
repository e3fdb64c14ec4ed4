"""Encoders of images, for captions. Their names and sizes are known without PyTorch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from study.cell import Options
from study.tasks.sources import data_set
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import Places

VGG19_URL = "https://download.pytorch.org/models/vgg19-dcbb9e9d.pth"
"""`torchvision.models.VGG19_Weights.IMAGENET1K_V1.url`."""

_SHA256 = "dcbb9e9d"
"""Of the file, the beginning, which is in its name."""

_FILE = "vgg19.pth"


class Encoder(NamedTuple):
    """A network that turns pixels into regions.

    Attributes:
        stride: edge of a region in pixels.
        channels: D, features of a region.
        pretrained: whether there are weights that were trained on ImageNet.
        mean: of red, green and blue, in [0, 1]; it is subtracted.
        std: what pixels are divided by then.
    """

    stride: int
    channels: int
    pretrained: bool
    mean: tuple[float, float, float]
    std: tuple[float, float, float]

    def pixels(self, m: int) -> int:
        """P of the P x P pixels of which it makes m regions, g x g."""
        return self.stride * math.isqrt(m)


ENCODERS: Mapping[str, Encoder] = {
    "vgg19": Encoder(16, 512, True, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
    "lite0": Encoder(32, 1280, True, mean=(0.498, 0.498, 0.498), std=(0.502, 0.502, 0.502)),
    "small": Encoder(16, 256, False, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5)),
}


def at_hand(places: Places, options: Options) -> bool:
    """Whether the encoder of some options and its weights can be had without a download.

    Raises:
        RequestError: the cache is on shared storage, which cannot be read.
    """
    given = options["encoder"] != "vgg19" or places.file("weights")
    return bool(given) or data_set.at_hand(_VGG19, _cache(places))


def fetch_vgg19(places: Places) -> Path:
    """The file of VGG19's weights in the cache, to which it is downloaded once.

    Raises:
        RequestError: it cannot be downloaded, see `downloading`.
    """
    return read_data_set(_VGG19, _cache(places), lambda folder: folder / _FILE)


def _cache(places: Places) -> Places:
    """Without the directory of the images, where no weights are."""
    return Places(cache_dir=places.cache_dir)


def _download(folder: Path, where: str) -> None:
    import torch

    remedy = (
        f"It is {VGG19_URL}: pass the file with --weights FILE, or --set encoder=lite0, whose "
        "weights are in a package."
    )
    with downloading(_VGG19.title, 575, folder, where, remedy):
        torch.hub.download_url_to_file(VGG19_URL, str(folder / _FILE), _SHA256, progress=False)


_VGG19 = DataSet("VGG19's weights file", "vgg19-weights", _FILE, lambda n: n == _FILE, _download)
