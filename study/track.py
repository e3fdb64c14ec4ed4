"""The command `python -m study.track RESULTS_DIR`: logs to MLflow the runs that it lacks."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from study.errors import RequestError, unknown
from study.terminal import counted
from study.terminal.command import DONE, FAILED, Parser, guarded, importing, run_as_command
from study.terminal.options import mlflow_uri

if TYPE_CHECKING:
    from study.results import Results

PATIENCE = 60.0
"""Seconds without a logged run after which the rest is given up."""

REQUEST_SECONDS = "120"
"""How long a request may take; long, since no training waits for it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; its exit status is 0 done, 1 runs missing, 2 unusable request."""
    stopped = "stopped; the same command goes on where this one ended"
    return guarded("study.track", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    with importing():
        from study.results import Results
        from study.tracking.uris import NONE, tracking_uri

    if tracking_uri(args.tracking) == NONE:
        raise RequestError(f"nothing can be logged to {NONE!r}. Name a store with --tracking URI.")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", REQUEST_SECONDS)
    results = Results(args.results_dir)
    try:
        studies = _studies(results, args.study)
        with results.lock():  # a running study would log the same cells
            asked = args.tracking, args.select
            missing = sum(_log(results, name, studies[name], *asked) for name in studies)
    except OSError as error:  # raised by a store
        raise RequestError(str(error)) from error
    return FAILED if missing else DONE


def _studies(results: Results, wanted: str | None) -> dict[str, dict[str, str]]:
    """Study -> cell id -> status."""
    cells = results.cells(columns=["study", "cell_id", "status"])
    if cells.empty:
        raise RequestError(f"{results.url} holds no finished cell. Run or resume a study first.")
    studies = {
        str(name): dict(zip(mine["cell_id"], mine["status"], strict=True))
        for name, mine in cells.groupby("study", sort=False)
    }
    if wanted is None:
        return studies
    if wanted not in studies:
        raise unknown("study", wanted, studies)
    return {wanted: studies[wanted]}


def _log(
    results: Results, study: str, statuses: Mapping[str, str], uri: str | None, select: str | None
) -> int:
    """Logs what MLflow lacks of one study; returns the number of runs that it still lacks."""
    with importing():
        from analysis.conclude import Question, conclude
        from study.results import report_files
        from study.terminal.working import working
        from study.tracking.store import Store
        from study.tracking.tracker import Tracker

    found = conclude(
        results, Question(cell_ids=statuses, select=select)
    )  # first: it may find a damaged file
    store = Store(results, study, uri)
    store.connect()
    tracker = Tracker(store)
    ended = {cell_id: status for cell_id, status in statuses.items() if status != "failed"}
    tracker.log_cells(ended)
    with (
        report_files(results.url, study) as files,
        working(f"logging {study} to MLflow", len(ended), "cells", lambda: store.made),
    ):
        missing = tracker.finish(found.answer(files), math.inf, PATIENCE)
    lost = sum(not store.holds(*each) for each in ended.items())
    there = len(ended) - store.made - lost
    print(
        f"{study}: {counted(len(ended), 'cell')}: {counted(there, 'was', 'were')} there, "
        f"{store.made} logged" + (f", {lost} missing" if lost else "")
    )
    print(f"runs:   {store.ui_command}")
    print(f"view:   {store.view}")
    return missing


def _parser() -> Parser:
    parser = Parser("study.track", _ABOUT, _EXAMPLES)
    parser.add_results_dir()
    add = parser.add_argument
    add(
        "--tracking",
        type=mlflow_uri,
        metavar="URI",
        help="MLflow tracking URI; default: MLFLOW_TRACKING_URI or a database in the results "
        "directory",
    )
    add("--study", metavar="NAME", help="only this study; default: all in the results")
    add(
        "--select",
        metavar="MEASURE",
        help="validation score that chooses among options, as of analysis.report",
    )
    return parser


_ABOUT = """Logs to MLflow the runs that it lacks, from the results. Runs that are there are left
alone, so the command can be repeated at will."""

_EXAMPLES = """
examples:
  python -m study.track results
  python -m study.track results --study digits
  python -m study.track results --tracking http://localhost:5000
  python -m study.track s3://bucket/results --tracking https://mlflow.example.org
"""

if __name__ == "__main__":
    run_as_command(main)
