"""The runs of a study in MLflow: one experiment, each run logged exactly once.

At the top are the study's own run and the summaries of its groups (a paradigm in a comparison),
fewer than a hundred, which MLflow can compare. Below the study's run is one run a cell. All runs
are made from the results, so any can be made again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
import shlex
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.errors import RequestError
from study.results import Results
from study.terminal.command import importing
from study.tracking.artifacts import (
    DATABASE,
    artifact_root,
    follow,
    in_folder,
    require_writable,
)
from study.tracking.database import database_of, read, write
from study.tracking.making import alone, make_whole
from study.tracking.runs import (
    METRIC_STEP_FLOPS,
    PARENT,
    VIEW,
    VIEW_TAGS,
    CellRun,
    Group,
    KnownRun,
    is_equal,
    known_run,
    name_of,
    records,
    run_of,
)
from study.tracking.uris import (
    NONE,
    ServerDown,
    database_folder,
    is_server,
    may_pass,
    of_proxy,
    reason,
    require_store,
    sqlite_url,
    tracking_uri,
    without_password,
)

BATCH = 100
"""Cells that are read from the results at once."""

ABANDONED_SECONDS = 3600.0
"""After this time a run of another driver that is still not complete is taken for given up."""

MOST_GROUPS = 98
"""Summaries that are kept: with the study's run, fewer than 100 runs at the top. MLflow's views
first show a hundred runs, and are slow with more."""


_UI = "http://127.0.0.1:5000"
"""Where `mlflow ui` shows a database, unless it is told otherwise."""

_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # A repeated request may act twice; `RunStore` looks up what the first one did instead.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Environment variables of MLflow, unless the user has set them."""


def fitting(groups: Sequence[Group]) -> list[Group]:
    """The first groups up to `MOST_GROUPS`, in whole comparisons."""
    if len(groups) <= MOST_GROUPS:
        return list(groups)
    cut = groups[MOST_GROUPS].comparison_id
    return [group for group in groups[:MOST_GROUPS] if group.comparison_id != cut]


class RunStore:
    """The runs of one study in MLflow, each logged exactly once, in the calling thread.

    A run is identified by its experiment and its tag `cell_id` or `group`; it is complete if its
    status is FINISHED. A failed call may have acted all the same, so its run is looked up before
    the next try: incomplete runs are deleted, and the oldest complete one is kept. Several drivers
    may log to one experiment, each from its own results directory, which the tag `results` names:
    the incomplete runs of the others are theirs.

    Args:
        results, study, uri: as for `open_tracker`; the URI is not `none`.

    Raises:
        ResultsError: as `database_folder`, if the URI is None and MLFLOW_TRACKING_URI not set.
    """

    def __init__(self, results: Results, study: str, uri: str | None) -> None:
        self._results = results
        self._study = study
        self._asked_uri = uri
        asked = tracking_uri(uri)
        self._folder = None if asked else database_folder(results.url)
        self._uri = sqlite_url(self._folder / DATABASE) if self._folder else str(asked)
        self._origin = ""
        self._runs: dict[str, KnownRun] = {}
        self._experiment: Any = None
        self._database: Any = None  # None: of a server
        self._looked_up = False
        self._refused = False  # whether a batch was
        self.made = 0
        """Runs of cells that were logged so far."""

    @property
    def ui_command(self) -> str:
        """The command that shows the runs, or the address of the server that does."""
        if is_server(self._uri):
            return without_password(self._uri)
        return f"uv run mlflow ui --backend-store-uri {shlex.quote(without_password(self._uri))}"

    @property
    def view(self) -> str | None:
        """The address of the runs with the columns that answer; None while not connected."""
        if self._experiment is None:
            return None
        server = self._uri.rstrip("/") if is_server(self._uri) else _UI
        page = f"#/experiments/{self._experiment.experiment_id}/runs?viewStateShareKey={VIEW}"
        return f"{without_password(server)}/{page}"

    @property
    def rebuild_command(self) -> str:
        """The command that logs missing runs."""
        command = f"uv run python -m study.track {shlex.quote(self._results.url)}"
        if self._asked_uri:
            command += f" --tracking {shlex.quote(without_password(self._asked_uri))}"
        return command

    def connect(self) -> None:
        """Opens the store and the experiment, and makes them if they are missing.

        A database is made and migrated here, before any trial runs: processes that do it at the
        same time crash each other, so drivers that share one take turns.

        Raises:
            ServerDown: the server does not answer.
            RequestError: the store cannot be used.
        """
        try:
            self._connect()
        except RequestError:
            raise
        except Exception as error:  # a store may raise errors of its own, SQL's or the network's
            if is_server(self._uri) and may_pass(error):
                raise ServerDown(
                    f"the MLflow server {without_password(self._uri)} does not answer "
                    f"({reason(error)}).{of_proxy(error, self._uri)} Start it, or choose another "
                    f"with --tracking URI, or --tracking {NONE}."
                ) from error
            anew = "; or move it away: it is made anew from the results" if self._folder else ""
            raise RequestError(
                f"MLflow cannot track to {without_password(self._uri)} ({reason(error)}). "
                f"Choose another store with --tracking URI, or --tracking {NONE}{anew}."
            ) from error

    def _connect(self) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # a run each, passwords too
        with importing():
            from mlflow import MlflowClient

        for name in ("mlflow", "alembic"):  # after the import, which sets its own levels
            logging.getLogger(name).setLevel(logging.CRITICAL)  # we report errors ourselves
        require_store(self._uri)
        if self._folder and (before := follow(self._folder)):
            print(
                f"note: the results were in {before}; MLflow's artifacts are now found in "
                f"{self._folder}",
                file=sys.stderr,
            )
        make_whole(self._uri, lambda uri: MlflowClient(tracking_uri=uri))
        with alone(self._uri):
            self._client = MlflowClient(tracking_uri=self._uri)
            experiment = self._find_experiment() or self._make_experiment()
        if experiment.lifecycle_stage == "deleted":
            uri, number = shlex.quote(without_password(self._uri)), experiment.experiment_id
            raise RequestError(
                f"somebody deleted MLflow's experiment {self._study!r}. Restore it with "
                f"`MLFLOW_TRACKING_URI={uri} uv run mlflow experiments restore -x {number}`, or "
                f"choose another store with --tracking URI, or --tracking {NONE}."
            )
        require_writable(experiment.artifact_location)
        self._experiment = experiment
        self._origin = self._results.origin()
        self._database = database_of(self._client)
        for name, text in VIEW_TAGS.items():
            if experiment.tags.get(name) != text:
                self._client.set_experiment_tag(experiment.experiment_id, name, text)

    def _find_experiment(self) -> Any:
        return self._client.get_experiment_by_name(self._study)

    def _make_experiment(self) -> Any:
        root = artifact_root(self._folder, self._study) if self._folder else None
        try:
            self._client.create_experiment(self._study, artifact_location=root)
        except Exception:  # another driver may have been faster
            found = self._find_experiment()
            if found is None:
                raise
            return found
        return self._find_experiment()

    def look_up(self) -> None:
        """Connects and looks up the study's runs, unless that is done.

        Raises:
            Exception: whatever MLflow raises. So do `log`, `log_groups` and `summarise`; the runs
                are then looked up again, since a server may come back without some.
        """
        if self._looked_up:
            return
        self._connect()
        self._tidy()
        if PARENT not in self._runs:
            tags = {"role": "study", "metric_step": "training MFLOPs"}
            self._runs[PARENT] = known_run(self._new_run(self._study, tags))
        self._adopt()
        self._looked_up = True

    def holds(self, name: str) -> bool:
        """Whether MLflow has a complete run of a cell or group, whatever its numbers."""
        return name in self._runs

    def is_complete(self, metrics: Iterable[str], groups: Sequence[Group] = ()) -> bool:
        """Whether nothing is missing; numbers are not compared.

        That is, the study's run was found finished with these metrics, all groups to show have
        runs, and no run was made since.
        """
        parent = self._runs.get(PARENT)
        held = parent is not None and parent.complete and parent.metrics >= set(metrics)
        return held and all(group.key in self._runs for group in fitting(groups))

    def log(self, cells: Mapping[str, str | None]) -> Iterator[tuple[str, Exception | None]]:
        """Logs the cells that MLflow lacks or holds with another status.

        Args:
            cells: cell id -> status, None if not known; at most `BATCH`, since their results are
                in memory at once.

        Yields:
            Cell id, and why it could not be logged or None, each at once.

        Raises:
            Exception: as `look_up`, if MLflow does not answer at all.
        """
        with self._looked_up_anew_after_errors():
            logged = [i for i, status in cells.items() if status and self._is_logged(i, status)]
            yield from ((cell_id, None) for cell_id in logged)
            yield from self._log([cell_id for cell_id in cells if cell_id not in logged])

    def log_groups(self, groups: Iterable[Group]) -> Iterator[tuple[str, Exception | None]]:
        """Logs the groups that MLflow lacks or holds with other numbers.

        Yields:
            Key, and why the group could not be logged or None, each at once.

        Raises:
            Exception: as `look_up`, if MLflow does not answer at all.
        """
        with self._looked_up_anew_after_errors():
            for group in groups:
                error = None
                if not self._is_logged(group.key, group.digest):
                    query = f"tags.group = '{group.key}'"
                    log = functools.partial(self._log_group, group)
                    error = self._log_or_look(group.key, group.digest, query, log)
                yield group.key, error

    def summarise(
        self, metrics: Mapping[str, float], files: Sequence[Path], keys: Collection[str] = ()
    ) -> None:
        """Logs the metrics of the study, attaches files and finishes the parent run.

        Args:
            metrics: of the study's own run.
            files: to attach to it.
            keys: of the groups logged now. Older groups stay while there are at most
                `MOST_GROUPS`.

        Raises:
            Exception: as `look_up`.
        """
        from mlflow.entities import Metric

        with self._looked_up_anew_after_errors():
            self._tidy()  # another driver may have logged the same cells
            self._adopt()
            self._make_room(keys)
            run_id = self._runs[PARENT].run_id
            held = self._client.get_run(run_id).data.metrics
            now = int(1000 * time.time())
            new = [
                Metric(name, value, now, 0)
                for name, value in metrics.items()
                if name not in held or not is_equal(held[name], value)
            ]
            self._client.log_batch(run_id, metrics=new)
            for file in files:
                self._client.log_artifact(run_id, str(file))
            self._client.set_terminated(run_id)
            self._runs[PARENT] = self._runs[PARENT]._replace(
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

    def _search(self, query: str) -> list[tuple[str, KnownRun]]:
        """This study's runs with their names, oldest first, without runs of other origin."""
        found: list[tuple[int, str, str, KnownRun]] = []
        for run in self._active_runs(query):  # little of each is kept, as there may be 100,000
            name = name_of(run)
            if name is not None:
                found.append((run.info.start_time, run.info.run_id, name, known_run(run)))
        return [(name, known) for _, _, name, known in sorted(found)]

    def _active_runs(self, query: str) -> Iterator[Any]:
        """The runs of the experiment that are not deleted."""
        if self._database is not None and not query:
            yield from read(self._database, self._experiment)
            return
        token = None
        while token != "":
            page = self._client.search_runs(
                [self._experiment.experiment_id], query, max_results=500, page_token=token
            )
            yield from page
            token = page.token or ""

    def _tidy(self, query: str = "") -> None:
        """Looks up runs and deletes all but one complete one a name, and the oldest parent.

        Of a cell's runs the oldest is kept, of a group's the one with the latest numbers.
        """
        kept: dict[str, KnownRun] = {}
        for name, known in self._search(query):
            if name != PARENT and not known.complete:
                if self._may_delete(known):
                    self._client.delete_run(known.run_id)
                continue
            older = kept.get(name)
            if older is None or known.is_group:
                kept[name] = known
            if older is not None:
                self._client.delete_run((older if known.is_group else known).run_id)
        self._runs = self._runs | kept if query else kept

    def _may_delete(self, run: KnownRun) -> bool:
        """Whether an incomplete run is this driver's, or nobody's any more."""
        mine = run.origin in (None, self._origin)
        return mine or time.time() - run.started > ABANDONED_SECONDS

    def _adopt(self) -> None:
        """Puts every cell below the parent that is left.

        A cell's own parent may have been a duplicate, made when MLflow repeated a request whose
        answer was lost.
        """
        parent_id = self._runs[PARENT].run_id
        for name, run in self._runs.items():
            is_cell = name != PARENT and not run.is_group
            if is_cell and run.parent_id != parent_id:
                self._client.set_tag(run.run_id, "mlflow.parentRunId", parent_id)

    def _make_room(self, keys: Collection[str]) -> None:
        """Deletes the oldest groups beyond `MOST_GROUPS`, but none of these."""
        held = [name for name, run in self._runs.items() if run.is_group]
        others = [name for name in held if name not in keys]
        for name in others[: max(0, len(held) - MOST_GROUPS)]:
            self._client.delete_run(self._runs.pop(name).run_id)

    def _log(self, cell_ids: Sequence[str]) -> Iterator[tuple[str, Exception | None]]:
        if not cell_ids:
            return
        try:
            found, evaluations = (t.to_pandas() for t in self._results.tables(cell_ids))
            cells = {cell["cell_id"]: cell for cell in records(found)}
            rows = dict(iter(evaluations.groupby("cell_id")))
            runs = {
                cell_id: run_of(cell, rows.get(cell_id, evaluations.iloc[:0]))
                for cell_id, cell in cells.items()
                if not self._is_logged(cell_id, cell["status"])
            }
        except Exception as error:  # a damaged file, a lost connection to the results
            if len(cell_ids) == 1:
                yield cell_ids[0], error
            else:  # log one by one, to find the cell that cannot be read
                for cell_id in cell_ids:
                    yield from self._log([cell_id])
            return
        self._log_together(runs)
        for cell_id in cell_ids:
            if cell_id not in cells:
                yield cell_id, LookupError(f"the results have no cell {cell_id}")
            elif self._is_logged(cell_id, cells[cell_id]["status"]):
                yield cell_id, None
            else:
                log = functools.partial(self._log_cell, cell_id, runs[cell_id])
                status, query = cells[cell_id]["status"], f"tags.cell_id = '{cell_id}'"
                yield cell_id, self._log_or_look(cell_id, status, query, log)

    def _log_together(self, runs: Mapping[str, CellRun]) -> None:
        """Logs the runs of cells at once where that can be; else none, to be logged one by one.

        Args:
            runs: by cell id.
        """
        if self._database is None or not runs:
            return
        try:
            for cell_id in runs:
                self._make_way(cell_id)
            new = {uuid.uuid4().hex: self._below_parent(run) for run in runs.values()}
            write(self._database, self._experiment, new)
        except Exception as error:  # they may be there all the same
            if not self._refused:
                self._refused = True
                print(
                    f"note: MLflow's database did not take a batch of runs ({reason(error)}); "
                    "they are logged one by one, which takes longer",
                    file=sys.stderr,
                )
            for cell_id in runs:
                self._tidy(f"tags.cell_id = '{cell_id}'")
            return
        for cell_id, (run_id, run) in zip(runs, new.items(), strict=True):
            self._runs[cell_id] = KnownRun(
                run_id,
                parent_id=run.tags["mlflow.parentRunId"],
                complete=True,
                state=run.tags["status"],
                is_group=False,
                metrics=frozenset(),
                origin=self._origin,
                started=time.time(),
            )
        self.made += len(runs)

    def _is_logged(self, name: str, state: str) -> bool:
        """Whether MLflow holds a run with this state; a censored cell may have gone on since."""
        run = self._runs.get(name)
        return run is not None and run.state == state

    def _log_or_look(
        self, name: str, state: str, query: str, log: Callable[[], None]
    ) -> Exception | None:
        """Logs one run; after an error, looks up whether it was made all the same.

        Returns:
            Why it could not be logged, or None.
        """
        try:
            log()
        except Exception as error:  # whatever the server does, training goes on
            self._tidy(query)
            return None if self._is_logged(name, state) else error
        return None

    def _make_way(self, name: str) -> None:
        """Deletes an outdated run if there is one; the study's own run is not finished now."""
        outdated = self._runs.pop(name, None)
        if outdated:
            self._client.delete_run(outdated.run_id)
        parent = self._runs[PARENT]
        if parent.complete:
            self._client.update_run(parent.run_id, status="RUNNING")
            self._runs[PARENT] = parent._replace(complete=False)

    def _new_run(self, name: str, tags: Mapping[str, str]) -> Any:
        experiment = self._experiment.experiment_id
        return self._client.create_run(experiment, run_name=name, tags=self._owned(tags))

    def _owned(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Tags that say which directory a run is of, so that other drivers let it be."""
        return {**tags, "results": self._origin}

    def _below_parent(self, run: CellRun) -> CellRun:
        tags = {"mlflow.parentRunId": self._runs[PARENT].run_id, **run.tags}
        return dataclasses.replace(run, tags=self._owned(tags))

    def _end_run(self, name: str, run: Any) -> None:
        self._client.set_terminated(run.info.run_id)
        self._runs[name] = known_run(run)._replace(complete=True)

    def _log_cell(self, cell_id: str, run: CellRun) -> None:
        from mlflow.entities import Param

        self._make_way(cell_id)
        made = self._new_run(run.name, self._below_parent(run).tags)
        params = [Param(*each) for each in run.params.items()]
        # In calls of 1,000.
        self._client.log_batch(made.info.run_id, metrics=run.metrics, params=params)
        self._attach(made.info.run_id, run.files)
        self._end_run(cell_id, made)
        self.made += 1

    def _log_group(self, group: Group) -> None:
        from mlflow.entities import Metric, Param

        files = group.files()  # first, so that MLflow keeps its run if this fails
        tags = {"role": "summary", "group": group.key, "comparison_id": group.comparison_id}
        tags |= {"digest": group.digest, "mlflow.note.content": group.note}
        self._make_way(group.key)
        run = self._new_run(group.name, tags)
        run_id, now = run.info.run_id, int(1000 * time.time())
        metrics = [Metric(name, value, now, 0) for name, value in group.metrics.items()]
        for name, points in group.curves.items():
            metrics += [Metric(name, y, now, int(x // METRIC_STEP_FLOPS)) for x, y in points]
        params = [Param(name, value) for name, value in group.params.items()]
        self._client.log_batch(run_id, metrics=metrics, params=params)
        self._attach(run_id, files)
        self._end_run(group.key, run)

    def _attach(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Attaches artifacts to a run: path -> content."""
        with in_folder(files) as folder:
            self._client.log_artifacts(run_id, folder)
