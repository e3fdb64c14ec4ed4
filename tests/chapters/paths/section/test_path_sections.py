"""Attention paths and trained networks in the report: what is missing, drawn, summed up, decided.

Its words and tables are in the golden record.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

import analysis
from analysis.digest.compare import compare, compare_results
from analysis.kinds import find
from analysis.section.section import Section
from analysis.section.templates import table
from chapters.paths.section.heads.heads_orders import paired
from study.results import Results, ResultsError
from tests.chapters.paths import heads_results
from tests.chapters.paths import path_results as paths
from tests.chapters.paths.heads_results import train
from tests.made_up import comparisons

TRAINED = heads_results.Law()
write = partial(paths.write, law=paths.Law())
score = partial(heads_results.write, law=TRAINED)


def only(results: Results) -> Section[Any]:
    (section,) = find(results)
    return section


def test_equal_compute_leaves_out_what_trains_nothing(results):
    paths.write_study(results, paths.Law(), seeds=1)
    assert compare_results(results) == []
    with pytest.raises(ResultsError, match="no cell of the table was trained"):
        analysis.equal_compute(analysis.load(results))
    trained = {comparisons.write(results, comparisons.make_cell(p)).id for p in ("soft", "hard")}
    both = analysis.load(results)
    assert len(compare(both)) == 1
    assert set(analysis.equal_compute(both)["cell_id"]) == trained


# --- what is missing


def test_an_interrupted_study_shows_its_networks_and_what_is_missing(results):
    for seed in range(4):
        train(results, TRAINED, seed, status="done" if seed < 3 else "diverged")
    section = only(results)
    assert "No heads are scored yet" in section.text(published=True)
    assert {claim.verdict for claim in section.claims} == {"not run"}
    assert list(section.pictures) == []
    (summary,) = section.summaries()
    assert summary.params["paradigm"] == "soft"
    score(results, status="diverged")
    score(results, seed=1)
    score(results, method="random", status="diverged")
    text = only(results).text()
    for fact in (
        "no cell of limit, weight-norm, entropy, sensitivity, greedy and bound",
        "without a cell of theory N=10: networks of seed 2",
        "in no mean: theory N=10 seed 0",
        "without numbers: random seed 0",
    ):
        assert fact in text, fact


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("validation", " theory N=10 the least; theory N=100 the largest"),
        ("published", " theory N=10 the least; theory N=100 the largest; limit the least"),
        ("fixed", ""),
    ],
)
def test_a_temperature_at_an_end_of_its_grid_is_said(results, choice, names):
    """As published, the limit has five of the ten."""
    law = heads_results.Law(choice=choice)
    for method, width, temperature in (
        ("theory", 10.0, 0.01), ("theory", 100.0, 1.5), ("theory", 1e3, 1.0), ("gp", 1.0, 0.02),
    ):  # fmt: skip
        chosen = 0.1 if choice == "fixed" else temperature
        heads_results.write(results, law, method, width, temperature=chosen)
    found = re.findall(r"([^,:]*) in 1 of 1 cell", only(results).text())
    assert ";".join(found) == names


def test_nothing_is_decided_where_the_test_episodes_chose(results):
    """And no number of networks would decide it."""
    rules = ("random", *heads_results.SIMPLE)
    law = heads_results.Law(choice="published")
    heads_results.write_study(results, law, widths=(10.0,), rules=rules)
    section = only(results)
    assert {claim.verdict for claim in section.claims} == {"undecided"}
    assert set(paired(section.subject)["verdict"]) == {"undecided"}
    _, rows = table("chapters.paths.section:tables/paired.j2", brief=False, **section.facts)
    assert {row[-1] for row in rows} == {"-"}


# --- what must not decide


def test_cells_that_took_other_weights_apart_are_in_no_number(results):
    for seed in range(3):
        train(results, TRAINED, seed, network_digest="new")
        score(results, seed=seed, network_digest="new" if seed else "old")
        score(results, method="random", seed=seed, network_digest="new")
    section = only(results)
    found = paired(section.subject)
    assert found["num_pairs"].tolist() == [2, 2]
    assert found["num_lost"].tolist() == [1, 1]
    assert "other weights, so these cells are in no number: theory N=10 seed 0" in section.text()
