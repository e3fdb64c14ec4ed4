"""The progress of a running study: cells done, running and left, best accuracy, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from study import terminal
from study.cell import AnyCell

TERMINAL_INTERVAL = 1.0
FILE_INTERVAL = 20.0
"""Seconds between lines; a terminal's line is rewritten, a file gets a new one."""


class Progress:
    """Collects what trials report and prints one line.

    Args:
        cells: to run.
        estimates: cell id -> estimated seconds; scaled by the time that training really takes.
        concurrent: cells trained at a time.
        finished: cells of the study that were done before.
        stream: to print on.
        to_come: further cells, which `add` will name.
        seconds_each: estimate of each of those.
        around: estimated seconds before the first evaluation, and after the last cell.
        score: name of the cells' score.

    Attributes:
        began: time of the first evaluation, in seconds of `time.monotonic`; None: not yet.
        ended_at: time when the last cell so far ended; None: none has.
    """

    def __init__(
        self,
        cells: Sequence[AnyCell],
        estimates: Mapping[str, float],
        concurrent: int,
        finished: int = 0,
        stream: TextIO | None = None,
        to_come: int = 0,
        seconds_each: float = 0.0,
        around: tuple[float, float] = (0.0, 0.0),
        score: str = "accuracy",
    ) -> None:
        self._labels = {cell.id: cell.label for cell in cells}
        self._estimates = dict(estimates)
        self._concurrent = concurrent
        self._finished = finished
        self._to_come = to_come
        self._seconds_each = seconds_each
        self._stream = stream or sys.stderr
        self._running: dict[str, float] = {}
        self._ended: dict[str, str] = {}
        self._last: dict[str, Mapping[str, Any]] = {}
        self._best: dict[str, float] = {}
        self._before, self._after = around
        self._score = score
        self.began: float | None = None
        self.ended_at: float | None = None
        self._printed = -float("inf")

    def evaluated(self, report: Mapping[str, Any]) -> None:
        """Takes an evaluation of a running cell: cell_id, budget_fraction, accuracy, saif."""
        if self.began is None:
            self.began = time.monotonic()
        self._running[report["cell_id"]] = report["budget_fraction"]
        self._last[report["cell_id"]] = report
        self.show()

    def started(self, cell_id: str) -> None:
        self._running[cell_id] = 0.0
        self.show()

    def ended(self, cell_id: str, status: str) -> None:
        """Takes the end of a cell: done, diverged, censored or failed."""
        self._running.pop(cell_id, None)
        self._ended[cell_id] = status
        self.ended_at = time.monotonic()
        last = self._last.pop(cell_id, None)
        if status == "done" and last is not None:
            label, accuracy = self._labels[cell_id], last["accuracy"]
            self._best[label] = max(accuracy, self._best.get(label, 0.0))
        self.show()

    def waiting(self, cell_id: str) -> None:
        """Notes that a running cell was lost and will be tried again."""
        self._running.pop(cell_id, None)
        self.show()

    def add(
        self,
        cells: Sequence[AnyCell],
        estimates: Mapping[str, float],
        done: int = 0,
        gone: int = 0,
    ) -> None:
        """Names some of the cells to come.

        Args:
            cells: these will run.
            estimates: cell id -> estimated seconds of each.
            done: how many more were done before.
            gone: how many will not come after all.
        """
        self._labels |= {cell.id: cell.label for cell in cells}
        self._estimates |= estimates
        self._finished += done
        self._to_come = max(0, self._to_come - len(cells) - done - gone)

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        self._stream.write(("\r\x1b[K" if self._stream.isatty() else "") + text + "\n")
        self._stream.flush()
        self._printed = -float("inf")
        self.show()

    def line(self, width: int | None = None) -> str:
        """For example ``12/36 cells, 2 running, 22 left | best validation accuracy ...``.

        Args:
            width: most characters; the least important parts are left out.
        """
        forms = self._forms()
        fitting = (form for form in forms if width is None or len(form) <= width)
        return next(fitting, forms[-1][:width])

    def _forms(self) -> list[str]:
        """The line and ever shorter forms of it, which leave out what matters least."""
        total = self._finished + len(self._labels) + self._to_come
        done = self._finished + len(self._ended)
        running, left = len(self._running), self.seconds_left()
        counts = [
            (status, sum(1 for each in self._ended.values() if each == status))
            for status in ("diverged", "censored", "failed")
        ]
        ends = "".join(f", {count} {status}" for status, count in counts if count)
        time_left = f" | {duration(left)} left" if left is not None else ""
        names = " ".join(f"{name} {100 * self._best[name]:.1f}" for name in sorted(self._best))
        best = f" | best validation {self._score} % {names}" if names else ""
        short_best = f" | best % {names}" if names else ""
        cells = (
            f"{done}/{total} cells done, {running} running, {total - done - running} left{ends}"
        )
        return [
            cells + time_left + best,
            cells + time_left + short_best,
            cells + time_left,
            f"{done}/{total} done, {running} running{ends}{time_left}",
            f"{done}/{total} done{ends}{time_left}",
            f"{done}/{total}{ends}",
            f"{done}/{total}",
        ]

    def seconds_left(self) -> float | None:
        """Estimated seconds left, scaled by how long training took so far; None if unknown.

        The time before the first evaluation, when Ray starts, does not count for that scale.
        """
        spent = sum(self._estimates[cell_id] for cell_id in self._ended)
        spent += sum(share * self._estimates[cell_id] for cell_id, share in self._running.items())
        total = sum(self._estimates[cell_id] for cell_id in self._labels)
        total += self._to_come * self._seconds_each
        if not spent or self.began is None:
            around = self._after + (self._before if self.began is None else 0.0)
            return total / self._concurrent + around if total else None
        passed = time.monotonic() - self.began
        return passed * max(0.0, total - spent) / spent + self._after

    def show(self, last: bool = False) -> None:
        """Prints the line unless it was printed a moment ago; `last` prints it always."""
        rewritten = self._stream.isatty()
        now = time.monotonic()
        if not last and now - self._printed < (TERMINAL_INTERVAL if rewritten else FILE_INTERVAL):
            return
        self._printed = now
        if rewritten:
            # A wrapped line cannot be rewritten, and some terminals wrap a line that fills a row.
            width = (terminal.columns() or 80) - 1
            self._stream.write(f"\r\x1b[K{self.line(width)}" + ("\n" if last else ""))
        else:
            self._stream.write(self.line() + "\n")
        self._stream.flush()


def duration(seconds: float) -> str:
    """Seconds for people: 42 s, 3 min, 2.5 h, 4 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
