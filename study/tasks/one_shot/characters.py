"""Drawings of characters, of which episodes are made: their digest, split and prepared form."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from study.cell.seeds import stream_seed
from study.errors import RequestError
from study.tasks.base import SPLITS
from study.tasks.sources import cached

if TYPE_CHECKING:
    from PIL import Image

LEAST_CHARACTERS = 6
"""Two in each of train, validation and test."""

_PUBLISHED = (1_028, 172, 423)  # characters that train, validate and test, of Omniglot's 1,623
_MADE_UP_CHARACTERS, _MADE_UP_DRAWINGS = 24, 4
_ARRAYS = ("images", "characters")


@dataclass(frozen=True, eq=False)
class Characters:
    """Drawings of characters; `create` checks them and computes the digest.

    Attributes:
        images: (N, P, P) uint8 grey, ink is high.
        characters: (N,) int64, the index in `names` of each drawing's character; it never
            decreases.
        names: of the characters, as alphabet/character, or without alphabet.
        title: of the data set, for people.
        whole: characters of the whole data set, of which these may be a part.
        versions: of each drawing, such as turned ones. The versions of a character follow each
            other in `names`, count as characters of their own, and are never in two splits.
        digest: 16 hexadecimal digits that stand for images, characters and names.
    """

    images: np.ndarray
    characters: np.ndarray
    names: tuple[str, ...]
    title: str
    whole: int
    versions: int
    digest: str

    @classmethod
    def create(
        cls,
        images: np.ndarray,
        characters: np.ndarray,
        names: Sequence[str],
        *,
        title: str,
        whole: int,
        source: str,
        versions: int = 1,
    ) -> Characters:
        """Checks drawings and computes their digest.

        Args:
            source: where the drawings are from, for messages.

        Raises:
            RequestError: fewer than `LEAST_CHARACTERS` characters, or than two drawings of one.
        """
        names = tuple(names)
        if len(names) < LEAST_CHARACTERS:
            raise RequestError(
                f"{source} holds {len(names)} characters of {title}, must hold at least "
                f"{LEAST_CHARACTERS}: two each that train, validate and test. Add the other "
                "archives."
            )
        counts = np.bincount(characters, minlength=len(names))
        if counts.min() < 2:
            few = int(np.argmax(counts < 2))
            raise RequestError(
                f"{source} holds {counts[few]} drawing of {names[few]}, must hold at least 2: one "
                "to support and one to ask for. Copy the data set again."
            )
        images, characters = (np.ascontiguousarray(each) for each in (images, characters))
        digest = cached.digest_of((images, characters), names)
        return cls(images, characters, names, title, whole, versions, digest)

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

    @functools.cached_property
    def spans(self) -> tuple[np.ndarray, np.ndarray]:
        """The row of each character's first drawing, and how many it has: int64, one a name."""
        counts = np.bincount(self.characters, minlength=len(self.names))
        return np.cumsum(counts) - counts, counts

    @property
    def note(self) -> str:
        """A sentence about the data."""
        alphabets = len({name.rpartition("/")[0] for name in self.names} - {""})
        among = f" of {alphabets} alphabets" if alphabets > 1 else ""
        part = len(self.names) < self.whole
        of = f" (of {self.whole:,} in the whole data set)" if part else ""
        parts = shares(len(self.names) // self.versions)
        train, validation, test = (self.versions * part for part in parts)
        return (
            f"{self.title}: {len(self.names):,} characters{among}{of}; {train:,} train, "
            f"{validation:,} validate, {test:,} test"
        )


def shares(count: int) -> tuple[int, int, int]:
    """How many of `count` characters train, validate and test, at least two each.

    Of 1,623 the published 1,028, 172 and 423; else in these proportions.
    """
    whole = sum(_PUBLISHED)
    train, validation, _ = (round(count * part / whole) for part in _PUBLISHED)
    validation = max(2, validation)
    train = min(train, count - validation - 2)
    return train, validation, count - train - validation


def resized(image: Image.Image, pixels: int) -> np.ndarray:
    """An image as grey (pixels, pixels) uint8, antialiased as by torchvision's `Resize`."""
    from PIL import Image

    grey = image if image.mode == "L" else image.convert("L")
    return np.asarray(grey.resize((pixels, pixels), Image.Resampling.BILINEAR))


def made_up_characters(pixels: int) -> Characters:
    """Noise as drawings of `pixels` x `pixels`."""
    shape = (_MADE_UP_CHARACTERS * _MADE_UP_DRAWINGS, pixels, pixels)
    return Characters.create(
        np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8),
        np.repeat(np.arange(_MADE_UP_CHARACTERS), _MADE_UP_DRAWINGS),
        [str(number) for number in range(_MADE_UP_CHARACTERS)],
        title="made-up data",
        whole=_MADE_UP_CHARACTERS,
        source="made-up data",
    )


def prepared(folder: Path, read: Callable[[], Characters]) -> Characters:
    """The prepared form in `folder`, see `study.tasks.sources.cached.prepared`.

    Raises:
        RequestError: from `read`.
    """
    rest = ("names", "title", "whole", "versions")
    create = functools.partial(Characters.create, source=str(folder))
    return cached.prepared(folder, read, create, _ARRAYS, rest)
