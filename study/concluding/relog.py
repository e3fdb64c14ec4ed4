"""Logs to MLflow the runs that it lacks.

Every run is made from the results exactly once, and existing runs are left alone. So this can be
repeated and interrupted at will.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from study.errors import RequestError, unknown
from study.results import Results, report_files
from study.terminal import counted
from study.terminal.command import importing
from study.terminal.working import working
from study.tracking.store import RunStore
from study.tracking.tracker import MLflowTracker
from study.tracking.uris import NONE, tracking_uri

PATIENCE = 60.0
"""Seconds without a logged run after which the rest is given up."""

REQUEST_SECONDS = "120"
"""How long a request may take; long, since no training waits for it."""


def relog(results: Results, study: str | None, uri: str | None) -> int:
    """Logs every run of a results directory that MLflow lacks.

    Args:
        results: where the cells are recorded.
        study: only this study; None: all.
        uri: of the store; None: MLFLOW_TRACKING_URI, or a database in the results directory.

    Returns:
        The number of runs that could not be logged.

    Raises:
        RequestError: there is no such study or store, or another command writes there.
    """
    if tracking_uri(uri) == NONE:
        raise RequestError(f"nothing can be logged to {NONE!r}. Name a store with --tracking URI.")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", REQUEST_SECONDS)
    missing = 0
    try:
        studies = _studies(results, study)
        with results.lock():  # a running study would log the same cells
            for name, statuses in studies.items():
                missing += _log_study(results, name, statuses, uri)
    except OSError as error:  # raised by a store
        raise RequestError(str(error)) from error
    return missing


def _studies(results: Results, wanted: str | None) -> dict[str, dict[str, str]]:
    """Study -> cell id -> status."""
    cells = results.cells()
    if cells.empty:
        raise RequestError(f"{results.url} holds no finished cell. Run or resume a study first.")
    studies: dict[str, dict[str, str]] = {}
    for study, cell_id, status in cells[["study", "cell_id", "status"]].itertuples(index=False):
        studies.setdefault(study, {})[cell_id] = status
    if wanted is None:
        return studies
    if wanted not in studies:
        raise unknown("study", wanted, studies)
    return {wanted: studies[wanted]}


def _log_study(results: Results, study: str, statuses: Mapping[str, str], uri: str | None) -> int:
    """Logs what MLflow lacks of one study; returns the number of runs that it still lacks."""
    with importing():
        from analysis.conclude import Question, conclude

    found = conclude(results, Question(cell_ids=statuses))  # first: it may find a damaged file
    metrics, groups = found.metrics, found.groups
    store = RunStore(results, study, uri)
    store.connect()
    tracker = MLflowTracker(store)
    try:
        tracker.log_cells(list(statuses), statuses)
        with working(
            f"logging {study} to MLflow",
            len(statuses),
            "cells",
            lambda: len(statuses) - tracker.missing,
        ):
            tracker.wait(float("inf"), PATIENCE)
        lost = tracker.missing
        if lost or not store.is_complete(metrics, groups):
            with report_files(results.url, study) as files:
                tracker.finish(metrics, files, groups, seconds=float("inf"))
    finally:
        tracker.stop()
    there = len(statuses) - store.made - lost
    print(
        f"{study}: {counted(len(statuses), 'cell')}: {counted(there, 'was', 'were')} there, "
        f"{store.made} logged" + (f", {lost} missing" if lost else "")
    )
    print(f"runs:   {store.ui_command}")
    print(f"view:   {store.view}")
    return tracker.missing
