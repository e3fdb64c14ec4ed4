"""Learning dynamics in the report, alone and beside comparisons, which leave their cells out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from analysis.comparison.compare import compare, compare_results, equal_compute
from analysis.comparison.report.chapter import Compared
from analysis.conclude import write_report
from analysis.kinds import find
from analysis.linear_orthogonal.section import Trajectories
from analysis.reading import load
from analysis.section.base import Question, Section
from analysis.section.summary import counts_of
from study.results import Results
from tests.conftest import not_drawn
from tests.made_up import comparisons as comparisons
from tests.made_up import trajectories as trajectories
from tests.made_up.comparisons import make_results


def write_comparison(results: Results, **columns: str) -> None:
    for paradigm in ("soft", "hard"):
        for seed in range(2):
            comparisons.write(results, comparisons.make_cell(paradigm, seed=seed), **columns)


def kinds(sections: Sequence[Section]) -> list[type]:
    return [type(section) for section in sections]


# --- comparisons leave them out


def test_comparisons_leave_cells_of_learning_dynamics_out(results: Results) -> None:
    write_comparison(results)
    trajectories.write_study(results, seeds=1)
    held = comparisons.make_cell("soft", alpha=0.4)
    comparisons.write(results, held, study="fixed-focus")
    evaluations = load(results)
    for found in (compare_results(results), compare(evaluations)):
        (comparison,) = found
        assert set(comparison.cells["paradigm"]) == {"soft", "hard"}
        assert len(comparison.cells) == 4


def test_without_a_comparison_there_is_none(results: Results) -> None:
    trajectories.write_study(results, seeds=1)
    evaluations = load(results)
    assert compare_results(results) == []
    assert compare(evaluations) == []
    assert compare_results(results, cell_ids=[trajectories.make_cell().id]) == []
    assert len(equal_compute(evaluations)) == 9  # which gives all cells


def test_a_study_without_dynamics_has_none(results: Results) -> None:
    write_comparison(results)
    assert kinds(find(results)) == [Compared]
    trajectories.write_study(results, seeds=1)
    assert kinds(find(results)) == [Compared, Trajectories]
    assert kinds(find(results, Question(study="linear-orthogonal"))) == [Trajectories]


# --- the page


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    """A directory with trajectories only, and its report."""
    folder = tmp_path_factory.mktemp("alone")
    results = make_results(folder / "results")
    trajectories.write_study(results)
    with not_drawn():
        write_report(results, folder / "out")
    return results, folder / "out"


@pytest.mark.usefixtures("no_pictures")
def test_missing_cells_are_counted_over_both_kinds(results: Results, tmp_path: Path) -> None:
    comparisons.write(results, comparisons.make_cell())
    trajectories.write_study(results, seeds=1)
    ids = [trajectories.make_cell().id, comparisons.make_cell().id, "ab"]
    write_report(results, tmp_path / "out", cell_ids=ids)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "1 of 3 planned cells has no result" in text


# --- MLflow


def test_cells_are_counted_by_how_they_ended_and_claims_by_verdict(
    alone: tuple[Results, Path],
) -> None:
    """Also verdicts with 0, which replace what an earlier answer logged."""
    (dynamics,) = find(alone[0])
    others = pd.DataFrame({"status": ["done", "diverged"]})
    assert counts_of(dynamics.claims, [dynamics.cells, others]) == {
        "cells done": len(dynamics.cells) + 1,
        "cells diverged": 1,
        "cells censored": 0,
        "claims holds": 2,
        "claims does not hold": 1,
        "claims undecided": 1,
        "claims not run": 0,
    }
