"""The space of a search: what is drawn, within which bounds, and what cannot be searched."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import search_spaces.mscoco
from search_spaces.base import By
from study.cell import Schedule
from study.cell.axis import rules_of
from study.errors import RequestError
from study.plan.axes import resolve
from study.search.space import Range, Space
from tests.made_up.comparisons import make_cell
from tests.study.search.test_search import AXES, axes_of

lows = st.floats(1e-6, 1e3)
spans = st.floats(1.0001, 1e4)


@given(lows, spans, st.booleans(), st.floats(0, 1))
def test_suggested_numbers_are_rounded_within_their_bounds(
    low: float, span: float, log: bool, at: float
) -> None:
    each = Range(low, low * span, log)
    value = each.rounded(low + at * (each.high - low))
    assert low < each.middle < each.high
    assert low <= value <= each.high
    assert value in (low, each.high) or value == float(f"{value:.4g}")


def test_what_has_one_value_is_not_searched() -> None:
    space = Space.of(axes_of("paradigm=hybrid", "lr=0.1", "switch_point=0.2,0.4", "seed=0"))
    assert list(space.ranges("hybrid")) == ["switch_point"]
    point = space.point("hybrid", {"switch_point": 0.3}, 0)
    assert (point["paradigm"], point["lr"], point["hard_lr"]) == ("hybrid", 0.1, "same")


def test_ranges_that_depend_on_the_fixed_point() -> None:
    axes = {**AXES, "lr": rules_of(By("m", {10: (0.2, 0.4)}, (5.0, 6.0)))}
    assert Space.of(axes).examples()[0]["lr"] == pytest.approx(math.sqrt(0.08))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("lr@seed:0=0.1,1",), "lr cannot have values by seed, which is not known where lr is"),
        (("m=5,10",), r"m has 2 values \(5, 10\). Give one with --set m=5"),
        (("hard_lr=same,0.1",), r"hard_lr has 2 values .* Give one with --set hard_lr=same"),
        (("paradigm=soft", "lr=0.1"), "nothing to search"),
    ],
)
def test_refuses_what_cannot_be_searched(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Space.of(axes_of(*sets))


def test_the_rate_before_it_drops_is_the_one_that_is_searched() -> None:
    space = Space.of(axes_of("paradigm=hybrid", "lr=0.01,1", "hard_lr=0.001,1", "seed=0"))
    cell = make_cell("hybrid", 0.1, last_lr=0.3, switch_point=0.5)
    soft, hard = cell.schedule.phases
    dropped = replace(cell, schedule=Schedule((soft, *hard.dropping(0.5, 0.4))))
    assert space.nearest(dropped) == {"lr": 0.1, "hard_lr": 0.3, "switch_point": 0.5}


def test_a_search_of_captions_improves_bleu_and_keeps_what_depends_on_the_paradigm() -> None:
    space = Space.of(resolve(search_spaces.mscoco.SPACE, "paper", ("lr=1e-4,1e-3",)))
    lines = space.describe(3, ["accuracy"]).splitlines()
    assert lines[0].endswith("improving validation Bleu-4")
    alone, after = "drop_at 0.4, teacher_forcing 0.7", "drop_at 0.24, teacher_forcing 1.0"
    assert f"  hard-running: {alone}, lr 0.0001 to 0.001 (log-uniform)" in lines
    rates = "lr 0.0001 to 0.001 (log-uniform), hard_lr 0.0001, switch_point 0.5"
    assert f"  hybrid-running: {after}, {rates}" in lines
