"""Images as a model takes them: pixels, or the features of a frozen encoder.

Either is computed once for all images of a data set, kept in the cache and memory-mapped.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from chapters.captions.data import image_files
from chapters.captions.encoders import encoder_networks
from chapters.captions.encoders.encoders import ENCODERS
from study.hardware import products
from study.tasks.sources.cached import cached, digest_of
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading

_VERSION = 2
"""Raised when pixels or features are computed in another way."""

_TOGETHER = {"cpu": 2, "cuda": 64}
"""Images that go through the encoder at a time, by device. On a CPU more are slower: at 448 pixels
EfficientNet-lite0 takes 55 ms for each of 2 and 89 ms for each of 16."""

_FILE = "array.raw"  # without a header: the folder's name stands for shape and type, too


@dataclass(frozen=True)
class ImageFiles:
    """The images of a data set.

    Attributes:
        files: of the images.
        digest: of their content, in this order.
        encoder: its name.
        places: of the encoder's weights and of the cache.
    """

    files: Sequence[Path]
    digest: str
    encoder: str
    places: Places

    @property
    def encoder_weights(self) -> Mapping[str, Tensor] | None:
        """What a trained encoder starts from; None: it is drawn.

        Raises:
            RequestError: they are not at hand, or of another network.
        """
        if not ENCODERS[self.encoder].pretrained:
            return None
        return encoder_networks.pretrained(self.encoder, self.places).state_dict()

    def seen(self, m: int, trained: bool, device: torch.device) -> Tensor:
        """What a model takes: `pixels` if it trains its encoder, else `features`."""
        return self.pixels(m) if trained else self.features(m, device)

    def pixels(self, m: int) -> Tensor:
        """(N, 3, P, P) uint8 on the host, of which the encoder makes m regions.

        Raises:
            RequestError: they cannot be made or kept.
        """
        side = ENCODERS[self.encoder].pixels(m)
        parts = self._decoded(side, "decoding")
        return self._kept(parts, np.uint8, (3, side, side), "pixels", str(side))

    def features(self, m: int, device: torch.device) -> Tensor:
        """(N, m, D) float16 on the host: D features of each region.

        Region j is row j // g, column j % g of g x g. On a GPU they are computed there; between
        devices they differ by float16's rounding.

        Raises:
            RequestError: they cannot be made or kept.
        """
        side = ENCODERS[self.encoder].pixels(m)
        shape = (m, ENCODERS[self.encoder].channels)
        weights = encoder_networks.weights_digest(self.encoder, self.places)
        known = ("features", str(side), self.encoder, weights)
        return self._kept(self._encoded(side, device), np.float16, shape, *known)

    def thumbnail(self, row: int) -> bytes:
        """An image for people, as JPEG.

        Raises:
            RequestError: it cannot be decoded.
        """
        return image_files.thumbnail(self.files[row])

    def _decoded(self, side: int, doing: str) -> Iterator[np.ndarray]:
        """The pixels of an image at a time."""
        pixels = functools.partial(image_files.image_pixels, side=side)
        doing = f"{doing} {len(self.files):,} images of {side} x {side} pixels"
        return image_files.in_order(pixels, self.files, doing)

    def _encoded(self, side: int, device: torch.device) -> Iterator[np.ndarray]:
        """The features of some images at a time."""
        network = encoder_networks.pretrained(self.encoder, self.places).to(device)
        decoded = self._decoded(side, "encoding")
        while part := list(itertools.islice(decoded, _TOGETHER[device.type])):
            # Whatever the precision of the cell that comes first: all others take them, too.
            with torch.inference_mode(), products("float32", device):
                features = network(torch.from_numpy(np.stack(part)).to(device))
                yield features.flatten(2).transpose(1, 2).half().cpu().numpy()

    def _kept(
        self, parts: Iterator[np.ndarray], dtype: type, shape: tuple[int, ...], *known: str
    ) -> Tensor:
        """An array of the cache, of which a part at a time is made and in memory.

        It is mapped read-only, so that processes share its pages: for a map that may be written
        to, Linux sets memory aside, and refuses if the file is larger than that.

        Args:
            parts: along its first axis; begun only if it is not there.
            dtype: of the array.
            shape: of an image's.
            known: what it is, and what determines it besides the images.
        """

        def make(partial: Path) -> None:
            # Not through a map: there, a full disk kills the process.
            with open(partial / _FILE, "wb") as file:
                for part in parts:
                    file.write(np.ascontiguousarray(part, dtype).data)

        def load(folder: Path) -> Tensor:
            with reading(folder), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The given NumPy array is not writable")
                whole = (len(self.files), *shape)
                return torch.from_numpy(np.memmap(folder / _FILE, dtype, "r", shape=whole))

        key = digest_of([], [str(_VERSION), self.digest, *known])
        return cached(self.places.cache / "prepared" / f"mscoco-{known[0]}-{key}", make, load)
