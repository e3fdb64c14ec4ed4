"""Every claim about attention paths in every verdict, by made-up numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.attention_paths.claims import claims
from analysis.attention_paths.settings import read
from analysis.section.claim import Claim
from study.results import Results
from tests.made_up.attention_path_results import NOISY, Law, write, write_study

PLAIN = Law()


def claimed(results: Results, name: str) -> Claim:
    (setting,) = read(results, results.cells())
    (claim,) = (claim for claim in claims(setting) if claim.name == name)
    return claim


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (PLAIN, ["P1", "P2", "P3", "P4", "P6"]),
        (NOISY, ["P1", "P2", "P3", "P4", "P5", "P6"]),
        (Law(variant="own"), ["P1", "P2", "P3", "P4"]),
    ],
)
def test_claims_are_those_of_the_variant(results: Results, law: Law, expected: list[str]) -> None:
    write_study(results, law)
    (setting,) = read(results, results.cells())
    found = claims(setting)
    assert [claim.name for claim in found] == expected
    assert {(claim.verdict, claim.setting) for claim in found} == {("holds", law.variant)}


# That they hold is tested above, but where a number is near a threshold. The noise of a case is
# large where the interval has to contain the threshold.
VERDICTS = [
    ("P1", replace(PLAIN, sampling=0.02), "holds"),
    ("P1", replace(PLAIN, sampling=0.09), "does not hold"),
    ("P1", replace(PLAIN, accuracy_shift=0.03), "does not hold"),
    ("P1", replace(PLAIN, accuracy_shift=-0.03), "does not hold"),
    ("P1", replace(PLAIN, accuracy_shift=0.01, noise=0.01), "undecided"),
    ("P2", replace(PLAIN, gain=-0.1), "does not hold"),
    ("P2", replace(PLAIN, gain=0.0, noise=0.01), "undecided"),
    ("P3", replace(PLAIN, exponent=-1.2), "holds"),
    ("P3", replace(PLAIN, exponent=-0.5), "does not hold"),
    ("P3", replace(PLAIN, exponent=-2.0), "does not hold"),
    ("P4", replace(PLAIN, alignment=-0.2), "does not hold"),
    ("P4", replace(PLAIN, alignment=0.0, noise=0.01), "undecided"),
    ("P5", replace(NOISY, interplay=-0.02), "does not hold"),
    ("P5", replace(NOISY, interplay=0.0, noise=0.01), "undecided"),
    ("P6", replace(PLAIN, good=0.7), "does not hold"),
    ("P6", replace(PLAIN, good=PLAIN.limit, noise=0.01), "undecided"),
    ("P6", replace(NOISY, good=0.9), "does not hold"),
    ("P6", replace(NOISY, good=NOISY.limit, noise=0.01), "undecided"),
]


@pytest.mark.parametrize(
    ("name", "law", "verdict"),
    VERDICTS,
    ids=[f"{name}-{law.variant}-{verdict}-{i}" for i, (name, law, verdict) in enumerate(VERDICTS)],
)
def test_each_claim_has_each_verdict(results: Results, name: str, law: Law, verdict: str) -> None:
    write_study(results, law)
    claim = claimed(results, name)
    assert claim.verdict == verdict, claim.measured
    open_ = "its tests leave it open"
    assert claim.why == (open_ if verdict == "undecided" else "")


@pytest.mark.parametrize("law", [PLAIN, NOISY])
def test_few_seeds_decide_nothing(results: Results, law: Law) -> None:
    write_study(results, law, seeds=5)
    (setting,) = read(results, results.cells())
    for claim in claims(setting):
        assert claim.verdict == "undecided"
        assert claim.why == "fewer than 6 seeds decide nothing"


@pytest.mark.parametrize(
    ("name", "limits", "sampled", "text"),
    [
        ("P1", ("all",), (), "no cell of sampling"),
        ("P2", (), (10.0,), "no cell of the limit with all paths"),
        ("P3", (), (10.0,), "no cell of the limit with all paths"),
        ("P4", ("good",), (10.0,), "no cell of the limit with all paths"),
        ("P6", ("all",), (10.0,), "no cell of the limit with the good path alone"),
        ("P6", ("good",), (10.0,), "no cell of the limit with all paths"),
    ],
)
def test_what_has_no_cells_was_not_run(
    results: Results,
    name: str,
    limits: tuple[str, ...],
    sampled: tuple[float, ...],
    text: str,
) -> None:
    write_study(results, PLAIN, limits=limits, sampled=sampled)
    claim = claimed(results, name)
    assert (claim.verdict, claim.measured, claim.why) == ("not run", text, text)


def test_limits_alone_decide_what_they_can(results: Results) -> None:
    write_study(results, PLAIN, widths=(), sampled=())
    (setting,) = read(results, results.cells())
    verdicts = {claim.name: claim.verdict for claim in claims(setting)}
    assert verdicts == dict.fromkeys(("P1", "P2", "P3", "P4"), "not run") | {"P6": "holds"}


# --- chains and saddles


def test_chains_that_have_not_converged_leave_p1_undecided_and_are_named(
    results: Results,
) -> None:
    write_study(results, PLAIN, seeds=7)
    assert claimed(results, "P1").verdict == "holds"
    write(results, PLAIN, "slice", 100.0, seed=3, r_hat=1.05)
    claim = claimed(results, "P1")
    assert claim.verdict == "undecided"
    assert "slice N=100 seed 3 (R-hat 1.0500)" in claim.measured
    assert "chains that have not converged" in claim.why


def test_chains_that_have_not_converged_do_not_save_a_wrong_theory(results: Results) -> None:
    write_study(results, replace(PLAIN, sampling=0.2))
    write(results, replace(PLAIN, sampling=0.2), "slice", 100.0, r_hat=1.05)
    assert claimed(results, "P1").verdict == "does not hold"


def test_where_no_chain_has_converged_nothing_is_decided(results: Results) -> None:
    write_study(results, PLAIN, sampled=())
    for seed in range(6):
        write(results, PLAIN, "slice", seed=seed, r_hat=2.0)
    assert claimed(results, "P1").verdict == "undecided"


@pytest.mark.parametrize(("seeds", "verdict"), [(8, "holds"), (6, "undecided")])
def test_a_lost_seed_counts_against_a_claim(results: Results, seeds: int, verdict: str) -> None:
    """Of nine seeds one may be lost, of seven none."""
    write_study(results, NOISY, seeds=seeds, sampled=())
    for width in (10.0, 100.0, 1_000.0):
        write(results, NOISY, width=width, seed=seeds, status="diverged")
    write(results, NOISY, "gp", seed=seeds)
    (setting,) = read(results, results.cells())
    found = {claim.name: claim for claim in claims(setting)}
    for name in ("P2", "P3", "P4", "P5"):
        assert found[name].verdict == verdict
        assert "1 seed lost" in found[name].measured


def test_where_all_saddles_diverged_nothing_is_decided(results: Results) -> None:
    write_study(results, NOISY, widths=())
    for seed in range(6):
        write(results, NOISY, seed=seed, status="diverged")
    (setting,) = read(results, results.cells())
    found = {claim.name: (claim.verdict, claim.measured) for claim in claims(setting)}
    assert found.pop("P6")[0] == "holds"
    assert set(found.values()) == {("undecided", "all cells of theory diverged")}


def test_a_width_that_diverged_in_all_seeds_is_not_replaced_by_the_next(results: Results) -> None:
    write_study(results, NOISY, widths=(100.0, 1_000.0))
    for seed in range(6):
        write(results, NOISY, seed=seed, status="diverged")
    for name in ("P1", "P2", "P3", "P4", "P5"):
        claim = claimed(results, name)
        assert claim.verdict == "undecided"
        assert "no seed, 6 seeds lost" in claim.measured


def test_an_unknown_overlap_leaves_its_claim_undecided(results: Results) -> None:
    write_study(results, PLAIN)
    write(results, PLAIN, seed=6, cell={"overlaps": None})
    write(results, PLAIN, "gp", seed=6)
    claim = claimed(results, "P4")
    assert (claim.verdict, claim.why) == ("undecided", "a number is not known")


# --- widths


def test_one_width_has_no_trend_and_no_exponent(results: Results) -> None:
    write_study(results, PLAIN, widths=(10.0,))
    assert {claimed(results, name).verdict for name in ("P2", "P3")} == {"undecided"}


def test_the_exponent_is_that_of_the_largest_widths(results: Results) -> None:
    write_study(results, replace(PLAIN, noise=0.0), widths=(10.0, 30.0, 100.0, 300.0, 1_000.0))
    assert "exponent between N=100, 300 and 1000: -1.00" in claimed(results, "P3").measured


def test_a_theory_that_is_the_limit_has_no_exponent(results: Results) -> None:
    same = {"predictor_mean": [1.0, -1.0]}
    for seed in range(6):
        write(results, PLAIN, "gp", seed=seed, test=same)
        for width in (10.0, 100.0):
            write(results, PLAIN, width=width, seed=seed, test=same)
    assert claimed(results, "P3").verdict == "undecided"
