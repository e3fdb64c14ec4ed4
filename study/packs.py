"""Packs: cells that train together in one process. They may differ in seed and learning rates."""

from __future__ import annotations

import json
from collections.abc import Sequence

from study.cell import Cell

AXES = {"none": (), "seed": ("seed",), "seed,lr": ("seed", "lr")}
"""What the members of a pack may differ in, by the name of the choice."""

MOST_MEMBERS = 12


def key(cell: Cell, axes: Sequence[str]) -> str:
    """Equal for two cells if they differ in these axes at most; `lr` is that of every phase."""
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


def form(
    cells: Sequence[Cell], axes: Sequence[str], workers: int = 1, most: int = MOST_MEMBERS
) -> list[list[Cell]]:
    """Cuts cells into packs, in the order of their first members.

    Args:
        cells: to train.
        axes: what the members of a pack may differ in; none: each cell alone.
        workers: trials at a time; packs are made smaller rather than leave one without work.
        most: members a pack has at most.
    """
    if not axes:
        return [[cell] for cell in cells]
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(key(cell, axes), []).append(cell)
    most = max(1, min(most, -(-len(cells) // workers)))
    return [
        group[start : start + size]
        for group in groups.values()
        # Of equal size, as near as can be: the time of a pack grows with its members.
        for size in [-(-len(group) // -(-len(group) // most))]
        for start in range(0, len(group), size)
    ]
