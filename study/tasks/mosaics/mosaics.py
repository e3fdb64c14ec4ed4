"""Mosaics (sections 2.2 and 2.4): m base images, one of a foreground class at a hidden position.

Base images are kept once, as uint8; a mosaic is a row of indices into them. So n = 40,000 mosaics
of m = 20 CIFAR images take 3 MB instead of 9.8 GB as float tensors. Windows of series are base
images, too, one pixel wide (`chapters.series`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from study.cell import Cell
from study.cell.seeds import stream_seed
from study.errors import RequestError
from study.tasks.mosaics.base_segments import BaseSegments, held_out
from study.tasks.task import MOSAICS, SPLITS, Batch, Distinct, Facts, Modality


@dataclass(frozen=True)
class Mosaics:
    """The mosaics of one split, on one device.

    Attributes:
        images: (N, H, W, C) uint8 or float32 base images, shared between splits.
        sources: (N,) int64, what each image is cut from.
        index: (n, m) int32 rows of `images`.
        labels: (n,) int64 in [0, number of foreground classes).
        foreground: (n, m) bool, True at the hidden positions z of the label's class.
        max_value: the pixel value that stands for 1; None: pixels are as networks take them.
        foregrounds: segments of the label's class in each mosaic.
        classes: the name of each label.
        modality: of mosaics, or one that has more than they.
    """

    images: Tensor
    sources: Tensor
    index: Tensor
    labels: Tensor
    foreground: Tensor
    max_value: int | None
    foregrounds: int = 1
    classes: tuple[str, ...] = ()
    modality: Modality = MOSAICS

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bytes_each(self) -> int:
        """Size of one mosaic's segments as float32, in bytes."""
        return 4 * self.index.shape[1] * self.images[0].numel()

    def batch(self, rows: Tensor, width: int | None = None) -> Batch:
        """See `study.tasks.task.Split`; pixels become (x / max - .5) / .5. All have m segments."""
        index = self.index[rows]
        return Batch(
            segments=self.segments(index.flatten()).unflatten(0, index.shape),
            labels=self.labels[rows],
            foreground=self.foreground[rows],
            mask=None,
        )

    def widths(self, rows: Tensor) -> Sequence[int]:
        """m, whatever the rows."""
        return [self.index.shape[1]] * len(rows)

    def passes(self, count: int) -> Sequence[Tensor]:
        """All rows in parts of at most `count`."""
        return torch.arange(len(self), device=self.labels.device).split(count)

    def segments(self, images: Tensor) -> Tensor:
        """The base images of these rows of `images` as float32 (N, C, H, W), uint8 in [-1, 1]."""
        return as_segments(self.images.index_select(0, images), self.max_value)

    @property
    def base_images(self) -> Tensor | None:
        """(n, m) int64 of `sources`; None of mosaics with several foreground images."""
        if self.foregrounds > 1:
            return None
        n = len(self)
        parts = (self.index[mask].view(n, -1) for mask in (self.foreground, ~self.foreground))
        return self.sources[torch.cat([*parts], dim=1).long()]

    @functools.cached_property
    def distinct(self) -> Distinct:
        """The base images that occur, named by their rows of `images`."""
        rows, places = torch.unique(self.index, return_inverse=True)
        return Distinct(rows, places, self.segments)

    def head(self, count: int) -> Mosaics:
        """The first `count` mosaics."""
        return replace(
            self,
            index=self.index[:count],
            labels=self.labels[:count],
            foreground=self.foreground[:count],
        )


def as_segments(pixels: Tensor, max_value: int | None) -> Tensor:
    """Images (N, H, W, C) as networks take them: (N, C, H, W), with `max_value` in [-1, 1]."""
    if max_value is not None:
        pixels = pixels.float().mul_(2 / max_value).sub_(1)
    # A view, which keeps channels last in memory: convolutions are faster so.
    return pixels.permute(0, 3, 1, 2)


class _Content(NamedTuple):
    """What a mosaic is made of; the rest of its segments are background.

    Attributes:
        m: segments.
        foregrounds: of them of the label's class.
        distractors: of them of other foreground classes, each of any.
    """

    m: int
    foregrounds: int
    distractors: int


class MosaicTask:
    """Selective dependence classification on mosaics of base images.

    Args:
        name: of the task; part of the seeds.
        base: base images of a data set.
        foreground: names of the foreground classes; label k is the k-th of them.
        validation_share: of what the train images of each class are cut from, kept for validation.
        background: names of the background classes.
        modality: of its inputs.

    Attributes:
        kept: (N,) bool, the train images kept for validation.

    Raises:
        RequestError: too few images of a foreground class, or no background image.
    """

    encoder_weights = None

    def __init__(
        self,
        name: str,
        base: BaseSegments,
        foreground: tuple[str, ...],
        validation_share: float,
        background: tuple[str, ...],
        modality: Modality = MOSAICS,
    ) -> None:
        self.name = name
        self.modality = modality
        self.base = base
        self.foreground = foreground
        self.validation_share = validation_share
        self.num_classes = len(foreground)
        height, width, channels = base.train_images.shape[1:]
        self.facts = Facts(base.digest, (channels, height, width), notes=base.notes)
        self._fixed = functools.cache(self._split)  # validation and test, kept between cells
        self._resident = functools.cache(self._images)  # shared by all cells of this process
        self._classes = [base.class_names.index(each) for each in foreground]
        self._background = [base.class_names.index(each) for each in background]
        labels, tests = base.train_labels, base.test_labels
        self.kept = held_out(name, labels, validation_share, base.train_sources)
        shared = self._pool("train", labels, np.full(len(labels), True))
        self._pools = {
            ("disjoint", "train"): self._pool("train", labels, ~self.kept),
            ("disjoint", "validation"): self._pool("validation", labels, self.kept),
            ("disjoint", "test"): self._pool("test", tests, np.full(len(tests), True)),
            **{("shared-base", split): shared for split in SPLITS},
        }

    @property
    def carried(self) -> dict[str, Any]:
        """See `study.tasks.task.carried`."""
        base = self.base
        return {"classes": self.foreground, "max_value": base.max_value, **base.carried}

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> dict[str, Mosaics]:
        """The splits of a cell: `train`, `validation`, `test`.

        The cell's seed draws the train mosaics; the others are fixed for a task and m. Labels and
        positions are uniform. Foreground images are drawn from the label's class, distractors from
        other foreground classes, every other segment independently from all background images.
        """
        device = torch.device(device)
        content = _Content(cell.m, cell.foregrounds, cell.distractors)
        return {
            "train": self._split(cell.split, "train", content, cell.n, (cell.seed,), device),
            **{
                split: self._fixed(cell.split, split, content, size, (), device)
                for split, size in (("validation", cell.validation_size), ("test", cell.test_size))
            },
        }

    def _split(
        self,
        scheme: str,
        split: str,
        content: _Content,
        size: int,
        seed: tuple[int, ...],
        device: torch.device,
    ) -> Mosaics:
        drawn = stream_seed("mosaics", self.name, scheme, split, content.m, *seed)
        table = _draw(self._pools[scheme, split], size, content, drawn)
        index, labels, foreground = (torch.from_numpy(each).to(device) for each in table)
        images, sources = self._resident((scheme, split) == ("disjoint", "test"), device)
        return Mosaics(
            images,
            sources,
            index,
            labels,
            foreground,
            self.base.max_value,
            content.foregrounds,
            self.foreground,
            self.modality,
        )

    def _images(self, test: bool, device: torch.device) -> list[Tensor]:
        """Base images and their sources on a device."""
        base = self.base
        arrays = base.train_images, base.train_sources
        if test:
            arrays = base.test_images, base.test_sources
        return [torch.from_numpy(each).to(device) for each in arrays]

    def _pool(self, split: str, labels: np.ndarray, usable: np.ndarray) -> list[np.ndarray]:
        """Rows of the usable images of each foreground class, then of all background classes."""
        wanted = [*([label] for label in self._classes), self._background]
        pool = [np.flatnonzero(usable & np.isin(labels, each)) for each in wanted]
        noun, share = self.base.noun, self.validation_share
        for name, rows in zip((*self.foreground, "the background"), pool, strict=True):
            if len(rows) == 0:
                least = int(0.5 / share) + 1  # of fewer, the share rounds to none
                raise RequestError(
                    f"{self.name}: too few {noun} of {name} in the data: none is left for the "
                    f"{split} mosaics (validation takes {100 * share:g} % of the train {noun} of "
                    f"a class, so a class needs at least {least} train {noun} and 1 to test; "
                    "equal ones count once)."
                )
        return pool


def _draw(
    pool: list[np.ndarray], count: int, content: _Content, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draws an index table (count, m) int32, labels (count,) int64, foreground (count, m) bool."""
    rng = np.random.default_rng(seed)
    *foreground, background = pool
    labels = rng.integers(len(foreground), size=count)
    positions = rng.integers(content.m, size=(count, 1))
    index = rng.choice(background, size=(count, content.m))
    _put(index, positions[:, 0], labels, foreground, rng)
    for further in range(1, content.foregrounds + content.distractors):
        position = _another(positions, content.m, rng)
        classes = labels
        if further >= content.foregrounds:
            classes = rng.integers(len(foreground) - 1, size=count)
            classes += classes >= labels
        _put(index, position, classes, foreground, rng)
        positions = np.column_stack([positions, position])
    is_foreground = np.zeros(index.shape, bool)
    np.put_along_axis(is_foreground, positions[:, : content.foregrounds], True, axis=1)
    return index.astype(np.int32), labels, is_foreground


def _put(
    index: np.ndarray,
    position: np.ndarray,
    classes: np.ndarray,
    foreground: list[np.ndarray],
    rng: np.random.Generator,
) -> None:
    """Puts an image of each mosaic's class (count,) at its position (count,), in place."""
    for label, rows in enumerate(foreground):
        chosen = np.flatnonzero(classes == label)
        index[chosen, position[chosen]] = rng.choice(rows, size=len(chosen))


def _another(taken: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """A further position (count,) of each mosaic, uniform among those not `taken` (count, k)."""
    position = rng.integers(m - taken.shape[1], size=len(taken))
    for each in np.sort(taken, axis=1).T:
        position += position >= each
    return position
