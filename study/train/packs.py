"""Packs: cells that train together in one process and differ only in seed and learning rates."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from study.cell import Cell

AXES: dict[str, tuple[str, ...]] = {"none": (), "seed": ("seed",), "seed,lr": ("seed", "lr")}
"""Choice of packing -> what the members of a pack may differ in."""

MOST_MEMBERS = 12


@dataclass(frozen=True)
class Packing:
    """How cells are packed.

    Attributes:
        choice: a name of `AXES`.
        reason: why, for people.
        most: most members of a pack.
        speedup: measured cell-steps per second of such a pack, relative to one cell alone; 1 if
            not measured.
    """

    choice: str = "none"
    reason: str = "as asked"
    most: int = MOST_MEMBERS
    speedup: float = 1.0


def key(cell: Cell, axes: Sequence[str]) -> str:
    """A key that cells share if they differ in these axes at most; `lr` means every phase's."""
    values = cell.to_dict()
    if "seed" in axes:
        del values["seed"]
    if "lr" in axes:
        for phase in values["schedule"]["phases"]:
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


def form(cells: Sequence[Cell], packing: Packing, workers: int = 1) -> list[list[Cell]]:
    """Cuts cells into packs, in the order of their first members.

    Args:
        cells: to train.
        packing: what the members of a pack may differ in, and the most members.
        workers: packs trained at a time; packs are made smaller rather than leave one idle.
    """
    axes = AXES[packing.choice]
    if not axes:
        return [[cell] for cell in cells]
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(key(cell, axes), []).append(cell)
    most = max(1, min(packing.most, math.ceil(len(cells) / workers)))
    packs = []
    for group in groups.values():
        # As equal in size as possible, since a pack's time grows with its members.
        size = math.ceil(len(group) / math.ceil(len(group) / most))
        packs += [group[start : start + size] for start in range(0, len(group), size)]
    return packs
