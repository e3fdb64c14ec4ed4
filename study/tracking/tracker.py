"""Tracks a study in MLflow while it trains: a thread that brings the store up to the results.

The results directory stays the truth, and whatever the store raises is tried again: a server that
is down costs a line at the end, never a cell.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping

from study.results import Results
from study.terminal import counted
from study.terminal.working import aside
from study.tracking.runs import Answer
from study.tracking.store import ServerDown, Store
from study.tracking.uris import NONE, reason, tracking_uri

EVERY, LONGEST_PAUSE = 1.0, 30.0
"""Seconds between two looks at what is missing; after failures up to so many."""

FINISH_SECONDS, DOWN_SECONDS = 60.0, 10.0
"""How long the end of a study waits for missing runs, and of that for a store that fails."""

SILENT_SECONDS = 3.0
"""How long it waits before it says so."""

STOP_SECONDS = 2.0
"""How long it waits for the run that is being logged."""


class Tracker:
    """Shows cells while a study runs.

    Args:
        store: to log to, from a thread; None: nothing is logged.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._cells: dict[str, str] = {}  # id -> status
        self._answer: Answer | None = None
        self._error: Exception | None = None  # of the last try
        self._stopped = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        if store:
            self._thread.start()

    @property
    def ui_command(self) -> str | None:
        """How to look at the runs."""
        return self._store.ui_command if self._store else None

    @property
    def view(self) -> str | None:
        """Where to see the answer."""
        return self._store.view if self._store else None

    @property
    def missing(self) -> int:
        """How many runs are not logged yet; the study's own run counts once it has an answer."""
        if self._store is None:
            return 0
        lacking = sum(not self._store.holds(*each) for each in [*self._cells.items()])
        if self._answer is None or self._store.closed is self._answer:
            return lacking
        summaries = self._answer.summaries
        return lacking + 1 + sum(not self._store.holds(s.key, s.state) for s in summaries)

    def log_cells(self, statuses: Mapping[str, str]) -> None:
        """Logs recorded cells in the background, except those that are logged already.

        Args:
            statuses: cell id -> end state.
        """
        self._cells |= statuses

    def finish(
        self,
        answer: Answer | None,
        seconds: float = FINISH_SECONDS,
        patience: float = DOWN_SECONDS,
    ) -> int:
        """Waits for the cells and the answer, then ends.

        Args:
            answer: of the study; None: there is none.
            seconds: longest wait.
            patience: seconds without a logged run after which it gives up while tries fail.

        Returns:
            How many runs are missing; it says so, and which command logs them.
        """
        if self._store is None:
            return 0
        self._answer = answer
        self._wake.set()
        try:
            self._wait(seconds, patience)
        finally:
            self._stopped = True
            self._wake.set()
            self._thread.join(STOP_SECONDS)
        if missing := self.missing:
            total = len(self._cells) + (1 + len(answer.summaries) if answer else 0)
            because = f" ({reason(self._error)})" if self._error else ""
            aside(
                f"MLflow lacks {missing} of {total} runs{because}. The results hold them; log "
                f"them with: {self._store.rebuild_command}"
            )
        return missing

    def _wait(self, seconds: float, patience: float) -> None:
        started = progress = now = time.monotonic()
        least, is_told = self.missing, False
        while (missing := self.missing) and now - started < seconds and self._thread.is_alive():
            now = time.monotonic()
            if missing < least:
                least, progress = missing, now
            if self._error and now - progress >= patience:
                return
            if not is_told and now - started > SILENT_SECONDS and math.isfinite(seconds):
                is_told = True
                last = counted(missing, "run")
                aside(f"MLflow takes the last {last}; Ctrl-C is safe")
            time.sleep(0.05 + missing / 10_000)  # to count them takes a while, too

    def _work(self) -> None:
        assert self._store is not None
        pause, failures = EVERY, 0  # in a row, without a run between them
        while not self._stopped:
            self._wake.wait(pause)
            self._wake.clear()
            before, pause = self.missing, EVERY
            if self._stopped or not before:
                continue
            try:
                self._store.sync(dict(self._cells), self._answer, lambda: self._stopped)
                self._error, failures = None, 0
            except Exception as error:  # MLflow may raise anything; training goes on
                failures = 0 if self.missing < before else min(failures + 1, 10)
                pause = min(EVERY * 2**failures, LONGEST_PAUSE)
                self._error = error


def open_tracker(results: Results, study: str, uri: str | None) -> Tracker:
    """Opens the tracker of a study.

    If a server does not answer, this warns, and the tracker tries again while the study trains.

    Args:
        results: where cells are read from.
        study: name of the experiment.
        uri: MLflow tracking URI, or `none`; None: MLFLOW_TRACKING_URI, or without it a SQLite
            database in `database_folder`.

    Raises:
        RequestError: the URI can never work.
    """
    if tracking_uri(uri) == NONE:
        return Tracker(None)
    store = Store(results, study, uri)
    try:
        store.connect()
    except ServerDown as error:
        aside(
            f"warning: {error} Training goes on; runs are logged when it is back, or later by "
            f"`{store.rebuild_command}`."
        )
    return Tracker(store)
