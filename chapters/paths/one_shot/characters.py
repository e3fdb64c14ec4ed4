"""Drawings of characters, of which episodes are made: their split, and the digits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study.cell.seeds import stream_seed
from study.tasks.mosaics.digits import MAX_VALUE, read_digits
from study.tasks.sources import cached
from study.tasks.sources.places import Places
from study.tasks.task import SPLITS

_PUBLISHED = (1_028, 172, 423)
"""Characters that train, validate and test, of Omniglot's 1,623."""

_DIGITS = "digits-one-shot-v3"
"""Start of the name of their prepared form; raise the number when the images change."""


@dataclass(frozen=True, eq=False)
class Characters:
    """Drawings of characters, two or more of each.

    Attributes:
        images: (N, P, P) uint8 grey, ink is high.
        characters: (N,) int64, the index in `names` of each drawing's character; it never
            decreases.
        names: of the characters.
        about: what they are, for people.
        versions: of each drawing, such as turned ones. The versions of a character follow each
            other in `names`, count as characters of their own, and are never in two splits.
    """

    images: np.ndarray
    characters: np.ndarray
    names: Sequence[str]
    about: str
    versions: int = 1

    @functools.cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that stand for images, characters and names."""
        return cached.digest_of((self.images, self.characters), self.names)

    @functools.cached_property
    def spans(self) -> tuple[np.ndarray, np.ndarray]:
        """The row of each character's first drawing, and how many it has: int64, one a name."""
        counts = np.bincount(self.characters, minlength=len(self.names))
        return np.cumsum(counts) - counts, counts

    @property
    def note(self) -> str:
        """A sentence about the data."""
        parts = shares(len(self.names) // self.versions)
        train, validation, test = (f"{self.versions * part:,}" for part in parts)
        return f"{self.about}; {train} train, {validation} validate, {test} test"

    def split(self, task: str, seed: int) -> dict[str, np.ndarray]:
        """The characters that train, validate and test: split -> (k,) int64, drawn by the seed.

        Args:
            task: its name, part of the seed of the draw.
            seed: of the cell.
        """
        rng = np.random.default_rng(stream_seed("one-shot characters", task, seed))
        apart = np.arange(len(self.names)).reshape(-1, self.versions)
        train, validation, _ = shares(len(apart))
        parts = np.split(rng.permutation(apart), [train, train + validation])
        return {split: np.sort(part, axis=None) for split, part in zip(SPLITS, parts, strict=True)}


def shares(count: int) -> tuple[int, int, int]:
    """How many of `count` characters, at least six, train, validate and test: two or more each.

    Of 1,623 the published 1,028, 172 and 423; else in these proportions.
    """
    train, validation, _ = (round(count * part / sum(_PUBLISHED)) for part in _PUBLISHED)
    validation = max(2, validation)
    train = min(train, count - validation - 2)
    return train, validation, count - train - validation


def prepared(folder: Path, read: Callable[[], Characters]) -> Characters:
    """The prepared form in `folder`, see `study.tasks.sources.cached.prepared`.

    Raises:
        RequestError: from `read`.
    """
    arrays, rest = ("images", "characters"), ("names", "about", "versions")
    return cached.prepared(folder, read, Characters, arrays, rest)


def load_digits(places: Places, pixels: int) -> Characters:
    """The digits that scikit-learn ships as twenty characters: ten, and the same on their side.

    With the ten upright digits alone, six of which train, networks tell the two test digits apart
    in 60 % of the episodes only (docs/log.md).

    Args:
        places: of the cache, for the prepared form, without which scikit-learn is needed.
        pixels: height and width; published are 8.

    Raises:
        RequestError: scikit-learn is needed and not installed.
    """
    return prepared(places.cache / "prepared" / f"{_DIGITS}-{pixels}", lambda: _digits(pixels))


def _digits(pixels: int) -> Characters:
    from PIL import Image

    images, labels = read_digits()
    grey = np.rint(images * (255 / MAX_VALUE)).astype(np.uint8)
    size, method = (pixels, pixels), Image.Resampling.BILINEAR
    resized = (Image.fromarray(image).resize(size, method) for image in grey)
    upright = np.stack([np.asarray(image) for image in resized])
    characters = np.concatenate([2 * labels, 2 * labels + 1])
    order = np.argsort(characters, kind="stable")
    return Characters(
        np.concatenate([upright, np.rot90(upright, axes=(1, 2))])[order],
        characters[order],
        [f"{digit}{side}" for digit in range(10) for side in ("", " on its side")],
        "scikit-learn's digits: 20 characters",
        versions=2,
    )
