"""The runs of a study in MLflow: one experiment, brought to what the results hold.

At the top are the study's own run and the summaries of its comparisons, fewer than a hundred,
which MLflow can compare. Below the study's run is one run a cell. All runs are made from the
results, so any can be made again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from study.errors import RequestError
from study.results import Results
from study.terminal.command import importing
from study.terminal.working import aside
from study.tracking.cells import of_cell, records
from study.tracking.making import made_whole
from study.tracking.runs import Answer, Point, Run, view_of
from study.tracking.uris import (
    NONE,
    database_folder,
    is_server,
    may_pass,
    reason,
    sqlite_url,
    tracking_uri,
    without_password,
)

DATABASE = "mlflow.db"
_ARTIFACTS = "mlflow-artifacts"

BATCH = 100
"""Cells that are read from the results at once."""

STUDY = "study"
"""The key of the study's own run."""

OF_STUDY = {"role": "study", "mlflow.runColor": "#888888"}
"""Tags of that run."""

VIEW = "answer"
"""Name of the saved view of an experiment, in addresses."""

_UI = "http://127.0.0.1:5000"
"""Where `mlflow ui` shows a database, unless it is told otherwise."""

_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # A repeated request may act twice; a store looks up what the first one did instead.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Environment variables of MLflow, unless the user has set them."""


class ServerDown(RequestError):
    """A tracking server does not answer now, but may later."""


class Held(NamedTuple):
    """A finished run that MLflow holds; the study's own may be unfinished."""

    run_id: str
    state: str
    parent: str | None
    mine: bool


class Store:
    """Where MLflow keeps the runs of one study.

    A run is known by its tag `key`, and made of what its tag `state` says; it counts when it is
    finished, which it is marked last. A failed call may have acted all the same, so after an error
    all runs are looked up anew: unfinished ones are deleted, and of several the newest is kept.
    Several drivers may log to one experiment, each from its own results directory, which the tag
    `results` names: unfinished runs of the others are theirs.

    Args:
        results, study, uri: as for `study.tracking.tracker.open_tracker`; the URI is not `none`.

    Attributes:
        made: runs of cells that were logged so far.
        closed: the answer that the study's own run holds.

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
        self._experiment: str | None = None  # its id
        self._origin = ""  # of the results directory
        self._held: dict[str, Held] = {}
        self._unmade: Exception | None = None  # why a run could not be made
        self._is_known = False  # whether all runs were looked up since the last error
        self.made = 0
        self.closed: Answer | None = None

    @property
    def ui_command(self) -> str:
        """The command that shows the runs, or the address of the server that does."""
        if is_server(self._uri):
            return without_password(self._uri)
        return f"uv run mlflow ui --backend-store-uri {shlex.quote(without_password(self._uri))}"

    @property
    def view(self) -> str | None:
        """The address of the charts that answer; None while not connected."""
        if self._experiment is None:
            return None
        server = without_password(self._uri.rstrip("/")) if is_server(self._uri) else _UI
        shown = f"viewStateShareKey={VIEW}&compareRunsMode=CHART"
        return f"{server}/#/experiments/{self._experiment}/runs?{shown}"

    @property
    def rebuild_command(self) -> str:
        """The command that logs missing runs."""
        command = f"uv run python -m study.track {shlex.quote(self._results.url)}"
        if self._asked_uri:
            command += f" --tracking {shlex.quote(without_password(self._asked_uri))}"
        return command

    def holds(self, key: str, state: str) -> bool:
        """Whether MLflow has a finished run, made of what it is to be made of."""
        held = self._held.get(key)
        return held is not None and held.state == state

    def connect(self) -> None:
        """Opens the store and the experiment, and makes them if they are missing.

        Raises:
            ServerDown: the server does not answer.
            RequestError: the store cannot be used.
        """
        try:
            self._connect()
        except RequestError:
            raise
        except Exception as error:  # a store may raise errors of its own, SQL's or the network's
            where, why = without_password(self._uri), reason(error)
            if is_server(self._uri) and may_pass(error):
                raise ServerDown(
                    f"the MLflow server {where} does not answer ({why}). Start it, or choose "
                    f"another with --tracking URI, or --tracking {NONE}."
                ) from error
            anew = "; or move it away: it is made anew from the results" if self._folder else ""
            raise RequestError(
                f"MLflow cannot track to {where} ({why}). Choose another store with --tracking "
                f"URI, or --tracking {NONE}{anew}."
            ) from error

    def _connect(self) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # a run each, passwords too
        with importing():
            from mlflow import MlflowClient

        for name in ("mlflow", "alembic"):  # after the import, which sets its own levels
            logging.getLogger(name).setLevel(logging.CRITICAL)  # we report errors ourselves
        with made_whole(self._uri):
            self._client = MlflowClient(tracking_uri=self._uri)
            self._experiment = self._opened().experiment_id

    def _opened(self) -> Any:
        """The experiment; one whose directory has moved gives way, as its artifacts are gone."""
        here = (self._folder / _ARTIFACTS / self._study).as_uri() if self._folder else None
        found = self._client.get_experiment_by_name(self._study)
        if found and found.lifecycle_stage == "deleted":
            self._client.restore_experiment(found.experiment_id)
        if found and here and _has_moved(found.artifact_location, here):
            aside(
                f"note: the results were elsewhere ({found.artifact_location}); their runs are "
                "logged anew"
            )
            self._client.rename_experiment(
                found.experiment_id, f"{self._study} of {found.experiment_id}, moved"
            )
            self._client.delete_experiment(found.experiment_id)
            found = None
        if found is None:
            with contextlib.suppress(Exception):  # another driver may be faster, or an answer lost
                self._client.create_experiment(self._study, artifact_location=here)
            found = self._client.get_experiment_by_name(self._study)
        if found is None:
            raise LookupError(f"it refuses an experiment {self._study!r}")
        return found

    def sync(
        self,
        cells: Mapping[str, str],
        answer: Answer | None = None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Logs what MLflow lacks of the study's runs.

        Args:
            cells: cell id -> status.
            answer: of the study, whose own run is then finished; None: it goes on.
            is_stopped: asked before each run; the rest is left.

        Raises:
            Exception: whatever MLflow or the results raise. What was logged stays.
        """
        try:
            if not self._is_known or (answer and not self._folder):  # others may log there, too
                self._connect()
                self._look_up()
            self._unmade = None
            lacking = [cell_id for cell_id in cells if not self.holds(cell_id, cells[cell_id])]
            for start in range(0, len(lacking), BATCH):
                batch = {cell_id: cells[cell_id] for cell_id in lacking[start : start + BATCH]}
                for run in self._runs_of(batch):
                    if is_stopped():
                        return
                    self.made += self._put(run)
            if answer:
                self._close(answer)
        except Exception:
            self._is_known = False
            raise
        if self._unmade:
            raise self._unmade

    def _runs_of(self, cells: Mapping[str, str]) -> Iterator[Run]:
        found, evaluations = (table.to_pandas() for table in self._results.tables(cells))
        rows = dict(iter(evaluations.groupby("cell_id")))
        for cell in records(found):
            mine = rows.get(cell["cell_id"], evaluations.iloc[:0])
            try:
                run = of_cell(cell, mine, cells[cell["cell_id"]])
            except Exception as error:  # a record that nobody has met yet
                self._unmade = error
                continue
            yield run
        if lost := cells.keys() - set(found["cell_id"]):
            self._unmade = LookupError(f"the results have no cell {min(lost)}")

    def _look_up(self) -> None:
        """Looks up all runs, makes the study's own, and deletes what a failure left."""
        self._origin = self._results.origin()
        held: dict[str, Held] = {}
        doomed: list[str] = []
        for run in self._search():
            tags, run_id = run.data.tags, run.info.run_id
            key = tags.get("key") if "results" in tags else None  # else it is nobody's of ours
            mine = tags.get("results") == self._origin
            if key == STUDY or (key and run.info.status == "FINISHED"):
                doomed += [held[key].run_id] if key in held else []
                parent = tags.get("mlflow.parentRunId")
                held[key] = Held(run_id, tags.get("state", ""), parent, mine)
            elif key and mine:
                doomed.append(run_id)
        for run_id in doomed:  # now, as pages of a search are counted off
            self._client.delete_run(run_id)
        if STUDY not in held:
            held[STUDY] = self._create(Run(STUDY, "", self._study, OF_STUDY, {}, (), dict))
        above = held[STUDY].run_id
        for each in held.values():  # a parent of their own may have been a double
            if each.parent not in (None, above):
                self._client.set_tag(each.run_id, "mlflow.parentRunId", above)
        self._held, self._is_known = held, True

    def _search(self, which: str = "") -> Iterator[Any]:
        """The runs of the experiment that are not deleted, oldest first."""
        token = None
        while token != "":
            page = self._client.search_runs(
                [self._experiment],
                which,
                max_results=1000,
                order_by=["attributes.start_time ASC"],
                page_token=token,
            )
            yield from page
            token = page.token or ""

    def _create(self, run: Run, parent: str | None = None) -> Held:
        own = {"key": run.key, "state": run.state, "results": self._origin}
        above = {"mlflow.parentRunId": parent} if parent else {}
        made = self._client.create_run(
            self._experiment, tags={**run.tags, **own, **above}, run_name=run.name
        )
        return Held(made.info.run_id, run.state, parent, True)

    def _put(self, run: Run) -> bool:
        """Logs a run, which is marked finished last, in place of an outdated one.

        Returns:
            Whether its files could be made; the others are to be logged all the same.
        """
        try:
            files = run.files()
        except Exception as error:  # of whatever draws them
            self._unmade = error
            return False
        is_cell = "/" not in run.key
        made = self._create(run, self._held[STUDY].run_id if is_cell else None)
        self._log(made.run_id, run.points, run.params)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            self._client.log_artifacts(made.run_id, folder)
        self._client.set_terminated(made.run_id)
        if outdated := self._held.get(run.key):
            self._client.delete_run(outdated.run_id)
        self._held[run.key] = made
        return True

    def _log(self, run_id: str, points: Iterable[Point], params: Mapping[str, str]) -> None:
        from mlflow.entities import Metric, Param

        metrics = [Metric(p.name, p.value, p.milliseconds, p.step) for p in points]
        self._client.log_batch(run_id, metrics, [Param(*each) for each in params.items()])

    def _close(self, answer: Answer) -> None:
        """Logs the summaries, takes away those of earlier answers, ends the study's own run."""
        for summary in reversed(answer.summaries):  # MLflow lists the newest first
            if not self.holds(summary.key, summary.state):
                self._put(summary)
        for key in self._held.keys() - {each.key for each in answer.summaries}:
            if "/" in key and self._held[key].mine:
                self._client.delete_run(self._held.pop(key).run_id)
        if not self.holds(STUDY, digest := answer.digest):
            self._say(answer, digest)
        self._tidy()
        if not self._unmade:
            self.closed = answer

    def _tidy(self) -> None:
        """Deletes what a client that repeats requests has made twice, without an error."""
        unfinished = [*self._search("attributes.status != 'FINISHED'")]
        for run in unfinished:
            if run.data.tags.get("results") == self._origin and "key" in run.data.tags:
                self._client.delete_run(run.info.run_id)

    def _say(self, answer: Answer, digest: str) -> None:
        """Puts an answer where it is seen first, and into the study's own run."""
        view = json.dumps(view_of(answer.summaries))
        tags = {f"mlflow.sharedViewState.{VIEW}": view, "mlflow.note.content": answer.text}
        for name, text in tags.items():
            self._client.set_experiment_tag(self._experiment, name, text)
        study, now = self._held[STUDY], int(1000 * time.time())
        points = [Point(name, value, now, 0) for name, value in answer.counts.items()]
        self._log(study.run_id, points, {})
        for file in answer.files:
            self._client.log_artifact(study.run_id, str(file))
        self._client.set_terminated(study.run_id)
        self._client.set_tag(study.run_id, "state", digest)  # last: by it the run counts
        self._held[STUDY] = study._replace(state=digest)


def _has_moved(location: str, here: str) -> bool:
    """Whether artifacts that lay in a results directory lie there no more."""
    ours = f"/{_ARTIFACTS}/"
    return location != here and location.startswith("file:") and ours in location
