"""Packs: cells that train together in one process and differ only in seed and learning rates."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from study.cell import AnyCell, Cell
from study.cell.grouped import grouped
from study.request import PACKS

C = TypeVar("C", bound=AnyCell)

AXES = {name: () if name == "none" else tuple(name.split(",")) for name in PACKS}
"""Choice of packing -> what the members of a pack may differ in."""

MOST_MEMBERS = 12


class Shape(NamedTuple):
    """What decides how long a step of a cell takes and how much memory.

    Attributes:
        networks: task, options, held attention or not, architecture, width, precision, settings,
            frozen encoder or not, network, m and batch size.
        paradigms: of the phases.
    """

    networks: tuple[Any, ...]
    paradigms: tuple[str, ...]


class Measured(NamedTuple):
    """A pack of cells of one shape.

    Attributes:
        members: most of a pack.
        speedup: measured cell-steps per second of such a pack, relative to one cell alone; 1 if
            not measured.
    """

    members: int = MOST_MEMBERS
    speedup: float = 1.0


@dataclass(frozen=True)
class Packing:
    """How cells are packed.

    Attributes:
        choice: a name of `AXES`.
        reason: why, for people.
        most: most members of a pack.
        measured: what is best for cells of a shape, where that was measured.
    """

    choice: str = "none"
    reason: str = "as asked"
    most: int = MOST_MEMBERS
    measured: Mapping[Shape, Measured] = field(default_factory=dict)

    def measured_of(self, cell: AnyCell) -> Measured:
        """What is best for a cell."""
        if not isinstance(cell, Cell):
            return Measured(self.most)
        return self.measured.get(shape(cell), Measured(self.most))


def shape(cell: Cell) -> Shape:
    """The shape of a cell."""
    held = cell.alpha is not None
    phases = cell.schedule.phases
    networks = cell.task, cell.options, held, cell.architecture, cell.width, cell.precision
    further = cell.settings, phases[0].encoder_lr is None, cell.network
    return Shape(
        (*networks, *further, cell.m, cell.batch_size), tuple(each.paradigm for each in phases)
    )


def key(cell: AnyCell, axes: Sequence[str]) -> str:
    """A key that cells share if they differ in these axes at most; `lr` means every phase's."""
    values = cell.to_dict()
    if "seed" in axes:
        values.pop("seed", None)  # a cell that takes a network apart has the network's
    if "lr" in axes:
        for phase in values.get("schedule", {}).get("phases", ()):
            del phase["lr"]
    return json.dumps(values, sort_keys=True)


def require_one(cells: Sequence[Cell]) -> None:
    """Refuses cells that cannot train as one pack.

    Raises:
        ValueError: no cell, or cells that differ in more than seed and learning rates.
    """
    if len({key(cell, AXES["seed,lr"]) for cell in cells}) != 1:
        raise ValueError(
            "the cells of a pack must be at least one and differ in seed and learning rates "
            f"only, got {[cell.schedule.text for cell in cells]}"
        )


def form(cells: Sequence[C], packing: Packing, workers: int = 1) -> list[list[C]]:
    """Cuts cells into packs, in the order of their first members.

    Args:
        cells: to train.
        packing: what the members of a pack may differ in, and the most members.
        workers: packs trained at a time; packs are made smaller rather than leave one idle.
    """
    axes = AXES[packing.choice]
    if not axes:
        return [[cell] for cell in cells]
    packs = []
    for group in grouped(cells, lambda cell: key(cell, axes)).values():
        most = min(packing.measured_of(group[0]).members, math.ceil(len(cells) / workers))
        # As equal in size as possible, since a pack's time grows with its members.
        size = math.ceil(len(group) / math.ceil(len(group) / most))
        packs += [group[start : start + size] for start in range(0, len(group), size)]
    return packs
