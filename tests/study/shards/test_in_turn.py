"""Packs that train one after the other: what begins in time, and what a failure leaves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from study.cell import AnyCell, Cell
from study.cell.work import Work
from study.launch.failures import Failure
from study.plan.plan import Plan
from study.plan.planning import planned
from study.run_options import requested
from study.shards.in_turn import MARGIN, Pace, train_in_turn
from study.train.steps.packs import Measured, Packing, shape

pytestmark = pytest.mark.usefixtures("digits")

PACKED = Packing("seed", most=2)
SECONDS = 10.0
"""Of each cell, as a plan estimates it."""

ErrorOf = Callable[[Sequence[AnyCell]], Exception | None]


@pytest.fixture
def plan() -> Plan:
    """Two paradigms on four seeds, seed by seed."""
    axes = ["paradigm=soft,hybrid", "lr=0.1", "switch_point=0.5", "seed=0-3", "confirm=none"]
    grid = planned(requested(["digits", "--set", *axes]))
    return replace(grid, seconds={cell.id: SECONDS for cell in grid.cells})


class Training:
    """Cells that end at once.

    Attributes:
        error_of: why a pack fails, if it does.
        packs: that began, in their order.
    """

    def __init__(self) -> None:
        self.error_of: ErrorOf = lambda pack: None
        self.packs: list[Sequence[AnyCell]] = []

    def __call__(self, work: Work, report: object) -> dict[str, str]:
        self.packs.append(work.cells)
        if error := self.error_of(work.cells):
            raise error
        return {cell.id: "done" for cell in work.cells}

    def of(self, plan: Plan, seconds: float = math.inf) -> tuple[list[Failure], list[AnyCell]]:
        """What `train_in_turn` returns."""
        work = Work(study=plan.study, results="", code_version="")
        return train_in_turn(plan, work, time.monotonic() + seconds)


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    made = Training()
    monkeypatch.setattr("study.shards.in_turn.train_cells", made)
    return made


def test_packs_train_seed_by_seed(plan: Plan, training: Training) -> None:
    """All paradigms of the first seeds come first."""
    assert training.of(replace(plan, packing=PACKED)) == ([], [])
    assert [(pack[0].label, [cell.seed for cell in pack]) for pack in training.packs] == [
        ("soft", [0, 1]), ("hybrid", [0, 1]), ("soft", [2, 3]), ("hybrid", [2, 3]),
    ]  # fmt: skip


def test_nothing_begins_that_would_not_end_in_time(
    plan: Plan, training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    """But a smaller pack does."""
    assert training.of(plan, SECONDS) == ([], list(plan.cells))
    assert training.packs == []
    said = capsys.readouterr().out
    assert "8 cells would not have ended in time (the shortest takes about 11 s)" in said
    training.of(replace(plan, packing=Packing("seed")), 2.5 * MARGIN * SECONDS)
    assert [len(pack) for pack in training.packs] == [2, 2, 2, 2]


def test_out_of_memory_is_tried_again_in_halves(
    plan: Plan, training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    error = torch.OutOfMemoryError("no room")
    training.error_of = lambda pack: error if len(pack) > 1 else None
    assert training.of(replace(plan, packing=Packing("seed"))) == ([], [])
    assert [len(pack) for pack in training.packs] == [4, 2, 1, 1, 2, 1, 1] * 2
    assert "tried again in packs of 2" in capsys.readouterr().err


def test_what_fails_is_left_out_and_the_rest_goes_on(plan: Plan, training: Training) -> None:
    training.error_of = lambda pack: ZeroDivisionError() if pack[0].seed == 1 else None
    failures, left = training.of(plan)
    assert {failure.kind for failure in failures} == {"bug"}
    failed = [cell_id for failure in failures for cell_id in failure.cell_ids]
    assert failed == [cell.id for cell in plan.cells if cell.seed == 1]
    assert (len(training.packs), left) == (8, [])


def test_a_process_that_lost_its_gpu_leaves_the_rest_to_another(
    plan: Plan, training: Training, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = torch.AcceleratorError("CUDA error: uncorrectable ECC error encountered")
    training.error_of = lambda pack: lost if pack[0] == plan.cells[2] else None
    failures, left = training.of(plan)
    assert [failure.kind for failure in failures] == ["worker lost"]
    assert left == list(plan.cells[3:])
    assert "5 cells wait for another process" in capsys.readouterr().out


def pace(plan: Plan, seconds: float = 100.0) -> tuple[Pace, list[float]]:
    """And its clock."""
    now = [0.0]
    return Pace(plan, seconds, lambda: now[0]), now


def soft(plan: Plan) -> list[Cell]:
    return [cell for cell in plan.cells if cell.label == "soft"]


def test_as_many_cells_begin_as_end_in_time(plan: Plan) -> None:
    one, now = pace(plan, 3.5 * MARGIN * SECONDS)
    assert one.in_time(soft(plan)) == 3
    now[0] = 2 * MARGIN * SECONDS
    assert one.in_time(soft(plan)) == 1
    now[0] = 3 * MARGIN * SECONDS
    assert one.in_time(soft(plan)) == 0


def test_if_packs_take_longer_than_estimated_others_do_too(plan: Plan) -> None:
    """A first one, which warms up, counts for less the more have ended; none is faster."""
    one, _ = pace(plan)
    for took, slowness in ((9, 9), (1, 5), (1, 11 / 3)):
        one.learn(plan.cells[:1], took * SECONDS)
        assert one.seconds(plan.cells[1:2]) == pytest.approx(slowness * MARGIN * SECONDS)
    one.learn(plan.cells[1:], 0.0)
    assert one.seconds(plan.cells[:1]) == pytest.approx(1.1 * MARGIN * SECONDS)
    one.learn(plan.cells, 0.0)
    assert one.seconds(plan.cells[:1]) == pytest.approx(MARGIN * SECONDS)


def test_a_smaller_pack_takes_as_long_as_the_measured_one_or_its_cells_one_by_one(
    plan: Plan,
) -> None:
    """Four cells in a pack are measured to take as long as two alone."""
    cells = soft(plan)
    packing = Packing("seed", measured={shape(cells[0]): Measured(4, 2.0)})
    one, _ = pace(replace(plan, packing=packing))
    took = [one.seconds(cells[:size]) / (MARGIN * SECONDS) for size in (1, 2, 3, 4)]
    assert took == pytest.approx([2, 4, 4, 4])
