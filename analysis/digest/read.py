"""From a results directory, or a frame that a user brings, to tables."""

from __future__ import annotations

import glob
import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from study.results import (
    CELLS_SCHEMA,
    EVALUATIONS_SCHEMA,
    FURTHER,
    INSTANCES,
    KEY,
    METRICS,
    SPLITS,
    Results,
    ResultsError,
    apart,
    unknown,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from study.results import Instances

T = TypeVar("T")

Directory = str | os.PathLike[str] | Results
"""A results directory: local path, fsspec URL or an open `Results`."""

CELL_COLUMNS = [name for name in CELLS_SCHEMA.names if name != "cell"]
"""All but the JSON of a cell, which is most of its memory."""

_EXACT = {pa.int64(): pd.Int64Dtype()}
"""Floats, as pandas makes them of whole numbers beside missing ones, end at 2**53."""

_REPEATED = [
    "status", "steps", "step", "mosaics_seen", "compute_flops", "num_evaluated", *METRICS, *FURTHER
]  # fmt: skip
"""Columns in which two rows of one evaluation agree; the others are circumstances."""

_MEMORY = "1GB"
"""DuckDB works in that much; what it reads and gives comes on top."""

_EVALUATIONS = """
create temp view evaluations as
select {columns} from (from complete union all by name from records) where split is not null
"""
"""Records lack columns that none of their cells has."""


def load(results_dir: Directory, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Evaluations joined with their cells: one row per cell, evaluation and split.

    A cell without any evaluation (it diverged before the first) has one row with missing columns
    of the evaluation, so that no cell drops out of the count.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        cell_ids: keep these cells only; ids without a result are ignored.

    Returns:
        The columns of `CELLS_SCHEMA` and `EVALUATIONS_SCHEMA`, of the rows with `instances`
        `base_images` (those that each instance holds, one after another; as many for each, that of
        the foreground first) and `labels` (names of their classes, where there are any), and one
        for each measure of its own that a recorded run has. Metrics
        are fractions in [0, 1] (`loss` in nats), compute in FLOPs, times in seconds; counts are
        nullable integers.

    Raises:
        ResultsError: not a readable results directory.
    """
    return _joined(opened(results_dir), cell_ids)


def _joined(
    results: Results, cell_ids: Iterable[str] | None, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """As `load`, with some columns of the cells; None: all of these."""
    # Of one moment, so that a cell that finishes meanwhile is in both tables or in none.
    cells, rows = results.tables(cell_ids, columns)
    evaluations = rows.to_pandas(types_mapper=_EXACT.get)
    table = cells.to_pandas().merge(evaluations, on="cell_id", how="left", validate="one_to_many")
    return _with_images(results, with_measures(table))


def _with_images(results: Results, rows: pd.DataFrame) -> pd.DataFrame:
    """Evaluations, with columns `base_images` and `labels`; missing where not at hand."""
    names = rows["instances"].dropna().unique()
    held = {name: found for name in names if (found := results.instances(name)) is not None}
    images = {name: each.base_images.ravel() for name, each in held.items()}
    told = [each for each in held.values() if each.labels is not None]
    labels = {name: _labels(each, told) for name, each in held.items()}

    def of_each(found: Mapping[Any, Any]) -> pd.Series:
        # `Series.map` would copy what it finds into arrays of its own: gigabytes.
        return pd.Series([*map(found.get, rows["instances"])], rows.index, dtype=object)

    return rows.assign(base_images=of_each(images), labels=of_each(labels))


def _labels(held: Instances, told: Sequence[Instances]) -> Any:
    """The classes of instances: also of those whose images others tell, as later cells do."""
    same = (each.labels for each in told if np.array_equal(each.base_images, held.base_images))
    return held.labels if held.labels is not None else next(same, None)


def with_measures(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column for each measure in the JSON of their column `measures`."""
    texts = rows["measures"].dropna()
    own = pd.DataFrame([*map(json.loads, texts)], texts.index, dtype=float)
    further = own.columns.difference(rows.columns)
    return rows.join(own[further]) if len(further) else rows  # a copy may be large


def cells_of(
    results_dir: Directory, study: str | None = None, cell_ids: Collection[str] | None = None
) -> pd.DataFrame:
    """One row per cell: `CELL_COLUMNS`.

    Args:
        results_dir: local path, fsspec URL or an open `Results`.
        study: only the cells that this study recorded.
        cell_ids: only these.

    Raises:
        ResultsError: unreadable results, no such cell, an unknown study.
    """
    results = opened(results_dir)
    cells = results.cells(cell_ids, CELL_COLUMNS)
    if cells.empty:
        which = "no finished cell" if cell_ids is None else "none of the requested cells"
        running = "A study is running with it: ask again when its first cells have ended."
        advice = running if results.is_running() else "Run or resume the study first."
        raise ResultsError(f"{results.url} holds {which}. {advice}")
    if study is None:
        return cells
    names = sorted(cells["study"].unique())
    if study not in names:
        raise ResultsError(f"{results.url}: {unknown('study', study, names)}")
    return cells[cells["study"] == study].reset_index(drop=True)


def opened(results_dir: Directory) -> Results:
    """Opens the results directory at a path or URL; an open one is returned as it is."""
    return results_dir if isinstance(results_dir, Results) else Results(results_dir)


def each_once(evaluations: pd.DataFrame) -> pd.DataFrame:
    """The rows of a user's frame, checked, each evaluation once.

    Which of several equal rows is kept does not depend on their order.

    Args:
        evaluations: as `load` gives it; a row may occur twice, and heat maps may be left out.

    Raises:
        ResultsError: it is no frame, or empty, a column is missing, there is an unknown split, or
            two rows of one evaluation contradict each other.
    """
    if not isinstance(evaluations, pd.DataFrame):
        raise ResultsError(
            f"a table must be what analysis.load returns, got {type(evaluations).__name__}. "
            "analysis.compare_results takes a directory."
        )
    if evaluations.empty:
        raise ResultsError("there is no finished cell to compare. Run or resume a study first.")
    known = {*CELLS_SCHEMA.names, *EVALUATIONS_SCHEMA.names} - {"heatmap", *INSTANCES}
    if missing := sorted(known.difference(evaluations)):
        raise ResultsError(
            f"the table has no columns {', '.join(missing)}. Give what analysis.load returns."
        )
    if others := {*evaluations["split"].dropna()}.difference(SPLITS):
        raise ResultsError(
            f"a split must be one of {', '.join(SPLITS)}, got {', '.join(map(str, others))}."
        )
    again = evaluations.duplicated(KEY, keep=False)
    if not again.any():
        return evaluations.reset_index(drop=True)
    twice = evaluations[again]
    differ = apart(twice.assign(status=pd.factorize(twice["status"])[0]), _REPEATED)
    for row in differ[differ.any(axis=1)].reset_index().to_dict("records"):
        what = " and ".join(name for name in _REPEATED if row[name])
        raise ResultsError(
            f"cell {row['cell_id']} is in the table twice, with different {what}. Keep one of the "
            "rows."
        )
    ordered = evaluations.sort_values([*KEY, *_REPEATED, "train_seconds"])
    return ordered.drop_duplicates(KEY).reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class Source:
    """Cells of comparisons and their evaluations, which DuckDB reads where they are.

    Attributes:
        given: a results directory, whose evaluations are never all in memory; or a frame of them,
            as `each_once` gives it.
        cells: one row per cell that is wanted of it, `CELL_COLUMNS`.
    """

    given: Results | pd.DataFrame
    cells: pd.DataFrame

    def ask(self, question: Callable[[DuckDBPyConnection], T], columns: Sequence[str]) -> T:
        """What a question finds in a database with the view `evaluations`.

        Args:
            question: of the database.
            columns: of the view, some of `EVALUATIONS_SCHEMA`.

        Raises:
            ResultsError: heat maps are asked for that a frame does not have; or there is too
                little memory or disk.
        """
        given = self.given
        view = _EVALUATIONS.format(columns=", ".join(columns))
        if isinstance(given, Results):
            return given.while_merged(lambda: self._of_files(given, question, view))
        if "heatmap" in columns and "heatmap" not in given:
            raise ResultsError("the table has no column heatmap, which another threshold needs.")
        known = given[[*columns]].dropna(axis="columns", how="all")
        schema = pa.schema(map(EVALUATIONS_SCHEMA.field, known))
        with _database() as database:
            database.register("records", pa.Table.from_pandas(known, schema, preserve_index=False))
            return question(database.execute(view))

    def _of_files(
        self, results: Results, question: Callable[[DuckDBPyConnection], T], view: str
    ) -> T:
        """The same of the files of a directory.

        Raises:
            FileNotFoundError: a running study merged one of them.
        """
        import duckdb

        files = results.files(self.cells["cell_id"])
        paths = [glob.escape(path) for path in files.paths]
        several = bool(files.left_out)  # else no row has to know its file
        try:
            with _database() as database:
                rows = database.read_parquet(paths, union_by_name=True, filename=several)
                if several:
                    left_out = pd.DataFrame(files.left_out, columns=["filename", "cell_id"])
                    database.register("left_out", left_out)
                    rows = rows.filter("(filename, cell_id) not in (from left_out)")
                rows.create_view("records")
                return question(database.execute(view))
        except duckdb.OperationalError as error:  # others are mistakes of ours
            if not all(map(os.path.exists, files.paths)):
                raise FileNotFoundError(str(error)) from error
            raise ResultsError(
                f"the results in {results.url} cannot be compared ({error}). That takes some "
                f"{_MEMORY} of memory and room in {tempfile.gettempdir()}: free both, or name a "
                "larger folder in TMPDIR."
            ) from error

    def of(self, cell_ids: Collection[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Evaluations of some cells, as `load` gives them but `cell`.

        Args:
            cell_ids: of the cells.
            columns: of the evaluations, `instances` and `measures` among them, without those of
                their cells; None: all. Of a frame, all come.
        """
        if isinstance(self.given, Results):
            if columns is None:
                return _joined(self.given, cell_ids, CELL_COLUMNS)
            rows = with_measures(self.given.evaluations(cell_ids, columns))
            return _with_images(self.given, rows)
        return self.given[self.given["cell_id"].isin(set(cell_ids))].drop(columns="cell")

    def settings(self, cell_ids: Collection[str]) -> list[dict[str, Any]]:
        """Of some cells, as `study.cell.Cell.to_dict` gives them."""
        if isinstance(self.given, Results):
            cells = self.given.cells(cell_ids, ["cell_id", "cell"])
        else:
            cells = self.given.drop_duplicates("cell_id")
        return [*map(json.loads, cells.set_index("cell_id")["cell"].loc[[*cell_ids]])]


@contextmanager
def _database() -> Iterator[DuckDBPyConnection]:
    """One that knows all columns of evaluations, by the empty table `complete`."""
    import duckdb  # late, since most commands need none

    with tempfile.TemporaryDirectory(prefix="attention-study-") as folder:
        limits = {"memory_limit": _MEMORY, "temp_directory": folder}
        with duckdb.connect(config={**limits}) as database:
            yield database.register("complete", EVALUATIONS_SCHEMA.empty_table())
