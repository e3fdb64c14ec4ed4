"""Episodes (2-way 1-shot): two labelled images of two characters, and a query of one of them.

Drawings are kept once, as uint8; an episode is a row of three indices into them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from chapters.paths.one_shot.characters import Characters
from chapters.paths.one_shot.modality import IMAGES, ONE_SHOT
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.tasks.task import Batch, Facts

LABELS = ("first", "second")
"""Of an episode: the support whose character the query shows."""


@dataclass(frozen=True)
class Episodes:
    """The episodes of one split, on one device.

    Attributes:
        images: (N, P, P) uint8 drawings, shared between splits.
        index: (n, 3) int32 rows of `images`: first support, second support, query.
        labels: (n,) int64: 0 if the query shows the first support's character, else 1.
        foreground: (n, 3) bool, True at the support of the query's character.
        channels: C, to which the grey value is repeated.
    """

    images: Tensor
    index: Tensor
    labels: Tensor
    foreground: Tensor
    channels: int

    modality = ONE_SHOT
    distinct = None
    base_images = None  # each seed is tested on episodes of its own

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bytes_each(self) -> int:
        """Size of one episode's images as float32, in bytes."""
        return 4 * IMAGES * self.channels * self.images[0].numel()

    def batch(self, rows: Tensor, width: int | None = None) -> Batch:
        """See `study.tasks.task.Split`; pixels become x / 255. All have three images.

        The channels of an image share memory.
        """
        index = self.index[rows]
        grey = self.images.index_select(0, index.flatten()).float().div_(255)
        images = grey.unflatten(0, index.shape)[:, :, None]
        return Batch(
            segments=images.expand(-1, -1, self.channels, -1, -1),
            labels=self.labels[rows],
            foreground=self.foreground[rows],
            mask=None,
        )

    def widths(self, rows: Tensor) -> Sequence[int]:
        """Three, whatever the rows."""
        return [IMAGES] * len(rows)

    def passes(self, count: int) -> Sequence[Tensor]:
        """All rows in parts of at most `count`."""
        return torch.arange(len(self), device=self.labels.device).split(count)

    def head(self, count: int) -> Episodes:
        """The first `count` episodes."""
        rows = {name: getattr(self, name)[:count] for name in ("index", "labels", "foreground")}
        return replace(self, **rows)


class OneShotTask:
    """2-way 1-shot classification of drawings of characters.

    Args:
        name: of the task; part of the seeds.
        characters: the drawings.
        channels: C of an image; the grey value is repeated.
    """

    encoder_weights = None
    num_classes = len(LABELS)

    def __init__(self, name: str, characters: Characters, channels: int) -> None:
        self.name = name
        self.characters = characters
        self.channels = channels
        shape = (channels, *characters.images.shape[1:])
        self.facts = Facts(characters.digest, shape, notes=(characters.note,))
        # Shared by all cells of this process.
        self._images = functools.cache(torch.from_numpy(characters.images).to)
        self._held = functools.cache(self.drawn)

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> dict[str, Episodes]:
        """The splits of a cell: `train`, `validation`, `test`.

        The cell's seed splits the characters, so that it draws all three: other than in other
        tasks, validation and test differ from seed to seed. No character is in two splits.
        """
        seed, held = cell.seed, self._held
        return {
            "train": self.drawn("train", cell.n, seed, device=device),
            "validation": held("validation", cell.validation_size, seed, device=device),
            "test": held("test", cell.test_size, seed, device=device),
        }

    def drawn(
        self,
        split: str,
        size: int,
        seed: int,
        stream: str = "episodes",
        device: torch.device | str = "cpu",
    ) -> Episodes:
        """Draws episodes of the characters of one split.

        Two different characters are drawn uniformly, the label uniformly, two different drawings
        of the query's character, and one of the other.

        Args:
            split: `train`, `validation` or `test`.
            size: episodes, n.
            seed: splits the characters, and draws.
            stream: name of the stream of random numbers; another one gives further episodes.
            device: of the tensors.
        """
        rng = np.random.default_rng(stream_seed(stream, self.name, split, seed))
        chosen = self.characters.split(self.name, seed)[split]
        starts, counts = self.characters.spans
        queried = rng.integers(len(chosen), size=size)
        other = chosen[_another(queried, len(chosen), rng)]
        queried = chosen[queried]
        matching = rng.integers(counts[queried])
        query = starts[queried] + _another(matching, counts[queried], rng)
        matching += starts[queried]
        foreign = starts[other] + rng.integers(counts[other])
        labels = rng.integers(len(LABELS), size=size)
        supports = np.where(labels == 0, (matching, foreign), (foreign, matching))
        index = np.stack([*supports, query], axis=1).astype(np.int32)
        return Episodes(
            images=self._images(torch.device(device)),
            index=torch.as_tensor(index, device=device),
            labels=torch.as_tensor(labels, device=device),
            foreground=torch.as_tensor(np.arange(IMAGES) == labels[:, None], device=device),
            channels=self.channels,
        )


def _another(taken: np.ndarray, among: np.ndarray | int, rng: np.random.Generator) -> np.ndarray:
    """Draws numbers below `among`, uniform among those that are not `taken`."""
    drawn = rng.integers(among - 1, size=len(taken))
    return drawn + (drawn >= taken)
