"""Episodes (2-way 1-shot): two labelled images of two characters, and a query of one of them.

Drawings are kept once, as uint8; an episode is a row of three indices into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from study.cell import Cell
from study.cell.seeds import stream_seed
from study.errors import RequestError
from study.tasks.base import IMAGES, ONE_SHOT, Batch, Facts
from study.tasks.one_shot.characters import Characters

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
        """See `study.tasks.base.Split`; pixels become x / 255. All have three images.

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
        return replace(
            self,
            index=self.index[:count],
            labels=self.labels[:count],
            foreground=self.foreground[:count],
        )


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
        self.facts = Facts(
            characters.digest, shape, sizes={}, lengths={}, notes=(characters.note,)
        )
        self._fixed: dict[tuple[str, int, int, torch.device], Episodes] = {}
        self._resident: dict[torch.device, Tensor] = {}

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> dict[str, Episodes]:
        """The splits of a cell: `train`, `validation`, `test`.

        The cell's seed splits the characters, so that it draws all three: other than in other
        tasks, validation and test differ from seed to seed. No character is in two splits.

        Raises:
            RequestError: the cell has another m than three.
        """
        if cell.m != IMAGES:
            raise RequestError(
                f"{self.name} has {IMAGES} images an episode, got m = {cell.m}. Give it with "
                f"--set m={IMAGES}."
            )
        device = torch.device(device)
        sizes = {"validation": cell.validation_size, "test": cell.test_size}
        fixed = {split: (split, size, cell.seed, device) for split, size in sizes.items()}
        for split, key in fixed.items():
            if key not in self._fixed:  # held once, whatever the number of cells
                self._fixed[key] = self.drawn(split, sizes[split], cell.seed, device=device)
        return {
            "train": self.drawn("train", cell.n, cell.seed, device=device),
            **{split: self._fixed[key] for split, key in fixed.items()},
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
        device = torch.device(device)
        chosen = self.characters.split(self.name, seed)[split]
        rng = np.random.default_rng(stream_seed(stream, self.name, split, seed))
        index, labels = _draw(self.characters, chosen, size, rng)
        if device not in self._resident:  # shared by all cells of this process
            self._resident[device] = torch.from_numpy(self.characters.images).to(device)
        return Episodes(
            images=self._resident[device],
            index=torch.from_numpy(index).to(device),
            labels=torch.from_numpy(labels).to(device),
            foreground=torch.from_numpy(np.arange(IMAGES) == labels[:, None]).to(device),
            channels=self.channels,
        )


def _draw(
    characters: Characters, chosen: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draws an index table (count, 3) int32 and labels (count,) int64."""
    starts, counts = characters.spans
    queried = rng.integers(len(chosen), size=count)
    other = _another(queried, len(chosen), rng)
    queried, other = chosen[queried], chosen[other]
    support = rng.integers(counts[queried])
    query = _another(support, counts[queried], rng)
    matching = starts[queried] + support
    foreign = starts[other] + rng.integers(counts[other])
    labels = rng.integers(len(LABELS), size=count)
    first = labels == 0
    index = np.stack(
        [
            np.where(first, matching, foreign),
            np.where(first, foreign, matching),
            starts[queried] + query,
        ],
        axis=1,
    )
    return index.astype(np.int32), labels


def _another(taken: np.ndarray, among: np.ndarray | int, rng: np.random.Generator) -> np.ndarray:
    """Draws numbers below `among`, uniform among those that are not `taken`."""
    drawn = rng.integers(among - 1, size=len(taken))
    return drawn + (drawn >= taken)
