"""Packs: what may train together, in what sizes, and that packed equals separate."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import warnings
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cell import PARADIGMS, Cell, Schedule
from study.plan import estimate
from study.plan.plan import Plan
from study.tasks.mosaics.mosaics import MosaicTask
from study.train import loop, pack_member, packs
from study.train.cost import ModelFlops
from study.train.packs import Packing, form
from tests.conftest import needs_cuda, tiny_cell
from tests.made_up.training import numbers


@pytest.mark.parametrize("name", [*PARADIGMS, "hybrid"])
def test_packed_equals_separate(digits: MosaicTask, name: str) -> None:
    """Bitwise on a CPU, for members of other seeds and learning rates."""

    def schedule(lr: float) -> Schedule:
        return Schedule.hybrid(lr, lr / 2, 0.5) if name == "hybrid" else Schedule.single(name, lr)

    cells = [tiny_cell(digits, schedule(lr), seed=seed) for seed, lr in ((0, 0.1), (1, 0.03))]
    together = loop.train_pack(cells, digits)
    for cell, outcome in zip(cells, together, strict=True):
        alone = loop.train(cell, digits)
        assert outcome.status == alone.status == "done"
        assert outcome.steps == alone.steps
        assert numbers(outcome) == numbers(alone)
    assert len({outcome.evaluations[-1]["loss"] for outcome in together}) == len(cells)


def test_a_member_that_diverges_leaves_the_others_as_they_are(digits: MosaicTask) -> None:
    rates = (0.1, 1e20, 0.03)
    cells = [tiny_cell(digits, Schedule.single("soft", lr)) for lr in rates]
    together = loop.train_pack(cells, digits)
    assert [outcome.status for outcome in together] == ["done", "diverged", "done"]
    assert together[1].steps < together[0].steps
    for cell, outcome in zip(cells, together, strict=True):
        assert numbers(outcome) == numbers(loop.train(cell, digits))


def test_each_member_reports_its_own_evaluations(digits: MosaicTask) -> None:
    cells = [tiny_cell(digits, seed=seed) for seed in (0, 1)]
    told: list[tuple[str, float]] = []
    loop.train_pack(
        cells, digits, on_evaluation=lambda cell, row: told.append((cell.id, row["accuracy"]))
    )
    for cell in cells:
        alone: list[float] = []
        loop.train(
            cell, digits, on_evaluation=lambda _, row, alone=alone: alone.append(row["accuracy"])
        )
        assert [accuracy for cell_id, accuracy in told if cell_id == cell.id] == alone


@pytest.mark.parametrize(
    "change",
    [
        {"schedule": Schedule.single("lvml", 0.1)},
        {"schedule": Schedule.hybrid(0.1, 0.1, 0.5)},
        {"m": 5},
        {"batch_size": 8},
        {"precision": "bfloat16"},
    ],
)
def test_other_differences_cannot_be_packed(digits: MosaicTask, change: dict) -> None:
    cell = tiny_cell(digits)
    other = dataclasses.replace(cell, **change)
    with pytest.raises(ValueError, match="differ in seed and learning rates only"):
        loop.train_pack([cell, other], digits)
    assert len(form([cell, other], Packing("seed,lr"))) == 2


def test_switch_points_are_not_packed_and_both_rates_of_a_hybrid_are(digits: MosaicTask) -> None:
    def hybrid(*arguments: float) -> Cell:
        return tiny_cell(digits, Schedule.hybrid(*arguments))

    one = hybrid(0.1, 0.05, 0.5)
    assert len(form([one, hybrid(0.1, 0.05, 0.25)], Packing("seed,lr"))) == 2
    assert len(form([one, hybrid(0.2, 0.01, 0.5)], Packing("seed,lr"))) == 1
    assert len(form([one, hybrid(0.2, 0.01, 0.5)], Packing("seed"))) == 2


def test_no_pack_at_all_is_refused(digits: MosaicTask) -> None:
    with pytest.raises(ValueError, match="at least one"):
        loop.train_pack([], digits)


@given(
    seeds=st.integers(1, 7),
    rates=st.integers(1, 4),
    choice=st.sampled_from(sorted(packs.AXES)),
    most=st.integers(1, 12),
    workers=st.integers(1, 5),
)
@settings(max_examples=30)
def test_every_cell_is_in_one_pack_that_may_train_together(
    digits: MosaicTask, seeds: int, rates: int, choice: str, most: int, workers: int
) -> None:
    cells = [
        tiny_cell(digits, Schedule.single(name, 0.1 / (1 + rate)), seed=seed)
        for seed, name, rate in itertools.product(range(seeds), ("soft", "lvml"), range(rates))
    ]
    formed = form(cells, Packing(choice, most=most), workers)
    assert sorted(c.id for pack in formed for c in pack) == sorted(c.id for c in cells)
    firsts = [pack[0] for pack in formed]
    order = {cell.id: place for place, cell in enumerate(cells)}
    assert order[firsts[0].id] == 0
    for pack in formed:
        assert 1 <= len(pack) <= (most if choice != "none" else 1)
        assert len({packs.key(cell, packs.AXES[choice]) for cell in pack}) == 1
        assert len(pack) <= -(-len(cells) // workers)


def plan(digits: MosaicTask, seeds: int = 4, flops: int = 10**4) -> Plan:
    cells = tuple(tiny_cell(digits, seed=seed) for seed in range(seeds))
    cost = {cell.id: ModelFlops(flops, flops) for cell in cells}
    facts = {(cell.task, cell.options): digits.facts for cell in cells}
    return Plan("digits", "x", cells, frozenset(), (), cost, facts, Packing(), 1, 1)


def test_on_a_cpu_nothing_is_packed_unless_asked_for(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    packing = estimate.choose_packing(plan(digits), "auto")
    assert (packing.choice, packing.reason) == ("none", "on CPUs packed cells only take turns")
    for name in packs.AXES:
        assert estimate.choose_packing(plan(digits), name).choice == name


@pytest.mark.parametrize(
    ("fits", "speedup", "expected"),
    [(12, 2.5, ("seed,lr", 12)), (6, 2.5, ("seed,lr", 6)), (12, 1.05, ("none", None)),
     (0, 9.0, ("none", None))],
)  # fmt: skip
def test_on_a_gpu_the_measurement_decides(
    digits: MosaicTask,
    monkeypatch: pytest.MonkeyPatch,
    fits: int,
    speedup: float,
    expected: tuple[str, int | None],
) -> None:
    """The timing itself stands in for a GPU's; what follows from it is the real thing."""

    def measured(cells: list[Cell], *_: object) -> float:
        if len(cells) > fits:
            raise torch.OutOfMemoryError
        return speedup

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(estimate.hardware, "set_up", lambda threads, gpu: torch.device("cpu"))
    monkeypatch.setattr(estimate, "_speedup", measured)
    packing = estimate.choose_packing(plan(digits, seeds=24), "auto")
    assert packing.choice == expected[0]
    if expected[1]:
        assert (packing.most, packing.speedup) == (expected[1], speedup)
        assert "measured 2.5 times" in packing.reason


def test_cells_that_cannot_be_packed_are_not_timed(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(estimate.hardware, "set_up", lambda threads, gpu: torch.device("cpu"))
    for one in (plan(digits, seeds=1), plan(digits, seeds=0)):
        packing = estimate.choose_packing(one, "auto")
        assert packing.choice == "none"
        assert "no two cells to run differ in seed" in packing.reason


@needs_cuda
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", [*PARADIGMS, "hybrid"])
def test_packed_equals_separate_on_a_gpu(digits: MosaicTask, name: str, precision: str) -> None:
    """The kernels are the same; cuDNN may choose others from run to run."""
    schedule = Schedule.hybrid(0.1, 0.05, 0.5) if name == "hybrid" else Schedule.single(name, 0.1)
    diverging = Schedule(tuple(dataclasses.replace(p, lr=1e20) for p in schedule.phases))
    cells = [
        tiny_cell(digits, each, seed=seed, precision=precision)
        for seed, each in ((0, schedule), (0, diverging), (1, schedule))
    ]
    together = loop.train_pack(cells, digits, "cuda")
    assert [outcome.status for outcome in together] == ["done", "diverged", "done"]
    for cell, outcome in zip(cells, together, strict=True):
        alone = loop.train(cell, digits, "cuda")
        assert outcome.status == alone.status
        losses = [[row["loss"] for row in each.evaluations] for each in (outcome, alone)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@contextlib.contextmanager
def waiting_refused() -> Iterator[None]:
    """In it, what makes this process wait for a GPU raises."""
    with warnings.catch_warnings():
        # Once a process, PyTorch warns that the mode does not see every wait.
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype feature")
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


def test_waiting_can_be_refused_though_warnings_are_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)  # the mode needs no device
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # as in a process that has not been warned
    try:
        with waiting_refused():
            assert torch.cuda.get_sync_debug_mode() == 2
    finally:
        torch.set_warn_always(always)
    assert torch.cuda.get_sync_debug_mode() == 0


@needs_cuda
def test_steps_on_a_gpu_wait_for_nothing(digits: MosaicTask) -> None:
    alone = pack_member.Member(tiny_cell(digits), digits, torch.device("cuda"), None)
    alone.enter_phase(0)
    with waiting_refused():
        for _ in range(50):  # over several epochs
            alone.step()
        with pytest.raises(RuntimeError, match="synchronizing CUDA operation"):
            torch.ones((), device="cuda").item()


def test_the_speedup_of_a_pack_is_timed_by_training_it(
    digits: MosaicTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that counts steps: members of a pack that take turns gain nothing."""
    steps: list[None] = []
    real = pack_member.train_step

    def counted(*arguments: object, **keywords: object) -> torch.Tensor:
        steps.append(None)
        return real(*arguments, **keywords)

    monkeypatch.setattr(pack_member, "train_step", counted)
    for module in (pack_member, loop):
        monkeypatch.setattr(module, "now", lambda device: float(len(steps)))
    timed = plan(digits, flops=10**7)
    assert estimate._speedup(timed.cells, timed, torch.device("cpu")) == 1
