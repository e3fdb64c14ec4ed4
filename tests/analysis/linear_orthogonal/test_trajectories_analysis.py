"""Trajectories beside their closed form: on made-up cells that follow it, and that do not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.kinds import find
from analysis.linear_orthogonal.claims import (
    DECISIVE,
    HORIZON,
    LEVELS,
    PARADIGMS,
    exact_claim,
    nu_gap,
    time_text,
)
from analysis.linear_orthogonal.closed_form import CONFIDENT, PUBLISHED, convergence, curves, exact
from analysis.linear_orthogonal.section import Trajectories
from analysis.section.base import Question
from analysis.section.claim import Claim
from study.results import Results, ResultsError
from study.theory.linear_orthogonal import trajectory
from tests.made_up.comparisons import make_results
from tests.made_up.summaries import NOTE, curves_of, metrics_of
from tests.made_up.trajectories import make_cell, write, write_study


@pytest.fixture(scope="module")
def of_one_seed(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    """Of one seed a paradigm; what it draws, tests share."""
    results = make_results(tmp_path_factory.mktemp("one") / "results")
    write_study(results, seeds=1)
    return found(results)


def found(results: Results) -> Trajectories:
    (dynamics,) = find(results)
    assert isinstance(dynamics, Trajectories)
    return dynamics


def shifted(name: str, by: float, fraction: float | None = None) -> Callable:
    """A change of one quantity, at one evaluation or at all."""

    def change(table: pd.DataFrame) -> pd.DataFrame:
        where = True if fraction is None else table["fraction"] == fraction
        return table.assign(**{name: table[name] + np.where(where, by, 0.0)})

    return change


def claim_of(dynamics: Trajectories, setting: str) -> Claim:
    (claim,) = [each for each in dynamics.claims if each.setting == setting]
    return claim


# --- what is read


def test_cells_on_the_closed_form_do_not_deviate(results: Results) -> None:
    write_study(results, seeds=2, noise=0)
    table = found(results).deviations
    assert len(table) == 9
    assert (table["deviation"] == 0).all()
    assert (table["seed_spread"] == 0).all()
    assert (table["num_seeds"] == 2).all()


def test_the_largest_deviation_is_found(results: Results) -> None:
    write(results, make_cell("hard", 0), change=shifted("mu", -0.25, fraction=0.5))
    write(results, make_cell("hard", 1), change=shifted("mu", 0.05))
    table = found(results).deviations.set_index("quantity")
    theory = trajectory("hard", 5, 3, np.linspace(0, 200, 21))
    size = theory["mu"].max() - theory["mu"].min()
    row = table.loc["mu"]
    assert row["deviation"] == pytest.approx(0.25)
    assert row["at_time"] == pytest.approx(100)
    assert row["mean_deviation"] == pytest.approx(0.1)
    assert row["seed_spread"] == pytest.approx(0.3)
    assert row["relative"] == pytest.approx(0.25 / size)
    assert row["relative_spread"] == pytest.approx(0.3 / size)
    assert (table.loc[["nu", "loss"], "deviation"] == 0).all()


def test_curves_are_means_with_t_intervals(results: Results) -> None:
    for seed, by in enumerate((0.0, 0.1, 0.5)):
        write(results, make_cell("soft", seed), change=shifted("nu", by))
    curve = found(results).curves
    assert len(curve) == 21
    row = curve.iloc[-1]
    values = trajectory("soft", 5, 3, [200.0])["nu"].iloc[0] + np.array([0.0, 0.1, 0.5])
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    assert (row["nu"], row["nu_low"], row["nu_high"]) == pytest.approx((values.mean(), low, high))
    assert row["flow_time"] == pytest.approx(200)
    assert row["num_seeds"] == 3


def test_one_seed_has_no_interval(of_one_seed: Trajectories) -> None:
    dynamics = of_one_seed
    assert dynamics.curves[["mu_low", "nu_high", "loss_low"]].isna().all(axis=None)
    assert dynamics.deviations["seed_spread"].isna().all()
    assert claim_of(dynamics, "m=5, C=3, trained").verdict == "undecided"
    assert [picture.png[:4] for picture in dynamics.pictures] == [b"\x89PNG"] * 3


@pytest.mark.parametrize("status", ["diverged", "censored"])
def test_cells_that_ended_early_are_left_out_and_said(results: Results, status: str) -> None:
    write_study(results, seeds=2, noise=0)
    write(results, make_cell("hard", 7), status=status, points=(0.0, 0.05))
    dynamics = found(results)
    assert len(dynamics.cells) == 7
    assert set(dynamics.curves["num_seeds"]) == {2}
    assert (dynamics.deviations["deviation"] == 0).all()
    assert "left out of curves and tables: hard 1." in str(dynamics.blocks([], "results"))


def test_a_directory_of_diverged_cells_has_theory_alone(results: Results) -> None:
    write(results, make_cell("lvml"), status="diverged", points=())
    dynamics = found(results)
    assert dynamics.curves.empty
    assert dynamics.deviations.empty
    assert dynamics.summaries() == []
    assert claim_of(dynamics, "m=5, C=3, trained").verdict == "undecided"
    assert claim_of(dynamics, "m=20, C=20, closed form").verdict == "holds"
    assert len(dynamics.pictures) == 3
    assert dynamics.blocks([], "results")


@pytest.mark.parametrize(("name", "value"), [("mu", math.nan), ("nu", math.inf)])
def test_a_number_that_is_not_finite_is_refused(results: Results, name: str, value: float) -> None:
    cell = write(results, make_cell(), change=lambda table: table.assign(**{name: value}))
    with pytest.raises(ResultsError, match=f"cell {cell.id} .* has {name} {value:g}, which must"):
        find(results)


def test_a_paradigm_without_closed_form_is_shown_and_said(results: Results) -> None:
    write_study(results, seeds=2, noise=0)
    write(results, make_cell("hard-sampled"), follows="hard")
    dynamics = found(results)
    assert "hard-sampled" in set(dynamics.curves["paradigm"])
    assert "hard-sampled" not in set(dynamics.deviations["paradigm"])
    assert "no closed form of hard-sampled" in str(dynamics.blocks([], "results"))
    assert len(dynamics.summaries()) == 4


# --- which cells belong together


def test_settings_are_named_by_what_differs(results: Results) -> None:
    write_study(results, seeds=1, n=5_000)
    write_study(results, seeds=1, n=20_000)
    write_study(results, seeds=1, pairs=[(20, 20)])
    names = set(found(results).curves["setting"])
    assert names == {"m=5, C=3, n=5000", "m=5, C=3, n=20000", "m=20, C=20"}


def test_several_learning_rates_are_several_settings(results: Results) -> None:
    write_study(results, seeds=1, lr=0.1)
    write_study(results, seeds=1, lr=0.2)
    dynamics = found(results)
    assert set(dynamics.curves["setting"]) == {"m=5, C=3, lr=0.1", "m=5, C=3, lr=0.2"}
    assert claim_of(dynamics, "m=5, C=3, lr=0.2, trained").verdict == "undecided"
    keys = [summary.key for summary in dynamics.summaries()]
    assert len(keys) == len(set(keys)) == 6


def test_a_learning_rate_a_paradigm_is_one_setting(results: Results) -> None:
    for paradigm, lr in (("soft", 0.1), ("hard", 0.2), ("lvml", 0.4)):
        write(results, make_cell(paradigm, lr=lr))
    assert set(found(results).curves["setting"]) == {"m=5, C=3"}


def test_fixed_focus_cells_and_others_are_not_read(results: Results) -> None:
    write_study(results, seeds=1)
    keys = {found(results).key}
    dynamics = find(results, Question(cell_ids=[make_cell("soft").id]))
    (alone,) = dynamics
    assert list(alone.cells["cell_id"]) == [make_cell("soft").id]
    assert {alone.key} == keys  # of the same comparison


# --- the closed form


@pytest.mark.parametrize(("m", "num_classes"), [(5, 3), *PUBLISHED])
def test_times_are_those_at_which_the_loss_is_there(m: int, num_classes: int) -> None:
    for row in convergence([(m, num_classes)]).to_dict("records"):
        name = row["paradigm"]
        for share in LEVELS:
            (loss,) = trajectory(name, m, num_classes, [row[f"time_to_{100 * share:g}"]])["loss"]
            assert loss == pytest.approx(share * math.log(num_classes), rel=1e-9)
        (alpha,) = trajectory(name, m, num_classes, [row["time_to_focus"]])["alpha"]
        assert alpha == pytest.approx(CONFIDENT, rel=1e-5)


def test_an_attention_that_is_there_from_the_start() -> None:
    table = convergence([(2, 2)])
    assert (table["time_to_focus"] > 0).all()


def test_curves_begin_before_anything_moves_and_end_at_the_horizon() -> None:
    table = curves(PUBLISHED)
    for (m, num_classes), rows in table.groupby(["m", "num_classes"]):
        assert rows["t"].max() == pytest.approx(HORIZON)
        assert rows["loss"].max() > 0.999 * math.log(num_classes)
        assert set(rows["paradigm"]) == set(PARADIGMS)
        assert (m, num_classes) in PUBLISHED


@pytest.mark.parametrize(("m", "num_classes"), [(5, 3), (20, 20), (2, 2)])
def test_hard_ends_above_lvml_by_the_stated_gap(m: int, num_classes: int) -> None:
    nu = {name: trajectory(name, m, num_classes, [1e11])["nu"].iloc[0] for name in PARADIGMS}
    assert nu["hard"] - nu["lvml"] == pytest.approx(nu_gap(num_classes), abs=1e-6)
    assert nu_gap(num_classes) > 0
    assert nu["hard"] - nu["soft"] > 10


# --- C15


@pytest.mark.parametrize(
    ("m", "num_classes", "verdict", "first"),
    [
        (5, 3, "does not hold", "(first: soft at 50, 10 and 1 %)"),
        (20, 20, "holds", "(first: soft at 1 %, lvml at 50 and 10 %)"),
        (100, 1_000, "holds", "(first: lvml at 50, 10 and 1 %)"),
    ],
)
def test_the_closed_form_decides_by_a_tenth_of_the_loss(
    m: int, num_classes: int, verdict: str, first: str
) -> None:
    claim = exact_claim(exact(m, num_classes, trained=2_000.0))
    assert claim.verdict == verdict
    assert first in claim.measured
    assert f"hard minus lvml goes to {nu_gap(num_classes):.2f}" in claim.measured


def test_a_smaller_nu_of_hard_breaks_the_claim() -> None:
    found = exact(20, 20)
    nu = {**found.nu, "hard": found.nu["lvml"] - 1}
    assert exact_claim(dataclasses.replace(found, nu=nu)).verdict == "does not hold"


def test_a_level_that_nobody_reaches_decides_nothing() -> None:
    never = dict.fromkeys(PARADIGMS, (math.nan,) * 3)
    claim = exact_claim(dataclasses.replace(exact(20, 20), times=never))
    assert claim.verdict == "undecided"


def test_six_seeds_on_the_closed_form_say_the_same_as_it(results: Results) -> None:
    write_study(results, seeds=6, noise=0.005, pairs=[(5, 3), (20, 20)])
    dynamics = found(results)
    for setting in ("m=5, C=3", "m=20, C=20"):
        closed = claim_of(dynamics, f"{setting}, closed form")
        trained = claim_of(dynamics, f"{setting}, trained")
        assert trained.verdict == closed.verdict


def test_the_time_of_fall_is_that_of_the_closed_form(results: Results) -> None:
    points = tuple(i / 400 for i in range(401))
    write_study(results, seeds=2, noise=0, evaluation_points=points)
    times = {name: values[LEVELS.index(DECISIVE)] for name, values in exact(5, 3).times.items()}
    claim = claim_of(found(results), "m=5, C=3, trained")
    lead = f"-{time_text(times['lvml'] - times['soft'])}"
    assert f"time of soft minus that of lvml to 10 % of log C: {lead} (95 %" in claim.measured


def test_two_seeds_decide_nothing_even_where_they_agree(results: Results) -> None:
    write_study(results, seeds=2, noise=0, pairs=[(20, 20)])
    claim = claim_of(found(results), "m=20, C=20, trained")
    assert claim.verdict == "undecided"


def test_a_paradigm_without_cells_is_not_run(results: Results) -> None:
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"))
    claim = claim_of(found(results), "m=5, C=3, trained")
    assert claim.verdict == "not run"


def test_a_short_training_says_that_nothing_fell(results: Results) -> None:
    for paradigm in PARADIGMS:
        for seed in range(6):
            write(results, make_cell(paradigm, seed), 0.001, end=20.0)
    claim = claim_of(found(results), "m=5, C=3, trained")
    assert "neither lvml nor soft falls to 10 % by t = 20" in claim.measured
    # Hard's nu is the smallest at first: also that is a finding, at this horizon.
    assert claim.verdict == "does not hold"


def test_who_does_not_get_there_counts_with_the_end(results: Results) -> None:
    """By t = 60 soft's loss is below a tenth, the others' is not: that is a lead of soft."""
    for paradigm in PARADIGMS:
        for seed in range(6):
            write(results, make_cell(paradigm, seed), 0.001, end=60.0)
    claim = claim_of(found(results), "m=5, C=3, trained")
    assert claim.verdict == "does not hold"


def test_diverged_seeds_are_counted_in_the_claim(results: Results) -> None:
    write_study(results, seeds=2, noise=0.001)
    write(results, make_cell("lvml", 9), status="diverged", points=())
    assert "1 seed lost" in claim_of(found(results), "m=5, C=3, trained").measured


# --- what a report and MLflow get


def test_summaries_change_with_the_numbers(results: Results, tmp_path: Path) -> None:
    write_study(results, seeds=2, noise=0.01)
    summaries = found(results).summaries()
    assert [each.params["paradigm"] for each in summaries] == ["hard", "soft", "lvml"]
    for each in summaries:
        assert (metrics_of(each)["n"], metrics_of(each)["flow_time"]) == (2, 200)
        assert "C15 does not hold" in each.tags[NOTE]
        assert len(curves_of(each)["test/mu"]) == 21
    again = found(results).summaries()
    assert [each.state for each in again] == [each.state for each in summaries]
    other = make_results(tmp_path / "other")
    write_study(other, seeds=2, noise=0.02)
    states = {each.state for each in found(other).summaries()}
    assert not states & {each.state for each in summaries}


@pytest.mark.parametrize(
    ("time", "text"),
    [(53.7123, "53.7"), (1_273.1, "1,270"), (4e5, "400,000"), (0.0123, "0.0123"), (0, "0")],
)
def test_times_are_written_as_people_do(time: float, text: str) -> None:
    assert time_text(time) == text
