"""Images as a model takes them: pixels, or the features of a frozen encoder.

Either is computed once for all images of a data set, kept in the cache and memory-mapped.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from study.errors import RequestError
from study.hardware import products
from study.tasks.captions import encoders, image_files
from study.tasks.captions.arrays import kept, opened
from study.tasks.sources.places import Places

_VERSION = 1
"""Raised when pixels or features are computed in another way."""

_TOGETHER = {"cpu": 2, "cuda": 64}
"""Images that go through the encoder at a time, by device. On a CPU more are slower: at 448 pixels
EfficientNet-lite0 takes 55 ms for each of 2 and 89 ms for each of 16 (docs/log.md)."""


class Images(Protocol):
    """The images of a task."""

    @property
    def encoder_weights(self) -> Mapping[str, Tensor] | None:
        """What a trained encoder starts from; None: it is drawn."""
        ...

    def pixels(self, m: int) -> Tensor:
        """(N, 3, P, P) uint8 on the host, of which the encoder makes m regions.

        Raises:
            RequestError: m is no square; or they cannot be made or kept.
        """
        ...

    def features(self, m: int, device: torch.device) -> Tensor:
        """(N, m, D) float16 on the host: D features of each region.

        Region j is row j // g, column j % g of g x g. On a GPU they are computed there; between
        devices they differ by float16's rounding.

        Raises:
            RequestError: m is no square; or they cannot be made or kept.
        """
        ...

    def thumbnail(self, row: int) -> bytes:
        """The image for people, as JPEG."""
        ...


def regions_a_side(m: int) -> int:
    """g of the g x g = m regions.

    Raises:
        RequestError: m is no square.
    """
    side = math.isqrt(m)
    if side**2 != m:
        raise RequestError(
            f"m={m}: the regions of an image are a square grid, so m must be a square, such as "
            f"{side**2} or {(side + 1) ** 2}. Change it with --set m=M."
        )
    return side


def pixels_a_side(m: int, encoder: str) -> int:
    """P of the P x P pixels of which an encoder makes m regions.

    Raises:
        RequestError: m is no square.
    """
    return encoders.ENCODERS[encoder].stride * regions_a_side(m)


class ImageFiles:
    """The images of a directory.

    Args:
        folder: the directory.
        files: names of the images in it.
        digest: of their content, in this order.
        encoder: name of the encoder.
        places: of the encoder's weights and of the cache.
    """

    def __init__(
        self, folder: Path, files: Sequence[str], digest: str, encoder: str, places: Places
    ) -> None:
        self._folder = folder
        self._files = files
        self._digest = digest
        self._encoder = encoder
        self._places = places

    @property
    def encoder_weights(self) -> Mapping[str, Tensor] | None:
        """See `Images`.

        Raises:
            RequestError: they are not at hand, or of another network.
        """
        if not encoders.ENCODERS[self._encoder].pretrained:
            return None
        return encoders.weights(self._encoder, self._places)

    def pixels(self, m: int) -> Tensor:
        """See `Images`."""
        side = pixels_a_side(m, self._encoder)
        folder, shape = self._pixels_kept(side)
        doing = f"decoding {len(self._files):,} images to {side} x {side} pixels"
        return _tensor(
            kept(
                folder, shape, np.uint8,
                lambda: image_files.pixels(self._folder, self._files, side, doing),
            )
        )  # fmt: skip

    def features(self, m: int, device: torch.device) -> Tensor:
        """See `Images`."""
        side = pixels_a_side(m, self._encoder)
        digest = encoders.weights_digest(self._encoder, self._places)
        shape = (len(self._files), m, encoders.ENCODERS[self._encoder].channels)
        folder = self._kept("features", side, self._encoder, digest)
        return _tensor(kept(folder, shape, np.float16, lambda: self._encode(side, device)))

    def thumbnail(self, row: int) -> bytes:
        """See `Images`.

        Raises:
            RequestError: the image cannot be decoded.
        """
        return image_files.thumbnail(self._folder / self._files[row])

    def _encode(self, side: int, device: torch.device) -> Iterator[np.ndarray]:
        """The features of some images at a time."""
        encoder = encoders.build(self._encoder)
        if (weights := self.encoder_weights) is not None:
            encoder.load_state_dict(dict(weights))
        encoder.eval().to(device)
        doing = (
            f"encoding {len(self._files):,} images with {self._encoder} at {side} x {side} pixels"
        )
        decoded = self._decoded(side, doing)
        together = _TOGETHER[device.type]
        while part := list(itertools.islice(decoded, together)):
            # Whatever the precision of the cell that comes first: all others take them, too.
            with torch.inference_mode(), products("float32", device):
                features = encoder(torch.from_numpy(np.stack(part)).to(device))
                yield features.flatten(2).transpose(1, 2).half().cpu().numpy()

    def _decoded(self, side: int, doing: str) -> Iterator[np.ndarray]:
        """The pixels of each image; those that are kept are not decoded again."""
        folder, shape = self._pixels_kept(side)
        pixels = opened(folder, shape, np.uint8)
        if pixels is not None:
            return image_files.told(iter(pixels), doing, len(pixels))
        return image_files.pixels(self._folder, self._files, side, doing)

    def _pixels_kept(self, side: int) -> tuple[Path, tuple[int, ...]]:
        """Folder and shape of the pixels that are kept."""
        return self._kept("pixels", side), (len(self._files), 3, side, side)

    def _kept(self, what: str, *determined_by: object) -> Path:
        """The folder in the cache of what the images and these values determine."""
        known = json.dumps([_VERSION, self._digest, *determined_by])
        key = hashlib.sha256(known.encode()).hexdigest()[:16]
        return self._places.cache / "prepared" / f"mscoco-{what}-{key}"


def _tensor(array: np.ndarray) -> Tensor:
    """An array that cannot be written to as a tensor, which then must not be, either."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")
        return torch.from_numpy(array)


class Noise:
    """Noise in the place of images, on which steps take as long.

    Args:
        encoder: name of the encoder.
        count: N, the number of images.
    """

    encoder_weights = None

    def __init__(self, encoder: str, count: int) -> None:
        self._encoder = encoder
        self._count = count
        self._generator = torch.Generator().manual_seed(0)

    def pixels(self, m: int) -> Tensor:
        """See `Images`."""
        side = pixels_a_side(m, self._encoder)
        shape = (self._count, 3, side, side)
        return torch.randint(256, shape, dtype=torch.uint8, generator=self._generator)

    def features(self, m: int, device: torch.device) -> Tensor:
        """See `Images`."""
        regions_a_side(m)
        shape = (self._count, m, encoders.ENCODERS[self._encoder].channels)
        return torch.rand(shape, generator=self._generator).half()

    def thumbnail(self, row: int) -> bytes:
        """A grey square."""
        from PIL import Image

        return image_files.encoded(Image.new("RGB", (image_files.THUMBNAIL,) * 2, "grey"))
