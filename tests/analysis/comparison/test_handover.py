"""What analysis hands over to MLflow: the report's numbers, all of them finite, none invented."""

from __future__ import annotations

import itertools
import re
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
from tests.made_up.comparisons import compared, make_cell, make_results, write
from tests.made_up.summaries import NOTE, curves_of, metrics_of

SAIF = {"hard": 0.3, "soft": 0.4, "hybrid": 0.5, "lvml": 0.8}
STEPS = 400
"""Of a whole curve; small budgets have none."""


def comparisons(folder: Path) -> list[Comparison]:
    results = make_results(folder)
    options = ((0.1, 0.9), (0.3, 0.8))
    for (paradigm, score), (lr, accuracy), seed in itertools.product(
        SAIF.items(), options, range(6)
    ):
        cell = make_cell(paradigm, lr, seed=seed, budget=Budget(STEPS * METRIC_STEP_FLOPS))
        noise = (seed + len(paradigm)) % 6  # another one a paradigm: differences vary
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


def test_metrics_are_those_of_the_summary_and_curves_end_there(
    usual: Comparison, runs: dict[str, Run]
) -> None:
    for row in usual.summary.to_dict("records"):
        run = runs[str(row["paradigm"])]
        metrics, curves = metrics_of(run), curves_of(run)
        names = ["saif", "accuracy", "loss", "foreground_attention_mean"]
        found = [metrics[name] for name in names]
        assert found == pytest.approx([row[name] for name in names], abs=5e-5)
        assert metrics["n"] == 6
        switch = "0.5" if row["paradigm"] == "hybrid" else "none"
        rates = "0.1 then 0.05" if row["paradigm"] == "hybrid" else "0.1"
        assert (run.params["lr"], run.params["switch_point"]) == (rates, switch)
        assert "Not known" not in run.tags[NOTE]
        assert curves.keys() == {"test/saif", "test/accuracy"}
        for name, curve in curves.items():
            steps, values = zip(*curve, strict=True)
            np.testing.assert_allclose(steps, np.linspace(0.25, 1, 4) * STEPS, atol=1)
            assert values[-1] == pytest.approx(metrics[name[5:]], abs=5e-5)


def test_a_note_is_the_answer_and_how_sure_it_is(usual: Comparison, runs: dict[str, Run]) -> None:
    (note,) = {run.tags[NOTE] for run in runs.values()}
    assert note.startswith(answer([usual])[0])
    assert usual.name in note
    ends = ["saif_low", "saif_high", "accuracy_low", "accuracy_high"]
    for bound in usual.summary[ends].to_numpy().ravel():
        assert f"{100 * bound:.1f}" in note


def test_what_is_not_known_is_named_and_never_a_number(tmp_path: Path) -> None:
    """A diverged seed has no loss; a paradigm without an option has no summary."""
    results = make_results(tmp_path)
    write(results, make_cell("hard"), status="censored", points=(0.25,))
    assert Compared(compared(results)).summaries() == []
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"), status="diverged", points=())
    runs = by_paradigm(compared(results))
    assert [*runs] == ["soft", "lvml"]
    (line,) = re.findall("^Not known.*", runs["lvml"].tags[NOTE], re.MULTILINE)
    known = {name: metrics_of(run).keys() for name, run in runs.items()}
    lacking = known["soft"] - known["lvml"]
    assert "loss" in lacking
    assert lacking == set(re.findall(r"\w+", line.partition(":")[2]))
    assert metrics_of(runs["lvml"])["saif"] == 0


def test_files_are_a_heat_map_of_its_own_and_what_all_share(runs: dict[str, Run]) -> None:
    with not_drawn():
        files = [dict(run.files()) for run in runs.values()]
    assert len({each.pop("heatmap.png") for each in files}) == len(runs)
    assert all(each == files[0] for each in files)
    assert {name.partition("/")[0] for name in files[0] if name.endswith(".csv")} == {"tables"}
    assert any(re.fullmatch(r"[^/]+\.png", name) for name in files[0])


def test_the_state_follows_the_numbers_of_its_comparison(tmp_path: Path) -> None:
    results = make_results(tmp_path)
    for m, paradigm, seed in itertools.product((5, 10), SAIF, range(2)):
        write(results, make_cell(paradigm, seed=seed, m=m), saif=SAIF[paradigm])
    evaluations = load(results)

    def states(table: pd.DataFrame) -> dict[str, str]:
        return {run.name: run.state for c in compare(table) for run in Compared(c).summaries()}

    first = states(evaluations)
    assert len(set(first.values())) == len(first) == 2 * len(SAIF)
    assert states(evaluations.sample(frac=1, random_state=1)) == first
    one = evaluations.eval("m == 5 and paradigm == 'soft' and seed == 0 and split == 'test'")
    changed = states(evaluations.assign(saif=evaluations["saif"].where(~one, 0.123)))
    assert all((changed[name] != first[name]) == ("m=5" in name) for name in first)
