"""MLflow's side of a study: one experiment, and its runs, each logged exactly once.

At the top are the study's own run and the summaries of its groups (a paradigm in a comparison),
fewer than a hundred, which MLflow can compare; below the study's run is one run a cell. All of it
is made from the results, so any run can be made again.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from study.errors import RequestError
from study.results import Results
from study.storage.urls import sqlite_url
from study.terminal.command import importing
from study.tracking.artifacts import DATABASE, artifact_root, follow, require_writable
from study.tracking.heat_map_image import heatmap_png
from study.tracking.runs import (
    _PARAMS,
    _PARENT,
    _TAGS,
    METRIC_STEP_FLOPS,
    Group,
    _equal,
    _known,
    _known_run,
    _metrics,
    _name,
    _records,
    _Run,
    _text,
)
from study.tracking.uris import (
    NONE,
    ServerDown,
    _is_server,
    _may_pass,
    _require_store,
    _without_password,
    reason,
    tracking_uri,
)

BATCH = 100
"""Cells that are read from the results in one go."""

MOST_GROUPS = 98
"""Summaries of groups that are kept: with the study's run, fewer than 100 runs at the top.

MLflow's views show a hundred runs at first, and are slow with more.
"""


_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # A request that is sent twice may act twice. `RunStore` looks at what the first one did.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
"""Environment variables of MLflow, where the user has not set them."""


def fitting(groups: Sequence[Group]) -> list[Group]:
    """The first groups that MLflow is to show, see `MOST_GROUPS`, in whole comparisons."""
    if len(groups) <= MOST_GROUPS:
        return list(groups)
    cut = groups[MOST_GROUPS].comparison_id
    return [group for group in groups[:MOST_GROUPS] if group.comparison_id != cut]


class RunStore:
    """The runs of one study in MLflow, each logged exactly once, in the calling thread.

    A run is known by its experiment and its tag, `cell_id` or `group`, and complete by its status
    FINISHED.
    A call that fails may have acted all the same, so what it was to make is looked up before it
    is tried again: an incomplete run is deleted, a complete one kept, and of two the oldest.

    Args:
        results, study, uri: as for `open_tracker`; the URI is not `none`.

    Raises:
        ResultsError: as `Results.databases`, where it is asked for.
    """

    def __init__(self, results: Results, study: str, uri: str | None) -> None:
        self._results = results
        self._study = study
        self._asked_uri = uri
        asked = tracking_uri(uri)
        self._folder = None if asked else results.databases()  # of a database of our own
        self._uri = sqlite_url(self._folder / DATABASE) if self._folder else str(asked)
        self._runs: dict[str, _Run] = {}
        self._looked_up = False
        self.made = 0
        """Runs of cells that were logged so far."""

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
        except RequestError:
            raise
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
        with importing():
            from mlflow import MlflowClient

        for name in ("mlflow", "alembic"):  # after the import, which sets its own levels
            logging.getLogger(name).setLevel(logging.CRITICAL)  # errors are reported by us
        _require_store(self._uri)
        if self._folder and (before := follow(self._folder)):
            print(
                f"note: the results were in {before}; MLflow's artifacts are now found in "
                f"{self._folder}",
                file=sys.stderr,
            )
        self._client = MlflowClient(tracking_uri=self._uri)
        experiment = self._find_experiment() or self._make_experiment()
        require_writable(experiment.artifact_location)
        self._experiment = experiment.experiment_id

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
            Exception: whatever MLflow raises. So do `log`, `log_groups` and `summarise`; what is
                there is then looked up anew, since a server may come back with another memory.
        """
        if self._looked_up:
            return
        self._connect()
        self._tidy()
        if _PARENT not in self._runs:
            tags = {"role": "study", "metric_step": "training MFLOPs"}
            run = self._client.create_run(self._experiment, run_name=self._study, tags=tags)
            self._runs[_PARENT] = _known_run(run)
        self._adopt()
        self._looked_up = True

    def holds(self, name: str) -> bool:
        """Whether a complete run of a cell or a group was found or logged, whatever it says."""
        return name in self._runs

    def is_complete(self, metrics: Iterable[str], groups: Sequence[Group] = ()) -> bool:
        """Whether nothing is missing, as far as that is known without comparing numbers.

        The study's run was found finished with these metrics, the groups that are to be shown
        have runs, and no run was made since.
        """
        parent = self._runs.get(_PARENT)
        held = parent is not None and parent.complete and parent.metrics >= set(metrics)
        return held and all(group.key in self._runs for group in fitting(groups))

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

    def log_groups(self, groups: Iterable[Group]) -> Iterator[tuple[str, Exception | None]]:
        """Logs the groups that MLflow lacks or holds with other numbers.

        Yields:
            Key, and why the group could not be logged or None, each as soon as that is known.

        Raises:
            Exception: as `look_up`, where MLflow does not answer at all.
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
            files: are attached to it.
            keys: of the groups that were logged now. Older ones stay as long as there are not
                more than `MOST_GROUPS`.

        Raises:
            Exception: as `look_up`.
        """
        from mlflow.entities import Metric

        with self._looked_up_anew_after_errors():
            self._tidy()  # another driver may have logged the same cells
            self._adopt()
            self._make_room(keys)
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

    def _search(self, query: str) -> list[tuple[str, _Run]]:
        """This study's runs and their names, oldest first; none that others keep there."""
        found: list[tuple[int, str, str, _Run]] = []
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment], query, max_results=500, page_token=token
            )
            for run in page:  # of which little is kept: there may be 100,000
                name = _name(run)
                if name is not None:
                    found.append((run.info.start_time, run.info.run_id, name, _known_run(run)))
            token = page.token
            if not token:
                return [(name, known) for _, _, name, known in sorted(found)]

    def _tidy(self, query: str = "") -> None:
        """Looks up runs and leaves one complete run a cell and one parent: the oldest."""
        kept: dict[str, _Run] = {}
        for name, known in self._search(query):
            if name not in kept and (known.complete or name == _PARENT):
                kept[name] = known
            else:
                self._client.delete_run(known.run_id)
        self._runs = self._runs | kept if query else kept

    def _adopt(self) -> None:
        """Puts every cell below the one parent that is left: its own may have been a second one,
        made where MLflow repeated a request whose answer was lost."""
        parent_id = self._runs[_PARENT].run_id
        for name, run in self._runs.items():
            is_cell = name != _PARENT and not run.is_group
            if is_cell and run.parent_id != parent_id:
                self._client.set_tag(run.run_id, "mlflow.parentRunId", parent_id)

    def _make_room(self, keys: Collection[str]) -> None:
        """Deletes the groups that are too many, the oldest first and none of these."""
        held = [name for name, run in self._runs.items() if run.is_group]
        others = [name for name in held if name not in keys]
        for name in others[: max(0, len(held) - MOST_GROUPS)]:
            self._client.delete_run(self._runs.pop(name).run_id)

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
                log = functools.partial(self._log_cell, cells[cell_id], mine)
                status, query = cells[cell_id]["status"], f"tags.cell_id = '{cell_id}'"
                yield cell_id, self._log_or_look(cell_id, status, query, log)

    def _is_logged(self, name: str, state: str) -> bool:
        """Whether MLflow holds a run as it is; a censored cell may have gone on since."""
        run = self._runs.get(name)
        return run is not None and run.state == state

    def _log_or_look(
        self, name: str, state: str, query: str, log: Callable[[], None]
    ) -> Exception | None:
        """Logs one run; after an error, sees what it left.

        Returns:
            Why it could not be logged though MLflow answers, or None.
        """
        try:
            log()
        except Exception as error:  # whatever the server does, training goes on
            self._tidy(query)
            return None if self._is_logged(name, state) else error
        return None

    def _start_run(self, name: str, run_name: str, tags: Mapping[str, str]) -> Any:
        """Makes a run in place of an outdated one."""
        outdated = self._runs.pop(name, None)
        if outdated:
            self._client.delete_run(outdated.run_id)
        parent = self._runs[_PARENT]
        if parent.complete:  # not any more
            self._client.update_run(parent.run_id, status="RUNNING")
            self._runs[_PARENT] = parent._replace(complete=False)
        return self._client.create_run(self._experiment, run_name=run_name, tags=dict(tags))

    def _end_run(self, name: str, run: Any) -> None:
        self._client.set_terminated(run.info.run_id)
        self._runs[name] = _known_run(run)._replace(complete=True)

    def _log_cell(self, cell: Mapping[str, Any], evaluations: pd.DataFrame) -> None:
        from mlflow.entities import Param

        values = {name: _text(cell[name]) for name in {*_PARAMS, *_TAGS} if _known(cell[name])}
        tags = {name: values[name] for name in _TAGS if name in values}
        held = f"alpha={cell['alpha']:g} " if _known(cell["alpha"]) else ""
        model = f"{cell['architecture']} " if _known(cell["label_rule"]) else ""
        run = self._start_run(
            cell["cell_id"],
            f"{cell['paradigm']} {model}m={cell['m']} {held}lr={cell['lr']:g} seed={cell['seed']}",
            {"mlflow.parentRunId": self._runs[_PARENT].run_id, **tags},
        )
        run_id = run.info.run_id
        params = [Param(name, values[name]) for name in _PARAMS if name in values]
        metrics = list(_metrics(cell, evaluations))
        self._client.log_batch(run_id, metrics=metrics, params=params)  # in calls of 1,000
        files = {"cell.json": json.dumps(json.loads(cell["cell"]), indent=2).encode()}
        # A map of a held attention is one line, and of a linear model theory says more.
        if len(evaluations) and not held and evaluations["mu"].isna().all():
            last = evaluations[evaluations["step"] == evaluations["step"].max()]
            heatmaps = {
                row["split"]: np.reshape(row["heatmap"], (5, 5))
                for row in _records(last)
                if row["heatmap"] is not None  # no foreground of this split is known
            }
            if heatmaps:
                files["heatmap.png"] = heatmap_png(heatmaps, cell["schedule"])
        self._attach(run_id, files)
        self._end_run(cell["cell_id"], run)
        self.made += 1

    def _log_group(self, group: Group) -> None:
        from mlflow.entities import Metric, Param

        files = group.files()  # first: where it fails, MLflow keeps what it holds
        tags = {"role": "summary", "group": group.key, "comparison_id": group.comparison_id}
        tags |= {"digest": group.digest, "mlflow.note.content": group.note}
        run = self._start_run(group.key, group.name, tags)
        run_id, now = run.info.run_id, int(1000 * time.time())
        metrics = [Metric(name, value, now, 0) for name, value in group.metrics.items()]
        for name, points in group.curves.items():
            metrics += [Metric(name, y, now, int(x // METRIC_STEP_FLOPS)) for x, y in points]
        params = [Param(name, value) for name, value in group.params.items()]
        self._client.log_batch(run_id, metrics=metrics, params=params)
        self._attach(run_id, files)
        self._end_run(group.key, run)

    def _attach(self, run_id: str, files: Mapping[str, bytes]) -> None:
        """Makes artifacts of a run: path -> what it holds."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            self._client.log_artifacts(run_id, folder)
