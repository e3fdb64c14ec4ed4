"""Paired comparisons: what moves a difference, a bound or a verdict, and what never may."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.comparison import paired
from analysis.comparison.choice import best_of, choose, options, summarise
from analysis.comparison.paired import (
    PAIRED_COLUMNS,
    SAME_EVERYWHERE,
    iqm_intervals,
    paired_table,
    resample,
)
from analysis.groups import GROUP, OPTION, paradigm_order
from analysis.statistics import MIN_SEEDS, seeds_needed
from study.results import ResultsError

METRICS = ("saif", "accuracy")

Scores = Callable[[int], float]


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
        "status": "done",
        "diverged": False,
        "budget_fraction": 1.0,
        "n": 2_000,
        "architecture": "mlp",
        "batch_size": 64,
        "precision": "float32",
        "budget_amount": 1_000,
        "budget_unit": "flops",
        "cut": 1.0,
        "axis": "flops",
        "compute_flops": 999,
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


def _paired(at_budget: pd.DataFrame, **settings: Any) -> pd.DataFrame:
    choice = choose(at_budget, settings.get("select", "accuracy"))
    confidence = settings.pop("confidence", 0.95)
    return paired_table(resample(at_budget, choice, **({"resamples": 200} | settings)), confidence)


def _iqm(at_budget: pd.DataFrame, **settings: Any) -> pd.DataFrame:
    choice = choose(at_budget, settings.get("select", "accuracy"))
    confidence = settings.pop("confidence", 0.95)
    return iqm_intervals(
        resample(at_budget, choice, **({"resamples": 200} | settings)), confidence
    )


def _pair(table: pd.DataFrame, first: str, second: str, metric: str = "accuracy") -> pd.Series:
    rows = table[
        (table["first"] == first) & (table["second"] == second) & (table["metric"] == metric)
    ]
    assert len(rows) == 1
    return rows.iloc[0]


def _without(at_budget: pd.DataFrame, paradigm: str, *seeds: int) -> pd.DataFrame:
    return at_budget[(at_budget["paradigm"] != paradigm) | ~at_budget["seed"].isin(seeds)]


def _once(n: int, resamples: int, seed: int) -> np.ndarray:
    return np.ones((resamples, n), np.int64)


HIGH = [0.81, 0.82, 0.84, 0.80, 0.83, 0.85]
LOW = [0.70, 0.73, 0.72, 0.71, 0.70, 0.74]

# --- the table


def test_one_row_a_metric_and_pair_in_the_papers_order() -> None:
    table = _paired(_random())
    assert table.columns.tolist() == PAIRED_COLUMNS
    pairs = [
        ("soft", "hard"), ("hybrid", "hard"), ("lvml", "hard"),
        ("hybrid", "soft"), ("lvml", "soft"), ("lvml", "hybrid"),
    ]  # fmt: skip
    expected = {(metric, *pair) for metric in METRICS for pair in pairs}
    assert set(table[["metric", "first", "second"]].itertuples(index=False, name=None)) == expected
    assert len(table) == len(expected)
    assert table["metric"].tolist() == ["saif"] * 6 + ["accuracy"] * 6
    assert (
        (table[["task", "m", "comparison_id"]] == ["digits", 10, "0123456789abcdef"])
        .to_numpy()
        .all()
    )


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
        u = stats.mannwhitneyu(a, b).statistic / 49
        assert row["probability"] == pytest.approx(u, abs=1e-12)
        assert row["confidence"] == 0.9


def test_holm_runs_over_all_rows_of_the_table() -> None:
    table = _paired(_random())
    smallest = table.loc[table["p"].idxmin()]
    assert smallest["p_holm"] == pytest.approx(min(1, 12 * smallest["p"]))
    assert (table["p_holm"] >= table["p"]).all()
    # p and n give the spread back, and the level of the smallest p is a twelfth
    t = stats.t.isf(smallest["p"] / 2, smallest["num_pairs"] - 1)
    std = abs(smallest["difference"]) * math.sqrt(smallest["num_pairs"]) / t
    needed = seeds_needed(smallest["difference"], std, 0.05 / 12)
    assert MIN_SEEDS < smallest["seeds_to_decide"] == needed
    assert needed > seeds_needed(smallest["difference"], std, 0.05)


def test_the_order_of_rows_changes_nothing() -> None:
    at_budget = _random()
    choice = choose(at_budget)
    expected = paired_table(resample(at_budget, choice, resamples=200))
    intervals = iqm_intervals(resample(at_budget, choice, resamples=200))
    for state in range(3):
        mixed = at_budget.sample(frac=1, random_state=state)
        turned = choice.sample(frac=1, random_state=state)
        pd.testing.assert_frame_equal(
            paired_table(resample(mixed, turned, resamples=200)), expected
        )
        pd.testing.assert_frame_equal(
            iqm_intervals(resample(mixed, choice, resamples=200)), intervals
        )


def test_the_bootstrap_has_its_own_seed() -> None:
    at_budget = _random()
    np.random.seed(1)  # noqa: NPY002
    first = _paired(at_budget)
    np.random.seed(2)  # noqa: NPY002
    pd.testing.assert_frame_equal(_paired(at_budget), first)
    other = _paired(at_budget, seed=1)
    bootstrapped = ["boot_low", "boot_high", "probability_low", "probability_high"]
    assert (other[["boot_low", "boot_high"]] != first[["boot_low", "boot_high"]]).to_numpy().any()
    decided = [*bootstrapped, "verdict", "reason"]
    pd.testing.assert_frame_equal(other.drop(columns=decided), first.drop(columns=decided))


def test_adding_a_constant_to_one_paradigm_moves_its_differences_by_it() -> None:
    at_budget = _random()
    moved = at_budget.copy()
    moved.loc[moved["paradigm"] == "lvml", list(METRICS)] += 0.125
    before, after = _paired(at_budget), _paired(moved)
    shift = np.where(after["first"] == "lvml", 0.125, 0.0)
    for name in ("difference", "low", "high", "boot_low", "boot_high"):
        np.testing.assert_allclose(after[name], before[name] + shift, atol=1e-11)
    others = (before["first"] != "lvml") & (before["second"] != "lvml")
    columns = ["difference", "p", "boot_low", "boot_high", "probability"]
    pd.testing.assert_frame_equal(before.loc[others, columns], after.loc[others, columns])


def test_swapping_two_paradigms_turns_every_sign() -> None:
    at_budget = _random(names=("hard", "soft"))
    names = {"hard": "soft", "soft": "hard"}
    swapped = at_budget.assign(paradigm=at_budget["paradigm"].map(names))
    a, b = _paired(at_budget), _paired(swapped)
    np.testing.assert_allclose(b["difference"], -a["difference"], atol=1e-12)
    np.testing.assert_allclose(b[["low", "high"]], -a[["high", "low"]], atol=1e-12)
    np.testing.assert_allclose(b[["boot_low", "boot_high"]], -a[["boot_high", "boot_low"]])
    np.testing.assert_allclose(b["probability"], 1 - a["probability"])
    np.testing.assert_allclose(
        b[["probability_low", "probability_high"]],
        1 - a[["probability_high", "probability_low"]],
    )
    pd.testing.assert_series_equal(a["p_holm"], b["p_holm"])
    pd.testing.assert_series_equal(a["seeds_to_decide"], b["seeds_to_decide"])


# --- the verdict


def test_a_clear_effect_with_six_seeds_is_decided_both_ways() -> None:
    row = _pair(_paired(_study({"hard": LOW, "soft": HIGH})), "soft", "hard")
    assert (row["verdict"], row["reason"]) == ("better", "")
    assert row["num_pairs"] == MIN_SEEDS
    assert row["probability"] == 1.0
    assert row["seeds_to_decide"] == MIN_SEEDS
    row = _pair(_paired(_study({"hard": HIGH, "soft": LOW})), "soft", "hard")
    assert (row["verdict"], row["reason"]) == ("worse", "")
    assert row["probability"] == 0.0


@pytest.mark.parametrize("n", [2, 3, 5])
def test_fewer_than_six_seeds_decide_nothing(n: int) -> None:
    table = _paired(_study({"hard": LOW[:n], "soft": HIGH[:n]}))
    assert (table["verdict"] == "undecided").all()
    assert (table["reason"] == f"n={n}, fewer than 6 seeds").all()
    assert (table["seeds_to_decide"] >= MIN_SEEDS).all()
    assert table[["low", "high", "p", "boot_low", "boot_high"]].notna().to_numpy().all()


def test_with_one_seed_no_interval_exists_and_it_is_said() -> None:
    at_budget = _study({"hard": LOW[:1], "soft": HIGH[:1]})
    row = _pair(_paired(at_budget), "soft", "hard")
    assert row["difference"] == pytest.approx(HIGH[0] - LOW[0])
    unknown = ["low", "high", "p", "p_holm", "boot_low", "boot_high", "seeds_to_decide"]
    unknown += ["probability_low", "probability_high"]
    assert row[unknown].isna().all()
    assert row["verdict"] == "undecided"
    assert row["reason"] == "n=1, fewer than 6 seeds: with one seed no interval exists"
    intervals = _iqm(at_budget)
    assert intervals["accuracy_iqm"].tolist() == [LOW[0], HIGH[0]]
    bounds = [f"{metric}_iqm_{end}" for metric in METRICS for end in ("low", "high")]
    assert intervals[bounds].isna().to_numpy().all()


def test_identical_paradigms_are_undecided() -> None:
    table = _paired(_study({"hard": HIGH, "soft": HIGH}))
    assert (table["difference"] == 0).all()
    assert (table["probability"] == 0.5).all()
    assert table[["low", "high", "p", "p_holm"]].isna().to_numpy().all()
    assert (table[["boot_low", "boot_high"]] == 0).to_numpy().all()
    assert (table["verdict"] == "undecided").all()
    assert (table["reason"] == SAME_EVERYWHERE).all()
    assert (table["seeds_to_decide"] == math.inf).all()


@pytest.mark.parametrize("noise", [0.0, 1e-16, 1e-11])
def test_one_difference_on_all_seeds_decides_nothing(noise: float) -> None:
    """A t test divides by a spread that six equal differences do not tell."""
    higher = [0.7 + noise * seed for seed in range(6)]
    row = _pair(_paired(_study({"hard": [0.6] * 6, "soft": higher})), "soft", "hard")
    assert row["difference"] == pytest.approx(0.1)
    assert (row["verdict"], row["reason"]) == ("undecided", SAME_EVERYWHERE)
    assert row[["low", "high", "p", "p_holm", "seeds_to_decide"]].isna().all()


def test_scores_that_differ_in_the_last_bit_are_equal() -> None:
    assert 0.1 + 0.2 != 0.3
    row = _pair(_paired(_study({"hard": [0.3] * 6, "soft": [0.1 + 0.2] * 6})), "soft", "hard")
    assert (row["difference"], row["probability"]) == (0, 0.5)
    assert row["verdict"] == "undecided"


def test_noise_is_undecided_and_says_how_many_seeds_would_decide() -> None:
    soft = [x + d for x, d in zip(LOW, (0.03, -0.02, 0.01, 0.02, -0.01, 0.0), strict=True)]
    row = _pair(_paired(_study({"hard": LOW, "soft": soft})), "soft", "hard")
    assert row["verdict"] == "undecided"
    assert "after Holm, not below 0.05" in row["reason"]
    assert "contains 0" in row["reason"]
    assert MIN_SEEDS < row["seeds_to_decide"] < math.inf


def test_the_confidence_is_the_level_of_the_tests() -> None:
    soft = [x + d for x, d in zip(LOW, (0.01, 0.03, 0.02, 0.01, 0.0, 0.03), strict=True)]
    at_budget = _study({"hard": LOW, "soft": soft})
    usual, strict = _paired(at_budget), _paired(at_budget, confidence=0.999)
    assert (usual["verdict"] == "better").all()
    assert (strict["verdict"] == "undecided").all()
    assert strict["reason"].str.contains("not below 0.001").all()
    assert (strict["low"] < usual["low"]).all()
    assert (strict["seeds_to_decide"] > usual["seeds_to_decide"]).all()


def test_a_verdict_that_hangs_on_the_choice_is_undecided() -> None:
    # Soft's two options are equal on validation but for seed 0; on test one loses by far.
    rows = []
    for seed, score in enumerate(LOW):
        rows += _cell("hard", 0.1, seed, score, score)
        rows += _cell("soft", 0.1, seed, 0.9 if seed == 0 else 0.8, HIGH[seed])
        rows += _cell("soft", 0.2, seed, 0.81, score - 0.1)
    at_budget = pd.DataFrame(rows)
    row = _pair(_paired(at_budget), "soft", "hard")
    assert row["p_holm"] < 0.01
    assert row["boot_low"] < 0 < row["boot_high"]
    assert row["verdict"] == "undecided"
    assert row["reason"] == "the interval that repeats the choice contains 0"
    alone = at_budget[at_budget["lr"] == 0.1]
    assert _pair(_paired(alone), "soft", "hard")["verdict"] == "better"


# --- the bootstrap and the choice


def test_repeating_the_choice_widens_the_interval_where_options_are_close() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(10):
        lead = 0.011 if seed % 2 else -0.01
        rows += _cell("hard", 0.1, seed, 0.8, 0.7 + rng.normal(0, 0.01))
        rows += _cell("soft", 0.1, seed, 0.8 + lead, 0.7 + rng.normal(0, 0.01))
        rows += _cell("soft", 0.2, seed, 0.8, 0.8 + rng.normal(0, 0.01))
    at_budget = pd.DataFrame(rows)
    choice = choose(at_budget)
    lr = choice.set_index("paradigm")["lr"]["soft"]
    fixed = at_budget[(at_budget["paradigm"] == "hard") | (at_budget["lr"] == lr)]
    free, held = _paired(at_budget), _paired(fixed)
    assert (free["difference"] == held["difference"]).all()
    assert (free["low"] == held["low"]).all()
    row_free, row_held = _pair(free, "soft", "hard"), _pair(held, "soft", "hard")
    assert row_held["boot_high"] - row_held["boot_low"] < 0.03
    assert row_free["boot_high"] - row_free["boot_low"] > 0.09
    iqm_free, iqm_held = _iqm(at_budget).iloc[1], _iqm(fixed).iloc[1]
    assert iqm_free["accuracy_iqm"] == iqm_held["accuracy_iqm"]
    assert iqm_free["accuracy_iqm_high"] - iqm_free["accuracy_iqm_low"] > 0.08
    assert iqm_held["accuracy_iqm_high"] - iqm_held["accuracy_iqm_low"] < 0.03


def test_with_the_choice_fixed_it_is_the_plain_bootstrap_of_the_differences() -> None:
    at_budget = _study({"hard": LOW, "soft": HIGH})
    row = _pair(_paired(at_budget, resamples=20_000), "soft", "hard")
    expected = stats.bootstrap(
        (np.array(HIGH) - np.array(LOW),),
        np.mean,
        n_resamples=20_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (row["boot_low"], row["boot_high"]) == pytest.approx(
        (expected.low, expected.high), abs=0.001
    )


def test_all_paradigms_are_drawn_with_the_same_seeds() -> None:
    # what the seed does to both cancels: unpaired resamples would spread by .3 / sqrt(6)
    rng = np.random.default_rng(0)
    common = rng.normal(0.5, 0.3, 6)
    at_budget = _study({"hard": common, "soft": common + rng.normal(0.01, 0.001, 6)})
    row = _pair(_paired(at_budget), "soft", "hard")
    assert 0 < row["boot_high"] - row["boot_low"] < 0.01


def _with_gaps(at_budget: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Failed cells are missing, diverged ones learned nothing, some are censored; ties."""
    table = at_budget.copy()
    table["accuracy"] = table["accuracy"].round(1)
    table["loss"] = table["loss"].round(1 + int(rng.integers(2)))
    cells = rng.permutation(table["cell_id"].unique())
    table = table[~table["cell_id"].isin(cells[:4])]
    table = table[(table["paradigm"] != "soft") | (table["seed"] != 3)]
    lost = table["cell_id"].isin(cells[8:14])
    table.loc[lost, "status"] = "diverged"
    table.loc[lost, "diverged"] = True
    table.loc[lost, ["saif", "accuracy", "loss"]] = [0.0, 0.1, math.nan]
    table.loc[table["cell_id"].isin(cells[14:17]), "status"] = "censored"
    return table


@pytest.mark.parametrize("select", ["accuracy", "saif"])
@pytest.mark.parametrize("seed", range(3))
def test_drawing_every_seed_once_gives_the_choice_and_the_summary(
    seed: int, select: paired.Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    at_budget = _with_gaps(_random(seed), rng)
    # every option has a test score of its own, which names it
    names = at_budget.groupby(OPTION, dropna=False).ngroup() / 64
    on_test = at_budget["split"] == "test"
    at_budget.loc[on_test, "accuracy"] = names[on_test]
    at_budget.loc[on_test, "saif"] = -names[on_test]
    choice = choose(at_budget, select)
    summary = summarise(at_budget, choice)

    monkeypatch.setattr(paired, "bootstrap_counts", _once)
    intervals = iqm_intervals(resample(at_budget, choice, select, resamples=3))
    assert intervals["paradigm"].tolist() == summary["paradigm"].tolist()
    for metric in METRICS:
        assert intervals[f"{metric}_iqm"].tolist() == summary[metric].tolist()
        assert intervals[f"{metric}_iqm_low"].tolist() == summary[metric].tolist()
        assert intervals[f"{metric}_iqm_high"].tolist() == summary[metric].tolist()
    table = paired_table(resample(at_budget, choice, select, resamples=3))
    means = summary.set_index("paradigm")
    usable = table[table["num_pairs"] > 1]
    assert len(usable) > 2
    for row in usable.to_dict("records"):
        first, second = means.loc[row["first"]], means.loc[row["second"]]
        assert row["mean_first"] == first[row["metric"]]
        assert row["mean_second"] == second[row["metric"]]
        assert row["boot_low"] == row["boot_high"] == row["difference"]


def test_ties_in_a_resample_go_to_the_lower_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    # .1 + .2 and .3 differ in the last bit, as in the choice itself
    rows = []
    for seed, (score, other) in enumerate(((0.1, 0.3), (0.2, 0.0))):
        rows += _cell("soft", 0.1, seed, score, LOW[seed], loss=0.5)
        rows += _cell("soft", 0.2, seed, other, HIGH[seed], loss=0.4)
    monkeypatch.setattr(paired, "bootstrap_counts", _once)
    row = _iqm(pd.DataFrame(rows)).iloc[0]
    assert row["accuracy_iqm"] == row["accuracy_iqm_low"] == pytest.approx(np.mean(HIGH[:2]))


def _slow_differences(
    at_budget: pd.DataFrame, resamples: int, metric: str, first: str, second: str
) -> list[float]:
    """The same resamples by the rule of `choose`, on tables in which drawn seeds are repeated."""
    seeds = np.sort(at_budget["seed"].unique())
    differences = []
    for counts in paired.bootstrap_counts(len(seeds), resamples, 0):
        number = dict(zip(seeds, counts, strict=True))
        drawn = at_budget.loc[at_budget.index.repeat(at_budget["seed"].map(number))]
        tried = options(drawn).assign(can_be_chosen=True)  # as in the study, whatever is drawn
        picked = drawn.merge(best_of(tried, "accuracy")[GROUP + OPTION], on=GROUP + OPTION)
        test = picked[picked["split"] == "test"].drop_duplicates(["paradigm", "seed"])
        by_seed = test.pivot(index="seed", columns="paradigm", values=metric)
        pairs = (by_seed[first] - by_seed[second]).dropna()
        weights = [number[seed] for seed in pairs.index]
        differences.append(float(np.average(pairs, weights=weights)))
    return differences


@pytest.mark.parametrize("seed", [0, 1])
def test_resamples_repeat_the_choice_exactly(seed: int) -> None:
    at_budget = _random(seed, num_seeds=6, names=("hard", "soft"))
    # a seed that failed with each paradigm, of other seeds, and a censored cell
    failed = at_budget["seed"] == at_budget["paradigm"].map({"hard": 1, "soft": 2})
    stopped = (
        (at_budget["lr"] == 0.5) & (at_budget["seed"] == 5) & (at_budget["paradigm"] == "soft")
    )
    at_budget.loc[stopped, "status"] = "censored"
    at_budget = at_budget[~failed].reset_index(drop=True)
    row = _pair(_paired(at_budget, resamples=20), "soft", "hard", "saif")
    # A censored cell that was not drawn bars its option all the same.
    free = at_budget[(at_budget["lr"] != 0.5) | (at_budget["paradigm"] != "soft")]
    expected = _slow_differences(free.reset_index(drop=True), 20, "saif", "soft", "hard")
    assert np.ptp(expected) > 0.01
    low, high = np.quantile(expected, [0.025, 0.975])
    assert (row["boot_low"], row["boot_high"]) == pytest.approx((low, high), abs=1e-11)


def test_chunks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    at_budget = _random()
    expected = _paired(at_budget)
    monkeypatch.setattr(paired, "_CHUNK", 20)
    pd.testing.assert_frame_equal(_paired(at_budget), expected)


# --- what is missing


def test_differences_are_over_the_common_seeds() -> None:
    at_budget = _without(_study({"hard": [*LOW, 0.9, 0.1], "soft": [*HIGH, 0.1, 0.9]}), "hard", 6)
    row = _pair(_paired(_without(at_budget, "soft", 7)), "soft", "hard")
    assert row["num_pairs"] == 6
    assert row["mean_first"] == pytest.approx(np.mean(HIGH))
    assert row["mean_second"] == pytest.approx(np.mean(LOW))
    assert row["probability"] == 1.0
    assert row["boot_low"] > 0.05
    assert row["verdict"] == "better"


def test_paradigms_without_a_common_seed_are_undecided() -> None:
    at_budget = _without(_study({"hard": HIGH, "soft": LOW}), "hard", 0, 1, 2)
    table = _paired(_without(at_budget, "soft", 3, 4, 5))
    assert (table["num_pairs"] == 0).all()
    assert (
        table[["difference", "p", "boot_low", "mean_first", "probability"]].isna().to_numpy().all()
    )
    assert (table["reason"] == "n=0, fewer than 6 seeds").all()


def test_a_paradigm_without_a_usable_option_stays_in_the_table() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW, "lvml": LOW})
    stopped = (at_budget["paradigm"] == "lvml") & (at_budget["seed"] == 2)
    at_budget.loc[stopped, "status"] = "censored"
    table = _paired(at_budget)
    assert len(table) == 6
    row = _pair(table, "lvml", "hard")
    assert (row["num_pairs"], row["verdict"]) == (0, "undecided")
    assert row["reason"] == "no option of lvml can be chosen"
    assert row[["difference", "low", "p", "p_holm", "boot_low", "probability"]].isna().all()
    assert math.isnan(row["seeds_to_decide"])
    other = _pair(table, "soft", "hard")
    assert other["verdict"] == "worse"
    # four of the six rows are no tests, and stay in the family
    assert other["p_holm"] == pytest.approx(6 * other["p"])
    assert _iqm(at_budget)["paradigm"].tolist() == ["hard", "soft"]


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_that_is_not_known_is_never_left_out(metric: str) -> None:
    at_budget = _study({"hard": LOW, "soft": HIGH, "lvml": HIGH})
    lost = (at_budget["paradigm"] == "soft") & (at_budget["seed"] == 2)
    at_budget.loc[lost & (at_budget["split"] == "test"), metric] = math.nan
    table = _paired(at_budget)
    row = _pair(table, "soft", "hard", metric)
    assert row["num_pairs"] == 6
    assert row[["mean_first", "difference", "low", "p", "boot_low", "probability"]].isna().all()
    assert row["mean_second"] == pytest.approx(np.mean(LOW))
    assert (row["verdict"], row["reason"]) == (
        "undecided",
        f"{metric} is not known for every seed",
    )
    assert _pair(table, "lvml", "hard", metric)["verdict"] == "better"
    (other,) = set(METRICS) - {metric}
    assert _pair(table, "soft", "hard", other)["verdict"] == "better"
    intervals = _iqm(at_budget).set_index("paradigm")
    names = [f"{metric}_iqm", f"{metric}_iqm_low", f"{metric}_iqm_high"]
    assert intervals.loc["soft", names].isna().all()
    assert intervals.drop(columns=["task", "m"]).notna().sum().sum() == 15


def test_an_option_without_a_validation_score_is_chosen_in_no_resample() -> None:
    rows = [row for seed in range(6) for row in _cell("hard", 0.1, seed, LOW[seed], LOW[seed])]
    for seed in range(6):
        rows += _cell("soft", 0.1, seed, LOW[seed], HIGH[seed])
        rows += _cell("soft", 0.2, seed, math.nan if seed == 0 else 0.99, 0.0)
    at_budget = pd.DataFrame(rows)
    alone = at_budget[at_budget["lr"] == 0.1]
    pd.testing.assert_frame_equal(_paired(at_budget), _paired(alone))
    pd.testing.assert_frame_equal(_iqm(at_budget), _iqm(alone))


def test_diverged_seeds_count() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW})
    lost = (at_budget["paradigm"] == "hard") & (at_budget["seed"] == 2)
    at_budget.loc[lost, ["status", "diverged"]] = ["diverged", True]
    at_budget.loc[lost, ["saif", "accuracy", "loss"]] = [0.0, 0.1, math.nan]
    row = _pair(_paired(at_budget), "soft", "hard", "saif")
    assert row["num_pairs"] == 6
    assert row["mean_second"] == pytest.approx((sum(HIGH) - HIGH[2]) / 6)


def test_a_group_with_one_seed_has_no_interval_whatever_the_others_have() -> None:
    at_budget = _without(_study({"hard": LOW, "soft": HIGH}), "soft", 1, 2, 3, 4, 5)
    intervals = _iqm(at_budget).set_index("paradigm")
    assert intervals.loc["soft", "saif_iqm"] == HIGH[0]
    assert math.isnan(intervals.loc["soft", "saif_iqm_low"])
    assert intervals.loc["hard", "saif_iqm_low"] < intervals.loc["hard", "saif_iqm_high"]


# --- interquartile means


def test_iqm_intervals_by_hand() -> None:
    intervals = _iqm(_study({"soft": HIGH, "lvml": LOW}), resamples=2_000)
    assert intervals["paradigm"].tolist() == ["soft", "lvml"]
    row = intervals.iloc[0]
    # .80 .81 .82 .83 .84 .85: the middle two, and half of their neighbours
    assert row["accuracy_iqm"] == pytest.approx(0.825)
    assert 0.80 < row["accuracy_iqm_low"] < 0.82
    assert 0.83 < row["accuracy_iqm_high"] < 0.85
    wide = _iqm(_study({"soft": HIGH}), resamples=2_000, confidence=0.99).iloc[0]
    assert wide["accuracy_iqm_low"] < row["accuracy_iqm_low"]


# --- tables of another kind


def test_one_paradigm_has_no_pair() -> None:
    table = _paired(_study({"soft": HIGH}))
    assert table.empty
    assert table.columns.tolist() == PAIRED_COLUMNS


def test_nothing_that_can_be_chosen() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW}).assign(status="censored")
    assert (_paired(at_budget)["reason"] == "no option of soft and hard can be chosen").all()
    intervals = _iqm(at_budget)
    assert intervals.empty
    assert [c for c in intervals.columns if c not in GROUP] == [
        f"{metric}_iqm{end}" for metric in METRICS for end in ("", "_low", "_high")
    ]


def test_paradigms_of_other_names_come_last() -> None:
    table = _paired(_study({"lvml-logits": HIGH, "lvml": LOW}))
    assert table[["first", "second"]].iloc[0].tolist() == ["lvml-logits", "lvml"]
    assert paradigm_order(["a", "lvml-logits", "lvml"]) == ["lvml", "a", "lvml-logits"]


def test_refuses_what_does_not_belong_together() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW})
    choice = choose(at_budget)
    with pytest.raises(ValueError, match="the choice was made by accuracy, not by saif"):
        paired_table(resample(at_budget, choice, "saif"))
    with pytest.raises(ValueError, match="select must be accuracy or saif, got 'loss'"):
        paired_table(resample(at_budget, choice, "loss"))  # type: ignore[arg-type]
    both = pd.concat([at_budget, at_budget.assign(comparison_id="other")])
    with pytest.raises(ValueError, match="must hold one comparison, got 2"):
        iqm_intervals(resample(both, choice))
    with pytest.raises(ValueError, match="must name one option of hard that has cells"):
        paired_table(resample(at_budget, choice.assign(lr=0.7)))
    with pytest.raises(ValueError, match="at_budget has no cells of soft"):
        iqm_intervals(resample(at_budget[at_budget["paradigm"] == "hard"], choice))
    twice = pd.concat([at_budget, at_budget.head(3).assign(cell_id="another")])
    with pytest.raises(ResultsError, match=r"cells another and hard-0\.1-nan-0 are"):
        paired_table(resample(twice, choice))


def test_a_row_that_cannot_be_tested_stays_in_the_family() -> None:
    """Missing data make no verdict easier."""
    at_budget = _study({"hard": LOW, "soft": HIGH, "lvml": LOW[::-1]})
    unknown = (at_budget["paradigm"] == "lvml") & (at_budget["split"] == "test")
    holes = at_budget.copy()
    holes.loc[unknown, "saif"] = math.nan
    before, after = (_pair(_paired(each), "soft", "hard") for each in (at_budget, holes))
    assert after["p"] == before["p"]
    assert after["p_holm"] >= before["p_holm"]
    assert _paired(holes)["p"].isna().sum() == 2
