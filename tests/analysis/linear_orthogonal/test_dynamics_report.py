"""Learning dynamics in the report, alone and beside comparisons, which leave their cells out."""

from __future__ import annotations

import re
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
from analysis.report import main
from analysis.section.base import Question, Section
from analysis.section.picture import FILE_STEM
from analysis.section.summary import claim_counts
from study.results import Results, ResultsError
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


def headings(folder: Path) -> list[str]:
    text = (folder / "report.md").read_text()
    return [line.lstrip("# ") for line in text.splitlines() if re.match("## ", line)]


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
    assert set(evaluations["task"]) == {"digits", "linear-orthogonal"}
    assert held.id in set(evaluations["cell_id"])


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
    assert kinds(find(results, Question(study="digits"))) == [Compared]
    assert kinds(find(results, Question(study="linear-orthogonal"))) == [Trajectories]
    with pytest.raises(ResultsError, match="unknown study 'linear'"):
        find(results, Question(study="linear"))
    with pytest.raises(ResultsError, match="none of the requested cells"):
        find(results, Question(cell_ids=["ab"]))


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


def test_a_page_of_dynamics_says_what_it_shows(alone: tuple[Results, Path]) -> None:
    results, folder = alone
    (dynamics,) = find(results)
    assert headings(folder) == ["Learning dynamics", f"{dynamics.title} ({dynamics.key})"]
    text = (folder / "report.md").read_text()
    assert text.startswith("# Learning dynamics of attention: linear-orthogonal\n")
    assert "Of 4 tests of the paper's claims, 2 hold (C15), 1 does not hold (C15)" in text
    assert "Table 1" not in text
    assert "SAIF" not in text
    assert f"study.repeat {results.url} {dynamics.cells['cell_id'].iloc[0]}" in text
    html = (folder / "report.html").read_text()
    assert html.index("closed form") < html.index("Time to converge")
    assert html.count("data:image/png;base64,") == 3
    assert "nan" not in re.sub(r'src="[^"]*"', "", html).lower()


def test_its_files(alone: tuple[Results, Path]) -> None:
    results, folder = alone
    (dynamics,) = find(results)
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "cells.csv",
        "claims.csv",
        "figures",
        "report.html",
        "report.md",
        *(f"{stem}-{dynamics.key}.csv" for stem in dynamics.tables()),
    }
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert figures == {
        f"{picture.name}-{dynamics.key}.{end}"
        for picture in dynamics.pictures
        for end in ("png", "pdf")
    }
    assert all(FILE_STEM.match(name) for name in figures)
    claims = pd.read_csv(folder / "claims.csv")
    assert list(claims["verdict"]) == [claim.verdict for claim in dynamics.claims]
    assert list(claims["setting"]) == [claim.setting for claim in dynamics.claims]
    assert set(claims["task"]) == {"linear-orthogonal"}
    assert set(claims["m"]) == {5}
    assert set(claims["key"].astype(str)) == {dynamics.key}
    cells = pd.read_csv(folder / "cells.csv")
    assert set(cells["cell_id"]) == set(dynamics.cells["cell_id"])


@pytest.mark.usefixtures("no_pictures")
def test_both_kinds_have_their_sections(results: Results, tmp_path: Path) -> None:
    write_comparison(results)
    trajectories.write_study(results, seeds=1)
    folder = tmp_path / "out"
    write_report(results, folder)
    _, dynamics = find(results)
    names = headings(folder)
    assert names[:3] == ["Question", "Answer", "Learning dynamics"]
    assert names[3] == "Do the claims of the paper generalise?"
    assert names[4].startswith("digits, m=10")
    assert names[5] == f"{dynamics.title} ({dynamics.key})"
    assert names[6:] == ["In the layout of the paper's Table 1", "How this was computed"]
    html = (folder / "report.html").read_text()
    assert 'href="#comparison-1"' in html
    assert 'href="#dynamics-1"' in html
    assert "Attention at equal compute and learning dynamics: digits, linear-orthogonal" in html
    claims = pd.read_csv(folder / "claims.csv", dtype={"key": str})
    assert set(claims["claim"]) >= {"C1", "C15", "C17"}
    assert claims["key"].notna().sum() == len(dynamics.claims)
    assert (claims["comparison_id"].isna() == claims["key"].notna()).all()
    cells = pd.read_csv(folder / "cells.csv")
    assert len(cells) == 4 + 3
    assert set(pd.read_csv(folder / "comparison.csv")["task"]) == {"digits"}


@pytest.mark.usefixtures("no_pictures")
def test_missing_cells_are_counted_over_both_kinds(results: Results, tmp_path: Path) -> None:
    comparisons.write(results, comparisons.make_cell())
    trajectories.write_study(results, seeds=1)
    ids = [trajectories.make_cell().id, comparisons.make_cell().id, "ab"]
    write_report(results, tmp_path / "out", cell_ids=ids)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "1 of 3 planned cells has no result" in text


@pytest.mark.usefixtures("no_pictures")
def test_the_command_shows_both_kinds(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparisons.write(results, comparisons.make_cell())
    trajectories.write_study(results, seeds=1)
    assert main([results.url, "--out", str(tmp_path / "out"), "--budget", "1e6"]) == 0
    text = capsys.readouterr().out
    _, dynamics = find(results)
    assert "digits m=10" in text
    assert dynamics.text() in text
    assert main([results.url, "--study", "linear-orthogonal"]) == 0
    text = capsys.readouterr().out
    assert "digits m=10" not in text
    assert dynamics.text() in text
    folder = tmp_path / "results" / "report" / "linear-orthogonal"
    assert text.endswith(f"report: {folder / 'report.html'}\n")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--budget", "1e6"], "--budget"),
        (["--axis", "mosaics", "--interpolate"], "--axis, --interpolate"),
        (["--threshold", "0.6"], "--threshold"),
        (["--select", "saif"], "--select"),
        (["--published"], "--published"),
    ],
)
def test_options_of_comparisons_are_refused_without_one(
    results: Results, capsys: pytest.CaptureFixture[str], options: list[str], named: str
) -> None:
    trajectories.write_study(results, seeds=1)
    assert main([results.url, *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"analysis.report: {named}: there is nothing to compare here")
    assert captured.err.count("\n") == 1


def test_options_of_comparisons_are_refused_by_the_function_too(
    results: Results, tmp_path: Path
) -> None:
    trajectories.write_study(results, seeds=1)
    with pytest.raises(ResultsError, match="--budget: there is nothing to compare"):
        write_report(results, tmp_path, budget=1e6)


# --- MLflow


def test_every_verdict_of_a_claim_is_counted(alone: tuple[Results, Path]) -> None:
    """Also those with 0, which replace what an earlier report logged."""
    (dynamics,) = find(alone[0])
    assert claim_counts(dynamics.claims) == {
        "claims/C15/holds": 2,
        "claims/C15/does not hold": 1,
        "claims/C15/undecided": 1,
        "claims/C15/not run": 0,
    }
    assert claim_counts([]) == {}
