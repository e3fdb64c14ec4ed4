"""Where a comparison's evaluations come from: a table, or a results directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pandas as pd
import pyarrow as pa

from analysis.groups import is_compared, trains_nothing
from analysis.reading import (
    CELL_COLUMNS,
    EVALUATION_COLUMNS,
    T,
    each_once,
    load,
    of_study,
    opened,
    read_or_refuse,
)
from study.results import (
    CELLS_SCHEMA,
    EVALUATIONS_SCHEMA,
    IMAGES,
    SPLITS,
    Results,
    ResultsError,
)


class NothingCompared(ResultsError):
    """There are only cells that are in no comparison, see `analysis.groups.is_compared`."""


class TableSource:
    """Cells and evaluations of a table at hand; see `analysis.comparison.cut.Source`.

    Args:
        evaluations: as `load` gives it; a row may occur twice.

    Attributes:
        rows: each evaluation once.

    Raises:
        ResultsError: a column is missing, or two rows of one evaluation contradict each other.
    """

    def __init__(self, evaluations: pd.DataFrame) -> None:
        known = {*CELL_COLUMNS, *EVALUATION_COLUMNS, "cell"} - {"heatmap", *IMAGES}
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
        self.rows = each_once(evaluations)

    def compared(self) -> TableSource | None:
        """This source without cells that are in no comparison; None if no cell is left."""
        return self._only(is_compared(self.rows))

    def trained(self) -> TableSource:
        """This source without cells that train nothing: they have no budget.

        Raises:
            NothingCompared: no cell is left.
        """
        found = self._only(~trains_nothing(self.rows))
        if found is None:
            raise NothingCompared(
                "no cell of the table was trained: all solved or sampled a posterior or scored "
                "heads, which has no budget to compare at. analysis.report shows them."
            )
        return found

    def scan(
        self, consume: Callable[[pd.DataFrame, Iterator[pa.Table]], T], columns: Sequence[str]
    ) -> T:
        """Gives all evaluations in one part; see `analysis.comparison.cut.Source`."""
        cells = self.rows[CELLS_SCHEMA.names].drop_duplicates("cell_id")
        if "heatmap" in columns and "heatmap" not in self.rows:
            raise ResultsError("the table has no column heatmap, which another threshold needs.")
        held = self.rows[self.rows["split"].notna()]
        part = {}
        for name in columns:
            kind = EVALUATIONS_SCHEMA.field(name).type
            if pa.types.is_integer(kind):
                values = pa.array(held[name].astype("Int64"), kind)
            else:
                text = pa.types.is_string(kind)  # of which NaN is no value
                values = pa.array(held[name].to_numpy(_dtype(kind)), kind, from_pandas=text)
            part[name] = values.dictionary_encode() if name in ("cell_id", "split") else values
        rows = pa.table(part)
        return consume(cells.reset_index(drop=True), iter([rows]))

    def _only(self, kept: pd.Series) -> TableSource | None:
        """The source of some rows; None if there are others only."""
        if len(kept) and not kept.any():
            return None
        return self if kept.all() else TableSource(self.rows[kept])

    def of(self, cell_ids: Collection[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """All rows of some cells; more columns than were asked for."""
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
        self._results = opened(results_dir)
        self._study = study
        self._cell_ids = None if cell_ids is None else set(cell_ids)

    def scan(
        self, consume: Callable[[pd.DataFrame, Iterator[pa.Table]], T], columns: Sequence[str]
    ) -> T:
        """As `Results.scan`; without the JSON of the cells, which is most of their memory.

        Raises:
            NothingCompared: there are only cells that are in no comparison.
        """

        def selected(cells: pa.Table, parts: Iterator[pa.Table]) -> T:
            return consume(self._compared(cells.to_pandas()), parts)

        return read_or_refuse(
            self._results,
            lambda: selected(
                pa.Table.from_pandas(self._results.cells(self._cell_ids, CELL_COLUMNS)),
                iter([self._rows(columns)]),
            ),
        )

    def _rows(self, columns: Sequence[str]) -> pa.Table:
        rows = self._results.tables(self._cell_ids)[1].select(columns)
        for name in ("cell_id", "split"):
            at = rows.column_names.index(name)
            rows = rows.set_column(at, name, rows[name].dictionary_encode())
        return rows

    def of(self, cell_ids: Collection[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """All evaluations of some cells, as `load` gives them, or some of their columns alone."""
        if columns is None:
            return load(self._results, cell_ids)
        return read_or_refuse(self._results, lambda: self._results.evaluations(cell_ids, columns))

    def json_of(self, cell_ids: Collection[str]) -> dict[str, str]:
        """Id -> JSON of some cells."""
        cells = read_or_refuse(
            self._results, lambda: self._results.cells(cell_ids, ["cell_id", "cell"])
        )
        return dict(zip(cells["cell_id"], cells["cell"], strict=True))

    def _compared(self, cells: pd.DataFrame) -> pd.DataFrame:
        known = of_study(cells, self._results, self._study, self._cell_ids)
        kept = known[is_compared(known)].reset_index(drop=True)
        if kept.empty:
            raise NothingCompared(f"{self._results.url} holds no comparison.")
        return kept


def _dtype(kind: pa.DataType) -> type:
    return float if pa.types.is_floating(kind) else object
