"""Tracks a study in MLflow: cells in the background while it trains, summaries at the end.

Runs are made from the results directory, which stays the truth, so a run can always be made again.
`RunStore` logs each run exactly once. `MLflowTracker` is the thread that keeps trying: a failing
tracking server costs a warning, never a cell.
"""

from __future__ import annotations

import itertools
import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from study.results import Results
from study.terminal import counted
from study.tracking.runs import Group
from study.tracking.store import BATCH, RunStore, fitting
from study.tracking.uris import NONE, ServerDown, reason, tracking_uri

FIRST_PAUSE, LONGEST_PAUSE, LAST_PAUSE = 1.0, 30.0, 2.0
"""Seconds before the next try: after one failure, after many, and most once the study ended."""

FINISH_SECONDS = 60.0
"""How long the end of a study waits for missing runs."""

DOWN_SECONDS = 10.0
"""How much of that it waits for a server that does not answer."""

SILENT_SECONDS = 3.0
"""How long it waits before it says so."""

STOP_SECONDS = 2.0
"""How long it waits for the run that is being logged."""


class Tracker(Protocol):
    """Something that shows cells while a study runs."""

    def log_cells(
        self, cell_ids: Sequence[str], statuses: Mapping[str, str] | None = None
    ) -> None:
        """Logs recorded cells in the background, except those that are logged already.

        Args:
            cell_ids: some may have been logged before, by this command or an earlier one.
            statuses: cell id -> known end state; a cell that is logged with it is not read.
        """
        ...

    def finish(
        self, metrics: Mapping[str, float], files: Sequence[Path], groups: Sequence[Group] = ()
    ) -> None:
        """Waits for the cells, then logs the study's own run and its groups.

        Args:
            metrics: of the study's own run.
            files: to attach to it.
            groups: each gets a run, see `analysis.comparison.report.summaries.group_summaries`.
                A run with the same numbers is kept, one with other numbers replaced.
        """
        ...

    @property
    def ui_command(self) -> str | None:
        """How to look at the runs."""
        ...

    @property
    def view(self) -> str | None:
        """Where to see them, with the columns that answer."""
        ...


class NullTracker:
    """A tracker that does nothing."""

    ui_command = None
    view = None

    def log_cells(
        self, cell_ids: Sequence[str], statuses: Mapping[str, str] | None = None
    ) -> None:
        pass

    def finish(
        self, metrics: Mapping[str, float], files: Sequence[Path], groups: Sequence[Group] = ()
    ) -> None:
        pass


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
        return NullTracker()
    store = RunStore(results, study, uri)
    try:
        store.connect()
    except ServerDown as error:
        print(
            f"warning: {error} Training goes on; runs are logged when it is back, or later by "
            f"`{store.rebuild_command}`.",
            file=sys.stderr,
        )
    return MLflowTracker(store)


class MLflowTracker:
    """Logs to MLflow from a thread, which tries again what could not be logged.

    Args:
        store: to log to; the thread connects it if that failed before.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._changed = threading.Condition()  # guards all that follows
        self._asked: dict[str, str | None] = {}  # cell id or group key -> status, if known
        self._groups: dict[str, Group] = {}  # by key
        self._waiting: dict[str, None] = {}  # an ordered set of ids and keys
        self._summary: tuple[Mapping[str, float], Sequence[Path]] | None = None
        self._summarised = False  # whether the summary is logged and no cell since
        self._error: Exception | None = None  # of the last try
        self._progress = time.monotonic()  # time of the last success
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="mlflow", daemon=True)
        self._thread.start()

    @property
    def ui_command(self) -> str:
        return self._store.ui_command

    @property
    def view(self) -> str | None:
        return self._store.view

    @property
    def missing(self) -> int:
        """How many runs are not logged yet; the parent run counts once it has a summary."""
        with self._changed:
            return len(self._waiting) + self._wants_summary()

    def log_cells(
        self, cell_ids: Sequence[str], statuses: Mapping[str, str] | None = None
    ) -> None:
        known = statuses or {}
        with self._changed:
            self._asked |= {cell_id: known.get(cell_id) for cell_id in cell_ids}
            self._waiting |= dict.fromkeys(cell_ids)
            self._changed.notify_all()

    def wait(
        self, seconds: float, patience: float, show: Callable[[int], None] | None = None
    ) -> None:
        """Waits until no run is missing, or until it gives up.

        Args:
            seconds: longest wait.
            patience: seconds without a logged run after which it gives up if the last try failed.
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
        groups: Sequence[Group] = (),
        seconds: float = FINISH_SECONDS,
    ) -> None:
        """See `Tracker.finish`. Waits `seconds`, or `DOWN_SECONDS` while the server is down.

        It says that it waits unless `seconds` is infinite.
        """
        started, told = time.monotonic(), False
        shown = fitting(groups)
        if left_out := len(groups) - len(shown):
            print(
                f"note: MLflow shows the first {len(shown)} summaries and leaves out {left_out}, "
                "to stay below 100 runs at the top; the report shows all",
                file=sys.stderr,
            )

        def show(missing: int) -> None:
            nonlocal told
            waited = time.monotonic() - started
            if not told and waited > SILENT_SECONDS and math.isfinite(seconds):
                told = True
                last = counted(missing, "run")
                print(f"MLflow takes the last {last}; Ctrl-C is safe", file=sys.stderr)

        with self._changed:
            self._summary = (dict(metrics), list(files))
            # Last group first, as MLflow lists the newest run first.
            self._groups = {group.key: group for group in reversed(shown)}
            self._asked |= dict.fromkeys(self._groups)
            self._waiting |= dict.fromkeys(self._groups)
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
        """Ends the thread after its current run; waits at most `STOP_SECONDS` for that."""
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
        """Waits for work: a batch of runs, empty for a summary alone; None: the thread ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._waiting or self._wants_summary())
            if self._stopped:
                return None
            return {i: self._asked[i] for i in itertools.islice(self._waiting, BATCH)}

    def _try(self, batch: Mapping[str, str | None]) -> bool:
        """Logs runs, and the summary if no other run waits; returns whether all succeeded."""
        failed = set()
        groups = [self._groups[name] for name in batch if name in self._groups]
        cells = {name: status for name, status in batch.items() if name not in self._groups}
        try:
            self._store.look_up()
            self._start_over()
            logged = itertools.chain(self._store.log(cells), self._store.log_groups(groups))
            for name, error in logged:
                self._settle(name, error)
                if error:
                    failed.add(name)
                if self._stopped:
                    break
            with self._changed:
                others = self._waiting.keys() - failed
                summary = self._summary if self._wants_summary() and not others else None
            if summary and not self._stopped:
                self._store.summarise(*summary, self._groups)
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
        """Queues runs again that a server, now that it answers, does not hold any more."""
        with self._changed:
            self._error = None
            lost = (i for i in self._asked if i not in self._waiting and not self._store.holds(i))
            self._waiting |= dict.fromkeys(lost)

    def _settle(self, name: str, error: Exception | None) -> None:
        with self._changed:
            self._waiting.pop(name, None)
            self._error = error
            if error:
                self._waiting[name] = None  # to the end of the queue
            else:
                self._progress = time.monotonic()
                self._summarised = False
                self._changed.notify_all()

    def _rest(self, seconds: float) -> None:
        """Waits before the next try; shorter once the study waits for its end."""
        with self._changed:
            ending = self._summary is not None
            self._changed.wait_for(
                lambda: self._stopped or (self._summary is not None and not ending),
                min(seconds, LAST_PAUSE) if ending else seconds,
            )
