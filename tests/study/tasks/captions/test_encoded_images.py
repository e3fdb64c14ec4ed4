"""Pixels and features: as computed one by one, once a machine, anew whenever they must change."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from study.errors import RequestError
from study.tasks.captions import encoders, image_files
from study.tasks.captions.encoders import Encoder
from study.tasks.captions.images import ImageFiles, Noise
from study.tasks.sources.places import Places
from tests.made_up.coco import coco, write_coco

CPU = torch.device("cpu")
M, SIDE = 4, 32  # of the small encoder, whose stride is 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_coco(tmp_path / "coco", coco(5, 2))


def images(folder: Path, encoder: str = "small", digest: str = "digest") -> ImageFiles:
    files = sorted(f"train2017/{path.name}" for path in (folder / "train2017").iterdir())
    places = Places(cache_dir=str(folder.parent / "cache"))
    return ImageFiles(folder, files, digest, encoder, places)


def entries(folder: Path) -> list[str]:
    """What is kept, without the keys."""
    kept = (folder.parent / "cache" / "prepared").glob("mscoco-*")
    return sorted(path.name.rsplit("-", 1)[0] for path in kept)


class Means(nn.Module):
    """An encoder whose features are the mean red, green and blue of a region, and a weight."""

    def __init__(self, weight: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, pixels: Tensor) -> Tensor:
        return nn.functional.avg_pool2d(pixels.float(), 16) + self.weight


@pytest.fixture
def means(monkeypatch: pytest.MonkeyPatch) -> dict[str, Tensor]:
    """Makes `Means` the encoder vgg19; gives its pretrained weights, which may be changed."""
    weights = {"weight": torch.tensor(1.0)}
    known = {**encoders.ENCODERS, "vgg19": Encoder(16, 3, pretrained=True)}
    monkeypatch.setattr(encoders, "ENCODERS", known)
    monkeypatch.setattr(encoders, "build", lambda *_: Means())
    monkeypatch.setattr(encoders, "weights", lambda *_: weights)
    monkeypatch.setattr(encoders, "weights_digest", lambda *_: str(weights["weight"].item()))
    return weights


def test_pixels_are_those_of_the_files(folder: Path) -> None:
    pixels = images(folder).pixels(M)
    assert (pixels.shape, pixels.dtype) == ((5, 3, SIDE, SIDE), torch.uint8)
    for row, path in zip(pixels, sorted((folder / "train2017").iterdir()), strict=True):
        with Image.open(path) as image:
            expected = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        np.testing.assert_array_equal(row.permute(1, 2, 0).numpy(), expected)


def test_features_kept_are_features_computed(folder: Path) -> None:
    kept, pixels = images(folder).features(M, CPU), images(folder).pixels(M)
    assert (kept.shape, kept.dtype) == ((5, M, 256), torch.float16)
    with torch.no_grad():
        for ours, image in zip(kept, pixels, strict=True):
            (computed,) = encoders.build("small")(image[None])
            for region in range(M):
                expected = computed[:, region // 2, region % 2]
                torch.testing.assert_close(ours[region].float(), expected, rtol=1e-3, atol=1e-5)


def test_features_are_of_full_precision(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if a cell of tf32 is the first to ask for them."""
    found = []

    class Told(Means):
        def forward(self, pixels: Tensor) -> Tensor:
            found.append(torch.backends.cudnn.allow_tf32)
            return super().forward(pixels).repeat(1, 86, 1, 1)[:, :256]

    monkeypatch.setattr(encoders, "build", lambda *_: Told())
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    images(folder).features(M, CPU)
    assert set(found) == {False}


def test_regions_are_row_by_row(folder: Path, means: dict[str, Tensor]) -> None:
    """With the pretrained weights, of a picture that is red above and blue below."""
    picture = Image.new("RGB", (80, 40), "blue")
    picture.paste("red", (0, 0, 80, 20))
    for path in (folder / "train2017").iterdir():
        picture.save(path, "PNG")
    features = images(folder, "vgg19").features(M, CPU)
    red, blue = [256.0, 1, 1], [1.0, 1, 256]
    expected = torch.tensor([red, red, blue, blue])
    torch.testing.assert_close(features[0].float(), expected, rtol=0, atol=9)  # for the edge


def test_images_of_every_mode_are_three_colours(tmp_path: Path) -> None:
    for mode in ("L", "CMYK", "RGB"):
        Image.new(mode, (40, 20)).save(tmp_path / mode, "JPEG")
        assert image_files.image_pixels(tmp_path / mode, 16).shape == (3, 16, 16)


def test_nothing_is_computed_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = images(folder).pixels(M)
    monkeypatch.setattr(image_files, "image_pixels", None)  # features take the pixels kept
    features = images(folder).features(M, CPU)
    monkeypatch.setattr(encoders, "build", None)
    assert torch.equal(images(folder).pixels(M), pixels)
    assert torch.equal(images(folder).features(M, CPU), features)
    assert entries(folder) == ["mscoco-features", "mscoco-pixels"]


def test_other_images_weights_or_regions_are_computed_anew(
    folder: Path, means: dict[str, Tensor]
) -> None:
    first = images(folder, "vgg19").features(M, CPU)
    means["weight"] += 1
    other_weights = images(folder, "vgg19").features(M, CPU)
    assert torch.equal(other_weights, (first + 1).half())
    assert images(folder, "vgg19").features(9, CPU).shape == (5, 9, 3)
    path = min((folder / "train2017").iterdir())
    Image.new("RGB", (32, 32)).save(path, "JPEG")
    other_images = images(folder, "vgg19", "another digest").features(M, CPU)
    assert torch.equal(other_images[1:], other_weights[1:])
    assert not torch.equal(other_images[0], other_weights[0])
    assert entries(folder) == ["mscoco-features"] * 4


def test_a_trained_encoder_starts_from_the_pretrained_weights(
    folder: Path, means: dict[str, Tensor]
) -> None:
    assert images(folder, "vgg19").encoder_weights is means
    assert images(folder, "small").encoder_weights is None


def test_an_image_that_went_is_named(folder: Path) -> None:
    path = min((folder / "train2017").iterdir())
    stays = images(folder)
    path.unlink()
    for use in (lambda: stays.pixels(M), lambda: stays.thumbnail(0)):
        with pytest.raises(RequestError, match=rf"{path.name} cannot be read \(No su"):
            use()
    assert entries(folder) == []


def test_thumbnails_are_square_jpegs(folder: Path) -> None:
    for made in (images(folder).thumbnail(0), Noise("small", 2).thumbnail(0)):
        with Image.open(io.BytesIO(made)) as image:
            assert (image.format, image.size) == ("JPEG", (224, 224))


def test_noise_has_the_shapes_of_images(folder: Path) -> None:
    real: Any = images(folder)
    for ours, theirs in (
        (Noise("small", 5).pixels(M), real.pixels(M)),
        (Noise("small", 5).features(M, CPU), real.features(M, CPU)),
    ):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
