"""The space of a search: what is drawn, within which bounds, and what cannot be searched."""

from __future__ import annotations

import itertools
import math

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import search_spaces.digits
import search_spaces.mscoco
from search_spaces.base import By, Preset, SearchSpace
from study.cell.axis import rules_of
from study.errors import RequestError
from study.plan.axes import resolve
from study.search.space import Space
from tests.study.search.test_search import AXES, axes_of

lows = st.floats(1e-6, 1e3)
spans = st.floats(1.0001, 1e4)


@given(lows, spans, lows, spans, st.floats(0.01, 0.5), st.floats(0.001, 0.49), st.integers(0, 99))
@settings(max_examples=40)
def test_suggestions_lie_within_bounds_and_only_a_hybrid_switches(
    lr: float,
    span: float,
    hard_lr: float,
    hard_span: float,
    switch: float,
    width: float,
    seed: int,
) -> None:
    by_paradigm = By("paradigm", {"soft": (lr, lr * span)}, (lr / 2, lr / 2 * span))
    changed = {
        "lr": by_paradigm,
        "hard_lr": (hard_lr * hard_span, hard_lr),
        "switch_point": (switch, switch + width),
    }
    space = Space.of({**AXES, **{name: rules_of(axis) for name, axis in changed.items()}})
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    bounds = {
        "soft": {"lr": (lr, lr * span)},
        "hybrid": {
            "lr": (lr / 2, lr / 2 * span),
            "hard_lr": (hard_lr, hard_lr * hard_span),
            "switch_point": (switch, switch + width),
        },
    }
    for paradigm in itertools.islice(itertools.cycle(bounds), 10):
        trial = study.ask(space.ranges(paradigm))
        point, within = space.rounded(paradigm, trial.params), bounds[paradigm]
        assert point.keys() == within.keys()
        for axis, value in point.items():
            low, high = within[axis]
            assert low <= value <= high
            assert value in (low, high) or value == float(f"{value:.4g}")
        logs = {name: each.log for name, each in trial.distributions.items()}
        assert all(log == (name != "switch_point") for name, log in logs.items())


def test_what_has_one_value_is_not_searched() -> None:
    space = Space.of(axes_of("paradigm=hybrid", "lr=0.1", "switch_point=0.2,0.4", "seed=0"))
    assert list(space.ranges("hybrid")) == ["switch_point"]
    (point,) = space.full("hybrid", {"switch_point": 0.3})
    assert (point["paradigm"], point["lr"], point["hard_lr"]) == ("hybrid", 0.1, "same")


def test_ranges_that_depend_on_the_fixed_point() -> None:
    axes = {**AXES, "lr": rules_of(By("m", {10: (0.2, 0.4)}, (5.0, 6.0)))}
    assert Space.of(axes).middles()["soft"]["lr"] == pytest.approx(math.sqrt(0.08))


def test_ranges_by_paradigm() -> None:
    axes = axes_of("paradigm=soft,hard", "lr=0.01,1", "lr@hard=0.001,0.1", "seed=0")
    assert Space.of(axes).describe(1, ["accuracy"]).splitlines()[1:] == [
        "  soft: lr 0.01 to 1 (log-uniform)",
        "  hard: lr 0.001 to 0.1 (log-uniform)",
    ]


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("lr@seed:0=0.1,1",), "lr cannot have values by seed, which is not known where lr is"),
        (("m=5,10",), r"m has 2 values \(5, 10\). Give one with --set m=5"),
        (("n=100,200",), "n has 2 values"),
        (("lr=0,1",), "lr must be a finite number > 0, got 0.0"),
        (("lr=nan,1",), "lr must be a finite number > 0"),
        (("lr=0.1,inf",), "lr must be a finite number > 0"),
        (("switch_point=0.2,1",), "switch_point must be a number in"),
        (("hard_lr=same,0.1",), "hard_lr either as same or as numbers"),
        (("paradigm=soft", "lr=0.1"), "nothing to search"),
    ],
)
def test_refuses_what_cannot_be_searched(sets: tuple[str, ...], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Space.of(axes_of(*sets)).describe(3, ["accuracy"])


def test_a_description_says_the_ranges() -> None:
    text = Space.of(AXES).describe(20, ["accuracy", "saif"])
    assert (
        "20 suggestions a paradigm, 40 in all, x 2 seeds = 80 cells, improving validation "
        "accuracy and SAIF (a Pareto" in text
    )
    assert "  soft: lr 0.01 to 1 (log-uniform)" in text.splitlines()
    hybrid = "lr 0.01 to 1 (log-uniform), hard_lr 0.001 to 0.1 (log-uniform)"
    assert f"  hybrid: {hybrid}, switch_point 0.2 to 0.8 (uniform)" in text.splitlines()


def test_a_search_of_captions_improves_bleu_and_keeps_what_depends_on_the_paradigm() -> None:
    space = Space.of(resolve(search_spaces.mscoco.SPACE, "paper", ("lr=1e-4,1e-3",)))
    lines = space.describe(3, ["accuracy"]).splitlines()
    assert lines[0].endswith("improving validation Bleu-4")
    alone, after = "drop_at 0.4, teacher_forcing 0.7", "drop_at 0.24, teacher_forcing 1.0"
    assert f"  hard-running: {alone}, lr 0.0001 to 0.001 (log-uniform)" in lines
    rates = "lr 0.0001 to 0.001 (log-uniform), hard_lr 0.0001, switch_point 0.5"
    assert f"  hybrid-running: {after}, {rates}" in lines


def test_a_preset_cannot_declare_an_axis_that_does_not_exist() -> None:
    preset = Preset("x", {**search_spaces.digits.SPACE.presets["quick"].axes, "swich_point": (1,)})
    space = SearchSpace("digits", "digits", "x", {"quick": preset})
    message = "unknown axis in preset quick of digits 'swich_point'. Did you mean 'switch_point'?"
    with pytest.raises(RequestError, match=message.replace("?", r"\?")):
        resolve(space, "quick", ())
