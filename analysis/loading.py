"""From a results directory to one table, or to its evaluations part by part."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from analysis.groups import is_compared
from study.results import (
    CELLS_SCHEMA,
    DICTIONARIES,
    EVALUATIONS_SCHEMA,
    KEY,
    METRICS,
    RATIONALES,
    SPLITS,
    Results,
    ResultsError,
    agree,
)

T = TypeVar("T")

_COUNTS = ("step", "mosaics_seen", "compute_flops", "num_evaluated")
_CELL_COLUMNS = [name for name in CELLS_SCHEMA.names if name != "cell"]
EVALUATION_COLUMNS = [name for name in EVALUATIONS_SCHEMA.names if name != "cell_id"]
_REPEATED = ["status", "steps", *_COUNTS, *METRICS, *RATIONALES]
"""What two records of one evaluation agree in; the others are circumstances."""


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
    results = _opened(results_dir)
    ids = None if cell_ids is None else set(cell_ids)

    # In one scan, so that a cell that finishes meanwhile is in both tables or in none.
    def join(cells: pa.Table, parts: Iterator[pa.Table]) -> pd.DataFrame:
        schema = EVALUATIONS_SCHEMA
        rows = pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)])
        return cells.to_pandas().merge(
            rows.to_pandas(), on="cell_id", how="left", validate="one_to_many"
        )

    table = _read(results, lambda: results.scan(join, EVALUATIONS_SCHEMA.names, ids))
    return table.astype(dict.fromkeys(_COUNTS, "Int64"))


class NothingCompared(ResultsError):
    """A directory holds cells of learning dynamics and none of a comparison."""


class TableSource:
    """Cells and evaluations of a table at hand; see `analysis.cut.Source`.

    Args:
        evaluations: as `load` gives it; a row may be there twice.

    Attributes:
        rows: each evaluation once.

    Raises:
        ResultsError: a column is missing, or two rows of one evaluation contradict each other.
    """

    def __init__(self, evaluations: pd.DataFrame) -> None:
        known = {*_CELL_COLUMNS, *EVALUATION_COLUMNS, "cell"} - {"heatmap"}
        missing = sorted(known - set(evaluations.columns))
        if missing:
            raise ResultsError(
                f"the table has no columns {', '.join(missing)}. Give what analysis.load returns."
            )
        others = set(evaluations["split"].dropna()) - set(SPLITS)
        if others:
            raise ResultsError(
                f"a split must be one of {', '.join(SPLITS)}, got {', '.join(map(str, others))}."
            )
        self.rows = _each_once(evaluations)

    def compared(self) -> TableSource | None:
        """The same without cells of learning dynamics; None where no other is left."""
        kept = is_compared(self.rows)
        if len(kept) and not kept.any():
            return None
        return self if kept.all() else TableSource(self.rows[kept])

    def scan(
        self, consume: Callable[[pd.DataFrame, Iterator[pa.Table]], T], columns: Sequence[str]
    ) -> T:
        """See `analysis.cut.Source`; one part."""
        cells = self.rows[CELLS_SCHEMA.names].drop_duplicates("cell_id")
        if "heatmap" in columns and "heatmap" not in self.rows:
            raise ResultsError("the table has no column heatmap, which another threshold needs.")
        held = self.rows[self.rows["split"].notna()]
        part = {}
        for name in columns:
            kind = EVALUATIONS_SCHEMA.field(name).type
            values = pa.array(held[name].to_numpy(_dtype(kind)), kind)
            part[name] = values.dictionary_encode() if name in DICTIONARIES else values
        rows = pa.table(part)
        return consume(cells.reset_index(drop=True), iter([rows]))

    def of(self, cell_ids: Collection[str]) -> pd.DataFrame:
        """All rows of some cells."""
        return self.rows[self.rows["cell_id"].isin(set(cell_ids))]

    def json_of(self, cell_ids: Collection[str]) -> dict[str, str]:
        """Id -> JSON of some cells."""
        cells = self.of(cell_ids).drop_duplicates("cell_id")
        return dict(zip(cells["cell_id"], cells["cell"], strict=True))


class DirectorySource:
    """Cells of comparisons and their evaluations in a results directory, never all in memory.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these.
    """

    def __init__(
        self,
        results_dir: str | os.PathLike[str] | Results,
        study: str | None = None,
        cell_ids: Iterable[str] | None = None,
    ) -> None:
        self._results = _opened(results_dir)
        self._study = study
        self._cell_ids = None if cell_ids is None else set(cell_ids)

    def scan(
        self, consume: Callable[[pd.DataFrame, Iterator[pa.Table]], T], columns: Sequence[str]
    ) -> T:
        """As `Results.scan`; without the JSON of the cells, which is most of their memory.

        Raises:
            NothingCompared: there are cells of learning dynamics only.
        """

        def selected(cells: pa.Table, parts: Iterator[pa.Table]) -> T:
            return consume(self._compared(cells.to_pandas()), parts)

        return _read(
            self._results,
            lambda: self._results.scan(selected, columns, self._cell_ids, _CELL_COLUMNS),
        )

    def of(self, cell_ids: Collection[str]) -> pd.DataFrame:
        """All evaluations of some cells, as `load` gives them."""
        return load(self._results, cell_ids)

    def json_of(self, cell_ids: Collection[str]) -> dict[str, str]:
        """Id -> JSON of some cells."""
        cells = _read(self._results, lambda: self._results.cells(cell_ids, ["cell_id", "cell"]))
        return dict(zip(cells["cell_id"], cells["cell"], strict=True))

    def _compared(self, cells: pd.DataFrame) -> pd.DataFrame:
        known = _of_study(cells, self._results, self._study, self._cell_ids)
        kept = known[is_compared(known)].reset_index(drop=True)
        if kept.empty:
            raise NothingCompared(f"{self._results.url} holds no comparison.")
        return kept


def cells_of(
    results_dir: str | os.PathLike[str] | Results,
    study: str | None = None,
    cell_ids: Iterable[str] | None = None,
) -> pd.DataFrame:
    """One row a cell: the columns of `CELLS_SCHEMA` but the long ones, JSON.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these.

    Raises:
        ResultsError: unreadable results, no such cell, an unknown study.
    """
    results = _opened(results_dir)
    ids = None if cell_ids is None else set(cell_ids)
    columns = [name for name in _CELL_COLUMNS if name != "package_versions"]
    cells = _read(results, lambda: results.cells(ids, columns))
    return _of_study(cells, results, study, ids)


def _of_study(
    cells: pd.DataFrame, results: Results, study: str | None, cell_ids: Collection[str] | None
) -> pd.DataFrame:
    """The rows of a study; refuses where there is none."""
    if cells.empty:
        which = "no finished cell" if cell_ids is None else "none of the requested cells"
        running = "A study is running with it: ask again when its first cells have ended."
        advice = running if results.is_running() else "Run or resume the study first."
        raise ResultsError(f"{results.url} holds {which}. {advice}")
    if study is None:
        return cells
    names = sorted(cells["study"].unique())
    if study not in names:
        near = difflib.get_close_matches(study, names, n=1, cutoff=0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ResultsError(
            f"{results.url} holds no study {study!r}.{hint} It holds: {', '.join(names)}."
        )
    return cells[cells["study"] == study].reset_index(drop=True)


def _each_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Each evaluation once; of rows that agree, the same one in whatever order they come.

    Raises:
        ResultsError: two rows of one evaluation contradict each other.
    """
    if not rows.duplicated(KEY).any():
        return rows
    rows = rows.sort_values([*KEY, *_REPEATED, "train_seconds"], ignore_index=True)
    again = rows.duplicated(KEY)
    first = rows.index.to_series().mask(again).ffill().astype(int)
    one, other = rows.loc[first[again]], rows[again]
    for name in _REPEATED:
        a, b = one[name].to_numpy(), other[name].to_numpy()
        same = a == b if name == "status" else agree(_floats(one[name]), _floats(other[name]))
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            row = other.iloc[at]
            raise ResultsError(
                f"cell {row['cell_id']} is in the table twice{_place(row)}, with {name} {a[at]} "
                f"and {b[at]}. Keep one of the two rows."
            )
    return rows[~again].reset_index(drop=True)


def _place(row: pd.Series) -> str:
    """Which evaluation of its cell a row is; empty: it stands for a cell without any."""
    if pd.isna(row["split"]):
        return ""
    return f" at {100 * row['budget_fraction']:g} % of the budget on the {row['split']} split"


def _floats(column: pd.Series) -> np.ndarray:
    return column.to_numpy(float, na_value=np.nan)


def _opened(results_dir: str | os.PathLike[str] | Results) -> Results:
    return results_dir if isinstance(results_dir, Results) else Results(results_dir)


def _read(results: Results, read: Callable[[], T]) -> T:
    try:
        return read()
    except OSError as error:
        raise ResultsError(f"cannot read the results in {results.url} ({error}).") from error


def _dtype(kind: pa.DataType) -> type:
    return int if pa.types.is_integer(kind) else float if pa.types.is_floating(kind) else object
