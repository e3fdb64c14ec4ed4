"""What moves a difference or a verdict, and what never may."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.digest.compare import compare_results
from analysis.digest.pairs import PAIRED_COLUMNS, SAME_EVERYWHERE, of_pair, with_verdicts
from analysis.digest.scores import Scores
from analysis.rules.crossed import crossed_mean, needed_seeds
from analysis.rules.learning import Scale
from analysis.rules.statistics import holm, mcnemar, on_logit_scale, sign_flip
from study.results import Results
from tests.made_up.comparisons import compared, make_cell, write
from tests.made_up.instances import of_counts

HIGH = [0.81, 0.82, 0.84, 0.80, 0.83, 0.85]
LOW = [0.70, 0.73, 0.72, 0.71, 0.70, 0.74]
FAILED = 0.26  # of four classes: chance


def above(*differences: float) -> list[float]:
    return np.add(LOW, differences).tolist()


def judged(hard: Sequence[float], soft: Sequence[float], **known: Any) -> dict[str, Any]:
    """Soft minus hard, in a family of two equal tests, with these scores of seeds."""
    sides = (Scores(np.array(side, float)[:, None]) for side in (soft, hard))
    pair = {"metric": "accuracy", **of_pair(*sides, Scale(floor=0.3)), **known}
    return with_verdicts([pair, pair])[0]


# --- the verdict


@pytest.mark.parametrize("spread", [0.1, 0.5])
def test_equal_paradigms_of_which_a_quantity_is_measured_are_seldom_told_apart(spread):
    """Lognormal, as perplexities are; beyond this bound lie .1 % of studies at a level of .05."""
    rng, decided = np.random.default_rng(0), 0
    for _ in range(400):
        first, second = np.exp(rng.normal(3, spread, (2, 12, 1)))
        pair = of_pair(Scores(first), Scores(second), Scale(sign=-1, is_share=False))
        (row,) = with_verdicts([{"metric": "perplexity", "larger_is_better": False, **pair}])
        decided += row["verdict"] != "undecided"
    assert decided <= 35


@pytest.mark.parametrize(
    ("hard", "soft", "verdict", "reason"),
    [
        (LOW, HIGH, "better", ""),
        (HIGH, LOW, "worse", ""),
        (LOW, above(0.01, 0.03, 0.02, 0.01, 0.005, 0.03), "better", ""),
        (LOW, above(0.01, 0.03, -0.02, 0.01, 0.005, 0.03), "undecided", "not below 0.05"),
        # Five of six agree, far more than a t test takes to decide.
        (LOW, above(0.05, 0.06, 0.055, 0.06, 0.05, -0.001), "undecided", "by the signs"),
        (LOW[:5], HIGH[:5], "undecided", "n=5, fewer than 6 seeds"),
        (LOW[:1], HIGH[:1], "undecided", "with one seed no interval exists"),
        ([], [], "undecided", "no seed in common"),
        (LOW, [*HIGH[:5], math.nan], "undecided", "accuracy is not known for every seed"),
        (HIGH, HIGH, "undecided", SAME_EVERYWHERE),
        # A t test divides by a spread that six equal differences do not tell.
        ([0.6] * 6, [0.7 + 1e-11 * seed for seed in range(6)], "undecided", SAME_EVERYWHERE),
        # They differ in the last bit.
        ([0.3] * 6, [0.1 + 0.2] * 6, "undecided", SAME_EVERYWHERE),
    ],
)
def test_a_verdict_takes_six_seeds_that_vary_and_agree(hard, soft, verdict, reason):
    row = judged(hard, soft)
    assert (row["verdict"], row["num_pairs"]) == (verdict, len(hard))
    assert reason in row["reason"] if reason else row["reason"] == ""
    difference = math.nan if not hard else round(np.subtract(soft, hard).mean(), 9)
    assert row["difference"] == pytest.approx(difference, nan_ok=True)
    untested = math.isnan(difference) or reason == SAME_EVERYWHERE or len(hard) < 2
    assert {math.isnan(row[name]) for name in ("low", "high", "p", "p_holm")} == {untested}


def test_what_it_lacks_is_why_there_is_none_and_then_no_seeds_are_asked_for():
    row = judged(LOW, HIGH, lacks=["interim", "too few test images"])
    assert (row["verdict"], row["reason"]) == ("undecided", "interim; too few test images")
    assert row["p_holm"] < 0.05
    assert "needed_seeds" not in row


@pytest.mark.parametrize("sign", [1, -1])
def test_advice_is_of_the_far_end_of_the_interval_and_of_what_was_seen(sign):
    soft = above(*np.multiply(sign, (0.03, -0.02, 0.01, 0.02, -0.01, 0.0)))
    row = judged(LOW, soft)
    far = row["high"] if sign == 1 else row["low"]
    assert row["needed_effect"] == far
    crossed = crossed_mean(np.subtract(soft, LOW)[:, None])
    # Each of two equal rows is held to half of the level.
    assert row["needed_seeds"] == needed_seeds(crossed, far, 0.05 / 2)
    assert row["seen_seeds"] == needed_seeds(crossed, crossed.mean, 0.05 / 2) > row["needed_seeds"]


@pytest.mark.parametrize(
    ("hard", "soft", "counts", "verdict"),
    [
        ([0.9, 0.91, *[FAILED] * 10], np.linspace(0.8, 0.91, 12), (2, 12), "better"),
        # A loser that fails once more is no better than one that never did.
        ([0.62, 0.61, 0.6, 0.59, 0.63, 0.1], [0.9, 0.91, 0.9, 0.89, 0.9, 0.91], (5, 6), "better"),
        ([0.9, *[FAILED] * 5], [*[0.9] * 5, FAILED], (1, 5), "undecided"),
        # Learns more often, to less.
        ([0.95] * 9 + [FAILED] * 3, [0.45] * 12, (9, 12), "worse"),
    ],
)
def test_where_seeds_fail_the_usual_tests_decide_and_the_mean_has_no_interval(
    hard, soft, counts, verdict
):
    row = judged(hard, soft)
    assert (row["learned_second"], row["learned_first"]) == counts
    assert row["given_first"] == pytest.approx(np.mean([each for each in soft if each > 0.3]))
    assert math.isnan(row["low"])
    assert math.isnan(row["high"])
    assert "needed_seeds" not in row
    tests = stats.ttest_rel(soft, hard).pvalue, sign_flip(np.subtract(soft, hard))
    expected = [*tests, mcnemar(counts[1] - counts[0], 0)]
    assert [row["p"], row["p_signs"], row["p_learned"]] == pytest.approx(expected)
    assert row["verdict"] == verdict


# --- the tables


def write_accuracies(results: Results, paradigm: str, accuracies: Sequence[float]) -> None:
    for seed, accuracy in enumerate(accuracies):
        write(results, make_cell(paradigm, seed=seed), accuracy)


def row_of(results: Results, first: str, metric: str = "accuracy") -> pd.Series:
    """Of a paradigm and hard attention."""
    table = compared(results).paired.set_index(["first", "second", "metric"])
    return table.loc[(first, "hard", metric)]


def test_differences_are_those_of_the_chosen_options_on_the_common_seeds(
    results,
):
    for paradigm, scores in {"hard": [*LOW, 0.9], "soft": HIGH}.items():
        write_accuracies(results, paradigm, scores)
        write(results, make_cell(paradigm, 0.5), 0.99)  # lacks seeds
    row = row_of(results, "soft")
    test = stats.ttest_rel(HIGH, LOW)
    found = row[["mean_first", "mean_second", "low", "high", "p", "num_pairs", "num_tests"]]
    means = [np.mean(HIGH), np.mean(LOW)]
    interval = test.confidence_interval(0.95)
    assert found.tolist() == pytest.approx([*means, *interval, test.pvalue, 6, 2], rel=1e-6)
    assert row["verdict"] == "better"
    assert row[["num_images", "image_se", "num_backgrounds"]].isna().all()


def test_a_paradigm_without_a_usable_option_stays_in_the_table(results):
    for paradigm, scores in {"hard": HIGH, "soft": LOW, "lvml": LOW[:5]}.items():
        write_accuracies(results, paradigm, scores)
    write(results, make_cell("lvml", seed=5), 0.7, status="censored")
    row, other = (row_of(results, name) for name in ("lvml", "soft"))
    assert (row["num_pairs"], row["verdict"]) == (0, "undecided")
    assert row["reason"] == "no option of lvml can be chosen"
    assert row[["difference", "low", "p", "p_holm"]].isna().all()
    # Four of the six rows are no tests, and stay in the family.
    assert other["p_holm"] == pytest.approx(6 * other["p"])


def test_at_an_early_look_there_are_numbers_and_no_verdict_but_of_pairs_that_ended(
    results,
):
    for paradigm, n in {"hard": 7, "soft": 7, "lvml": 6}.items():
        scores = [*LOW, 0.71] if paradigm == "hard" else [*HIGH, 0.83]
        for seed, accuracy in enumerate(scores[:n]):
            cell = make_cell(paradigm, seed=seed)
            write(results, cell, accuracy, stage="confirm", planned_seeds=7)
    write(results, make_cell("soft", seed=7), 0.1, stage="confirm", planned_seeds=7)
    write(results, make_cell("hard", seed=7), 0.9, stage="confirm", planned_seeds=7)
    early, ended = row_of(results, "lvml"), row_of(results, "soft")
    assert early["reason"] == "interim: 6 of 7 planned seeds"
    assert early[["num_pairs", "ended_seeds", "planned_seeds"]].tolist() == [6, 6, 7]
    assert early[["low", "high"]].notna().all()
    assert early[["needed_seeds", "seen_seeds"]].isna().all()
    assert ended[["verdict", "num_pairs", "later_seeds"]].tolist() == ["better", 7, 1]


def test_holm_runs_over_all_rows_of_a_study(results):
    studies = {5: "one", 10: "one", 20: "another"}
    random = np.random.default_rng(0)
    for m, name, seed in itertools.product(studies, ("hard", "soft"), range(6)):
        cell = make_cell(name, seed=seed, m=m)
        write(results, cell, *random.uniform(0.6, 0.7, 2), study=studies[m])
    tables = pd.concat(each.paired for each in compare_results(results))
    for study, count in {"one": 4, "another": 2}.items():
        family = tables[tables["m"].map(studies) == study]
        assert set(family["num_tests"]) == {len(family)} == {count}
        np.testing.assert_allclose(family["p_holm"], holm(family["p"])[0])


def test_of_one_paradigm_there_is_an_empty_table(results):
    write(results, make_cell())
    assert compared(results).paired.columns.tolist() == PAIRED_COLUMNS


def test_with_images_a_mean_and_a_difference_are_over_both(results):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 6, 30)
    right = {name: rng.binomial(counts, 0.6, (7, 30)) for name in ("hard", "soft")}
    for name, of_seeds in right.items():
        for seed, hits in enumerate(of_seeds):
            bits = of_counts(counts, right=hits, known=counts, saif=hits)
            images = bits.pop("base_images")[:, None]
            share = hits.sum() / counts.sum()
            cell = make_cell(name, seed=seed)
            write(results, cell, share, share, base_images=images, bits=bits)
    soft, hard = (right[name] / counts for name in ("soft", "hard"))
    row, expected = row_of(results, "soft"), crossed_mean(soft - hard, counts)
    for name in ("low", "high", "p", "seed_se", "image_se", "num_images"):
        assert row[name] == pytest.approx(getattr(expected, name), rel=1e-9)
    alone = crossed_mean(soft, counts)
    low, high = on_logit_scale(alone.mean, alone.low, alone.high)
    names = ["saif_low", "saif_high", "saif_seed_se", "saif_image_se", "num_images"]
    summary = compared(results).summary.set_index("paradigm").loc["soft", names]
    numbers = [low, high, alone.seed_se, alone.image_se, 30]
    assert summary.tolist() == pytest.approx(numbers, rel=1e-9)
