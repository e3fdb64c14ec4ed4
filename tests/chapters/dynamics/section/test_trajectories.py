"""Trajectories beside their closed form: on made-up cells that follow it, and that do not."""

from __future__ import annotations

import math

import pytest

from analysis.digest.compare import compare, compare_results, equal_compute
from analysis.digest.read import load
from analysis.groups import PARADIGMS
from analysis.kinds import find
from analysis.rules.claim import Claim
from analysis.section.section import Section
from chapters.dynamics.section.closed_form import convergence
from chapters.dynamics.section.convergence import exact_claim
from chapters.dynamics.section.trajectories import Trajectories
from study.results import Results, ResultsError
from tests.chapters.dynamics.trajectory_results import make_cell, write, write_study
from tests.made_up.pages import page_of_section


def found(results: Results) -> Section[Trajectories]:
    (section,) = find(results)
    assert isinstance(section.subject, Trajectories)
    return section


def trained_claim(results: Results, setting: str = "m=5, C=3") -> Claim:
    return claim_of(found(results), f"{setting}, trained")


def claim_of(section: Section[Trajectories], setting: str) -> Claim:
    (claim,) = [each for each in section.claims if each.setting == setting]
    return claim


# --- what is read


def test_a_directory_of_diverged_cells_has_theory_alone(results):
    write(results, make_cell("lvml"), status="diverged", points=())
    dynamics = found(results)
    assert dynamics.subject.curves.empty
    assert dynamics.subject.deviations.empty
    assert dynamics.summaries() == []
    assert claim_of(dynamics, "m=5, C=3, trained").verdict == "undecided"
    assert claim_of(dynamics, "m=20, C=20, closed form").verdict == "holds"
    assert len(dynamics.pictures) == 3
    assert "no cell was trained to the end" in dynamics.text()


def test_a_number_that_is_not_finite_is_refused(results):
    cell = write(results, make_cell(), noise=math.nan)
    with pytest.raises(ResultsError, match=f"cell {cell.id} .* has mu nan, which must"):
        find(results)


def test_a_paradigm_without_closed_form_is_shown_and_said(results):
    write_study(results, seeds=2, noise=0)
    write(results, make_cell("hard-sampled"))
    dynamics = found(results)
    measured, beside = dynamics.subject.curves, dynamics.subject.deviations
    assert {*measured["paradigm"]} - {*beside["paradigm"]} == {"hard-sampled"}
    assert "no closed form of hard-sampled" in page_of_section(dynamics)
    assert len(dynamics.summaries()) == 4


# --- which cells belong together


def test_settings_are_named_by_what_differs(results):
    """But a learning rate a paradigm is one setting; and none of them is a comparison."""
    write_study(results, seeds=1)
    assert len(equal_compute(load(results))) == 9  # which gives all cells
    write_study(results, seeds=1, n=20_000)
    for paradigm, lr in (("soft", 0.1), ("hard", 0.2), ("lvml", 0.4)):
        write(results, make_cell(paradigm, m=20, lr=lr))
    dynamics = found(results)
    names = {"m=5, C=3, n=5000", "m=5, C=3, n=20000", "m=20, C=3"}
    assert set(dynamics.subject.curves["setting"]) == names
    assert compare_results(results) == compare(load(results)) == []


# --- C15


def test_the_closed_form_is_decided_by_the_largest_nu_too():
    rows = convergence([(20, 20)])
    assert exact_claim(rows).verdict == "holds"
    smaller = rows["nu"].mask(rows["paradigm"] == "hard", 0.0)
    assert exact_claim(rows.assign(nu=smaller)).verdict == "does not hold"


def test_seeds_on_the_closed_form_say_the_same_as_it(results):
    """Six; of two nothing is decided even where they agree."""
    write_study(results, seeds=6, noise=0.005, pairs=[(5, 3), (20, 20)])
    write_study(results, seeds=2, noise=0, pairs=[(20, 20)], n=9_000)
    dynamics = found(results)
    for exact, trained in (("m=5, C=3", "m=5, C=3"), ("m=20, C=20", "m=20, C=20, n=5000")):
        closed = claim_of(dynamics, f"{exact}, closed form")
        assert claim_of(dynamics, f"{trained}, trained").verdict == closed.verdict
    assert claim_of(dynamics, "m=20, C=20, n=9000, trained").verdict == "undecided"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        # Hard's nu is the smallest at first: also that is a finding, at this horizon.
        (20.0, "neither lvml nor soft falls to 10 % by t = 20"),
        # Soft's loss is below a tenth, the others' is not: they count with the end.
        (60.0, "time of soft minus that of lvml to 10 % of log C: -"),
    ],
)
def test_a_short_training_is_decided_at_its_end(results, end, said):
    for paradigm in PARADIGMS:
        for seed in range(6):
            write(results, make_cell(paradigm, seed), 0.001, end=end)
    claim = trained_claim(results)
    assert said in claim.measured
    assert claim.verdict == "does not hold"


def test_what_is_missing_is_not_run_or_lost(results):
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"))
    assert trained_claim(results).verdict == "not run"
    write_study(results, seeds=2, noise=0.001)
    write(results, make_cell("lvml", 9), status="diverged", points=())
    assert "1 seed lost" in trained_claim(results).measured
