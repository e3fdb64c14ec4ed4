"""Every claim about attention paths and the heads of trained networks in every verdict."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from analysis.rules.claim import Claim
from chapters.paths.section.heads import heads_claims, heads_settings
from chapters.paths.section.theory import theory_claims, theory_settings
from study.results import Results
from tests.chapters.paths import heads_results as heads
from tests.chapters.paths import path_results as paths
from tests.chapters.paths.path_results import NOISY, write

PLAIN, TRAINED = paths.Law(), heads.Law()
RULES = ("random", *heads.SIMPLE)

write_paths = partial(paths.write_study, law=PLAIN)
write_heads = partial(heads.write_study, law=TRAINED, widths=(10.0,), limit=False, rules=RULES)


def claims_of(results: Results) -> dict[str, Claim]:
    """The claims of the only setting."""
    cells = results.cells()
    posterior = set(cells["kind"]) == {"posterior"}
    settings, claims = (
        (theory_settings, theory_claims) if posterior else (heads_settings, heads_claims)
    )
    (setting,) = settings.read(results, cells)
    return {claim.name: claim for claim in claims.claims(setting)}


def over(**areas: float) -> heads.Law:
    """Theory's area minus that of some rules."""
    named = {name.replace("_", "-"): area for name, area in areas.items()}
    return heads.Law(over=heads.OVER | named)


# What leaves any claim open, tests/analysis/rules/test_claim_verdicts.py shows. The noise of one
# case is large, as its interval has to contain the threshold.
VERDICTS = [
    ("P1 P2 P3 P4 P6", PLAIN, "holds"),
    ("P1 P2 P3 P4 P5 P6", NOISY, "holds"),
    ("P1 P2 P3 P4", paths.Law("own"), "holds"),
    ("P1", replace(PLAIN, sampling=0.02), "holds"),
    ("P1", replace(PLAIN, sampling=0.09), "does not hold"),
    ("P1", replace(PLAIN, accuracy_shift=0.03), "does not hold"),
    ("P1", replace(PLAIN, accuracy_shift=0.01, noise=0.01), "undecided"),
    ("P2", replace(PLAIN, gain=-0.1), "does not hold"),
    ("P3", replace(PLAIN, exponent=-1.2), "holds"),
    ("P3", replace(PLAIN, exponent=-0.5), "does not hold"),
    ("P3", replace(PLAIN, exponent=-2.0), "does not hold"),
    ("P4", replace(PLAIN, alignment=-0.2), "does not hold"),
    ("P5", replace(NOISY, interplay=-0.02), "does not hold"),
    ("P6", replace(PLAIN, good=0.7), "does not hold"),
    ("P6", replace(NOISY, good=0.9), "does not hold"),
    ("P7 P8 P9", TRAINED, "holds"),
    ("P7 P8 P9", replace(over(random=-0.02, entropy=-0.02), score=-1.0), "does not hold"),
]


@pytest.mark.parametrize(("names", "law", "verdict"), VERDICTS)
def test_each_claim_has_each_verdict(results, names, law, verdict):
    """Of several, they are all that there are of such a setting."""
    if isinstance(law, paths.Law):
        paths.write_study(results, law)
    else:
        write_heads(results, law=law)
    found = claims_of(results)
    assert " " not in names or list(found) == names.split()
    for claim in map(found.__getitem__, names.split()):
        why = "its tests leave it open" if verdict == "undecided" else ""
        assert (claim.verdict, claim.why) == (verdict, why), claim.measured


@pytest.mark.parametrize(
    ("study", "there", "missing", "names"),
    [
        (write_paths, {"sampled": ()}, "sampling", "P1"),
        (write_paths, {"limits": ("good",)}, "the limit with all paths", "P2 P3 P4 P6"),
        (write_paths, {"widths": ()}, "theory", "P1 P2 P3 P4"),
        (write_heads, {"rules": ["random"]}, "weight-norm, entropy and sensitivity", "P9"),
        (write_heads, {"widths": ()}, "theory", "P7 P8 P9"),
    ],
)
def test_what_has_no_cells_was_not_run(results, study, there, missing, names):
    study(results, **there)
    not_run = ("not run", f"no cell of {missing}")
    for name, claim in claims_of(results).items():
        said = claim.verdict, claim.why
        assert said == (not_run if name in names.split() else ("holds", ""))


# --- lost seeds


@pytest.mark.parametrize("lost", ["saddle", "training", "not run"])
def test_a_lost_seed_counts_against_a_claim(results, lost):
    """Of seven seeds none may be lost."""
    write_heads(results)
    heads.train(results, TRAINED, 6, status="diverged" if lost == "training" else "done")
    if lost == "saddle":
        heads.write(results, TRAINED, seed=6, status="diverged")
    for rule in RULES if lost != "training" else ():
        heads.write(results, TRAINED, rule, seed=6)
    for claim in claims_of(results).values():
        assert claim.verdict == "undecided"
        assert "1 seed lost" in claim.measured


def test_a_saddle_that_is_lost_counts_against_what_is_said_of_theory(results):
    paths.write_study(results, NOISY)
    write(results, NOISY, seed=6, status="diverged")
    write(results, NOISY, "gp", seed=6)
    found = claims_of(results)
    for claim in map(found.__getitem__, ("P2", "P3", "P4", "P5")):
        assert claim.verdict == "undecided"
        assert "1 seed lost" in claim.measured


def test_a_network_that_nothing_has_scored_is_not_lost(results):
    """Another setting may have asked for it, or the study was stopped; it is named."""
    write_heads(results)
    heads.train(results, TRAINED, 6)
    assert {c.verdict for c in claims_of(results).values()} == {"holds"}


@pytest.mark.parametrize(
    ("widths", "said"), [((), "all cells of theory diverged"), ((100.0, 1e3), "6 seeds lost")]
)
def test_a_width_that_diverged_everywhere_is_not_replaced_by_the_next(results, widths, said):
    write_heads(results, widths=widths)
    for seed in range(6):
        heads.write(results, TRAINED, seed=seed, status="diverged")
    for claim in claims_of(results).values():
        assert claim.verdict == "undecided"
        assert said in claim.measured


# --- chains that have not converged


@pytest.mark.parametrize(("sampling", "verdict"), [(0.01, "undecided"), (0.2, "does not hold")])
def test_chains_that_have_not_converged_leave_p1_undecided_but_do_not_save_a_wrong_theory(
    results, sampling, verdict
):
    law = replace(PLAIN, sampling=sampling)
    paths.write_study(results, law, seeds=7)
    write(results, law, "slice", 100.0, seed=3, r_hat=1.05)
    claim = claims_of(results)["P1"]
    assert claim.verdict == verdict
    assert "slice N=100 seed 3 (R-hat 1.0500)" in claim.measured
    assert ("chains that have not converged" in claim.why) == (verdict == "undecided")


def test_where_no_chain_has_converged_nothing_is_decided(results):
    write_paths(results, sampled=())
    for seed in range(6):
        write(results, PLAIN, "slice", seed=seed, r_hat=2.0)
    assert claims_of(results)["P1"].verdict == "undecided"


# --- what is not known


def test_an_unknown_number_leaves_its_claim_undecided(results):
    write_paths(results)
    write(results, PLAIN, seed=6, cell={"overlaps": None})
    write(results, PLAIN, "gp", seed=6)
    claim = claims_of(results)["P4"]
    assert (claim.verdict, claim.why) == ("undecided", "a number is not known")


@pytest.mark.parametrize(("norm", "verdict"), [(0.02, "undecided"), (-0.02, "does not hold")])
def test_a_missing_rule_leaves_p9_undecided_unless_another_refutes_it(results, norm, verdict):
    write_heads(results, law=over(weight_norm=norm), rules=("weight-norm", "entropy"))
    claim = claims_of(results)["P9"]
    assert claim.verdict == verdict
    assert "no cell of sensitivity" in claim.measured


def test_one_width_has_no_trend_and_no_exponent(results):
    write_paths(results, widths=(10.0,))
    found = claims_of(results)
    assert {found[name].verdict for name in ("P2", "P3")} == {"undecided"}


def test_the_exponent_is_that_of_the_largest_widths(results):
    widths = (10.0, 30.0, 100.0, 300.0, 1_000.0)
    paths.write_study(results, replace(PLAIN, noise=0.0), widths=widths)
    assert "between N=100, 300 and 1000: -1.00" in claims_of(results)["P3"].measured


def test_a_theory_that_is_the_limit_has_no_exponent(results):
    same = {"predictor_mean": [1.0, -1.0]}
    for seed in range(6):
        write(results, PLAIN, "gp", seed=seed, test=same)
        for width in (10.0, 100.0):
            write(results, PLAIN, width=width, seed=seed, test=same)
    assert claims_of(results)["P3"].verdict == "undecided"
