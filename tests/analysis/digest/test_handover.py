"""What analysis hands over to MLflow: the report's numbers, all of them finite, none invented."""

from __future__ import annotations

import re

import numpy as np
import pytest

from analysis.digest.compare import Comparison, compare
from analysis.digest.read import load
from analysis.page.comparisons import section_of
from study.cell import Budget
from study.tracking.runs import METRIC_STEP_FLOPS, Run
from tests.made_up.comparisons import compared, make_cell, write, write_seeds
from tests.made_up.summaries import NOTE, curves_of, metrics_of

SAIF = {"hard": 0.3, "soft": 0.4, "hybrid": 0.5, "lvml": 0.8}
STEPS = 400
"""Of a whole curve; small budgets have none."""


def by_paradigm(comparison: Comparison) -> dict[str, Run]:
    return {run.params["paradigm"]: run for run in section_of(comparison).summaries()}


def test_metrics_are_those_of_the_summary_and_curves_end_there(results):
    write_seeds(results, SAIF, 6, budget=Budget(STEPS * METRIC_STEP_FLOPS))
    found = compared(results)
    runs = by_paradigm(found)
    names = ["saif", "accuracy", "loss", "foreground_attention_mean"]
    for row in found.summary.to_dict("records"):
        run = runs[str(row["paradigm"])]
        metrics, curves = metrics_of(run), curves_of(run)
        known = {name: row[name] for name in names} | {"n": 6}
        assert {name: metrics[name] for name in known} == pytest.approx(known, abs=5e-5)
        hybrid = row["paradigm"] == "hybrid"
        said = ("0.1 then 0.05", "0.5") if hybrid else ("0.1", "none")
        assert (run.params["lr"], run.params["switch_point"]) == said
        assert curves.keys() == {"test/saif", "test/accuracy"}
        for name, curve in curves.items():
            steps, values = zip(*curve, strict=True)
            np.testing.assert_allclose(steps, np.linspace(0.25, 1, 4) * STEPS, atol=1)
            assert values[-1] == pytest.approx(metrics[name[5:]], abs=5e-5)


def test_what_is_not_known_is_named_and_never_a_number(results):
    """A diverged seed has no loss; a paradigm without an option has no summary."""
    write(results, make_cell("hard"), status="censored", points=(0.25,))
    assert section_of(compared(results)).summaries() == []
    write(results, make_cell("soft"))
    write(results, make_cell("lvml"), status="diverged", points=())
    runs = by_paradigm(compared(results))
    soft, lvml = (metrics_of(runs[name]).keys() for name in ("soft", "lvml"))
    (said,) = re.findall("^Not known.*:(.*)", runs["lvml"].tags[NOTE], re.MULTILINE)
    assert "loss" in soft - lvml
    assert soft - lvml == {*re.findall(r"\w+", said)}
    assert "Not known" not in runs["soft"].tags[NOTE]


def test_the_state_follows_the_numbers_of_its_comparison(results):
    for m in (5, 10):
        write_seeds(results, {"soft": 0.4, "hard": 0.5}, 1, m=m)
    evaluations = load(results)

    def states(table):
        found = [(c, run) for c in compare(table) for run in section_of(c).summaries()]
        return {f"{c.name} {run.params['paradigm']}": run.state for c, run in found}

    first = states(evaluations)
    assert len({*first.values()}) == len(first) == 4
    assert states(evaluations.sample(frac=1, random_state=1)) == first
    one = evaluations.eval("m == 5 and paradigm == 'soft' and split == 'test'")
    changed = states(evaluations.assign(saif=evaluations["saif"].where(~one, 0.123)))
    assert all((changed[name] != first[name]) == ("m=5" in name) for name in first)
