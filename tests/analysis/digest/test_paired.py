"""Paired comparisons: what moves a difference, a bound or a verdict, and what never may."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from analysis.digest.choose import choose, summarise
from analysis.digest.pairs import PAIRED_COLUMNS, SAME_EVERYWHERE, paired_tables
from analysis.digest.scores import Instances, Scores, scores
from analysis.groups import GROUP, OPTION
from analysis.rules.backgrounds import Backgrounds
from analysis.rules.crossed import crossed_mean, needed_seeds
from analysis.rules.stages import Looks, Run
from analysis.rules.statistics import holm, mcnemar, on_logit_scale, sign_flip
from study.results import INSTANCES, ResultsError
from tests.made_up.instances import marked, of_counts

METRICS = ("saif", "accuracy")
PARADIGMS = ("hard", "soft", "hybrid", "lvml")


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
        "given_up_at": None,
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
    every = ((name, *each) for name, scores in groups.items() for each in enumerate(scores))
    return pd.DataFrame(
        [row for name, seed, score in every for row in _cell(name, 0.1, seed, score, score)]
    )


def _random(num_seeds: int = 7, names: Sequence[str] = PARADIGMS) -> pd.DataFrame:
    """Several options a paradigm, close to each other, each with noise of its own."""
    normal = np.random.default_rng(0).normal
    rows = []
    for name, lr, seed in itertools.product(names, (0.01, 0.1, 0.5), range(num_seeds)):
        for switch_point in (0.25, 0.5) if name == "hybrid" else (math.nan,):
            scores = (normal(0.7, 0.05) + normal(0, 0.01, 2)).round(3)
            rows += _cell(name, lr, seed, *scores, switch_point=switch_point)
    table = pd.DataFrame(rows)
    # SAIF tells another story than accuracy
    return table.assign(saif=(table["saif"] - 0.2 * table["lr"] - 0.1).round(3))


def _paired(at_budget: pd.DataFrame, choice: pd.DataFrame | None = None) -> pd.DataFrame:
    choice = choose(at_budget) if choice is None else choice
    (table,) = paired_tables([(at_budget, choice, METRICS, _cells(at_budget))])
    return table


def _cells(at_budget: pd.DataFrame) -> pd.DataFrame:
    return at_budget.drop_duplicates("cell_id")


def _pair(table: pd.DataFrame, first: str = "soft", metric: str = "accuracy") -> pd.Series:
    """The row of a paradigm and hard attention."""
    return table.set_index(["first", "second", "metric"]).loc[(first, "hard", metric)]


def _of_seeds(hard: Sequence[float], soft: Sequence[float]) -> pd.Series:
    """The row of soft and hard attention whose seeds have these scores."""
    return _pair(_paired(_study({"hard": hard, "soft": soft})))


def _without(at_budget: pd.DataFrame, paradigm: str, *seeds: int) -> pd.DataFrame:
    return at_budget[(at_budget["paradigm"] != paradigm) | ~at_budget["seed"].isin(seeds)]


HIGH = [0.81, 0.82, 0.84, 0.80, 0.83, 0.85]
LOW = [0.70, 0.73, 0.72, 0.71, 0.70, 0.74]


def _above(*differences: float) -> list[float]:
    return np.add(LOW, differences).tolist()


# --- the table


def test_differences_equal_scipys_paired_test_of_the_chosen_options() -> None:
    at_budget = _random()
    choice, table = choose(at_budget), _paired(at_budget)
    chosen = at_budget.merge(choice[GROUP + OPTION], on=GROUP + OPTION)
    chosen = chosen[chosen["split"] == "test"]
    for row in table.to_dict("records"):
        by_seed = chosen.pivot(index="seed", columns="paradigm", values=row["metric"])
        a, b = by_seed[row["first"]], by_seed[row["second"]]
        test = stats.ttest_rel(a, b)
        means = [a.mean(), b.mean(), a.mean() - b.mean()]
        expected = [*means, *test.confidence_interval(0.95), test.pvalue, 7, 0.95]
        names = ["mean_first", "mean_second", "difference", "low", "high", "p", "num_pairs"]
        assert [row[name] for name in (*names, "confidence")] == pytest.approx(expected, rel=1e-6)


# --- the verdict


@pytest.mark.parametrize(
    ("hard", "soft", "verdict", "reason"),
    [
        (LOW, HIGH, "better", ""),
        (HIGH, LOW, "worse", ""),
        (LOW, _above(0.01, 0.03, 0.02, 0.01, 0.005, 0.03), "better", ""),
        (LOW, _above(0.01, 0.03, -0.02, 0.01, 0.005, 0.03), "undecided", "not below 0.05"),
        # Five of six agree, far more than a t test takes to decide.
        (LOW, _above(0.05, 0.06, 0.055, 0.06, 0.05, -0.001), "undecided", "by the signs"),
        (LOW[:5], HIGH[:5], "undecided", "n=5, fewer than 6 seeds"),
        (LOW[:1], HIGH[:1], "undecided", "with one seed no interval exists"),
        (HIGH, HIGH, "undecided", SAME_EVERYWHERE),
        # A t test divides by a spread that six equal differences do not tell.
        ([0.6] * 6, [0.7 + 1e-11 * seed for seed in range(6)], "undecided", SAME_EVERYWHERE),
        # They differ in the last bit.
        ([0.3] * 6, [0.1 + 0.2] * 6, "undecided", SAME_EVERYWHERE),
    ],
)
def test_a_verdict_takes_six_seeds_that_vary_and_agree(
    hard: list[float], soft: list[float], verdict: str, reason: str
) -> None:
    row = _of_seeds(hard, soft)
    assert (row["verdict"], row["num_pairs"]) == (verdict, len(hard))
    assert reason in row["reason"] if reason else row["reason"] == ""
    difference = round(np.mean(soft) - np.mean(hard), 9)
    assert row["difference"] == (pytest.approx(difference) if difference else 0)
    tested = reason != SAME_EVERYWHERE and len(hard) > 1
    assert set(row[["low", "high", "p", "p_holm"]].notna()) == {tested}


@pytest.mark.parametrize("sign", [1, -1])
def test_advice_is_of_the_far_end_of_the_interval_and_of_what_was_seen(sign: int) -> None:
    soft = _above(*np.multiply(sign, (0.03, -0.02, 0.01, 0.02, -0.01, 0.0)))
    row = _of_seeds(LOW, soft)
    assert "after Holm, not below 0.05" in row["reason"]
    far = row["high"] if sign == 1 else row["low"]
    assert row["needed_effect"] == far
    crossed = crossed_mean(np.subtract(soft, LOW)[:, None])
    # two equal rows, one for each metric: each is held to half of the level
    assert row["needed_seeds"] == needed_seeds(crossed, far, 0.05 / 2)
    assert row["seen_seeds"] == needed_seeds(crossed, crossed.mean, 0.05 / 2) > row["needed_seeds"]


# --- seeds that learn and seeds that do not


FAILED = 0.26  # of four classes: chance


@pytest.mark.parametrize(
    ("hard", "soft", "only", "verdict", "reason"),
    [
        ([0.9, 0.91, *[FAILED] * 10], np.linspace(0.8, 0.91, 12), (10, 0), "better", ""),
        # a loser that fails once more is no better than one that never did
        (
            [0.62, 0.61, 0.6, 0.59, 0.63, 0.1],
            [0.9, 0.91, 0.9, 0.89, 0.9, 0.91],
            (1, 0),
            "better",
            "",
        ),
        ([0.9, *[FAILED] * 5], [*[0.9] * 5, FAILED], (4, 0), "undecided", "after Holm"),
        # learns more often, to less
        ([0.95] * 9 + [FAILED] * 3, [0.45] * 12, (3, 0), "worse", ""),
    ],
)
def test_where_seeds_fail_the_usual_tests_decide_and_the_mean_has_no_interval(
    hard: Sequence[float], soft: Sequence[float], only: tuple[int, int], verdict: str, reason: str
) -> None:
    row = _of_seeds(hard, soft)
    for side, of_seeds in (("first", np.array(soft)), ("second", np.array(hard))):
        learned = of_seeds[of_seeds > 0.3]
        numbers = row[[f"learned_{side}", f"given_{side}"]].tolist()
        assert numbers == pytest.approx([len(learned), learned.mean()])
    assert row[["low", "high", "needed_seeds", "seen_seeds"]].isna().all()
    test, differences = stats.ttest_rel(soft, hard), np.subtract(soft, hard)
    expected = [test.pvalue, sign_flip(differences), mcnemar(*only)]
    assert row[["p", "p_signs", "p_learned"]].tolist() == pytest.approx(expected)
    assert row["verdict"] == verdict
    assert reason in row["reason"]


@pytest.mark.parametrize("count", [1, 2])
def test_holm_runs_over_all_rows_of_what_is_read_together(count: int) -> None:
    at_budget = _random()
    case = at_budget, choose(at_budget), METRICS, _cells(at_budget)
    tables = paired_tables([case] * count)
    family = pd.concat(tables)
    assert set(family["num_tests"]) == {len(family)} == {12 * count}
    np.testing.assert_allclose(family["p_holm"], holm(family["p"])[0])


# --- seeds that were added after a look


@pytest.mark.parametrize(
    ("planned", "first"),
    [
        ([6] * 6 + [12] * 6, 6),
        ([3] * 3 + [6] * 3 + [12] * 6, 6),  # three seeds decide nothing, so nobody looked
        ([6] * 12, 6),  # the further ones by a command of their own
        ([12] * 6 + [6] * 6, 12),  # a plan that was cut short after a look
        ([3] * 12, 12),
        ([math.nan] * 12, 12),  # of one stage, where nothing is planned
    ],
)
def test_verdicts_stay_those_of_the_first_look(planned: Sequence[int], first: int) -> None:
    at_budget = _random(num_seeds=12, names=("hard", "soft"))
    choice = choose(at_budget)
    turned = at_budget.assign(planned_seeds=np.array(planned)[at_budget["seed"]])
    found = _paired(turned.sample(frac=1, random_state=0), choice)
    assert set(found["num_pairs"]) == {first}
    assert set(found["later_seeds"]) == {12 - first}
    alone = _paired(at_budget[at_budget["seed"] < first], choice)
    pd.testing.assert_frame_equal(*(each.drop(columns="later_seeds") for each in (found, alone)))


def _confirming(at_budget: pd.DataFrame, planned: int) -> pd.DataFrame:
    return at_budget.assign(stage="confirm", planned_seeds=planned)


def test_before_the_planned_seeds_have_ended_there_is_no_verdict() -> None:
    """But for pairs whose seeds have; and a failed run has ended."""
    low, high = [*LOW, 0.71], [*HIGH, 0.83]
    study = _confirming(_study({"hard": low, "soft": high, "lvml": high}), 7)
    early = _without(study, "lvml", 6)
    table, alone = _paired(early), _paired(_without(study, "lvml", *range(7)))
    row = _pair(table, "lvml")
    assert (row["verdict"], row["num_pairs"]) == ("undecided", 6)
    assert row["reason"] == "interim: 6 of 7 planned seeds"
    assert row[["ended_seeds", "planned_seeds"]].tolist() == [6, 7]
    assert row[["low", "high"]].notna().all()
    assert row[["needed_seeds", "seen_seeds"]].isna().all()
    assert _pair(table)["verdict"] == _pair(alone)["verdict"] == "better"
    failed = study.loc[study["cell_id"] == "lvml-0.1-nan-6"].assign(status="failed")
    cells = _cells(pd.concat([early, failed]))
    (known,) = paired_tables([(early, choose(early), METRICS, cells)])
    assert _pair(known, "lvml")[["verdict", "num_pairs"]].tolist() == ["better", 6]


def test_what_was_given_up_comes_too_late_for_a_verdict_that_was_due() -> None:
    """With seven of eight; with five of six, none was."""
    for n, later, reason in ((8, 1, ""), (6, 0, "")):
        study = _confirming(_study({"hard": [*LOW, *LOW][:n], "soft": [*HIGH, *HIGH][:n]}), n)
        early = "2026-01-01T00:00:00+00:30"
        late = study["given_up_at"].mask(
            (study["seed"] == 5) & (study["paradigm"] == "soft"), early
        )
        row = _pair(_paired(study.assign(given_up_at=late)))
        assert (row["num_pairs"], row["later_seeds"]) == (n - later, later)
        assert (row["verdict"], row["reason"]) == ("better", reason)


@pytest.mark.parametrize(
    ("kept", "fresh", "verdict", "n"),
    [
        (2, 0, "undecided", 2),
        (2, 3, "undecided", 5),
        (2, 4, "better", 6),  # as many as were planned
        (0, 7, "undecided", 7),  # of what was planned nothing is left: the further plan counts
        (0, 8, "better", 8),
    ],
)
def test_where_few_runs_were_left_further_seeds_give_a_verdict(
    kept: int, fresh: int, verdict: str, n: int
) -> None:
    study = _confirming(
        _study({"hard": [*LOW, *LOW, 0.7, 0.71], "soft": [*HIGH, *HIGH, 0.8, 0.82]}), 6
    )
    study["planned_seeds"] = study["planned_seeds"].mask(study["seed"] > 5, 8)
    study = study[study["seed"] < 6 + fresh]
    failed = study["seed"].between(kept, 5)
    cells = _cells(study.assign(status=study["status"].mask(failed, "failed")))
    there = study[~failed]
    (table,) = paired_tables([(there, choose(there), METRICS, cells)])
    assert (_pair(table)["verdict"], _pair(table)["num_pairs"]) == (verdict, n)


def test_no_seed_of_the_other_paradigm_cuts_the_plan_of_a_pair() -> None:
    """Even if it is the first of all, and ends last, by a command with a plan of seven."""
    twelve = {seed: Run(f"{seed:02}", 12) for seed in range(12)}
    early = Looks({"hard": twelve, "soft": {seed: twelve[seed] for seed in range(1, 7)}})
    late = Looks({**early.runs, "soft": {**early.runs["soft"], 0: Run("99", 7)}})
    doubts = [each.of("hard", "soft").doubt for each in (early, late)]
    assert doubts == [f"interim: {n} of 12 planned seeds" for n in (6, 7)]


def test_while_options_are_tuned_there_is_no_verdict() -> None:
    row = _pair(_paired(_study({"hard": LOW, "soft": HIGH}).assign(stage="tune")))
    assert (row["verdict"], row["reason"]) == ("undecided", "interim: nothing is confirmed yet")


@pytest.mark.parametrize(("fresh", "verdict"), [(0, "undecided"), (5, "undecided"), (6, "better")])
def test_seeds_on_which_another_option_was_confirmed_give_no_verdict(
    fresh: int, verdict: str
) -> None:
    """Fresh ones do, and of other paradigms the verdicts stay."""
    scores = {"hard": [*LOW, *LOW], "soft": [*HIGH, *HIGH], "lvml": [*HIGH, *HIGH]}
    study = _confirming(_study(scores), 6)
    earlier = study[(study["paradigm"] == "soft") & (study["seed"] < 6)]
    earlier = earlier.assign(lr=0.2, last_lr=0.2, finished_at="2025-12-31T00:00:00+00:00")
    earlier = earlier.assign(cell_id=earlier["cell_id"] + "-before")
    tuned = study[study["seed"] == 0].assign(stage="tune", seed=99, planned_seeds=math.nan)
    choice = choose(tuned.assign(cell_id=tuned["cell_id"] + "-tuned"))
    there = pd.concat([study[study["seed"] < 6 + fresh], earlier])
    (table,) = paired_tables([(there, choice, METRICS, _cells(there))])
    row = _pair(table)
    assert row["verdict"] == verdict
    doubts = {0: "another option of soft", 5: "interim: 5 of 6 planned seeds", 6: ""}
    assert row["reason"].startswith(doubts[fresh])
    assert row["num_pairs"] == (6 if verdict == "better" else 6 + fresh)
    assert _pair(table, "lvml")[["verdict", "num_pairs"]].tolist() == ["better", 6]


# --- what is missing


def test_differences_are_over_the_common_seeds() -> None:
    at_budget = _without(_study({"hard": [*LOW, 0.9, 0.1], "soft": [*HIGH, 0.1, 0.9]}), "hard", 6)
    at_budget = _without(at_budget, "soft", 7)
    row = _pair(_paired(at_budget))
    assert (row["num_pairs"], row["verdict"]) == (6, "better")
    means = row[["mean_first", "mean_second"]].tolist()
    assert means == pytest.approx([np.mean(HIGH), np.mean(LOW)])
    row = _pair(_paired(_without(at_budget, "soft", *range(6))))
    assert (row["num_pairs"], row["verdict"]) == (0, "undecided")
    assert row[["difference", "p", "low", "mean_first"]].isna().all()
    assert "no seed in common" in row["reason"]


def test_a_paradigm_without_a_usable_option_stays_in_the_table() -> None:
    at_budget = _study({"hard": HIGH, "soft": LOW, "lvml": LOW})
    stopped = (at_budget["paradigm"] == "lvml") & (at_budget["seed"] == 2)
    table = _paired(at_budget.assign(status=at_budget["status"].mask(stopped, "censored")))
    row, other = (_pair(table, name) for name in ("lvml", "soft"))
    assert (row["num_pairs"], row["verdict"]) == (0, "undecided")
    assert row["reason"] == "no option of lvml can be chosen"
    assert row[["difference", "low", "p", "p_holm"]].isna().all()
    assert other["verdict"] == "worse"
    # four of the six rows are no tests, and stay in the family
    assert other["p_holm"] == pytest.approx(6 * other["p"])
    assert _paired(_study({"soft": HIGH})).columns.tolist() == PAIRED_COLUMNS


def test_a_metric_that_is_not_known_is_never_left_out() -> None:
    at_budget = _study({"hard": LOW, "soft": HIGH})
    lost = at_budget.eval("paradigm == 'soft' and seed == 2 and split == 'test'")
    table = _paired(at_budget.assign(saif=at_budget["saif"].mask(lost)))
    row = _pair(table, metric="saif")
    assert row[["mean_first", "difference", "low", "p"]].isna().all()
    assert (row["num_pairs"], row["verdict"]) == (6, "undecided")
    assert row["reason"] == "saif is not known for every seed"
    assert _pair(table)["verdict"] == "better"


# --- images


def _by_image(
    seed: int = 0,
    paradigms: Sequence[str] = ("hard", "soft"),
    num_seeds: int = 7,
    counts: Sequence[int] | None = None,
    easy: Mapping[str, NDArray[np.float64]] | None = None,
) -> pd.DataFrame:
    """One option a paradigm, tested on 30 images with some instances each, not all known.

    `by_image` has of each metric the counts of which its score is made.

    `easy`: what share of each image's instances a paradigm gets right, by default one of all.
    """
    rng = np.random.default_rng(seed)
    of_image = rng.integers(1, 6, 30) if counts is None else np.array(counts)
    known = rng.integers(0, 2, 30) if counts is None else of_image
    shared = rng.uniform(0.3, 0.9, 30)
    rows = []
    for name, s in itertools.product(paradigms, range(num_seeds)):
        right = rng.binomial(of_image, easy[name] if easy else shared)
        saif = rng.binomial(np.minimum(known, right), 0.7)
        scores = {"accuracy": right.sum() / of_image.sum(), "saif": saif.sum() / known.sum()}
        validation, test, train = _cell(name, 0.1, s, 0.5, 0.5)
        images = of_counts(of_image, right=right, known=known, saif=saif)
        images["by_image"] = {"accuracy": (right, of_image), "saif": (saif, known)}
        rows += [validation, test | scores | images, train]
    return pd.DataFrame(rows)


def _by_hand(
    at_budget: pd.DataFrame, paradigm: str, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(S, I) shares and (I,) instances of the images with any."""
    rows = at_budget[(at_budget["paradigm"] == paradigm) & (at_budget["split"] == "test")]
    hits, counts = zip(*(each[metric] for each in rows["by_image"]), strict=True)
    there = counts[0] > 0
    return np.array(hits)[:, there] / counts[0][there], counts[0][there]


def test_with_images_a_row_is_the_crossed_mean_of_the_shares() -> None:
    at_budget = _by_image(paradigms=("hard", "soft", "lvml"))
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
    at_budget = _by_image()
    test = at_budget["split"] == "test"
    without = _pair(_paired(at_budget))
    image = at_budget.loc[test, "base_images"].iloc[0]
    background = np.random.default_rng(0).integers(20, size=(len(image), 3))
    held = np.column_stack([image, background]).ravel()
    at_budget["base_images"] = [held if each else None for each in test]
    row = _pair(_paired(at_budget))
    hard, soft = (
        np.array([marked(each, "right") for each in rows.to_dict("records")], float)
        for _, rows in at_budget[test].sort_values("seed").groupby("paradigm")
    )
    part = Backgrounds(image, background).part(soft - hard)
    assert row["background_se"] == pytest.approx(math.sqrt(part.variance), rel=1e-9)
    assert (row["num_images"], row["num_backgrounds"]) == (30, 20)
    assert without["high"] - without["low"] < row["high"] - row["low"]
    assert pd.isna(without["num_backgrounds"])


def test_images_that_hide_a_difference_are_asked_for_instead_of_seeds() -> None:
    """Whichever images there are decides: each is easy for one paradigm, hard for the other."""
    rng = np.random.default_rng(1)
    easy = {"hard": rng.uniform(0, 0.9, 30), "soft": rng.uniform(0.1, 1, 30)}
    row = _pair(_paired(_by_image(0, [*easy], 12, [10] * 30, easy)))
    assert row["verdict"] == "undecided"
    assert row["image_se"] > 3 * row["seed_se"]
    assert row["needed_seeds"] < math.inf  # of the far end of the interval
    assert row["seen_seeds"] == math.inf


def test_a_diverged_seed_has_one_score_on_every_image() -> None:
    at_budget = _by_image()
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
    at_budget = _by_image()
    at_budget.at[at_budget.index[at_budget["split"] == "test"][3], column] = value
    with pytest.raises(ResultsError, match=r"other instances|not at hand"):
        _paired(at_budget)


@pytest.mark.parametrize(
    ("shares", "part"),
    [
        ([[1, 1, 0.5, 0.9]], 0.5 / 0.7),  # of what is wrong, where the last image counts twice
        ([[0, 0, 0.5, 0.1]], 0.5 / 0.7),  # of what is right, which is rarer
        ([[1, 1, 1, 1]], math.nan),
    ],
)
def test_what_one_image_has_of_the_rarer_outcome(shares: list[list[float]], part: float) -> None:
    image = np.array([0, 1, 2, 3, 3])
    found = Scores(np.array(shares)[:, image], Instances(image, np.bincount(image), None))
    assert found.of_one_image == pytest.approx(part, nan_ok=True)


def _blanked(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns=[*INSTANCES, "base_images"], errors="ignore")


@pytest.mark.parametrize(
    "change",
    [
        _blanked,
        lambda table: table.assign(saif=table["saif"] / 2, accuracy=table["accuracy"] / 2),
        lambda table: table.assign(
            instance_saif=table["instance_saif"].mask(table["seed"] == 1, None),
            instance_right=table["instance_right"].mask(table["seed"] == 1, None),
        ),
    ],
    ids=["none recorded", "another threshold or cut", "one cell without"],
)
def test_without_images_the_test_is_over_seeds_alone(
    change: Callable[[pd.DataFrame], pd.DataFrame],
) -> None:
    at_budget = change(_by_image())
    table, plain = _paired(at_budget), _paired(_blanked(at_budget))
    pd.testing.assert_frame_equal(table, plain)
    assert table[["num_images", "image_se"]].isna().to_numpy().all()
    assert table["p"].notna().all()


@pytest.mark.parametrize("counts", [[50] * 2, [50] * 4, [400, *[1] * 29], [90, 90, *[1] * 20]])
def test_too_few_test_images_give_no_verdict(counts: Sequence[int]) -> None:
    """Two, or two that have nearly all instances, cannot say how much images vary."""
    low, high = (np.full(len(counts), share) for share in (0.2, 0.9))
    at_budget = _by_image(counts=counts, easy={"hard": low, "soft": high})
    row = _pair(_paired(at_budget))
    assert (row["verdict"], row["reason"]) == ("undecided", "too few test images")
    assert row[["low", "high", "p_holm"]].notna().all()
    assert row[["num_images", "needed_seeds"]].isna().all()
    fixed = _pair(_paired(_blanked(at_budget)))
    assert fixed["verdict"] == "better"
    assert fixed["p"] == pytest.approx(row["p"])


def test_too_few_backgrounds_give_no_verdict() -> None:
    at_budget = _by_image()
    test = at_budget["split"] == "test"
    count = int(at_budget.loc[test, "num_evaluated"].iloc[0])
    image = at_budget.loc[test, "base_images"].iloc[0]
    held = np.column_stack([image, 100 + np.arange(count) % 3]).ravel()
    at_budget["base_images"] = [held if each else None for each in test]
    row = _pair(_paired(at_budget))
    assert (row["verdict"], row["reason"]) == ("undecided", "too few background images")
    assert row["num_images"] == 30
