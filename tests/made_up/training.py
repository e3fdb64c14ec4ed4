"""What tests of training share: outcomes without their times, checkpoints that die."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from study.models import kept
from study.storage.storage import Storage
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.pack_member import Member, Outcome

TIMES = ("train_seconds", "evaluate_seconds", "earlier_seconds")


def numbers(outcome: Outcome) -> dict[str, Any]:
    """All of an outcome but the times, and whether it forked from another."""
    values = dataclasses.asdict(outcome)
    values["weights"] = outcome.weights and kept.digest(outcome.weights)
    for name in (*TIMES, "shared_prefix"):
        del values[name]
    for row in values["evaluations"]:
        del row["train_seconds"]
    return values


def make_storage(path: Path) -> Storage:
    """Of a results directory, with the folders that training writes to."""
    storage = Storage(path)
    storage.make("checkpoints")
    return storage


class Killed(BaseException):
    """Stands for kill -9: what a trial never catches."""


class Killing(Checkpoints):
    """Saves after the given steps, and dies after the last of them; of one cell, or of any."""

    def __init__(
        self, storage: Storage, steps: Sequence[int], of: str | None = None, **changes: Any
    ) -> None:
        super().__init__(storage, interval=1e9, **changes)
        self._steps = list(steps)
        self._of = of
        self._now = False

    def due(self, members: Sequence[Member]) -> bool:
        of = self._of or members[0].cell.id
        self._now = members[0].steps in self._steps and members[0].cell.id == of
        return super().due(members)

    def _is_overdue(self) -> bool:
        return self._now

    def save(self, members: Sequence[Member]) -> None:
        super().save(members)
        if self._now and members[0].steps == self._steps[-1]:
            raise Killed
