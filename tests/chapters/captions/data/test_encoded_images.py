"""Features: as computed one by one, once a machine, anew whenever they must change."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from chapters.captions.data import encoded_images, image_files
from chapters.captions.data.encoded_images import ImageFiles
from chapters.captions.encoders import encoder_networks
from chapters.captions.encoders.encoders import Encoder
from study.errors import RequestError
from study.tasks.sources.places import Places
from tests.chapters.captions.coco_files import coco, write_coco

CPU = torch.device("cpu")
M = 4


@pytest.fixture
def images(tmp_path: Path) -> ImageFiles:
    folder = write_coco(tmp_path / "coco", coco(5, 2))
    files = sorted((folder / "train2017").iterdir())
    return ImageFiles(files, "digest", "small", Places(cache_dir=str(tmp_path / "cache")))


def kept(images: ImageFiles) -> list[Path]:
    return sorted((images.places.cache / "prepared").glob("mscoco-*"))


class Means(nn.Module):
    """An encoder whose features are the mean red, green and blue of a region, and a weight."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, pixels: Tensor) -> Tensor:
        return nn.functional.avg_pool2d(pixels.float(), 16) + self.weight


@pytest.fixture
def means(images: ImageFiles, monkeypatch: pytest.MonkeyPatch) -> ImageFiles:
    """Images whose encoder is `Means`, with the weight that their places name."""
    known = {"means": Encoder(16, 3, True, (0, 0, 0), (1, 1, 1))}
    monkeypatch.setattr(encoded_images, "ENCODERS", known)

    def weights(_: str, places: Places) -> str:
        return places.file("weights") or ""

    monkeypatch.setattr(encoder_networks, "weights_digest", weights)
    monkeypatch.setattr(encoder_networks, "pretrained", lambda *of: Means(float(weights(*of))))
    places = images.places._replace(files=(("weights", "1"),))
    return replace(images, encoder="means", places=places)


@pytest.mark.parametrize("mode", ["L", "CMYK", "RGB"])
def test_images_of_every_mode_are_three_colours(mode, tmp_path):
    Image.new(mode, (40, 20)).save(tmp_path / mode, "JPEG")
    assert image_files.image_pixels(tmp_path / mode, 16).shape == (3, 16, 16)


def test_features_kept_are_features_computed(images):
    """Region by region, row by row."""
    features, pixels = images.features(M, CPU), images.pixels(M)
    assert (features.shape, features.dtype) == ((5, M, 256), torch.float16)
    with torch.no_grad():
        computed = encoder_networks.build("small")(pixels)
    for region in range(M):
        expected = computed[:, :, region // 2, region % 2]
        torch.testing.assert_close(features[:, region].float(), expected, rtol=1e-3, atol=1e-5)


def test_features_are_of_full_precision(means, monkeypatch):
    """Even if a cell of tf32 is the first to ask for them."""
    found, network = [], Means(0.0)
    network.register_forward_hook(lambda *_: found.append(torch.backends.cudnn.allow_tf32))
    monkeypatch.setattr(encoder_networks, "pretrained", lambda *_: network)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    means.features(M, CPU)
    assert set(found) == {False}


def test_other_images_weights_or_regions_are_computed_anew(means):
    first = means.features(M, CPU)
    heavier = replace(means, places=means.places._replace(files=(("weights", "2"),)))
    assert torch.equal(heavier.features(M, CPU), (first + 1).half())
    assert means.features(9, CPU).shape == (5, 9, 3)
    other = replace(means, files=means.files[::-1], digest="another")
    assert torch.equal(other.features(M, CPU), first.flip(0))
    assert len(kept(means)) == 4


def test_an_array_that_is_damaged_is_made_again(images):
    first = images.pixels(M).clone()
    (folder,) = kept(images)
    os.truncate(folder / "array.raw", 9)
    assert torch.equal(images.pixels(M), first)


def test_an_image_that_went_is_named(images):
    images.files[0].unlink()
    for use in (lambda: images.pixels(M), lambda: images.thumbnail(0)):
        with pytest.raises(RequestError, match=rf"{images.files[0]} cannot be read \(No su"):
            use()
    assert kept(images) == []


def test_a_trained_encoder_starts_from_the_pretrained_weights(means):
    assert means.encoder_weights == {"weight": torch.tensor(1.0)}


def test_a_thumbnail_is_a_jpeg(images):
    with Image.open(io.BytesIO(images.thumbnail(0))) as image:
        assert (image.format, image.size) == ("JPEG", (224, 224))
