"""From a results directory to one table."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pandas as pd

from study.results import Results, ResultsError

_COUNTS = ("step", "mosaics_seen", "compute_flops", "num_evaluated")


def load(
    results_dir: str | os.PathLike[str] | Results, cell_ids: Iterable[str] | None = None
) -> pd.DataFrame:
    """Evaluations joined with their cells: one row a cell x evaluation x split.

    A cell without any evaluation (it diverged before the first) has one row, whose columns of
    the evaluation are missing, so that no cell drops out of the count.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        cell_ids: keep these cells only; ids without a result are ignored.

    Returns:
        The columns of `CELLS_SCHEMA` and `EVALUATIONS_SCHEMA`. Metrics are fractions in [0, 1]
        (`loss` in nats), compute in FLOPs, times in seconds; counts are nullable integers.

    Raises:
        ResultsError: not a readable results directory.
    """
    results = results_dir if isinstance(results_dir, Results) else Results(results_dir)
    # Cells first: a cell that finishes between the two reads is left for the next time.
    try:
        cells = results.cells()
        evaluations = results.evaluations()
    except OSError as error:
        raise ResultsError(f"cannot read the results in {results.url} ({error}).") from error
    if cell_ids is not None:
        cells = cells[cells["cell_id"].isin(set(cell_ids))]
    table = cells.merge(evaluations, on="cell_id", how="left", validate="one_to_many")
    return table.astype(dict.fromkeys(_COUNTS, "Int64"))
