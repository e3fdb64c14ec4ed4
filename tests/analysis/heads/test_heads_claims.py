"""Every claim about heads in every verdict, by made-up numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from analysis.heads.claims import claims
from analysis.heads.settings import read
from analysis.section.claim import Claim
from study.results import Results
from tests.made_up.heads_results import OVER, SIMPLE, Law, train, write, write_study

LAW = Law()
NEEDED: dict[str, Sequence[str]] = {"P7": (), "P8": ("random",), "P9": SIMPLE}
"""The rules that each claim takes."""

DECIDE = ("random", *SIMPLE)


def study(results: Results, name: str, law: Law = LAW, seeds: int = 6) -> None:
    """What one claim needs."""
    write_study(results, law, seeds, widths=(10.0,), limit=False, rules=NEEDED[name])


def all_claims(results: Results) -> dict[str, Claim]:
    (setting,) = read(results, results.cells())
    return {claim.name: claim for claim in claims(setting)}


def with_over(noise: float = 0.001, **over: float) -> Law:
    named = {name.replace("_", "-"): value for name, value in over.items()}
    return Law(over={**OVER, **named}, noise=noise)


def test_all_of_them_hold(results: Results) -> None:
    write_study(results, LAW, widths=(10.0,), limit=False, rules=DECIDE)
    found = all_claims(results)
    assert list(found) == ["P7", "P8", "P9"]
    assert {(claim.verdict, claim.setting) for claim in found.values()} == {("holds", "omniglot")}


def test_the_opposite_refutes_each_of_them(results: Results) -> None:
    law = replace(with_over(random=-0.02, entropy=-0.02), score=-1.0)
    write_study(results, law, widths=(10.0,), limit=False, rules=DECIDE)
    found = all_claims(results).values()
    assert {(claim.verdict, claim.why) for claim in found} == {("does not hold", "")}


def test_where_nothing_is_so_each_of_them_is_undecided(results: Results) -> None:
    law = replace(with_over(random=0.0, weight_norm=0.0, noise=0.02), score=0.0)
    write_study(results, law, widths=(10.0,), limit=False, rules=DECIDE)
    found = all_claims(results).values()
    assert {(c.verdict, c.why) for c in found} == {("undecided", "its tests leave it open")}


def test_few_networks_decide_nothing(results: Results) -> None:
    write_study(results, LAW, 5, widths=(10.0,), limit=False, rules=DECIDE)
    for claim in all_claims(results).values():
        assert claim.verdict == "undecided"
        assert claim.why == "fewer than 6 seeds decide nothing"


@pytest.mark.parametrize(
    ("name", "lost"),
    [("P7", "training"), ("P8", "not run"), ("P9", "saddle")],
)
@pytest.mark.parametrize(("seeds", "verdict"), [(8, "holds"), (6, "undecided")])
def test_a_lost_network_counts_against_a_claim(
    results: Results, name: str, lost: str, seeds: int, verdict: str
) -> None:
    """Of nine networks one may be lost, of seven none."""
    study(results, name, seeds=seeds)
    train(results, LAW, seeds, status="diverged" if lost == "training" else "done")
    if lost == "saddle":
        write(results, LAW, seed=seeds, status="diverged")
    if lost != "training":
        for rule in NEEDED[name]:
            write(results, LAW, rule, seed=seeds)
    claim = all_claims(results)[name]
    assert claim.verdict == verdict
    assert "1 seed lost" in claim.measured


def test_a_network_that_nothing_has_scored_is_not_lost(results: Results) -> None:
    """Another setting may have asked for it, or the study was stopped; it is named."""
    study(results, "P8", seeds=6)
    train(results, LAW, 6)
    claim = all_claims(results)["P8"]
    assert claim.verdict == "holds"
    assert "lost" not in claim.measured


def test_what_has_no_cells_was_not_run(results: Results) -> None:
    study(results, "P7")
    found = all_claims(results)
    assert found["P7"].verdict == "holds"
    for name, text in {
        "P8": "no cell of random",
        "P9": "no cell of weight-norm, entropy and sensitivity",
    }.items():
        claim = found[name]
        assert (claim.verdict, claim.measured, claim.why) == ("not run", text, text)


def test_without_theory_nothing_was_run(results: Results) -> None:
    train(results, LAW)
    write(results, LAW, "random")
    assert {claim.measured for claim in all_claims(results).values()} == {"no cell of theory"}


@pytest.mark.parametrize(("norm", "verdict"), [(0.02, "undecided"), (-0.02, "does not hold")])
def test_a_missing_rule_leaves_p9_undecided_unless_another_refutes_it(
    results: Results, norm: float, verdict: str
) -> None:
    law = with_over(weight_norm=norm)
    rules = ("weight-norm", "entropy")
    write_study(results, law, widths=(10.0,), limit=False, rules=rules)
    claim = all_claims(results)["P9"]
    assert claim.verdict == verdict
    assert "no cell of sensitivity" in claim.measured


def test_where_all_saddles_diverged_nothing_is_decided(results: Results) -> None:
    write_study(results, LAW, widths=(), limit=False, rules=DECIDE)
    for seed in range(6):
        write(results, LAW, seed=seed, status="diverged")
    found = {(c.verdict, c.measured) for c in all_claims(results).values()}
    assert found == {("undecided", "all cells of theory diverged")}


def test_a_width_that_diverged_everywhere_is_not_replaced_by_the_next(results: Results) -> None:
    write_study(results, LAW, widths=(100.0,), limit=False, rules=("random",))
    assert all_claims(results)["P8"].verdict == "holds"
    for seed in range(6):
        write(results, LAW, seed=seed, status="diverged")
    for name in ("P7", "P8"):
        claim = all_claims(results)[name]
        assert claim.verdict == "undecided"
        assert "6 seeds lost" in claim.measured


def test_heads_that_all_cost_the_same_have_no_ranks(results: Results) -> None:
    study(results, "P7", seeds=6)
    train(results, LAW, 6, test={"accuracy_without_head": [0.7] * 8})
    write(results, LAW, seed=6)
    claim = all_claims(results)["P7"]
    assert (claim.verdict, claim.why) == ("undecided", "a number is not known")
