"""MLflow: one experiment a study, a parent run, and a child run a cell, logged by the driver.

What is logged is read from the results directory, which stays the truth: a run can always be
made again. `RunStore` knows how runs are logged exactly once, `MLflowTracker` is the thread that
keeps trying while a study trains: a tracking server that fails costs a warning, never a cell.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import json
import logging
import math
import os
import re
import shlex
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from study.errors import RequestError
from study.results import METRICS, Results

NONE = "none"
"""The `--tracking` that logs nothing."""

BATCH = 100
"""Cells that are read from the results in one go."""

FIRST_PAUSE, LONGEST_PAUSE, LAST_PAUSE = 1.0, 30.0, 2.0
"""Seconds before the next try: after one failure; after many; at most, once the study ended."""

FINISH_SECONDS = 60.0
"""How long the end of a study waits for runs that are missing."""

DOWN_SECONDS = 10.0
"""How long of that it waits for a server that does not answer."""

SILENT_SECONDS = 3.0
"""How long it waits before it says so."""

STOP_SECONDS = 2.0
"""How long it lets a run that is being logged get to its end."""

METRIC_STEP_FLOPS = 10**6
"""The step of every metric is the training compute in this unit (MFLOPs)."""

_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # A request that is sent twice may act twice. `RunStore` looks at what the first one did.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Environment variables of MLflow, where the user has not set them."""

_PARENT = ""
"""Stands for the cell id of the parent run."""

_PARAMS = (
    "task", "m", "n", "architecture", "batch_size", "precision", "paradigm", "schedule", "lr",
    "last_lr", "switch_point", "seed", "split_scheme", "budget_amount", "budget_unit",
)  # fmt: skip
_TAGS = (
    "cell_id", "comparison_id", "paradigm", "m", "seed", "lr", "switch_point", "status",
    "status_reason", "data_digest", "device", "threads", "pack", "micro_batch", "code_version",
)  # fmt: skip

DrawHeatmap = Callable[[Mapping[str, np.ndarray], str], Any]
"""(name -> 5 x 5 heat map, title) -> matplotlib Figure."""


class ServerDown(RequestError):
    """A tracking server that does not answer now, and may later."""


class Tracker(Protocol):
    """Something that shows cells while a study runs."""

    def log_cells(
        self, cell_ids: Sequence[str], statuses: Mapping[str, str] | None = None
    ) -> None:
        """Logs recorded cells, soon and in the background; cells that are logged are left.

        Args:
            cell_ids: may have been logged before, now or in another run of the command.
            statuses: how cells ended, by their ids, where that is known; a cell that is logged
                with its status need not be read.
        """
        ...

    def finish(self, metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """Waits for the cells, logs the study's summary and attaches files to its parent run."""
        ...

    @property
    def ui_command(self) -> str | None:
        """How to look at the runs."""
        ...


class NullTracker:
    """Tracks nothing."""

    ui_command = None

    def log_cells(
        self, cell_ids: Sequence[str], statuses: Mapping[str, str] | None = None
    ) -> None:
        """Does nothing."""

    def finish(self, metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """Does nothing."""


def open_tracker(
    results: Results, study: str, uri: str | None, draw_heatmap: DrawHeatmap
) -> Tracker:
    """The tracker of a study.

    A server that does not answer is warned of, and tried again while the study trains.

    Args:
        results: where the cells are read from.
        study: name of the experiment.
        uri: MLflow tracking URI; `none`; or None for MLFLOW_TRACKING_URI, and without it a SQLite
            database in the results directory.
        draw_heatmap: draws the picture that is attached to a run.

    Raises:
        RequestError: the URI can never work.
    """
    if tracking_uri(uri) == NONE:
        return NullTracker()
    store = RunStore(results, study, uri, draw_heatmap)
    try:
        store.connect()
    except ServerDown as error:
        print(
            f"warning: {error} Training goes on; runs are logged when it is back, or later by "
            f"`{store.rebuild_command}`.",
            file=sys.stderr,
        )
    return MLflowTracker(store)


def tracking_uri(uri: str | None) -> str | None:
    """The URI that was asked for, by an option or by the environment; None for neither."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or None


def summary_metrics(summaries: Iterable[pd.DataFrame]) -> dict[str, float]:
    """The metrics of the parent run: SAIF and accuracy of each paradigm in each comparison.

    Args:
        summaries: as `analysis.summarise` gives them, one a comparison.
    """
    metrics: dict[str, float] = {}
    for row in itertools.chain.from_iterable(table.to_dict("records") for table in summaries):
        where = f"{row['task']}/m{row['m']}/{row['comparison_id'][:8]}/{row['paradigm']}"
        metrics |= {f"{where}/{metric}": row[metric] for metric in ("saif", "accuracy")}
    return metrics


class _Run(NamedTuple):
    """What is known of a run that MLflow holds."""

    run_id: str
    parent_id: str | None
    complete: bool
    cell_status: str | None
    """How the cell ended, when the run was logged."""
    metrics: frozenset[str]


class RunStore:
    """The runs of one study in MLflow, each logged exactly once, in the calling thread.

    A run is known by its experiment and its tag `cell_id`, and complete by its status FINISHED.
    A call that fails may have acted all the same, so what it was to make is looked up before it
    is tried again: an incomplete run is deleted, a complete one kept, and of two the oldest.

    Args:
        results, study, uri, draw_heatmap: as for `open_tracker`; the URI is not `none`.

    Raises:
        RequestError: results that are at a URL need a tracking URI.
    """

    def __init__(
        self, results: Results, study: str, uri: str | None, draw_heatmap: DrawHeatmap
    ) -> None:
        self._results = results
        self._study = study
        self._draw_heatmap = draw_heatmap
        self._asked_uri = uri
        self._artifacts: str | None = None
        self._uri = tracking_uri(uri) or self._own_database()
        self._runs: dict[str, _Run] = {}
        self._looked_up = False
        self.made = 0
        """Runs that were logged so far."""

    def _own_database(self) -> str:
        if "://" in self._results.url:
            raise RequestError(
                f"MLflow's database cannot lie at {self._results.url}. Name a tracking server "
                f"with --tracking URI, or --tracking {NONE}."
            )
        folder = Path(self._results.url).resolve()
        self._artifacts = (folder / "mlflow-artifacts" / self._study).as_uri()
        return f"sqlite:///{folder / 'mlflow.db'}"

    @property
    def ui_command(self) -> str:
        """The command that shows the runs, or the address of the server that does."""
        if _is_server(self._uri):
            return _without_password(self._uri)
        return f"uv run mlflow ui --backend-store-uri {shlex.quote(_without_password(self._uri))}"

    @property
    def rebuild_command(self) -> str:
        """The command that logs what is missing."""
        command = f"uv run python -m study.track {shlex.quote(self._results.url)}"
        if self._asked_uri:
            command += f" --tracking {shlex.quote(_without_password(self._asked_uri))}"
        return command

    def connect(self) -> None:
        """Opens the store and the experiment, and makes them where they are missing.

        A database is made and migrated here, once, before any trial runs: processes that do it
        side by side crash each other.

        Raises:
            ServerDown: a server that does not answer.
            RequestError: a store that cannot be used.
        """
        try:
            self._connect()
        except Exception as error:  # a store may raise anything: its own, SQL's, the network's
            if _is_server(self._uri) and _may_pass(error):
                raise ServerDown(
                    f"the MLflow server {_without_password(self._uri)} does not answer "
                    f"({reason(error)}). Start it, or choose another with --tracking URI, or "
                    f"--tracking {NONE}."
                ) from error
            raise RequestError(
                f"MLflow cannot track to {_without_password(self._uri)} ({reason(error)}). "
                f"Choose another store with --tracking URI, or --tracking {NONE}."
            ) from error

    def _connect(self) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # a run each, passwords too
        from mlflow import MlflowClient

        for name in ("mlflow", "alembic"):  # after the import, which sets its own levels
            logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported by us
        _require_store(self._uri)
        self._client = MlflowClient(tracking_uri=self._uri)
        self._experiment = self._find_experiment() or self._make_experiment()

    def _find_experiment(self) -> str | None:
        experiment = self._client.get_experiment_by_name(self._study)
        return experiment.experiment_id if experiment else None

    def _make_experiment(self) -> str:
        try:
            return self._client.create_experiment(self._study, artifact_location=self._artifacts)
        except Exception:  # another driver may have been faster
            found = self._find_experiment()
            if found is None:
                raise
            return found

    def look_up(self) -> None:
        """Connects and looks up the study's runs, unless that is done.

        Raises:
            Exception: whatever MLflow raises. So do `log` and `summarise`; what is there is then
                looked up anew, since a server may come back with another memory.
        """
        if self._looked_up:
            return
        self._connect()
        self._tidy()
        if _PARENT not in self._runs:
            tags = {"role": "study", "metric_step": "training MFLOPs"}
            run = self._client.create_run(self._experiment, run_name=self._study, tags=tags)
            self._runs[_PARENT] = _known_run(run)
        parent_id = self._runs[_PARENT].run_id
        for name, run in self._runs.items():
            if name != _PARENT and run.parent_id != parent_id:  # that one was a second parent
                self._client.set_tag(run.run_id, "mlflow.parentRunId", parent_id)
        self._looked_up = True

    def holds(self, cell_id: str) -> bool:
        """Whether a complete run of a cell was found or logged, whatever it says."""
        return cell_id in self._runs

    def is_complete(self, metrics: Iterable[str]) -> bool:
        """Whether the parent run was found finished with these metrics, and no run made since."""
        parent = self._runs.get(_PARENT)
        return parent is not None and parent.complete and parent.metrics >= set(metrics)

    def log(self, cells: Mapping[str, str | None]) -> Iterator[tuple[str, Exception | None]]:
        """Logs the cells that MLflow lacks or holds with another status.

        Args:
            cells: cell id -> its status, or None where that is not known; not more than `BATCH`,
                since what they hold is in memory at once.

        Yields:
            Cell id, and why it could not be logged or None, each as soon as that is known.

        Raises:
            Exception: as `look_up`, where MLflow does not answer at all.
        """
        with self._looked_up_anew_after_errors():
            logged = [i for i, status in cells.items() if status and self._is_logged(i, status)]
            yield from ((cell_id, None) for cell_id in logged)
            yield from self._log([cell_id for cell_id in cells if cell_id not in logged])

    def summarise(self, metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """Logs the metrics of the study, attaches files and finishes the parent run.

        Raises:
            Exception: as `look_up`.
        """
        from mlflow.entities import Metric

        with self._looked_up_anew_after_errors():
            self._tidy()  # another driver may have logged the same cells
            run_id = self._runs[_PARENT].run_id
            held = self._client.get_run(run_id).data.metrics
            now = int(1000 * time.time())
            new = [
                Metric(name, value, now, 0)
                for name, value in metrics.items()
                if name not in held or not _equal(held[name], value)
            ]
            self._client.log_batch(run_id, metrics=new)
            for file in files:
                self._client.log_artifact(run_id, str(file))
            self._client.set_terminated(run_id)
            self._runs[_PARENT] = self._runs[_PARENT]._replace(
                complete=True, metrics=frozenset({*held, *metrics})
            )

    @contextlib.contextmanager
    def _looked_up_anew_after_errors(self) -> Iterator[None]:
        try:
            self.look_up()
            yield
        except Exception:
            self._looked_up = False
            raise

    def _search(self, query: str) -> list[Any]:
        """This study's runs, oldest first; not those that others keep in the experiment."""
        found: list[Any] = []
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment], query, max_results=500, page_token=token
            )
            found += [run for run in page if _name(run) is not None]
            token = page.token
            if not token:
                return sorted(found, key=lambda run: (run.info.start_time, run.info.run_id))

    def _tidy(self, query: str = "") -> None:
        """Looks up runs and leaves one complete run a cell and one parent: the oldest."""
        kept: dict[str, _Run] = {}
        for run in self._search(query):
            name = _name(run)
            known = _known_run(run)
            if name is not None and name not in kept and (known.complete or name == _PARENT):
                kept[name] = known
            else:
                self._client.delete_run(known.run_id)
        self._runs = self._runs | kept if query else kept

    def _log(self, cell_ids: Sequence[str]) -> Iterator[tuple[str, Exception | None]]:
        if not cell_ids:
            return
        try:
            cells = {row["cell_id"]: row for row in _records(self._results.cells(cell_ids))}
            new = [i for i, cell in cells.items() if not self._is_logged(i, cell["status"])]
            evaluations = self._results.evaluations(new) if new else pd.DataFrame()
        except Exception as error:  # a damaged file, a lost connection to the results
            if len(cell_ids) == 1:
                yield cell_ids[0], error
            else:  # one of them cannot be read: which?
                for cell_id in cell_ids:
                    yield from self._log([cell_id])
            return
        for cell_id in cell_ids:
            if cell_id not in cells:
                yield cell_id, LookupError(f"the results have no cell {cell_id}")
            elif cell_id not in new:
                yield cell_id, None
            else:
                mine = evaluations[evaluations["cell_id"] == cell_id]
                yield cell_id, self._log_or_look(cells[cell_id], mine)

    def _is_logged(self, cell_id: str, status: str) -> bool:
        """Whether MLflow holds a cell as it is; one that was censored may have gone on since."""
        run = self._runs.get(cell_id)
        return run is not None and run.cell_status == status

    def _log_or_look(self, cell: Mapping[str, Any], evaluations: pd.DataFrame) -> Exception | None:
        """Logs one cell; after an error, sees what it left.

        Returns:
            Why it could not be logged though MLflow answers, or None.
        """
        try:
            self._log_cell(cell, evaluations)
        except Exception as error:  # whatever the server does, training goes on
            self._tidy(f"tags.cell_id = '{cell['cell_id']}'")
            return None if self._is_logged(cell["cell_id"], cell["status"]) else error
        return None

    def _log_cell(self, cell: Mapping[str, Any], evaluations: pd.DataFrame) -> None:
        from mlflow.entities import Param

        outdated = self._runs.pop(cell["cell_id"], None)
        if outdated:
            self._client.delete_run(outdated.run_id)
        parent = self._runs[_PARENT]
        if parent.complete:  # not any more
            self._client.update_run(parent.run_id, status="RUNNING")
            self._runs[_PARENT] = parent._replace(complete=False)
        values = {name: _text(cell[name]) for name in {*_PARAMS, *_TAGS} if _known(cell[name])}
        tags = {name: values[name] for name in _TAGS if name in values}
        run = self._client.create_run(
            self._experiment,
            run_name=f"{cell['paradigm']} m={cell['m']} lr={cell['lr']:g} seed={cell['seed']}",
            tags={"mlflow.parentRunId": parent.run_id, **tags},
        )
        run_id = run.info.run_id
        params = [Param(name, values[name]) for name in _PARAMS if name in values]
        metrics = list(_metrics(cell, evaluations))
        self._client.log_batch(run_id, metrics=metrics, params=params)  # in calls of 1,000
        self._client.log_dict(run_id, json.loads(cell["cell"]), "cell.json")
        if len(evaluations):
            last = evaluations[evaluations["step"] == evaluations["step"].max()]
            heatmaps = {row["split"]: np.reshape(row["heatmap"], (5, 5)) for row in _records(last)}
            figure = self._draw_heatmap(heatmaps, cell["schedule"])
            self._client.log_figure(run_id, figure, "heatmap.png")
        self._client.set_terminated(run_id)
        self._runs[cell["cell_id"]] = _known_run(run)._replace(complete=True)
        self.made += 1


class MLflowTracker:
    """Logs to MLflow from a thread, which keeps what could not be logged and tries again.

    Args:
        store: where to; the thread connects it where that was not possible.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._changed = threading.Condition()  # guards all that follows
        self._asked: dict[str, str | None] = {}  # cell id -> its status, if that is known
        self._waiting: dict[str, None] = {}  # ids in order, as a set
        self._summary: tuple[Mapping[str, float], Sequence[Path]] | None = None
        self._summarised = False  # and no cell was logged since
        self._error: Exception | None = None  # of the last try
        self._progress = time.monotonic()  # when something was logged last
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        self._thread.start()

    @property
    def ui_command(self) -> str:
        """See `RunStore`."""
        return self._store.ui_command

    @property
    def missing(self) -> int:
        """Runs that are not logged, or not yet; the parent is one, once it has a summary."""
        with self._changed:
            return len(self._waiting) + self._wants_summary()

    def log_cells(
        self, cell_ids: Sequence[str], statuses: Mapping[str, str] | None = None
    ) -> None:
        """See `Tracker`."""
        known = statuses or {}
        with self._changed:
            self._asked |= {cell_id: known.get(cell_id) for cell_id in cell_ids}
            self._waiting |= dict.fromkeys(cell_ids)
            self._changed.notify_all()

    def wait(
        self, seconds: float, patience: float, show: Callable[[int], None] | None = None
    ) -> None:
        """Returns when nothing is missing, or nothing more is to be expected.

        Args:
            seconds: not longer than this.
            patience: give up sooner, after so many seconds in which tries failed and no run was
                logged.
            show: called with the number of missing runs, about twice a second.
        """
        started = time.monotonic()
        while missing := self.missing:
            if show:
                show(missing)
            with self._changed:
                now = time.monotonic()
                idle = now - max(started, self._progress)
                if now - started >= seconds or (self._error and idle >= patience):
                    return
                self._changed.wait(0.5)

    def finish(
        self,
        metrics: Mapping[str, float],
        files: Sequence[Path],
        seconds: float = FINISH_SECONDS,
    ) -> None:
        """See `Tracker`. Waits so many seconds, or `DOWN_SECONDS` while the server is down."""
        started, told = time.monotonic(), False

        def show(missing: int) -> None:
            nonlocal told
            if not told and time.monotonic() - started > SILENT_SECONDS:
                told = True
                print(f"MLflow takes the last {missing} runs; Ctrl-C is safe", file=sys.stderr)

        with self._changed:
            self._summary = (dict(metrics), list(files))
            self._changed.notify_all()
        try:
            self.wait(seconds, DOWN_SECONDS, show)
        finally:
            self.stop()
        with self._changed:
            because = f" ({reason(self._error)})" if self._error else ""
            total = len(self._asked) + 1
        if missing := self.missing:
            print(
                f"MLflow lacks {missing} of {total} runs{because}. The results hold them; log "
                f"them with: {self._store.rebuild_command}",
                file=sys.stderr,
            )

    def stop(self) -> None:
        """Lets the thread end after the run it is at, and waits for that a moment."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(STOP_SECONDS)

    def _work(self) -> None:
        pause = FIRST_PAUSE
        while (batch := self._next()) is not None:
            before = self._progress
            went_well = self._try(batch)
            if self._progress > before:
                pause = FIRST_PAUSE
            if not went_well:
                self._rest(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _next(self) -> dict[str, str | None] | None:
        """Waits for work: cells, or none and a summary; None when the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._waiting or self._wants_summary())
            if self._stopped:
                return None
            return {i: self._asked[i] for i in itertools.islice(self._waiting, BATCH)}

    def _try(self, batch: Mapping[str, str | None]) -> bool:
        """Logs cells, and the summary when no other cell waits; says whether all went well."""
        failed = set()
        try:
            self._store.look_up()
            self._start_over()
            for cell_id, error in self._store.log(batch):
                self._settle(cell_id, error)
                if error:
                    failed.add(cell_id)
                if self._stopped:
                    break
            with self._changed:
                others = self._waiting.keys() - failed
                summary = self._summary if self._wants_summary() and not others else None
            if summary and not self._stopped:
                self._store.summarise(*summary)
                with self._changed:
                    self._summarised = True
                    self._changed.notify_all()
        except Exception as error:  # MLflow may raise anything; training goes on
            with self._changed:
                self._error = error
            return False
        return not failed

    def _wants_summary(self) -> bool:
        return self._summary is not None and not self._summarised

    def _start_over(self) -> None:
        """MLflow answers; it may have come back without runs that it held."""
        with self._changed:
            self._error = None
            lost = (i for i in self._asked if i not in self._waiting and not self._store.holds(i))
            self._waiting |= dict.fromkeys(lost)

    def _settle(self, cell_id: str, error: Exception | None) -> None:
        with self._changed:
            self._waiting.pop(cell_id, None)
            self._error = error
            if error:
                self._waiting[cell_id] = None  # after the others
            else:
                self._progress = time.monotonic()
                self._summarised = False
                self._changed.notify_all()

    def _rest(self, seconds: float) -> None:
        """Waits before the next try: shorter at the end of the study, which is waited for."""
        with self._changed:
            ending = self._summary is not None
            self._changed.wait_for(
                lambda: self._stopped or (self._summary is not None and not ending),
                min(seconds, LAST_PAUSE) if ending else seconds,
            )


def reason(error: BaseException) -> str:
    """Why something failed, on one line and without passwords.

    MLflow's message for a failed connection is a paragraph; the system's error in it is enough.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError):
            error = cause
        cause = cause.__cause__ or cause.__context__
    return _without_password((str(error) or repr(error)).splitlines()[0])


def _without_password(text: str) -> str:
    """A text in which `user:password@host` of any URI has no password any more."""
    return re.sub(r"(://[^/\s:@]*):\S*@", r"\1:***@", text)


def _is_server(uri: str) -> bool:
    return uri.startswith(("http://", "https://"))


def _may_pass(error: Exception) -> bool:
    """Whether a server was not there or not ready, rather than refused the request."""
    from mlflow.exceptions import InvalidUrlException, MlflowException

    if not isinstance(error, MlflowException) or isinstance(error, InvalidUrlException):
        return isinstance(error, OSError)
    return error.get_http_status_code() >= 500


def _require_store(uri: str) -> None:
    """Raises at once for an address or a file that cannot be used; MLflow would try for long."""
    if _is_server(uri):
        parts = urlsplit(uri)
        if not parts.hostname or parts.port == 0:  # reading the port checks it
            raise ValueError("the address names no host")
    elif uri.startswith("sqlite:///"):
        path = uri.removeprefix("sqlite:///").split("?")[0]
        with open(path, "ab"):  # creates it, as SQLite would
            pass
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as database:
            database.execute("PRAGMA schema_version")


def _name(run: Any) -> str | None:
    """The cell id of a run, `_PARENT`, or None for somebody else's run."""
    tags = run.data.tags
    return _PARENT if tags.get("role") == "study" else tags.get("cell_id")


def _known_run(run: Any) -> _Run:
    tags = run.data.tags
    return _Run(
        run_id=run.info.run_id,
        parent_id=tags.get("mlflow.parentRunId"),
        complete=run.info.status == "FINISHED",
        cell_status=tags.get("status"),
        metrics=frozenset(run.data.metrics),
    )


def _metrics(cell: Mapping[str, Any], evaluations: pd.DataFrame) -> Iterator[Any]:
    """One MLflow metric an evaluation, split and measure, stepped by compute."""
    from mlflow.entities import Metric

    finished = datetime.datetime.fromisoformat(cell["finished_at"]).timestamp()
    for row in _records(evaluations):
        step = row["compute_flops"] // METRIC_STEP_FLOPS
        seconds = finished - cell["total_train_seconds"] + row["train_seconds"]
        milliseconds = int(1000 * seconds)
        for name in METRICS:
            yield Metric(f"{row['split']}/{name}", row[name], milliseconds, step)
        if row["split"] == "train":
            for name in ("budget_fraction", "train_seconds"):
                yield Metric(name, row[name], milliseconds, step)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _equal(held: float, value: float) -> bool:
    return held == value or (math.isnan(held) and math.isnan(value))


def _known(value: Any) -> bool:
    return not pd.isna(value) and value != ""


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
