"""The cells of a setting as text: what the plan shows of cells that solve or sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from study import terminal
from study.posterior.cell import PosteriorCell

_HEADER = ["method", "paths", "N", "cells", "to run", "seeds", "FLOPs <=", "s/cell"]
_ROW = "{:<8}{:<16}{:>8}{:>7}{:>8}{:>7}{:>11}{:>8}"


def describe(
    cells: Sequence[PosteriorCell], flops: Mapping[str, int], seconds: Mapping[str, float]
) -> Iterator[str]:
    """The cost of each method and width in a setting; see `study.kinds.Kind.describe`."""
    first = cells[0]
    yield (
        f"{first.task} ({first.variant}): heads {first.heads}, sigma_perp {first.sigma_perp:g}, "
        f"T={first.tokens} tokens, P={first.n:,}, temperature {first.temperature:g}"
    )
    rows = []
    for key in dict.fromkeys((cell.method, cell.paths, cell.width) for cell in cells):
        method, paths, width = key
        group = [cell for cell in cells if (cell.method, cell.paths, cell.width) == key]
        times = [seconds[cell.id] for cell in group if cell.id in seconds]
        rows.append(
            [
                method,
                paths,
                "infinite" if width is None else f"{width:,}",
                str(len(group)),
                str(len(times)),
                str(len({cell.seed for cell in group})),
                f"{max(flops[cell.id] for cell in group):.2g}",
                f"{sum(times) / len(times):.1f}" if times else "-",
            ]
        )
    lines = [_ROW.format(*row) for row in (_HEADER, *rows)]
    yield from lines if terminal.fits(lines) else terminal.stacked(_HEADER, rows)
