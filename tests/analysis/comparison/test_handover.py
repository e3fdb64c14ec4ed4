"""What analysis hands over to MLflow: the report's numbers, all of them finite, none invented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.comparison.compare import Comparison, compare
from analysis.comparison.report.answer import answer
from analysis.comparison.report.chapter import Compared
from analysis.reading import load
from study.cell import Budget
from study.tracking.runs import METRIC_STEP_FLOPS, Run
from tests.conftest import not_drawn
from tests.made_up.comparisons import make_cell, make_results, write
from tests.made_up.summaries import NOTE, curves_of, metrics_of

SAIF = {"hard": 0.3, "soft": 0.4, "lvml": 0.8}
STEPS = 400
"""Of a whole curve; small budgets have none."""


def comparisons(
    folder: Path, seeds: int = 6, saif: Mapping[str, float] = SAIF, ms: tuple[int, ...] = (10,)
) -> list[Comparison]:
    results = make_results(folder)
    for m in ms:
        for place, (paradigm, score) in enumerate(saif.items()):
            for lr, accuracy in ((0.1, 0.9), (0.3, 0.8)):
                for seed in range(seeds):
                    budget = Budget(STEPS * METRIC_STEP_FLOPS)
                    cell = make_cell(paradigm, lr, seed=seed, m=m, budget=budget)
                    noise = (seed + place) % seeds  # another one a paradigm: differences vary
                    write(results, cell, accuracy + noise**2 / 900, score + noise / 100)
    return compare(load(results))


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    (comparison,) = comparisons(tmp_path_factory.mktemp("usual"))
    return comparison


@pytest.fixture(scope="module")
def runs(usual: Comparison) -> dict[str, Run]:
    return by_paradigm(usual)


def by_paradigm(comparison: Comparison) -> dict[str, Run]:
    return {run.params["paradigm"]: run for run in Compared(comparison).summaries()}


def test_metrics_are_those_of_the_summary(usual: Comparison, runs: dict[str, Run]) -> None:
    for row in usual.summary.to_dict("records"):
        run = runs[str(row["paradigm"])]
        metrics = metrics_of(run)
        for name in ("saif", "accuracy", "loss", "foreground_attention_mean"):
            assert metrics[name] == pytest.approx(row[name], abs=5e-5)
        assert metrics["n"] == 6
        assert float(run.params["lr"]) == row["lr"] == 0.1
        assert "Not known" not in run.tags[NOTE]


def test_a_note_is_the_answer_and_how_sure_it_is(usual: Comparison, runs: dict[str, Run]) -> None:
    (note,) = {run.tags[NOTE] for run in runs.values()}
    assert note.startswith(answer([usual])[0])
    assert usual.name in note
    for name in ("saif_low", "saif_high", "accuracy_low", "accuracy_high"):
        for bound in usual.summary[name]:
            assert f"{100 * bound:.1f}" in note


def test_an_option_is_named_by_what_it_has(tmp_path: Path) -> None:
    (comparison,) = comparisons(tmp_path, 1, {"soft": 0.4, "hybrid": 0.5})
    params = {name: run.params for name, run in by_paradigm(comparison).items()}
    assert (params["soft"]["lr"], params["soft"]["switch_point"]) == ("0.1", "none")
    assert (params["hybrid"]["lr"], params["hybrid"]["switch_point"]) == ("0.1 then 0.05", "0.5")


def test_curves_end_at_the_metrics(runs: dict[str, Run]) -> None:
    for run in runs.values():
        curves = curves_of(run)
        assert curves.keys() == {"test/saif", "test/accuracy"}
        for name, curve in curves.items():
            steps = [step for step, _ in curve]
            np.testing.assert_allclose(steps, np.linspace(0.25, 1, 4) * STEPS, atol=1)
            assert curve[-1][1] == pytest.approx(metrics_of(run)[name[5:]], abs=5e-5)


def test_what_is_not_known_is_named_and_never_a_number(tmp_path: Path) -> None:
    """A diverged seed has no loss."""
    results = make_results(tmp_path)
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"), status="diverged", points=())
    (comparison,) = compare(load(results))
    runs = by_paradigm(comparison)
    assert "Not known" not in runs["soft"].tags[NOTE]
    (line,) = re.findall("^Not known.*", runs["lvml"].tags[NOTE], re.MULTILINE)
    lacking = metrics_of(runs["soft"]).keys() - metrics_of(runs["lvml"]).keys()
    assert "loss" in lacking
    assert lacking == set(re.findall(r"\w+", line.partition(":")[2]))
    assert metrics_of(runs["lvml"])["saif"] == 0


def test_files_are_a_heat_map_of_its_own_and_what_all_share(runs: dict[str, Run]) -> None:
    with not_drawn():
        files = [dict(run.files()) for run in runs.values()]
    heat_maps = [each.pop("heatmap.png") for each in files]
    assert len({*heat_maps}) == len(runs)
    assert all(each == files[0] for each in files)
    assert {name.partition("/")[0] for name in files[0] if name.endswith(".csv")} == {"tables"}
    assert any(re.fullmatch(r"[^/]+\.png", name) for name in files[0])


def test_the_state_follows_the_numbers_of_its_comparison(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    for m in (5, 10):
        for paradigm, score in SAIF.items():
            for seed in range(2):
                write(results, make_cell(paradigm, seed=seed, m=m), saif=score)
    evaluations = load(results)

    def states(table: pd.DataFrame) -> dict[str, str]:
        return {run.name: run.state for c in compare(table) for run in Compared(c).summaries()}

    first = states(evaluations)
    assert len(set(first.values())) == len(first) == 6
    assert states(evaluations.sample(frac=1, random_state=1)) == first
    one = (evaluations["m"] == 5) & (evaluations["paradigm"] == "soft")
    one &= (evaluations["seed"] == 0) & (evaluations["split"] == "test")
    changed = states(evaluations.assign(saif=evaluations["saif"].where(~one, 0.123)))
    assert {name for name in first if changed[name] != first[name]} == {
        name for name in first if "m=5" in name
    }


def test_a_paradigm_without_an_option_has_no_summary(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"), status="censored", points=(0.25,))
    assert list(by_paradigm(compare(load(results))[0])) == ["soft"]
    alone = make_results(tmp_path / "alone")
    write(alone, make_cell("lvml"), status="censored", points=(0.25,))
    assert Compared(compare(load(alone))[0]).summaries() == []
