"""Paired comparisons: what moves a difference, a bound or a verdict, and what never may."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.backgrounds import Backgrounds
from analysis.comparison.by_image import Instances, Scores, scores
from analysis.comparison.choice import choose, summarise
from analysis.comparison.paired import (
    PAIRED_COLUMNS,
    SAME_EVERYWHERE,
    paired_table,
    paired_tables,
)
from analysis.crossed import crossed_mean, needed
from analysis.groups import GROUP, OPTION
from analysis.statistics import MIN_SEEDS, on_logit_scale
from study.results import INSTANCES, ResultsError
from tests.made_up.instances import marked, of_counts

METRICS = ("saif", "accuracy")


def _cell(
    paradigm: str,
    lr: float,
    seed: int,
    validation: float,
    test: float,
    *,
    switch_point: float = math.nan,
    **columns: Any,
) -> list[dict[str, Any]]:
    """The rows of one cell at the cut: SAIF and accuracy are equal, the loss is 1 - accuracy."""
    shared = {
        "cell_id": f"{paradigm}-{lr}-{switch_point}-{seed}",
        "comparison_id": "0123456789abcdef",
        "task": "digits",
        "m": 10,
        "paradigm": paradigm,
        "schedule": f"{paradigm} lr={lr} switch={switch_point}",
        "lr": lr,
        "last_lr": lr,
        "switch_point": switch_point,
        "seed": seed,
        "stage": None,
        "status": "done",
        "diverged": False,
        "budget_fraction": 1.0,
        "n": 2_000,
        "num_classes": 4,
        "architecture": "mlp",
        "batch_size": 64,
        "precision": "float32",
        "budget_amount": 1_000,
        "budget_unit": "flops",
        "cut": 1.0,
        "axis": "flops",
        "compute_flops": 999,
        "planned_seeds": math.nan,
        "finished_at": f"2026-01-01T00:00:{seed:02d}+00:00",
        "foreground_attention_mean": 0.5,
    }
    scores = {"validation": validation, "test": test, "train": 0.99}
    return [
        {**shared, "split": split, "saif": x, "accuracy": x, "loss": 1 - x, **columns}
        for split, x in scores.items()
    ]


def _study(groups: dict[str, Sequence[float]]) -> pd.DataFrame:
    """One option a paradigm; the scores of its seeds on validation and test."""
    rows = [
        row
        for name, scores in groups.items()
        for seed, score in enumerate(scores)
        for row in _cell(name, 0.1, seed, score, score)
    ]
    return pd.DataFrame(rows)


def _random(
    seed: int = 0, num_seeds: int = 7, names: Sequence[str] = ("hard", "soft", "hybrid", "lvml")
) -> pd.DataFrame:
    """Several options a paradigm, close to each other, each with noise of its own."""
    rng = np.random.default_rng(seed)
    rows = []
    for name in names:
        for lr in (0.01, 0.1, 0.5):
            for switch_point in (0.25, 0.5) if name == "hybrid" else (math.nan,):
                for s in range(num_seeds):
                    good = rng.normal(0.7, 0.05)
                    validation = round(good + rng.normal(0, 0.01), 3)
                    test = round(good + rng.normal(0, 0.01), 3)
                    rows += _cell(name, lr, s, validation, test, switch_point=switch_point)
    table = pd.DataFrame(rows)
    # SAIF tells another story than accuracy
    table["saif"] = (table["saif"] - 0.2 * table["lr"] - 0.1).round(3)
    return table


def _paired(at_budget: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    return paired_table(at_budget, choose(at_budget), confidence)


def _pair(table: pd.DataFrame, first: str, second: str, metric: str = "accuracy") -> pd.Series:
    rows = table[
        (table["first"] == first) & (table["second"] == second) & (table["metric"] == metric)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def _without(at_budget: pd.DataFrame, paradigm: str, *seeds: int) -> pd.DataFrame:
    return at_budget[(at_budget["paradigm"] != paradigm) | ~at_budget["seed"].isin(seeds)]


HIGH = [0.81, 0.82, 0.84, 0.80, 0.83, 0.85]
LOW = [0.70, 0.73, 0.72, 0.71, 0.70, 0.74]

# --- the table


def test_differences_equal_scipys_paired_test_of_the_chosen_options() -> None:
    at_budget = _random()
    choice, table = choose(at_budget), _paired(at_budget, confidence=0.9)
    chosen = at_budget.merge(choice[GROUP + OPTION], on=GROUP + OPTION)
    chosen = chosen[chosen["split"] == "test"]
    for row in table.to_dict("records"):
        by_seed = chosen.pivot(index="seed", columns="paradigm", values=row["metric"])
        a, b = by_seed[row["first"]], by_seed[row["second"]]
        expected = stats.ttest_rel(a, b)
        interval = expected.confidence_interval(0.9)
        assert row["num_pairs"] == 7
        assert row["mean_first"] == pytest.approx(a.mean(), abs=1e-12)
        assert row["mean_second"] == pytest.approx(b.mean(), abs=1e-12)
        assert row["difference"] == pytest.approx(a.mean() - b.mean(), abs=1e-12)
        assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), abs=1e-9)
        assert row["p"] == pytest.approx(expected.pvalue, rel=1e-6)
        assert row["confidence"] == 0.9


def test_holm_runs_over_all_rows_of_the_table() -> None:
    table = _paired(_random())
    smallest = table.loc[table["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1, 12 * smallest["p"]))
    assert (table["p_holm"] >= table["p"]).all()


def test_the_order_of_rows_changes_nothing() -> None:
    at_budget = _random()
    choice = choose(at_budget)
    expected = paired_table(at_budget, choice)
    for state in range(3):
        mixed = at_budget.sample(frac=1, random_state=state)
        turned = choice.sample(frac=1, random_state=state)
        pd.testing.assert_frame_equal(paired_table(mixed, turned), expected)


def test_adding_a_constant_to_one_paradigm_moves_its_differences_by_it() -> None:
    at_budget = _random()
    moved = at_budget.copy()
    moved.loc[moved["paradigm"] == "lvml", list(METRICS)] += 0.125
    before, after = _paired(at_budget), _paired(moved)
    shift = np.where(after["first"] == "lvml", 0.125, 0.0)
    for name in ("difference", "low", "high"):
        np.testing.assert_allclose(after[name], before[name] + shift, atol=1e-11)
    others = (before["first"] != "lvml") & (before["second"] != "lvml")
    columns = ["difference", "p", "low", "high", "seed_se"]
    pd.testing.assert_frame_equal(before.loc[others, columns], after.loc[others, columns])


def test_swapping_two_paradigms_turns_every_sign() -> None:
    at_budget = _random(names=("hard", "soft"))
    names = {"hard": "soft", "soft": "hard"}
    swapped = at_budget.assign(paradigm=at_budget["paradigm"].map(names))
    a, b = _paired(at_budget), _paired(swapped)
    np.testing.assert_allclose(b["difference"], -a["difference"], atol=1e-12)
    np.testing.assert_allclose(b[["low", "high"]], -a[["high", "low"]], atol=1e-12)
    np.testing.assert_allclose(b["needed_effect"], -a["needed_effect"])
    for name in ("p_holm", "seed_se", "needed_seeds"):
        pd.testing.assert_series_equal(a[name], b[name])


# --- the verdict


def test_a_clear_effect_with_six_seeds_is_decided_both_ways() -> None:
    row = _pair(_paired(_study({"hard": LOW, "soft": HIGH})), "soft", "hard")
    assert (row["verdict"], row["reason"]) == ("better", "")
    assert row["num_pairs"] == MIN_SEEDS
    assert row[["needed_effect", "needed_seeds", "needed_images"]].isna().all()
    row = _pair(_paired(_study({"hard": HIGH, "soft": LOW})), "soft", "hard")
    assert (row["verdict"], row["reason"]) == ("worse", "")


@pytest.mark.parametrize("n", [2, 3, 5])
def test_fewer_than_six_seeds_decide_nothing(n: int) -> None:
    table = _paired(_study({"hard": LOW[:n], "soft": HIGH[:n]}))
    assert (table["verdict"] == "undecided").all()
    assert (table["reason"] == f"n={n}, fewer than 6 seeds").all()
    assert (table["needed_seeds"] >= MIN_SEEDS).all()
    assert table[["low", "high", "p", "seed_se"]].notna().to_numpy().all()


def test_with_one_seed_no_interval_exists_and_it_is_said() -> None:
    at_budget = _study({"hard": LOW[:1], "soft": HIGH[:1]})
    row = _pair(_paired(at_budget), "soft", "hard")
    assert row["difference"] == pytest.approx(HIGH[0] - LOW[0])
    unknown = ["low", "high", "p", "p_holm", "seed_se", "needed_effect", "needed_seeds"]
    assert row[unknown].isna().all()
    assert row["verdict"] == "undecided"
    assert row["reason"] == "n=1, fewer than 6 seeds: with one seed no interval exists"


def test_identical_paradigms_are_undecided() -> None:
    table = _paired(_study({"hard": HIGH, "soft": HIGH}))
    assert (table["difference"] == 0).all()
    assert table[["low", "high", "p", "p_holm", "needed_seeds"]].isna().to_numpy().all()
    assert (table["verdict"] == "undecided").all()
    assert (table["reason"] == SAME_EVERYWHERE).all()


@pytest.mark.parametrize("noise", [0.0, 1e-16, 1e-11])
def test_one_difference_on_all_seeds_decides_nothing(noise: float) -> None:
    """A t test divides by a spread that six equal differences do not tell."""
    higher = [0.7 + noise * seed for seed in range(6)]
    row = _pair(_paired(_study({"hard": [0.6] * 6, "soft": higher})), "soft", "hard")
    assert row["difference"] == pytest.approx(0.1)
    assert (row["verdict"], row["reason"]) == ("undecided", SAME_EVERYWHERE)
    assert row[["low", "high", "p", "p_holm", "needed_seeds"]].isna().all()


def test_scores_that_differ_in_the_last_bit_are_equal() -> None:
    assert 0.1 + 0.2 != 0.3
    row = _pair(_paired(_study({"hard": [0.3] * 6, "soft": [0.1 + 0.2] * 6})), "soft", "hard")
    assert row["difference"] == 0
    assert row["verdict"] == "undecided"


def test_noise_is_undecided_and_says_what_the_far_end_of_its_interval_would_take() -> None:
    soft = [x + d for x, d in zip(LOW, (0.03, -0.02, 0.01, 0.02, -0.01, 0.0), strict=True)]
    row = _pair(_paired(_study({"hard": LOW, "soft": soft})), "soft", "hard")
    assert row["verdict"] == "undecided"
    assert "after Holm, not below 0.05" in row["reason"]
    assert row["needed_effect"] == row["high"] > -row["low"]
    crossed = crossed_mean(np.subtract(soft, LOW)[:, None])
    # two equal rows, one for each metric: each is held to half of the level
    assert row["needed_seeds"] == needed(crossed, row["high"], 0.05 / 2).seeds > MIN_SEEDS
    assert row["seen_seeds"] == needed(crossed, crossed.mean, 0.05 / 2).seeds > row["needed_seeds"]


def test_what_would_decide_a_pair_is_said_of_the_far_end_and_of_what_was_seen() -> None:
    soft = [x + d for x, d in zip(LOW, (0.01, 0.03, 0.02, 0.01, 0.0, 0.03), strict=True)]
    lvml = [x + d for x, d in zip(LOW, (0.02, -0.02, 0.01, -0.01, 0.0, 0.0), strict=True)]
    row = _pair(_paired(_study({"hard": LOW, "soft": soft, "lvml": lvml})), "soft", "hard")
    assert (row["verdict"], row["low"] > 0) == ("undecided", True)
    assert row["needed_effect"] == row["high"]
    assert row["needed_seeds"] < row["seen_seeds"] < math.inf


def test_the_confidence_is_the_level_of_the_tests() -> None:
    soft = [x + d for x, d in zip(LOW, (0.01, 0.03, 0.02, 0.01, 0.005, 0.03), strict=True)]
    at_budget = _study({"hard": LOW, "soft": soft})
    usual, strict = _paired(at_budget), _paired(at_budget, confidence=0.999)
    assert (usual["verdict"] == "better").all()
    assert (strict["verdict"] == "undecided").all()
    assert strict["reason"].str.contains("not below 0.001").all()
    assert (strict["low"] < usual["low"]).all()


def test_seeds_that_do_not_agree_are_undecided_whatever_the_tails() -> None:
    """Five of six agree, far more than a t test takes to decide."""
    soft = [x + d for x, d in zip(LOW, (0.05, 0.06, 0.055, 0.06, 0.05, -0.001), strict=True)]
    row = _pair(_paired(_study({"hard": LOW, "soft": soft})), "soft", "hard")
    assert row["p_holm"] < 0.05 < row["p_signs"] == 4 / 64
    assert row["verdict"] == "undecided"
    assert "by the signs of the seeds alone" in row["reason"]


# --- seeds that learn and seeds that do not

FAILED = 0.26  # of four classes: chance


def test_where_seeds_fail_the_share_that_learned_is_tested() -> None:
    often = [0.8 + 0.01 * seed for seed in range(12)]
    seldom = [0.9, 0.91, *[FAILED] * 10]
    row = _pair(_paired(_study({"hard": seldom, "soft": often})), "soft", "hard")
    assert (row["learned_first"], row["learned_second"]) == (12, 2)
    assert row["given_second"] == pytest.approx(0.905)
    assert row["given_first"] < row["given_second"]
    assert row[["low", "high", "p_signs"]].isna().all()
    assert row["p"] == pytest.approx(2 / 2**10)
    assert row["verdict"] == "better"


def test_five_of_six_beside_one_of_six_is_undecided() -> None:
    hard, soft = [0.9, *[FAILED] * 5], [*[0.9] * 5, FAILED]
    table = _paired(_study({"hard": hard, "soft": soft}))
    assert (table["verdict"] == "undecided").all()
    assert (table["p"] == 0.125).all()  # of the four seeds that say something, none the other way
    assert (table["seen_seeds"] > 6).all()


def test_who_learns_more_often_is_not_better_where_its_mean_is_lower() -> None:
    hard = [0.95 + 0.001 * seed for seed in range(9)] + [FAILED] * 3
    soft = [0.45 + 0.001 * seed for seed in range(12)]
    row = _pair(_paired(_study({"hard": hard, "soft": soft})), "soft", "hard")
    assert row["difference"] < 0
    assert (row["verdict"], row["seen_seeds"]) == (
        "undecided",
        pytest.approx(math.nan, nan_ok=True),
    )
    assert "has the lower mean" in row["reason"]


def test_comparisons_that_are_read_together_are_one_family() -> None:
    at_budget = _random()
    args = (at_budget, choose(at_budget), METRICS)
    (alone,), (one, other) = paired_tables([args]), paired_tables([args, args])
    pd.testing.assert_frame_equal(one, other)
    assert (one["num_tests"] == 24).all()
    np.testing.assert_array_equal(one["p"], alone["p"])
    smallest = one.loc[one["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1, 24 * smallest["p"]))


# --- seeds that were added after a look


def _planned(at_budget: pd.DataFrame, planned: Sequence[int]) -> pd.DataFrame:
    return at_budget.assign(planned_seeds=[planned[seed] for seed in at_budget["seed"]])


@pytest.mark.parametrize(
    ("planned", "first"),
    [
        ([6] * 6 + [12] * 6, 6),
        ([3] * 3 + [6] * 3 + [12] * 6, 6),  # three seeds decide nothing, so nobody looked
        ([6] * 12, 6),  # the further ones by a command of their own
        ([12] * 12, 12),
        ([3] * 12, 12),
        ([math.nan] * 12, 12),  # of one stage, where nothing is planned
    ],
)
def test_verdicts_stay_those_of_the_first_look(planned: Sequence[int], first: int) -> None:
    at_budget = _random(num_seeds=12, names=("hard", "soft"))
    choice, turned = choose(at_budget), at_budget.sample(frac=1, random_state=0)
    found = paired_table(_planned(turned, planned), choice)
    assert (found["num_pairs"] == first).all()
    assert (found["later_seeds"] == 12 - first).all()
    alone = paired_table(at_budget[at_budget["seed"] < first], choice)
    same = [name for name in found if name != "later_seeds"]
    pd.testing.assert_frame_equal(found[same], alone[same])


# --- what is missing


def test_differences_are_over_the_common_seeds() -> None:
    at_budget = _without(_study({"hard": [*LOW, 0.9, 0.1], "soft": [*HIGH, 0.1, 0.9]}), "hard", 6)
    row = _pair(_paired(_without(at_budget, "soft", 7)), "soft", "hard")
    assert row["num_pairs"] == 6
    assert row["mean_first"] == pytest.approx(np.mean(HIGH))
    assert row["mean_second"] == pytest.approx(np.mean(LOW))
    assert row["verdict"] == "better"


def test_paradigms_without_a_common_seed_are_undecided() -> None:
    at_budget = _without(_study({"hard": HIGH, "soft": LOW}), "hard", 0, 1, 2)
    table = _paired(_without(at_budget, "soft", 3, 4, 5))
    assert (table["num_pairs"] == 0).all()
    assert table[["difference", "p", "low", "mean_first"]].isna().to_numpy().all()
    assert (table["reason"] == "no seed in common: run both on the same seeds, 6 or more").all()


def test_a_paradigm_without_a_usable_option_stays_in_the_table() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW, "lvml": LOW})
    stopped = (at_budget["paradigm"] == "lvml") & (at_budget["seed"] == 2)
    at_budget.loc[stopped, "status"] = "censored"
    table = _paired(at_budget)
    assert len(table) == 6
    row = _pair(table, "lvml", "hard")
    assert (row["num_pairs"], row["verdict"]) == (0, "undecided")
    assert row["reason"] == "no option of lvml can be chosen"
    assert row[["difference", "low", "p", "p_holm", "needed_seeds"]].isna().all()
    other = _pair(table, "soft", "hard")
    assert other["verdict"] == "worse"
    # four of the six rows are no tests, and stay in the family
    assert other["p_holm"] == pytest.approx(6 * other["p"])


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_that_is_not_known_is_never_left_out(metric: str) -> None:
    at_budget = _study({"hard": LOW, "soft": HIGH, "lvml": HIGH})
    lost = (at_budget["paradigm"] == "soft") & (at_budget["seed"] == 2)
    at_budget.loc[lost & (at_budget["split"] == "test"), metric] = math.nan
    table = _paired(at_budget)
    row = _pair(table, "soft", "hard", metric)
    assert row["num_pairs"] == 6
    assert row[["mean_first", "difference", "low", "p", "needed_seeds"]].isna().all()
    assert row["mean_second"] == pytest.approx(np.mean(LOW))
    assert (row["verdict"], row["reason"]) == (
        "undecided",
        f"{metric} is not known for every seed",
    )
    assert _pair(table, "lvml", "hard", metric)["verdict"] == "better"
    (other,) = set(METRICS) - {metric}
    assert _pair(table, "soft", "hard", other)["verdict"] == "better"


def test_options_that_were_not_chosen_change_no_difference() -> None:
    rows = [row for seed in range(6) for row in _cell("hard", 0.1, seed, LOW[seed], LOW[seed])]
    for seed in range(6):
        rows += _cell("soft", 0.1, seed, LOW[seed], HIGH[seed])
        rows += _cell("soft", 0.2, seed, math.nan if seed == 0 else 0.99, 0.0)
    at_budget = pd.DataFrame(rows)
    alone = at_budget[at_budget["lr"] == 0.1]
    pd.testing.assert_frame_equal(_paired(at_budget), _paired(alone))


# --- tables of another kind


def test_one_paradigm_has_no_pair() -> None:
    table = _paired(_study({"soft": HIGH}))
    assert table.empty
    assert table.columns.tolist() == PAIRED_COLUMNS


def test_nothing_that_can_be_chosen() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW}).assign(status="censored")
    assert (_paired(at_budget)["reason"] == "no option of soft and hard can be chosen").all()


def test_refuses_what_does_not_belong_together() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW})
    choice = choose(at_budget)
    both = pd.concat([at_budget, at_budget.assign(comparison_id="other")])
    with pytest.raises(ValueError, match="must hold one comparison, got 2"):
        paired_table(both, choice)
    with pytest.raises(ValueError, match="at_budget has no cells of soft"):
        paired_table(at_budget[at_budget["paradigm"] == "hard"], choice)
    twice = pd.concat([at_budget, at_budget.head(3).assign(cell_id="another")])
    with pytest.raises(ResultsError, match=r"cells another and hard-0\.1-nan-0 are"):
        paired_table(twice, choice)


# --- images


def _by_image(seed: int, paradigms: Sequence[str], num_seeds: int = 7) -> pd.DataFrame:
    """One option a paradigm, tested on images with some instances each, not all known."""
    rng = np.random.default_rng(seed)
    counts, known = rng.integers(1, 6, 30), rng.integers(0, 2, 30)
    easy = rng.uniform(0.3, 0.9, 30)
    rows = []
    for name in paradigms:
        for s in range(num_seeds):
            right = rng.binomial(counts, easy)
            saif = rng.binomial(np.minimum(known, right), 0.7)
            images = of_counts(counts, right=right, known=known, saif=saif)
            *others, test = _cell(name, 0.1, s, 0.5, 0.5)
            validation, test, train = [*others[:1], others[1], test]
            test |= {"accuracy": right.sum() / counts.sum(), "saif": saif.sum() / known.sum()}
            rows += [validation, test | images, train]
    return pd.DataFrame(rows)


def _by_hand(
    at_budget: pd.DataFrame, paradigm: str, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(S, I) shares and (I,) instances of the images with any."""
    rows = at_budget[(at_budget["paradigm"] == paradigm) & (at_budget["split"] == "test")]
    shares = []
    for row in rows.sort_values("seed").to_dict("records"):
        counts = np.ones(len(row["base_images"])) if metric == "accuracy" else marked(row, "known")
        hits = marked(row, BITS[metric])
        weights, right = (np.bincount(row["base_images"], each) for each in (counts, hits))
        shares.append(right[weights > 0] / weights[weights > 0])
    return np.array(shares), weights[weights > 0]


BITS = {"accuracy": "right", "saif": "saif"}


@pytest.mark.parametrize("seed", range(3))
def test_with_images_a_row_is_the_crossed_mean_of_the_shares(seed: int) -> None:
    at_budget = _by_image(seed, ("hard", "soft", "lvml"))
    table = _paired(at_budget)
    last = {f"last_{metric}": at_budget[metric] for metric in METRICS}
    rows = at_budget.assign(kind="training", **last)
    summary = summarise(rows, choose(at_budget)).set_index("paradigm")
    for row in table.to_dict("records"):
        (first, weights), (second, _) = (
            _by_hand(at_budget, row[side], row["metric"]) for side in ("first", "second")
        )
        expected = crossed_mean(first - second, weights)
        for name in ("low", "high", "p", "seed_se", "image_se"):
            assert row[name] == pytest.approx(getattr(expected, name), rel=1e-9)
        assert row["difference"] == pytest.approx(row["mean_first"] - row["mean_second"])
        assert row["num_images"] == len(weights)
        alone, of_group = crossed_mean(first, weights), summary.loc[row["first"]]
        low, _ = on_logit_scale(alone.mean, alone.low, alone.high)
        for name, value in (("_low", low), ("_seed_se", alone.seed_se)):
            assert of_group[row["metric"] + name] == pytest.approx(value, rel=1e-9)


def test_background_images_add_to_the_variance() -> None:
    at_budget = _by_image(0, ("hard", "soft"))
    test = at_budget["split"] == "test"
    image = at_budget.loc[test, "base_images"].iloc[0]
    background = np.random.default_rng(0).integers(20, size=(len(image), 3))
    held = np.column_stack([image, background]).ravel()
    at_budget["base_images"] = [held if each else None for each in test]
    row = _pair(_paired(at_budget), "soft", "hard")
    by_paradigm = {
        name: np.array([marked(each, "right") for each in rows.to_dict("records")], float)
        for name, rows in at_budget[test].sort_values("seed").groupby("paradigm")
    }
    part = Backgrounds(image, background).part(by_paradigm["soft"] - by_paradigm["hard"])
    assert row["background_se"] == pytest.approx(math.sqrt(part.variance), rel=1e-9)
    assert (row["num_images"], row["num_backgrounds"]) == (30, 20)
    at_budget["base_images"] = [image if each else None for each in test]
    without = _pair(_paired(at_budget), "soft", "hard")
    assert without["high"] - without["low"] < row["high"] - row["low"]
    assert pd.isna(without["num_backgrounds"])


def test_images_that_hide_a_difference_are_asked_for_instead_of_seeds() -> None:
    at_budget = _by_image(0, ("hard", "soft"), num_seeds=12)
    # whichever images there are decides: each is easy for one paradigm, hard for the other
    rng = np.random.default_rng(1)
    easy = {"hard": rng.uniform(0, 0.9, 30), "soft": rng.uniform(0.1, 1, 30)}
    test = at_budget["split"] == "test"
    for index, row in at_budget[test].iterrows():
        right = rng.binomial(10, easy[row["paradigm"]])
        _put(at_budget, index, of_counts([10] * 30, right=right, known=[10] * 30, saif=right))
        at_budget.loc[index, ["accuracy", "saif"]] = right.sum() / 300
    row = _pair(_paired(at_budget), "soft", "hard")
    assert row["verdict"] == "undecided"
    assert row["image_se"] > 3 * row["seed_se"]
    assert row["needed_seeds"] < math.inf  # of the far end of the interval
    assert row["seen_seeds"] == math.inf
    assert 30 < row["seen_images"] < math.inf


def test_a_diverged_seed_has_one_score_on_every_image() -> None:
    at_budget = _by_image(0, ("hard", "soft"))
    lost = (at_budget["paradigm"] == "hard") & (at_budget["seed"] == 2)
    at_budget.loc[lost, ["status", "diverged", "saif", "accuracy"]] = ["diverged", True, 0.0, 0.1]
    for name in (*INSTANCES, "base_images"):
        at_budget[name] = at_budget[name].mask(lost, None)
    hard = at_budget[(at_budget["paradigm"] == "hard") & (at_budget["split"] == "test")]
    found = scores(hard.sort_values("seed"), "accuracy")
    assert found.shares.shape == (7, 30)
    np.testing.assert_allclose(found.shares[2], 0.1)
    assert (np.ptp(np.delete(found.shares, 2, axis=0), axis=1) > 0).all()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("instances", "others"),
        ("instance_known", bytes(12)),
        ("instance_right", b""),
        ("base_images", None),
    ],
)
def test_a_cell_that_was_tested_on_other_instances_is_refused(column: str, value: Any) -> None:
    at_budget = _by_image(0, ("hard", "soft"))
    at_budget.at[at_budget.index[at_budget["split"] == "test"][3], column] = value
    with pytest.raises(ResultsError, match=r"other instances|not at hand"):
        _paired(at_budget)


@pytest.mark.parametrize(
    ("shares", "weights", "part"),
    [
        ([[1, 1, 0.5, 0.9]], [1, 1, 1, 1], 5 / 6),  # of what is wrong
        ([[0, 0, 0.5, 0.1]], [1, 1, 1, 1], 5 / 6),  # of what is right, which is rarer
        ([[0.9, 0.9, 0.9], [0.7, 0.7, 0.7]], [1, 1, 2], 0.5),
        ([[1, 1, 1]], [1, 1, 1], math.nan),
    ],
)
def test_what_one_image_has_of_the_rarer_outcome(
    shares: list[list[float]], weights: list[int], part: float
) -> None:
    image = np.repeat(np.arange(len(weights)), weights)
    instances = Instances(image, np.array(weights, float), None)
    found = Scores(np.array(shares)[:, image], instances)
    assert found.of_one_image == pytest.approx(part, nan_ok=True)


def _put(table: pd.DataFrame, index: Any, columns: dict[str, Any]) -> None:
    for name, value in columns.items():
        table.at[index, name] = value


def _blanked(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=[*INSTANCES, "base_images"], errors="ignore")


def _with_one_image(table: pd.DataFrame) -> pd.DataFrame:
    """Most instances are of one image, of which the others are no sample."""
    table = table.copy()
    random = np.random.default_rng(0)
    counts = np.array([200, *[1] * 29])
    for index in table.index[table["split"] == "test"]:
        right, saif = random.binomial(counts, 0.7, (2, 30))
        _put(table, index, of_counts(counts, right=right, known=counts, saif=saif))
        table.loc[index, ["accuracy", "saif"]] = right.sum() / 229, saif.sum() / 229
    return table


@pytest.mark.parametrize(
    "change",
    [
        _blanked,
        _with_one_image,
        lambda table: table.assign(saif=table["saif"] / 2, accuracy=table["accuracy"] / 2),
        lambda table: table.assign(
            instance_saif=table["instance_saif"].mask(table["seed"] == 1, None),
            instance_right=table["instance_right"].mask(table["seed"] == 1, None),
        ),
    ],
    ids=["none recorded", "one image has most", "another threshold or cut", "one cell without"],
)
def test_without_images_the_test_is_over_seeds_alone(
    change: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    at_budget = change(_by_image(0, ("hard", "soft")))
    table, plain = _paired(at_budget), _paired(_blanked(at_budget))
    pd.testing.assert_frame_equal(table, plain)
    assert table[["num_images", "image_se"]].isna().to_numpy().all()
    test = at_budget[at_budget["split"] == "test"]
    by_seed = test.pivot(index="seed", columns="paradigm", values="saif")
    assert _pair(table, "soft", "hard", "saif")["p"] == pytest.approx(
        stats.ttest_rel(by_seed["soft"], by_seed["hard"]).pvalue
    )
