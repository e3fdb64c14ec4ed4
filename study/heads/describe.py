"""The cells of a setting as text: what the plan shows of cells that take networks apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from study import terminal
from study.heads.cell import SOLVED, HeadsCell

_HEADER = ["method", "N", "temperature", "cells", "to run", "FLOPs <=", "s/cell"]
_ROW = "{:<13}{:>10}{:>13}{:>7}{:>8}{:>11}{:>10}"


def describe(
    cells: Sequence[HeadsCell], flops: Mapping[str, int], seconds: Mapping[str, float]
) -> Iterator[str]:
    """The cost of each method and width in a setting; see `study.kinds.Kind.describe`."""
    first = cells[0]
    networks = len({cell.network.id for cell in cells})
    yield (
        f"heads {'/'.join(map(str, first.heads))} of {networks} network{'s' * (networks > 1)} on "
        f"{first.task}: theory from P={first.examples:,} episodes, heads removed without training "
        "again"
    )
    rows = []
    for key in dict.fromkeys(map(_method, cells)):
        group = [cell for cell in cells if _method(cell) == key]
        times = [seconds[cell.id] for cell in group if cell.id in seconds]
        rows.append(
            [
                *key,
                str(len(group)),
                str(len(times)),
                f"{max(flops[cell.id] for cell in group):.2g}",
                f"{sum(times) / len(times):.1f}" if times else "-",
            ]
        )
    lines = [_ROW.format(*row) for row in (_HEADER, *rows)]
    yield from lines if terminal.fits(lines) else terminal.stacked(_HEADER, rows)


def _method(cell: HeadsCell) -> tuple[str, str, str]:
    """Method, width and temperature for people."""
    width = "infinite" if cell.method in SOLVED else "-"
    heat = "-" if cell.choice is None else cell.choice
    return (
        cell.method,
        width if cell.width is None else f"{cell.width:,}",
        heat if cell.temperature is None else f"{cell.temperature:g}",
    )
