"""Fork points: checkpoints from which cells with a common first phase go on."""

from __future__ import annotations

from collections.abc import Iterable

from study.launch.job_queue import Job
from study.storage.storage import Storage
from study.train.steps.checkpoints import fork_name


class ForkPoints:
    """Removes each fork point of a study once no cell needs it any more.

    Args:
        storage: the results directory.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._name: dict[str, str] = {}
        self._needed_by: dict[str, set[str]] = {}

    def expect(self, jobs: Iterable[Job]) -> None:
        """Notes what jobs of the study will need."""
        for job in jobs:
            if job.waits_for:
                (cell,) = job.cells
                name = fork_name(cell, job.waits_for[1])
                self._name[cell.id] = name
                self._needed_by.setdefault(name, set()).add(cell.id)

    def ended(self, cell_id: str) -> None:
        """Notes that a cell is recorded."""
        name = self._name.pop(cell_id, None)
        if name is not None:
            self._needed_by[name].discard(cell_id)
            if not self._needed_by[name]:
                self._storage.remove(name)
