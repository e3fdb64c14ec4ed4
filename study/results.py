"""The results directory: its Parquet schema, the writer and the reader.

This module is the only door between `study` and `analysis`. A results directory (a local path or
any fsspec URL) holds

    cells/<cell_id>.parquet        one row: the cell, how it ended, where it ran
    evaluations/<cell_id>.parquet  one row an evaluation and split

A file is written whole and renamed into place, evaluations first, so a cell that has a row in
`cells/` was complete and a reader never sees half of one. A cell is finished while both of its
files are there. Many studies may share a directory, one at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from study.cell import Cell
from study.errors import RequestError
from study.metrics import HEATMAP_EDGES as HEATMAP_EDGES

SCHEMA_VERSION = 2
DUPLICATE_TOLERANCE = 1e-6
"""Two files of one cell whose metrics differ by more than this are a contradiction."""

_METADATA_KEY = b"attention_study_schema"
_METRICS = {
    "loss": pa.float64(),
    "accuracy": pa.float64(),
    "saif": pa.float64(),
    "foreground_attention_mean": pa.float64(),
    "ftpt": pa.float64(),
    "ffpt": pa.float64(),
    "ftpf": pa.float64(),
    "ffpf": pa.float64(),
}
METRICS = tuple(_METRICS)
"""Metric columns of an evaluation. All but `loss` (nats) are fractions in [0, 1]; the last four
are shares of (argmax focus true/false) x (prediction true/false)."""

CELLS_SCHEMA = pa.schema(
    {
        "study": pa.string(),
        "cell_id": pa.string(),
        "comparison_id": pa.string(),
        "task": pa.string(),
        "data_digest": pa.string(),
        "num_classes": pa.int64(),
        "split_scheme": pa.string(),
        "m": pa.int64(),
        "n": pa.int64(),
        "architecture": pa.string(),
        "batch_size": pa.int64(),
        "precision": pa.string(),
        "paradigm": pa.string(),
        "schedule": pa.string(),
        "lr": pa.float64(),
        "last_lr": pa.float64(),
        "switch_point": pa.float64(),
        "seed": pa.int64(),
        "budget_amount": pa.int64(),
        "budget_unit": pa.string(),
        "cell": pa.string(),
        "status": pa.string(),
        "status_reason": pa.string(),
        "steps": pa.int64(),
        "total_train_seconds": pa.float64(),
        "total_evaluate_seconds": pa.float64(),
        "total_seconds": pa.float64(),
        "device": pa.string(),
        "threads": pa.int64(),
        "pack": pa.int64(),
        "micro_batch": pa.int64(),
        "shared_prefix": pa.bool_(),
        "code_version": pa.string(),
        "package_versions": pa.string(),
        "finished_at": pa.string(),
    }
)
"""`schedule` is text for people, `cell` the JSON that `study.cell.Cell.from_dict` reads;
`last_lr` is the last phase's learning rate; `status` is done or diverged. `total_seconds` is the
wall time from the start of the cell to its record, `total_train_seconds` that of the steps alone:
in a pack of more than one member, both are those of the whole pack."""

EVALUATIONS_SCHEMA = pa.schema(
    {
        "cell_id": pa.string(),
        "step": pa.int64(),
        "mosaics_seen": pa.int64(),
        "budget_fraction": pa.float64(),
        "compute_flops": pa.int64(),
        "train_seconds": pa.float64(),
        "split": pa.string(),
        "inference": pa.string(),
        "num_evaluated": pa.int64(),
        **_METRICS,
        "heatmap": pa.list_(pa.float64()),
    }
)
"""`budget_fraction` is the target, `compute_flops` the exact training FLOPs spent; `train_seconds`
are those of the whole pack; `heatmap` is the 5 x 5 heat map row by row, axis 0 the foreground
attention; `inference` names the paradigm whose formula made the predictions."""

Table = Literal["cells", "evaluations"]
_SCHEMAS: dict[Table, pa.Schema] = {"cells": CELLS_SCHEMA, "evaluations": EVALUATIONS_SCHEMA}


class ResultsError(RequestError):
    """A results directory that cannot be read or written; the message says which file and why."""


def cell_columns(cell: Cell) -> dict[str, Any]:
    """The columns of `CELLS_SCHEMA` that a cell itself determines."""
    return {
        "cell_id": cell.id,
        "comparison_id": cell.comparison_id,
        "task": cell.task,
        "data_digest": cell.data_digest,
        "split_scheme": cell.split,
        "m": cell.m,
        "n": cell.n,
        "architecture": cell.architecture,
        "batch_size": cell.batch_size,
        "precision": cell.precision,
        "paradigm": cell.paradigm,
        "schedule": cell.schedule.text,
        "lr": cell.lr,
        "last_lr": cell.schedule.phases[-1].lr,
        "switch_point": cell.switch_point,
        "seed": cell.seed,
        "budget_amount": cell.budget.amount,
        "budget_unit": cell.budget.unit,
        "cell": json.dumps(cell.to_dict(), sort_keys=True),
    }


class Results:
    """One results directory.

    Args:
        url: local path or fsspec URL.

    Raises:
        ResultsError: no file system is known or installed for the URL.
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.fspath(url)
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, OSError, ValueError) as error:
            raise ResultsError(
                f"cannot open the results directory {self.url} ({error})."
            ) from error
        self._local = "file" in np.atleast_1d(self._fs.protocol)

    def prepare(self) -> None:
        """Makes the directory and checks that it can be written.

        Raises:
            ResultsError: it cannot be made or written.
        """
        probe = f"{self._root}/.probe-{uuid.uuid4().hex}"
        try:
            for table in _SCHEMAS:
                self._fs.makedirs(f"{self._root}/{table}", exist_ok=True)
            self._write_whole(probe, b"")
            self._fs.rm_file(probe)
        except OSError as error:
            raise ResultsError(
                f"cannot write to the results directory {self.url} ({error}). "
                "Choose another with --results DIR."
            ) from error

    def write_cell(
        self, cell: Mapping[str, Any], evaluations: Sequence[Mapping[str, Any]]
    ) -> None:
        """Records a finished cell: its row in `cells/` appears only when all else is in place."""
        self._write_table("evaluations", str(cell["cell_id"]), evaluations)
        self._write_table("cells", str(cell["cell_id"]), [cell])

    def finished(self) -> set[str]:
        """Ids of the cells that are recorded with their evaluations, none without a directory.

        Raises:
            ResultsError: a file in the directory is damaged, foreign or of another schema.
        """
        if not self._fs.isdir(f"{self._root}/cells"):
            return set()
        evaluated = self._names("evaluations")
        for name in evaluated:
            path = self._path("evaluations", name)
            with self._fs.open(path) as file:
                _check_schema(path, _opened(path, pq.read_schema, file))
        return set(self.cells()["cell_id"]) & evaluated

    def has_cell(self, cell_id: str) -> bool:
        """Whether a cell of this id is recorded, with its evaluations, under its own name."""
        return all(self._fs.exists(self._path(table, cell_id)) for table in _SCHEMAS)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other drivers out of a local directory; the lock ends with the process.

        Raises:
            ResultsError: another process holds it.
        """
        if not self._local:
            yield
            return
        with open(f"{self._root}/.lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ResultsError(
                    f"another study is running with the results directory {self.url}. Wait for "
                    "its end, or choose another directory with --results DIR."
                ) from None
            yield

    def cells(self, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
        """One row a finished cell, of all or of `cell_ids` only, in the order of their ids.

        Raises:
            ResultsError: no such directory, or a file that is damaged or of another schema.
        """
        frame = self._read("cells", cell_ids)
        return frame.drop_duplicates("cell_id").drop(columns="file").reset_index(drop=True)

    def evaluations(self, cell_ids: Iterable[str] | None = None) -> pd.DataFrame:
        """One row a (cell, evaluation, split), of the finished cells or of `cell_ids` only.

        Raises:
            ResultsError: as `cells`; or two files that hold different numbers for one cell.
        """
        frame = self._read("evaluations", cell_ids)
        key = ["cell_id", "split", "budget_fraction"]
        _refuse_contradictions(frame, key)
        finished = set(self.cells()["cell_id"]) if cell_ids is None else set(cell_ids)
        frame = frame[frame["cell_id"].isin(finished)]
        return frame.drop_duplicates(key).drop(columns="file").reset_index(drop=True)

    def _names(self, table: Table) -> set[str]:
        paths = self._fs.glob(f"{self._root}/{table}/*.parquet")
        return {path.rsplit("/", 1)[-1].removesuffix(".parquet") for path in paths}

    def _path(self, table: Table, name: str) -> str:
        return f"{self._root}/{table}/{name}.parquet"

    def _write_table(self, table: Table, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        schema = _SCHEMAS[table].with_metadata({_METADATA_KEY: str(SCHEMA_VERSION)})
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema), sink)
        self._write_whole(self._path(table, name), sink.getvalue())

    def _write_whole(self, path: str, data: bytes) -> None:
        if not self._local:
            self._fs.pipe_file(path, data)  # an object store shows an object when it is complete
            return
        partial = f"{path}.{uuid.uuid4().hex}.part"
        try:
            with open(partial, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, path)
        finally:
            if os.path.exists(partial):
                os.remove(partial)

    def _read(self, table: Table, names: Iterable[str] | None) -> pd.DataFrame:
        if not self._fs.isdir(f"{self._root}/{table}"):
            raise ResultsError(
                f"{self.url} holds no results (it has no folder {table}/). "
                "Run a study first, e.g. `python -m study.run digits --results DIR`."
            )
        if names is None:
            paths = sorted(self._fs.glob(f"{self._root}/{table}/*.parquet"))
        else:
            paths = [self._path(table, name) for name in sorted(names)]
        frames = [_read_file(path, self._fs.cat_file(path), _SCHEMAS[table]) for path in paths]
        if not frames:
            frames = [_SCHEMAS[table].empty_table().to_pandas().assign(file="")]
        return pd.concat(frames, ignore_index=True)


def _read_file(path: str, data: bytes, schema: pa.Schema) -> pd.DataFrame:
    table = _opened(path, pq.read_table, io.BytesIO(data))
    _check_schema(path, table.schema)
    return table.select(schema.names).to_pandas().assign(file=path)


def _opened(path: str, read: Callable[[Any], Any], file: Any) -> Any:
    try:
        return read(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise ResultsError(
            f"{path} is damaged ({error}). Move it away; the same command runs its cell again."
        ) from error


def _check_schema(path: str, schema: pa.Schema) -> None:
    version = (schema.metadata or {}).get(_METADATA_KEY)
    if version is None:
        raise ResultsError(f"{path} was not written by this platform. Move it away.")
    if version != str(SCHEMA_VERSION).encode():
        raise ResultsError(
            f"{path} has results schema {version.decode()}, this version reads schema "
            f"{SCHEMA_VERSION}. Move the directory away, or choose another with --results DIR."
        )


def _refuse_contradictions(frame: pd.DataFrame, key: list[str]) -> None:
    repeated = frame[frame.duplicated(key, keep=False)]
    for _, rows in repeated.groupby(key, sort=False):
        metrics = rows[list(METRICS)].to_numpy(float)
        if not np.allclose(metrics, metrics[0], DUPLICATE_TOLERANCE, DUPLICATE_TOLERANCE, True):
            raise ResultsError(
                f"cell {rows['cell_id'].iloc[0]} has different numbers in "
                f"{' and '.join(sorted(set(rows['file'])))}. Move one of them away."
            )
