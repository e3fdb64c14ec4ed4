"""Learning dynamics: what cells of the studies fixed-focus and linear-orthogonal show.

They are no comparisons: `analysis.comparison.compare` leaves their cells out. Each kind has a
module with a function `find(results, cells)`, which is given the rows of its cells.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from analysis.fixed_focus import section as fixed_focus
from analysis.groups import is_fixed_focus, is_trajectory
from analysis.linear_orthogonal import section as linear_orthogonal
from analysis.reading import cells_of
from analysis.section.base import Dynamics
from study.results import Results

__all__ = ["Dynamics", "find"]


def find(
    results: str | os.PathLike[str] | Results,
    study: str | None = None,
    cell_ids: Collection[str] | None = None,
) -> list[Dynamics]:
    """Every study of learning dynamics in a results directory, in a fixed order.

    Args:
        results: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these cells; ids without a result are ignored.

    Returns:
        None where the directory holds comparisons only.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study.
    """
    results = results if isinstance(results, Results) else Results(results)
    cells = cells_of(results, study, cell_ids)
    found: list[Dynamics] = []
    for mine, kind in ((is_fixed_focus, fixed_focus), (is_trajectory, linear_orthogonal)):
        ids = cells.loc[mine(cells), "cell_id"]
        if len(ids):
            found += kind.find(results, results.cells(ids))
    return found
