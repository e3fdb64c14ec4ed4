"""What is made of the events of running jobs, wherever they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from study.launch.failures import Failure
from study.terminal.progress import Progress

RECORD_SECONDS = 60
"""How long what a scheduler stopped may take to be recorded."""


class Watch:
    """Passes the events of running jobs on to progress, and collects failures.

    Args:
        progress: told of every start, evaluation and end.
        on_ended: called with the id and the status of each cell that was recorded.
        on_completed: called with the ids of a trial's recorded cells once it is not tried again.

    Attributes:
        progress: as given.
        statuses: cell id -> how it ended.
        failures: of cells that were given up, and the one that stopped the study.
        stopped: whether a failure ended the study, so that running jobs have to stop.
    """

    def __init__(
        self,
        progress: Progress,
        on_ended: Callable[[str, str], object] = lambda cell_id, status: None,
        on_completed: Callable[[list[str]], object] = lambda ids: None,
    ) -> None:
        self.progress = progress
        self._on_ended, self._on_completed = on_ended, on_completed
        self.statuses: dict[str, str] = {}
        self.failures: list[Failure] = []
        self.stopped = False
        self._raised: Sequence[str] = ()

    def started(self, ids: Sequence[str]) -> None:
        """Takes the start of a job, whose first pack has these cells."""
        for cell_id in self._left(ids):
            self.progress.started(cell_id)

    def told(self, ids: Sequence[str], event: Mapping[str, Any]) -> None:
        """Takes an event of a job (`study.cell.events.Report`), or a failure that ended it."""
        match event.get("event"):
            case "evaluation":
                self.progress.evaluated(event["budget_fraction"], event["cells"])
            case "raised":
                self._raised = event["cells"]
            case "note":
                self.progress.note(event["text"])
            case "ended" if event["cell_id"] not in self.statuses:
                self._end(event["cell_id"], event["status"])
                if event["status"] == "failed":
                    self._give_up(Failure(event["kind"], event["text"], (event["cell_id"],)))
                else:
                    self._on_ended(event["cell_id"], event["status"])
            case "failure":
                self.failed(ids, Failure(event["kind"], event["text"]))

    def completed(self, ids: Sequence[str]) -> None:
        """Takes the end of a trial; what it has not told of then, a scheduler has stopped."""
        for cell_id in self._left(ids):
            self._end(cell_id, "censored")
        self._on_completed([i for i in ids if self.statuses[i] in ("done", "diverged")])

    def lost(self, ids: Sequence[str]) -> None:
        """Takes the loss of a job's worker; the job is tried again."""
        for cell_id in self._left(ids):
            self.progress.waiting(cell_id)
        self.progress.note(f"cell {', '.join(self._left(ids))}: worker lost; tried again")

    def failed(self, ids: Sequence[str], failure: Failure) -> None:
        """Takes a failure that ended a job; a bug, or a request at fault, stops the study."""
        self.stopped |= failure.kind in ("bug", "request")
        at = [cell_id for cell_id in self._raised if cell_id in ids]
        left = self._left(at if at and self.stopped else ids)
        for cell_id in left:
            self._end(cell_id, "failed")
        if left or self.stopped:  # a worker may be lost after its last cell
            self._give_up(Failure(failure.kind, failure.text, tuple(left)))

    def _left(self, ids: Sequence[str]) -> list[str]:
        return [cell_id for cell_id in ids if cell_id not in self.statuses]

    def _end(self, cell_id: str, status: str) -> None:
        self.statuses[cell_id] = status
        self.progress.ended(cell_id, status)

    def _give_up(self, failure: Failure) -> None:
        self.failures.append(failure)
        if not self.stopped:  # the failure that stops a study is shown at the end
            ids = ", ".join(failure.cell_ids)
            self.progress.note(f"cell {ids}: {failure.kind} ({failure.reason}); given up")
