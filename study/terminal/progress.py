"""The progress of a running study: cells done, running and left, best scores, time left."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from study.cell import AnyCell
from study.terminal.width import counted
from study.terminal.working import Rows, duration, say, shown

MOST_BARS = 4
"""Running cells with a bar of their own; a pack or a cluster has hundreds."""

_TOLD = ("running", "left", "diverged", "censored", "failed")


@dataclass
class _Cell:
    """What is known of a cell; its status before its end is left or running."""

    label: str
    seconds: float
    status: str = "left"
    fraction: float = 0.0
    score: float = 0.0

    @property
    def ended(self) -> bool:
        return self.status not in ("left", "running")


class Progress:
    """Collects what trials report, and shows it inside `shown`.

    Args:
        concurrent: cells trained at a time.
        score: name of the cells' score.
    """

    def __init__(self, concurrent: int, score: str = "accuracy") -> None:
        self._began: float | None = None  # when the first evaluation came
        self._concurrent, self._score = concurrent, score
        self._cells: dict[str, _Cell] = {}
        self._finished = self._to_come = 0
        self._seconds_to_come = 0.0  # of each of those

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
        self._cells = {i: cell for i, cell in self._cells.items() if cell.ended}
        self._finished, self._to_come = finished, to_come + len(cells)
        self._seconds_to_come = seconds_to_come / max(1, to_come)
        self.name(cells, estimates)

    def name(self, cells: Sequence[AnyCell], estimates: Mapping[str, float]) -> None:
        """Names some of the cells to come."""
        self._cells |= {cell.id: _Cell(cell.label, estimates[cell.id]) for cell in cells}
        self._to_come = max(0, self._to_come - len(cells))

    def shown(self) -> AbstractContextManager[None]:
        """Shows in its body how far the study is; see `study.terminal.working`."""
        return shown(self._rows, kept=True)

    def started(self, cell_id: str) -> None:
        cell = self._cells[cell_id]
        cell.status, cell.fraction = "running", 0.0

    def evaluated(self, fraction: float, scores: Mapping[str, float]) -> None:
        """Takes an evaluation at a fraction of the budget: id of a running cell -> score."""
        self._began = self._began or time.monotonic()
        for cell_id, score in scores.items():
            cell = self._cells[cell_id]
            if not cell.ended:
                cell.status, cell.fraction, cell.score = "running", fraction, score

    def ended(self, cell_id: str, status: str) -> None:
        """Takes the end of a cell: done, diverged, censored or failed."""
        cell = self._cells[cell_id]
        cell.status, cell.fraction = status, 1.0

    def waiting(self, cell_id: str) -> None:
        """Notes that a running cell was lost and will be tried again."""
        self._cells[cell_id].status = "left"

    def note(self, text: str) -> None:
        """Prints a line that stays."""
        say(text)

    def seconds_left(self) -> float | None:
        """Estimated seconds left, scaled by how long training took so far; None if unknown.

        The time before the first evaluation, when Ray starts, does not count for that scale.
        """
        cells = [*self._cells.values()]
        spent = sum(cell.seconds * cell.fraction for cell in cells)
        total = sum(cell.seconds for cell in cells) + self._to_come * self._seconds_to_come
        if self._began and spent:
            return (time.monotonic() - self._began) * max(0.0, total / spent - 1)
        return total / self._concurrent if total else None

    def line(self) -> str:
        """For example ``12/36 cells done, 2 running, 22 left | 3 min left | best ...``."""
        return self._rows()[0][0]

    def _rows(self) -> Rows:
        """The line with a bar of all cells, and bars of the first that run."""
        cells = [*self._cells.values()]
        counts = Counter(cell.status for cell in cells)
        counts["left"] += self._to_come
        total = self._finished + counts.total()
        ended = total - counts["running"] - counts["left"]
        told = [f"{counts[status]} {status}" for status in _TOLD if counts[status]]
        parts = [", ".join([f"{ended}/{counted(total, 'cell')} done", *told])]
        if seconds := self.seconds_left():
            parts.append(f"{duration(seconds)} left")
        scores = sorted((cell.label, cell.score) for cell in cells if cell.status == "done")
        best = dict(scores)  # the last of each label
        if any(best.values()):
            bests = (f"{label} {100 * score:.1f}" for label, score in best.items())
            parts.append(f"best validation {self._score} % {' '.join(bests)}")
        running = [cell for cell in cells if cell.status == "running"]
        return [
            (" | ".join(parts), ended + sum(cell.fraction for cell in running), total),
            # Without an evaluation so far, its bar pulses.
            *(
                (cell.label, cell.fraction, 1 if cell.fraction else None)
                for cell in running[:MOST_BARS]
            ),
        ]
