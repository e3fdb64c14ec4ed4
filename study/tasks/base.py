"""What all tasks have in common: splits that give batches, and what a plan knows of their data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from study.cell import Cell

if TYPE_CHECKING:
    import torch
    from torch import Tensor

UNKNOWN_DIGEST = "unknown"
"""Stands for the data digest where a plan is made without the data."""

SPLITS = ("train", "validation", "test")


class Batch(NamedTuple):
    """A batch of inputs: mosaics or posts.

    Attributes:
        segments: (B, m, ...) as `study.models.base.Model.encode` takes them: of mosaics
            (B, m, C, H, W) float32 in [-1, 1], of posts (B, m) int64 numbers of words.
        labels: (B,) int64, the index of the class.
        foreground: (B, m) bool, True at the hidden position z of a mosaic, at the rationale of a
            post, which may have none; used to evaluate, never to train.
        mask: (B, m) bool, True = real segment; None: all are.
    """

    segments: Tensor
    labels: Tensor
    foreground: Tensor
    mask: Tensor | None


class Split(Protocol):
    """The inputs of one split, on one device.

    Attributes:
        labels: (n,) int64.
        equal_batches: whether all batches of a size have equal shapes, as CUDA graphs need them.
    """

    @property
    def labels(self) -> Tensor: ...

    @property
    def equal_batches(self) -> bool: ...

    @property
    def bytes_each(self) -> int:
        """Size of one input's segments as float32, in bytes."""
        ...

    def __len__(self) -> int: ...

    def batch(self, rows: Tensor) -> Batch:
        """The inputs of these rows, an int64 tensor (B,)."""
        ...

    def passes(self, count: int) -> Sequence[Tensor]:
        """All rows, at most so many at a time, in an order that pads little."""
        ...

    def head(self, count: int) -> Self:
        """The first `count` inputs."""
        ...


@dataclass(frozen=True)
class Facts:
    """What a plan needs to know of a task's data.

    Attributes:
        digest: of the data, or `UNKNOWN_DIGEST`.
        input_shape: of one segment as a model takes it.
        sizes: split -> how many inputs it has; empty: mosaics, drawn as many as asked for.
        lengths: segments -> how many training inputs have so many; empty: all have m.
        notes: sentences about the data, for people.
    """

    digest: str
    input_shape: tuple[int, ...]
    sizes: Mapping[str, int]
    lengths: Mapping[int, int]
    notes: tuple[str, ...] = ()


class Task(Protocol):
    """A data set as a focus-classify task.

    Attributes:
        name: of the task; part of the seeds.
        num_classes: C.
        facts: of its data.
    """

    @property
    def name(self) -> str: ...

    @property
    def num_classes(self) -> int: ...

    @property
    def facts(self) -> Facts: ...

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> Mapping[str, Split]:
        """What a cell trains on and is evaluated on: `train`, `validation`, `test`.

        The cell's seed draws the train split; the others are fixed.
        """
        ...
