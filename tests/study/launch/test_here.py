"""Jobs that train in this process, one after the other: what begins in time, what fails."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from unittest.mock import Mock

import pytest
import torch

from study.cell import Cell
from study.cell.work import Job, Work
from study.errors import RequestError
from study.launch.failures import Failure
from study.launch.here import MARGIN, Pace, run_here
from study.launch.watching import Watch
from tests.made_up.comparisons import make_cell

SECONDS = 10.0
"""Of each cell, as a plan estimates it."""

CELLS = [make_cell("soft", 0.1, seed) for seed in range(4)]


def estimate(job: Job) -> float:
    return SECONDS * len(job.cells)


class Training:
    """Cells that end at once.

    Attributes:
        error_of: seed of its first cell -> why a job fails.
        jobs: that began, in their order.
    """

    def __init__(self) -> None:
        self.error_of: dict[int, Exception] = {}
        self.jobs: list[Sequence[Cell]] = []

    def __call__(self, job: Job, *_: object) -> None:
        self.jobs.append(job.cells)
        if error := self.error_of.get(job.cells[0].seed):
            raise error

    def of(self, *packs: Sequence[Cell], seconds: float = math.inf) -> tuple[list, list[Failure]]:
        """The cells that are left, and failures."""
        watch = Watch(Mock())
        pace = Pace(estimate, time.monotonic() + seconds)
        work = Work(study="", results="", code_version="")
        left = run_here([Job((tuple(pack),)) for pack in packs], work, watch, pace)
        return [cell for job in left for cell in job.cells], watch.failures


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    made = Training()
    monkeypatch.setattr("study.launch.here.run_job", made)
    return made


def test_nothing_begins_that_would_not_end_in_time(training):
    """But a smaller pack does, or a later one."""
    assert training.of(CELLS, seconds=SECONDS) == (CELLS, [])
    assert training.jobs == []
    training.of(CELLS, seconds=2.5 * MARGIN * SECONDS)
    assert [len(cells) for cells in training.jobs] == [2, 2]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ZeroDivisionError(), "bug"),
        (torch.AcceleratorError("CUDA error: uncorrectable ECC error"), "worker lost"),
    ],
)
def test_a_bug_or_a_lost_gpu_leaves_the_rest_to_another_process(training, error, kind):
    training.error_of = {1: error}
    left, (failure,) = training.of(*([cell] for cell in CELLS))
    assert (failure.kind, failure.cell_ids) == (kind, (CELLS[1].id,))
    assert left == CELLS[2:]


def test_what_the_user_must_mend_ends_it(training):
    training.error_of = {0: RequestError("no room on the disk")}
    with pytest.raises(RequestError, match="no room on the disk"):
        training.of(CELLS)


def test_if_jobs_take_longer_than_estimated_others_do_too():
    """A first one, which warms up, counts for less the more have ended; none is faster."""
    pace = Pace(estimate)
    first, second = (Job(((cell,),)) for cell in CELLS[:2])
    for took, slowness in ((9, 9), (1, 5), (1, 11 / 3)):
        pace.learn(first, took * SECONDS)
        assert pace.seconds(second) == pytest.approx(slowness * MARGIN * SECONDS)
    pace.learn(Job((tuple(3 * CELLS),)), 0.0)
    assert pace.seconds(first) == pytest.approx(MARGIN * SECONDS)
