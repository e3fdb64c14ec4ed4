"""Where a comparison's evaluations come from: a table, or a results directory."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pandas as pd
import pyarrow as pa

from analysis.digest.reading import CELL_COLUMNS, cells_of, joined, opened, with_base_images
from analysis.groups import is_compared
from study.results import (
    EVALUATIONS_SCHEMA,
    FURTHER,
    INSTANCES,
    KEY,
    METRICS,
    SPLITS,
    Results,
    ResultsError,
    apart,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")

_MEMORY = "1GB"
"""DuckDB works in that much; what it reads and gives comes on top."""

_EVALUATIONS = """
create temp view evaluations as
select {columns} from (from complete union all by name from files) where split is not null
"""
"""Files lack columns that none of their cells has."""

_ELSEWHERE = " and (filename, cell_id) not in (from left_out)"
"""Leaves out records of cells that another file holds, too."""

_REPEATED = [
    "status", "steps", "step", "mosaics_seen", "compute_flops", "num_evaluated", *METRICS, *FURTHER
]  # fmt: skip
"""Columns in which two rows of one evaluation agree; the others are circumstances."""


class TableSource:
    """Cells and evaluations of a table at hand.

    Args:
        evaluations: as `analysis.load` gives it; a row may occur twice.

    Attributes:
        rows: each evaluation once.
        cells: one row a cell, `CELL_COLUMNS`.

    Raises:
        ResultsError: a column is missing, or two rows of one evaluation contradict each other.
    """

    def __init__(self, evaluations: pd.DataFrame) -> None:
        known = {*CELL_COLUMNS, *EVALUATIONS_SCHEMA.names, "cell"} - {"heatmap", *INSTANCES}
        if missing := sorted(known - set(evaluations.columns)):
            raise ResultsError(
                f"the table has no columns {', '.join(missing)}. Give what analysis.load returns."
            )
        if others := set(evaluations["split"].dropna()) - set(SPLITS):
            raise ResultsError(
                f"a split must be one of {', '.join(SPLITS)}, got {', '.join(map(str, others))}."
            )
        self.rows = _each_once(evaluations)
        self.cells = self.rows[CELL_COLUMNS].drop_duplicates("cell_id", ignore_index=True)

    def ask(self, question: Callable[[DuckDBPyConnection], T], columns: Sequence[str]) -> T:
        """What a question finds in a database with the view `evaluations`, of some columns."""
        if "heatmap" in columns and "heatmap" not in self.rows:
            raise ResultsError("the table has no column heatmap, which another threshold needs.")
        rows = self.rows[self.rows["split"].notna()]
        evaluations = pa.table({name: _values(rows[name]) for name in columns})
        with _database() as database:
            database.register("evaluations", evaluations)
            return question(database)

    def of(self, cell_ids: Collection[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """All rows of some cells but `cell`; more columns than were asked for."""
        return self.rows[self.rows["cell_id"].isin(set(cell_ids))].drop(columns="cell")

    def json_of(self, cell_ids: Collection[str]) -> dict[str, str]:
        """Id -> JSON of some cells."""
        cells = self.rows[self.rows["cell_id"].isin(set(cell_ids))]
        return dict(zip(cells["cell_id"], cells["cell"], strict=True))


class DirectorySource:
    """Cells of comparisons and their evaluations in a results directory, never all in memory.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these cells.

    Attributes:
        cells: as of `TableSource`; empty where no cell is in a comparison.

    Raises:
        ResultsError: see `analysis.digest.reading.cells_of`.
    """

    def __init__(
        self,
        results_dir: str | os.PathLike[str] | Results,
        study: str | None = None,
        cell_ids: Collection[str] | None = None,
    ) -> None:
        self._results = opened(results_dir)
        cells = cells_of(self._results, study, cell_ids)
        self.cells = cells[is_compared(cells)].reset_index(drop=True)

    def ask(self, question: Callable[[DuckDBPyConnection], T], columns: Sequence[str]) -> T:
        """As `TableSource.ask`."""
        import duckdb

        def read() -> T:
            files = self._results.files(self.cells["cell_id"])
            try:
                with _database() as database:
                    database.register("complete", EVALUATIONS_SCHEMA.empty_table())
                    several = bool(files.left_out)  # else no row has to know its file
                    left_out = pd.DataFrame(files.left_out, columns=["filename", "cell_id"])
                    database.register("left_out", left_out)
                    paths = [glob.escape(path) for path in files.paths]
                    rows = database.read_parquet(paths, union_by_name=True, filename=several)
                    rows.create_view("files")
                    view = _EVALUATIONS + _ELSEWHERE * several
                    database.execute(view.format(columns=", ".join(columns)))
                    return question(database)
            except duckdb.OperationalError as error:  # others are mistakes of ours
                if not all(map(os.path.exists, files.paths)):  # a running study merged them
                    raise FileNotFoundError(str(error)) from error
                raise ResultsError(
                    f"the results in {self._results.url} cannot be compared ({error}). That takes "
                    f"some {_MEMORY} of memory and room in {tempfile.gettempdir()}: free both, or "
                    "name a larger folder in TMPDIR."
                ) from error

        return self._results.while_merged(read)

    def of(self, cell_ids: Collection[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Evaluations of some cells, as `load` gives them but `cell`, or some columns alone."""
        if columns is None:
            return joined(self._results, cell_ids, CELL_COLUMNS)
        return with_base_images(self._results, self._results.evaluations(cell_ids, columns))

    def json_of(self, cell_ids: Collection[str]) -> dict[str, str]:
        """Id -> JSON of some cells."""
        cells = self._results.cells(cell_ids, ["cell_id", "cell"])
        return dict(zip(cells["cell_id"], cells["cell"], strict=True))


Source = TableSource | DirectorySource


@contextmanager
def _database() -> Iterator[DuckDBPyConnection]:
    import duckdb  # late, since most commands need none

    with tempfile.TemporaryDirectory(prefix="attention-study-") as folder:
        limits: dict[str, Any] = {"memory_limit": _MEMORY, "temp_directory": folder}
        with duckdb.connect(config=limits) as database:
            yield database


def _values(column: pd.Series) -> pa.Array:
    """The values of a column, of its type in the schema."""
    kind = EVALUATIONS_SCHEMA.field(str(column.name)).type
    if pa.types.is_integer(kind):
        return pa.array(column.astype("Int64"), kind)
    values: Any = column.to_numpy(float if pa.types.is_floating(kind) else object)
    return pa.array(values, kind, from_pandas=True)


def _each_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Each evaluation once; which of several equal rows is kept does not depend on their order."""
    again = rows.duplicated(KEY, keep=False)
    if not again.any():
        return rows.reset_index(drop=True)
    twice = rows[again].assign(status=pd.factorize(rows.loc[again, "status"])[0])
    differ = apart(twice, _REPEATED)
    for place, names in differ[differ.any(axis=1)].iterrows():
        cell_id, split, fraction = cast(tuple[str, str, float], place)
        at = "" if pd.isna(split) else f" at {100 * fraction:g} % of the budget on {split}"
        what = " and ".join(map(str, names[names].index))
        raise ResultsError(
            f"cell {cell_id} is in the table twice{at}, with different {what}. Keep one of the "
            "rows."
        )
    ordered = rows.sort_values([*KEY, *_REPEATED, "train_seconds"])
    return ordered.drop_duplicates(KEY).reset_index(drop=True)
