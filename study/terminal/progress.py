"""The progress of a running study: cells done, running and left, best accuracy, time left."""

from __future__ import annotations

import contextlib
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO

from study import terminal
from study.cell import AnyCell
from study.terminal.working import LINE_EVERY, Bar, bars, draws, duration, live

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

BARS_EVERY = 1.0
"""Seconds between two looks at the numbers in a terminal; with many cells a look takes a while."""

MOST_BARS = 4
"""Running cells with a bar of their own; a pack or a cluster has hundreds."""


class Progress:
    """Collects what trials report and shows it: bars inside `shown`, else a line now and then.

    Args:
        concurrent: cells trained at a time.
        around: estimated seconds before the first evaluation, and after the last cell.
        score: name of the cells' score.
        stream: to print on.

    Attributes:
        began: time of the first evaluation, in seconds of `time.monotonic`; None: not yet.
        ended_at: time when the last cell so far ended; None: none has.
    """

    def __init__(
        self,
        concurrent: int,
        around: tuple[float, float] = (0.0, 0.0),
        score: str = "accuracy",
        stream: TextIO | None = None,
    ) -> None:
        self._labels: dict[str, str] = {}
        self._estimates: dict[str, float] = {}
        self._finished = self._to_come = 0
        self._seconds_to_come = 0.0
        self._concurrent = concurrent
        self._stream = stream or sys.stderr
        self._running: dict[str, float] = {}
        self._ended: dict[str, str] = {}
        self._last: dict[str, float] = {}
        self._best: dict[str, float] = {}
        self._before, self._after = around
        self._score = score
        self.began: float | None = None
        self.ended_at: float | None = None
        self._live: Live | None = None
        self._view: RenderableType = ""
        self._shown_at = -float("inf")

    def expect(
        self,
        cells: Sequence[AnyCell],
        estimates: Mapping[str, float],
        finished: int = 0,
        to_come: int = 0,
        seconds_to_come: float = 0.0,
    ) -> None:
        """Says what is left to do, in place of what was said before.

        Args:
            cells: to run.
            estimates: cell id -> estimated seconds; scaled by the time that training really takes.
            finished: cells of the study that were done before.
            to_come: further cells, which will be named.
            seconds_to_come: estimated seconds of all those.
        """
        self._labels = {i: self._labels[i] for i in self._ended}
        self._finished, self._to_come = finished, to_come
        self._seconds_to_come = seconds_to_come
        self._name(cells, estimates)

    def name(self, cells: Sequence[AnyCell], estimates: Mapping[str, float]) -> None:
        """Names some of the cells to come."""
        share = min(1.0, len(cells) / self._to_come) if self._to_come else 1.0
        self._seconds_to_come *= 1 - share
        self._to_come = max(0, self._to_come - len(cells))
        self._name(cells, estimates)

    def _name(self, cells: Sequence[AnyCell], estimates: Mapping[str, float]) -> None:
        self._labels |= {cell.id: cell.label for cell in cells}
        self._estimates |= estimates

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Shows bars in its body where the stream is a terminal that draws them; the last stay."""
        if not draws(self._stream):
            yield
            return
        began = time.monotonic()
        with live(self._stream, lambda: self._view, kept=True) as self._live:
            try:
                self.show(last=True)
                yield
            finally:
                self._view = self._bars(took=time.monotonic() - began)
        self._live = None

    def evaluated(self, fraction: float, accuracies: Mapping[str, float]) -> None:
        """Takes an evaluation at a fraction of the budget: id of a running cell -> accuracy."""
        if self.began is None:
            self.began = time.monotonic()
        for cell_id in accuracies.keys() - self._ended.keys():
            self._running[cell_id] = fraction
        self._last |= accuracies
        self.show()

    def started(self, cell_id: str) -> None:
        self._running[cell_id] = 0.0
        self.show()

    def ended(self, cell_id: str, status: str) -> None:
        """Takes the end of a cell: done, diverged, censored or failed."""
        self._running.pop(cell_id, None)
        self._ended[cell_id] = status
        self.ended_at = time.monotonic()
        accuracy = self._last.pop(cell_id, None)
        if status == "done" and accuracy is not None:
            label = self._labels[cell_id]
            self._best[label] = max(accuracy, self._best.get(label, 0.0))
        self.show()

    def waiting(self, cell_id: str) -> None:
        """Notes that a running cell was lost and will be tried again."""
        self._running.pop(cell_id, None)
        self.show()

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        if self._live:
            self._live.console.print(terminal.fitted(text), markup=False)
        else:
            print(text, file=self._stream, flush=True)
        self.show(last=True)

    def line(self) -> str:
        """For example ``12/36 cells done, 2 running, 22 left | best validation accuracy ...``."""
        left = self.seconds_left()
        time_left = [f"{duration(left)} left"] if left is not None else []
        counts, *best = self._counts()
        done = f"{self._done}/{terminal.counted(self._total, 'cell')} done, {counts}"
        return " | ".join([done, *time_left, *best])

    def _bars(self, took: float | None = None) -> RenderableType:
        """The same for a terminal, with bars of all cells and of the first that run.

        Args:
            took: seconds; None: it goes on.
        """
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        left, running = self.seconds_left(), dict(self._running)
        far = f"{duration(left)} left" if left is not None else ""
        if took is not None:
            running, far = {}, f"in {duration(took)}"
        done = self._done + sum(running.values())
        lines = [
            Bar(f"{self._done}/{terminal.counted(self._total, 'cell')}", done, self._total, far)
        ]
        for cell_id, share in itertools.islice(running.items(), MOST_BARS):
            # Without an evaluation so far, its bar pulses.
            lines.append(Bar(self._labels[cell_id], share, 1 if share else None, f"{share:.0%}"))
        counts = Text(" | ".join(self._counts()), no_wrap=False, overflow="fold")
        return Group(bars(lines, turns=took is None), Padding(counts, (0, 0, 0, 2)))

    @property
    def _done(self) -> int:
        return self._finished + len(self._ended)

    @property
    def _total(self) -> int:
        return self._finished + len(self._labels) + self._to_come

    def _counts(self) -> list[str]:
        """What runs and how cells ended; the best scores, if there are any."""
        running, ends = len(self._running), Counter(self._ended.values())
        texts = [f"{running} running", f"{self._total - self._done - running} left"]
        texts += [f"{ends[end]} {end}" for end in ("diverged", "censored", "failed") if ends[end]]
        best = " ".join(f"{name} {100 * self._best[name]:.1f}" for name in sorted(self._best))
        return [", ".join(texts), *([f"best validation {self._score} % {best}"] if best else [])]

    def seconds_left(self) -> float | None:
        """Estimated seconds left, scaled by how long training took so far; None if unknown.

        The time before the first evaluation, when Ray starts, does not count for that scale.
        """
        spent = sum(self._estimates[cell_id] for cell_id in self._ended)
        spent += sum(share * self._estimates[cell_id] for cell_id, share in self._running.items())
        total = sum(self._estimates[cell_id] for cell_id in self._labels)
        total += self._seconds_to_come
        if not spent or self.began is None:
            around = self._after + (self._before if self.began is None else 0.0)
            return total / self._concurrent + around if total else None
        passed = time.monotonic() - self.began
        return passed * max(0.0, total - spent) / spent + self._after

    def show(self, last: bool = False) -> None:
        """Shows how far the study is unless it was shown a moment ago; `last` shows it always."""
        now = time.monotonic()
        if not last and now - self._shown_at < (BARS_EVERY if self._live else LINE_EVERY):
            return
        self._shown_at = now
        if self._live:
            self._view = self._bars()
        else:
            print(self.line(), file=self._stream, flush=True)
