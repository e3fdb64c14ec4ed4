"""The results directory: records cells and reads them back.

A results directory (a local path or any fsspec URL) holds `cells/<cell id>-<digest>.parquet`, one
file a cell, and files of many cells of the same form (`study.results.cell_file`), in folders or
not. A file is written whole and never changed. So two writers of a cell do no harm (of several
records one counts, see `Records`), and directories are merged by copying: `cp -r other/cells
results/cells/other; cp -rn other/instances results/` (what the test instances of their cells
hold, see `study.results.instances`).

Many studies may share a directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import filelock
import pyarrow as pa

from study.cell.events import Instances
from study.results import cell_file, instances
from study.results.cell_file import Damage
from study.results.columns import CELLS_SCHEMA, EVALUATIONS_SCHEMA
from study.results.records import CELLS, Records
from study.storage.storage import ResultsError, Storage
from study.storage.urls import place_of
from study.terminal.working import aside

_ORIGIN, _LOCK, _RECORDING = ".origin", ".lock", ".recording"
FOLDERS = (CELLS, "checkpoints", "networks", instances.FOLDER)
"""Of every results directory, for files of its own."""

_GLANCE = 0.2  # seconds; `is_running` holds the lock for far less


class Results(Records):
    """One results directory, which `Records` reads.

    Args:
        url: local path or fsspec URL.

    Attributes:
        url: as given.
        storage: the files of the directory.

    Raises:
        ResultsError: no file system is known or installed for the URL.
    """

    def __init__(self, url: str | os.PathLike[str]) -> None:
        super().__init__(Storage(url))
        self.url = self.storage.url
        self._locked = False

    # --- the directory

    def prepare(self) -> None:
        """Makes the directory, and checks that it can be written.

        Raises:
            ResultsError: the directory cannot be made or written.
        """
        for folder in FOLDERS:
            self.storage.make(folder)
        self.storage.probe(CELLS)

    def sweep(self) -> None:
        """Removes the unfinished files of killed writers.

        Raises:
            ResultsError: a file cannot be removed.
        """
        for folder in FOLDERS:
            self.storage.sweep(folder)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other drivers out of a local directory; the lock ends with the process.

        Within it, to lock once more does nothing.

        Raises:
            ResultsError: another process holds it, or the directory cannot be locked.
        """
        if self._locked:
            yield
            return
        with self._held(_LOCK, waits=False):
            self._locked = True
            try:
                yield
            finally:
                self._locked = False

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Lets one command at a time record runs that were trained elsewhere; others wait for it.

        Drivers need not: a file never changes, and they record other cells.

        Raises:
            ResultsError: the directory cannot be locked.
        """
        return self._held(_RECORDING, waits=True)

    @contextlib.contextmanager
    def _held(self, name: str, waits: bool) -> Iterator[None]:
        """A lock of a local directory; whoever waits for it says so."""
        if not self.storage.local:
            yield
            return
        # A soft one, which a killed process leaves behind, would lock people out.
        lock = filelock.FileLock(self.storage.path(name), _GLANCE, fallback_to_soft=False)
        try:
            try:
                lock.acquire()
            except filelock.Timeout:
                if not waits:
                    raise self.in_use() from None
                aside(f"waiting for other commands that record runs in {self.url}")
                lock.acquire(-1)
        except OSError as error:
            raise ResultsError(
                f"cannot lock the results directory {self.url} ({error}). It has to be writable, "
                "on a file system whose locks hold on all machines, as those of Lustre do with "
                "the mount option flock. Otherwise choose another directory."
            ) from error
        try:
            yield
        finally:
            lock.release()

    def in_use(self) -> ResultsError:
        """The refusal of who may not work beside a driver."""
        return ResultsError(
            f"another study is running with the results directory {self.url}, or study.compact or "
            "study.track. Wait for its end, or choose another directory."
        )

    def is_running(self) -> bool:
        """Whether another driver runs with a local directory now; a shard holds no lock."""
        if not self.storage.local or self._locked:
            return False
        try:
            with open(self.storage.path(_LOCK), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared by all who ask at once
        except BlockingIOError:
            return True
        except OSError:  # no driver was there yet, or it cannot be read or locked
            return False
        return False

    def origin(self) -> str:
        """A name of the directory that stays when it is moved, or its machine changes its name.

        It is made when it is first asked for; where it cannot be written, it is the place alone.
        """
        with contextlib.suppress(FileNotFoundError):
            return self.storage.read(_ORIGIN).decode(errors="replace")
        made = f"{place_of(self.url)} {uuid.uuid4().hex[:8]}"
        try:
            self.storage.write(_ORIGIN, made.encode())
        except ResultsError:
            return place_of(self.url)
        return made

    def require_origin(self, origin: str, node: str = "") -> None:
        """Checks that a worker sees the directory of its command.

        Args:
            origin: `origin` of the command.
            node: name of the worker's machine for people; empty: its host name.

        Raises:
            ResultsError: it sees none, or another one.
        """
        try:
            there = self.storage.read(_ORIGIN).decode(errors="replace")
        except FileNotFoundError:
            there = ""
        if there != origin:
            another = "another results directory at" if there else "no results directory"
            raise ResultsError(
                f"node {node or socket.gethostname()} sees {another} {self.url}, where the "
                "command has its own. If it was lost, bring it back: the same command goes on. "
                "On a cluster it has to be on a file system that all nodes share, or at a URL "
                "such as s3://bucket/results."
            )

    def instances(self, digest: str) -> Instances | None:
        """What the instances of a test split hold; None: not at hand.

        Raises:
            ResultsError: the file cannot be read.
        """
        return instances.load(self.storage, digest)

    # --- writing

    def write_cell(
        self,
        cell: Mapping[str, Any],
        evaluations: Sequence[Mapping[str, Any]],
        held: Instances | None = None,
    ) -> None:
        """Records a cell that has ended.

        Args:
            cell: its columns of `CELLS_SCHEMA`.
            evaluations: theirs of `EVALUATIONS_SCHEMA` but `instances`.
            held: by the instances whose bits are among these; None: not known.

        Raises:
            ResultsError: it cannot be written.
        """
        measured = [dict(row) for row in evaluations]
        if held is not None:
            digest = instances.keep(self.storage, held)
            for row in measured:
                row["instances"] = digest if "instance_known" in row else None
        rows = cell_file.rows_of(
            pa.Table.from_pylist([dict(cell)], CELLS_SCHEMA),
            pa.Table.from_pylist(measured, EVALUATIONS_SCHEMA),
        )
        self.write(cell["cell_id"], rows, {cell["cell_id"]: cell["cell"]})

    def write(self, stem: str, rows: pa.Table, texts: Mapping[str, str]) -> str:
        """Writes a file and returns its name.

        Args:
            stem: the id of the cell, or `MERGED`.
            rows, texts: see `study.results.cell_file.encoded`.

        Raises:
            ResultsError: it cannot be written.
        """
        data = cell_file.encoded(rows, texts)
        name = f"{CELLS}/{cell_file.name_of(stem, data)}"
        self.storage.write(name, data)
        return name

    def set_aside(self, damaged: Iterable[Damage]) -> list[str]:
        """Moves damaged files to the folder `damaged/`, so that their cells run again.

        Returns:
            Their new paths.

        Raises:
            ResultsError: a file cannot be moved.
        """
        moved = []
        for each in damaged:
            with contextlib.suppress(FileNotFoundError):  # another process moved it
                moved.append(self.storage.move(each.name, f"damaged/{each.name}"))
        return [self.storage.path(name) for name in moved]
