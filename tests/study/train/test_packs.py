"""Packs: what may train together, and in what sizes. (That it is as if alone: test_trainer.py.)"""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cell import PARADIGMS, Schedule
from study.train.steps import loop, packs
from study.train.steps.packs import Packing, form
from tests.conftest import needs_cuda, tiny_cell


@pytest.mark.parametrize(
    ("changes", "packed"),
    [
        ({"m": 5}, ()),
        ({"batch_size": 8}, ()),
        ({"precision": "bfloat16"}, ()),
        ({"schedule": Schedule.single("soft", 0.1)}, ()),
        ({"schedule": Schedule.hybrid(0.1, 0.05, 0.25)}, ()),
        ({"schedule": Schedule.hybrid(0.2, 0.01, 0.5)}, ("seed,lr",)),
        ({"seed": 1}, ("seed", "seed,lr")),
    ],
)
def test_seeds_and_both_rates_of_a_hybrid_are_packed_and_nothing_else(digits, changes, packed):
    cell = tiny_cell(digits, Schedule.hybrid(0.1, 0.05, 0.5))
    cells = [cell, dataclasses.replace(cell, **changes)]
    for choice in packs.AXES:
        assert len(form(cells, Packing(choice))) == (1 if choice in packed else 2)
    if not packed:
        with pytest.raises(ValueError, match="differ in seed and learning rates only"):
            loop.train_pack(cells, digits)


@given(
    seeds=st.integers(1, 7),
    rates=st.integers(1, 4),
    choice=st.sampled_from(sorted(packs.AXES)),
    most=st.integers(1, 12),
    workers=st.integers(1, 5),
)
@settings(max_examples=30)
def test_every_cell_is_in_one_pack_that_may_train_together(
    digits, seeds, rates, choice, most, workers
):
    cells = [
        tiny_cell(digits, Schedule.single(name, 0.1 / (1 + rate)), seed=seed)
        for seed, name, rate in itertools.product(range(seeds), ("soft", "lvml"), range(rates))
    ]
    formed = form(cells, Packing(choice, most=most), workers)
    assert sorted(c.id for pack in formed for c in pack) == sorted(c.id for c in cells)
    assert formed[0][0] is cells[0]
    for pack in formed:
        assert 1 <= len(pack) <= (most if choice != "none" else 1)
        assert len({packs.key(cell, packs.AXES[choice]) for cell in pack}) == 1
        assert len(pack) <= -(-len(cells) // workers)


@needs_cuda
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", [*PARADIGMS, "hybrid"])
def test_packed_equals_separate_on_a_gpu(digits, name, precision):
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
