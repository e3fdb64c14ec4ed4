"""Packs: what may train together, and in what sizes. (That it is as if alone: test_trainer.py.)"""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cell import PARADIGMS, Cell, Schedule
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.steps import loop, packs
from study.train.steps.packs import Packing, form
from tests.conftest import needs_cuda, tiny_cell


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
