"""Encoders of images, for captions. Their names and sizes are known without PyTorch."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from study.errors import RequestError, unknown
from study.tasks.sources.places import NO_PLACES, Places
from study.tasks.sources.reading import reading

if TYPE_CHECKING:
    from torch import Tensor

    from study.tasks.captions.encoders.network import EncoderNetwork


class Encoder(NamedTuple):
    """A network that turns pixels into regions.

    Attributes:
        stride: edge of a region in pixels.
        channels: D, features of a region.
        pretrained: whether there are weights that were trained on ImageNet.
    """

    stride: int
    channels: int
    pretrained: bool


ENCODERS: Mapping[str, Encoder] = {
    "vgg19": Encoder(16, 512, pretrained=True),
    "lite0": Encoder(32, 1280, pretrained=True),
    "small": Encoder(16, 256, pretrained=False),
}
"""Name, also of its module -> encoder."""


def build(name: str, precision: str = "float32") -> EncoderNetwork:
    """An encoder that waits for its weights: those of `weights`, or what a model draws.

    Args:
        name: of `ENCODERS`.
        precision: of its products, see `study.hardware.in_precision`.

    Raises:
        RequestError: no such encoder, or its packages are not installed.
    """
    from study.tasks.captions.encoders.network import built

    module = _module(name)
    return built(module.layers, module.MEAN, module.STD, precision)


def weights(name: str, places: Places = NO_PLACES) -> Mapping[str, Tensor]:
    """The pretrained weights of an encoder, as its `load_state_dict` takes them.

    Args:
        name: of `ENCODERS`.
        places: of the file of weights; None: what its package ships, or it is downloaded to the
            cache.

    Raises:
        RequestError: there are none, they cannot be downloaded, the file is damaged, or it holds
            the weights of another network.
    """
    if not _of(name).pretrained:
        known = [other for other, encoder in ENCODERS.items() if encoder.pretrained]
        raise RequestError(
            f"encoder {name} has no pretrained weights: train it, with --set encoder_lr=LR, or "
            f"take one that has: {', '.join(known)}."
        )
    return _module(name).read_weights(places, functools.partial(_checked, name))


def weights_digest(name: str, places: Places = NO_PLACES) -> str:
    """16 hexadecimal digits of an encoder's pretrained weights; `none` if it has none.

    They are those of names and values, in whatever file they are stored. A process reads a file
    only once for that.

    Raises:
        RequestError: as `weights`.
    """
    if not _of(name).pretrained:
        return "none"
    return _module(name).read_weights(places, functools.partial(_digest, name))


def at_hand(name: str, places: Places = NO_PLACES) -> bool:
    """Whether `weights` would download nothing.

    Raises:
        RequestError: the cache is on shared storage, which cannot be read.
    """
    return not _of(name).pretrained or _module(name).at_hand(places)


def _of(name: str) -> Encoder:
    if name not in ENCODERS:
        raise unknown("encoder", name, ENCODERS)
    return ENCODERS[name]


def _module(name: str) -> ModuleType:
    _of(name)
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ImportError as error:
        raise RequestError(
            f"encoder {name} needs packages that are not installed ({error}). Install them with "
            "`uv sync --extra captions`, or train one: --set encoder=small encoder_lr=LR."
        ) from error


def _checked(name: str, file: Path) -> dict[str, Tensor]:
    from study.tasks.captions.encoders.pretrained import read_checked

    module = _module(name)
    return read_checked(file, name, module.layers, module.PREFIX)


def _digest(name: str, file: Path) -> str:
    with reading(file, "Pass another file with --weights, or leave the option out."):
        status = file.stat()
    return _digest_once(name, file, status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _digest_once(name: str, file: Path, size: int, modified: int) -> str:
    from study.tasks.captions.encoders.pretrained import digest

    return digest(_checked(name, file))
