"""Paradigms against each other on the same seeds and mosaics, and how sure the difference is.

The seed determines the training mosaics, the initialisation and the order, whatever the paradigm,
and the test mosaics are the same for all cells. So two paradigms' cells with the same seed are a
pair, mosaic by mosaic. Seeds, foreground and background images are samples: a verdict holds over
all of them, where it is recorded what is right of each mosaic, else over seeds with images fixed.

*Better* means: not of one law, and higher on average in these seeds. That takes two tests: one of
the mean, whose normal tails are corrected for all tests that are read together, and the exact
sign-flip test of the seeds, as a guard. Where seeds fall apart into those that learned and those
that did not (`analysis.rules.learning`), the same two decide, but the mean has no interval, and
how often each learned is told beside it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.digest.choose import ROUNDING, moved_by_choice
from analysis.digest.scores import Scores, scores
from analysis.groups import paradigm_order
from analysis.rules.crossed import CrossedMean, crossed_mean, needed_seeds
from analysis.rules.learning import apart, guess, learned
from analysis.rules.stages import Look, looks, tested_choice
from analysis.rules.statistics import CONFIDENCE, LEVEL, MIN_SEEDS, holm, sign_flip
from study.results import INSTANCES, ResultsError

SAME_EVERYWHERE = "the difference is the same on all seeds, so a t test says nothing"
"""Reason for an undecided pair whose differences do not vary."""

SCREENING = 12
"""With fewer seeds, differences that are decided are much overstated on average."""

POWER = 0.8
"""Power of the test that the columns `needed_seeds` and `seen_seeds` plan."""

_WITHOUT_SPREAD = dict.fromkeys(("low", "high", "seed_se", "image_se", "background_se"), math.nan)
"""Of seeds that fall apart, whose mean is of two laws."""

PAIRED_COLUMNS = [
    "task", "m", "comparison_id", "metric", "first", "second", "num_pairs", "later_seeds",
    "ended_seeds", "planned_seeds",
    "num_images", "num_backgrounds",
    "mean_first", "mean_second", "difference", "low", "high", "seed_se", "image_se",
    "background_se", "above", "learned_first", "learned_second", "given_first", "given_second",
    "p_learned", "p", "num_tests", "p_holm", "p_signs", "verdict", "reason", "needed_effect",
    "needed_seeds", "seen_seeds", "confidence",
]  # fmt: skip


def paired_tables(
    comparisons: Sequence[tuple[pd.DataFrame, pd.DataFrame, Sequence[str], pd.DataFrame]],
) -> list[pd.DataFrame]:
    """Differences between the paradigms of each comparison on the test split, with verdicts.

    Differences are taken seed by seed and instance by instance, over the seeds that the chosen
    options of both paradigms have in common. A failed cell removes its pair and lowers
    `num_pairs`; a diverged one counts as SAIF 0 and accuracy 1/C on every image. All rows of the
    tables (pairs of paradigms x metrics) are one family for Holm, since they are read together.

    A verdict needs the first look at `MIN_SEEDS` common seeds or more, see
    `analysis.rules.stages.Looks`, enough images where they are known, `p_holm` below `LEVEL`,
    and `p_signs`, too.

    Args:
        comparisons: of each `at_budget`, as `equal_compute` gives it; `choice`, as `choose` gives
            it for these rows; the metrics that are tested; and its cells, one row a cell.

    Returns:
        One row a (metric, first, second), in the order of the metrics and the paradigms: `task`,
        `m`, `comparison_id`, `metric`, `first` and `second` (paradigms, `first` the later in
        `PARADIGM_ORDER`), `num_pairs` (common seeds), `later_seeds` (further ones, added after a
        look), `ended_seeds` and `planned_seeds` (missing unless planned seeds have not ended yet,
        so that there is no verdict), `num_images` (missing: the test is over seeds alone) and
        `num_backgrounds` (missing: they are fixed), `mean_first` and `mean_second` over them,
        `difference` = first - second with `low`, `high`, the standard errors over seeds `seed_se`,
        over images `image_se` and over background images `background_se`, and two-sided `p` of
        `analysis.rules.crossed.crossed_mean`. Where the seeds of either fall apart, there is no
        interval: `learned_first` and `learned_second` count the seeds whose measure is above
        `above`, `given_first` and `given_second` are their means, and `p_learned` is McNemar's of
        the counts, which decides nothing. `p_holm` is corrected for `num_tests` tests; `p_signs`
        is that of the exact sign-flip test over seeds; `verdict`: `first` is `better` or `worse`
        than `second`, or `undecided`; `reason`: why it is undecided, else empty. Of an undecided
        row, `needed_seeds` finds `needed_effect`, the end of the interval farther from 0, at this
        row's level after Holm with 80 % power, see `analysis.rules.crossed.needed_seeds`;
        `seen_seeds` a difference as large as was seen; `confidence`. Scores are fractions. What is
        not known is NaN.

    Raises:
        ResultsError: two cells of one option and seed.
    """
    rows = [list(_rows(*each)) for each in comparisons]
    judged = iter(with_verdicts([*itertools.chain(*rows)]))
    return [
        pd.DataFrame(itertools.islice(judged, len(each)), columns=PAIRED_COLUMNS) for each in rows
    ]


def _rows(
    at_budget: pd.DataFrame, choice: pd.DataFrame, metrics: Sequence[str], cells: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """The rows of one comparison, without verdicts."""
    there = set(at_budget["paradigm"].unique())
    rows = tested_choice(at_budget, choice)
    chosen, known = set(choice["paradigm"]), set(rows["paradigm"])
    absent = {
        "no option of {} can be chosen": there - chosen,
        "the chosen option of {} is not confirmed yet": chosen - known,
    }
    rows = rows[rows["split"] == "test"].sort_values("seed")
    _refuse_twice(rows)
    paradigms = paradigm_order(at_budget["paradigm"].unique())
    looked_at = looks(cells, choice)
    read = {"seed", "diverged", *metrics, *map("between_{}".format, metrics)}
    read |= {*INSTANCES, "base_images", "num_evaluated", "cell_id"}
    columns = [name for name in rows if name in read]
    sides = {name: rows.loc[rows["paradigm"] == name, columns] for name in paradigms}
    moves = moved_by_choice(at_budget, choice, metrics)
    head = {name: at_budget[name].iloc[0] for name in ("task", "m", "comparison_id")}
    num_classes = float(at_budget["num_classes"].iloc[0])
    for metric in metrics:
        floor = guess(head["task"], metric, num_classes)
        for second, first in combinations(paradigms, 2):
            look = looked_at.of(first, second)
            test = _test(sides[first], sides[second], metric, look, floor)
            order = (first, second) if test["difference"] > 0 else (second, first)
            moved = [moves.get((name, metric), (0.0, 0.0))[n] for n, name in enumerate(order)]
            lacks = [
                why.format(" and ".join(names))
                for why, every in absent.items()
                if (names := [name for name in (first, second) if name in every])
            ]
            lacks = lacks or [*filter(None, [look.doubt]), *test["lacks"]]
            pair = {"metric": metric, "first": first, "second": second}
            yield {**head, **pair, **test, "moved_by_choice": sum(moved), "lacks": lacks}


def of_seeds(differences: pd.Series) -> dict[str, Any]:
    """The numbers of a row for `with_verdicts` whose test is over seeds alone.

    Where differences fall apart, it has no interval.
    """
    values = differences.to_numpy(np.float64)
    numbers = _numbers(crossed_mean(values[:, None]), values)
    return numbers if apart(values) is None else numbers | _WITHOUT_SPREAD


def with_verdicts(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rows of one family of tests with verdicts, and what would decide them.

    Args:
        rows: see `decided`.

    Returns:
        The rows with the further columns of `paired_tables`.
    """
    judged, multipliers = decided(rows)
    for row, multiplier in zip(judged, multipliers, strict=True):
        # Where the seeds at hand do not agree among themselves, more like them need not.
        sure = row["p_holm"] < LEVEL and row["num_pairs"] >= MIN_SEEDS
        if row["reason"] and not sure and not row.get("lacks"):
            row |= advice(row, LEVEL / multiplier)
    return judged


def decided(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], NDArray[np.intp]]:
    """The rows of one family of tests with `p_holm`, `verdict` and `reason`; Holm's multipliers.

    Args:
        rows: `metric`, `first`, `second`, and what `of_seeds` or `of_pair` gives.
    """
    # A row that cannot be tested stays in the family: missing data must make no verdict easier.
    p = np.array([row["p"] for row in rows], np.float64)
    adjusted, multipliers = holm(np.nan_to_num(p, nan=1.0))
    judged = []
    for given, p_holm in zip(rows, np.where(np.isnan(p), math.nan, adjusted), strict=True):
        row = {**given, "p_holm": p_holm, "num_tests": len(rows), "confidence": CONFIDENCE}
        row["reason"] = "; ".join(_doubts(row))
        better = "better" if row["difference"] > 0 else "worse"
        row["verdict"] = "undecided" if row["reason"] else better
        judged.append(row)
    return judged, multipliers


def _refuse_twice(rows: pd.DataFrame) -> None:
    twice = rows[rows.duplicated(["paradigm", "seed"], keep=False)]
    if len(twice):
        one, other = sorted(twice["cell_id"].head(2))
        raise ResultsError(
            f"cells {one} and {other} are the same option and seed "
            f"({twice['schedule'].iloc[0]}, seed {twice['seed'].iloc[0]})."
        )


def _test(
    first: pd.DataFrame,
    second: pd.DataFrame,
    metric: str,
    look: Look,
    floor: float,
) -> dict[str, Any]:
    """Numbers of a row of the table, on the common seeds of two paradigms."""
    common = set(first["seed"]) & set(second["seed"])
    tested = common & look.tested
    sides = [side[side["seed"].isin(tested)] for side in (first, second)]
    both, n = scores(pd.concat(sides), metric), len(tested)
    between = (side[f"between_{metric}"] for side in sides if f"between_{metric}" in side)
    return {
        **of_pair(both[:n], both[n:], floor),
        "between": sum(abs(_mean(each.to_numpy(np.float64))) for each in between),
        "later_seeds": len(common) - n,
        "ended_seeds": look.ended,
        "planned_seeds": look.planned,
    }


def of_pair(first: Scores, second: Scores, floor: float = -math.inf) -> dict[str, Any]:
    """The numbers of a row for `with_verdicts` whose test is over seeds and images.

    Args:
        first: of some seeds.
        second: of the same seeds and instances.
        floor: see `analysis.rules.learning.guess`.
    """
    of_first, of_second = first.by_seed, second.by_seed
    both = first - second
    crossed = crossed_mean(both.shares, both.weights, CONFIDENCE, both.of_backgrounds)
    numbers = {
        **_numbers(crossed, of_first - of_second),
        "num_images": crossed.num_images if both.instances else math.nan,
        "num_backgrounds": crossed.num_backgrounds or math.nan,
        "mean_first": _mean(of_first),
        "mean_second": _mean(of_second),
        "lacks": [*filter(None, [both.lacking])],
    }
    found = learned(of_first, of_second, floor)
    if found is None:
        return numbers
    return numbers | {
        **_WITHOUT_SPREAD,
        "above": found.above,
        "learned_first": found.first.sum(),
        "learned_second": found.second.sum(),
        "given_first": _mean(of_first[found.first]),
        "given_second": _mean(of_second[found.second]),
        "p_learned": found.p,
    }


def _numbers(crossed: CrossedMean, by_seed: NDArray[np.float64]) -> dict[str, Any]:
    """The numbers of a mean difference; `by_seed` are the differences of each seed."""
    return {
        "crossed": crossed,
        "num_pairs": crossed.num_seeds,
        "difference": crossed.mean,
        "low": crossed.low,
        "high": crossed.high,
        "seed_se": crossed.seed_se,
        "image_se": crossed.image_se,
        "background_se": crossed.background_se,
        "p": crossed.p,
        "p_signs": sign_flip(by_seed),
    }


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else math.nan


def advice(row: Mapping[str, Any], level: float) -> dict[str, float]:
    """What the difference at the far end of the interval, and the one seen, take to be found."""
    if math.isnan(row["low"]):
        return {}
    crossed: CrossedMean = row["crossed"]
    far = max(crossed.low, crossed.high, key=abs)
    return {
        "needed_effect": far,
        "needed_seeds": needed_seeds(crossed, far, level, POWER),
        "seen_seeds": needed_seeds(crossed, crossed.mean, level, POWER),
    }


def _doubts(row: Mapping[str, Any]) -> Iterator[str]:
    n, lacks = row["num_pairs"], row.get("lacks", ())
    between, moved = row.get("between", 0), row.get("moved_by_choice", 0)
    far = abs(row["difference"]) - ROUNDING
    if lacks:
        yield from lacks
    elif n == 0:
        yield f"no seed in common: run both on the same seeds, {MIN_SEEDS} or more"
    elif n < MIN_SEEDS:
        alone = ": with one seed no interval exists" if n == 1 else ""
        yield f"n={n}, fewer than {MIN_SEEDS} seeds{alone}"
    elif math.isnan(row["difference"]):
        yield f"{row['metric']} is not known for every seed"
    elif math.isnan(row["p"]):
        yield SAME_EVERYWHERE
    elif 0 < between >= far:
        yield "the difference may come from where the evaluations lie that it is between"
    elif 0 < moved >= far - between:
        yield "options were chosen between evaluations: another may be as good, and differ less"
    elif not row["p_holm"] < LEVEL:
        yield f"p={row['p_holm']:.3g} after Holm, not below {LEVEL:g}"
    elif row["p_signs"] >= LEVEL:
        yield f"p={row['p_signs']:.3g} by the signs of the seeds alone, not below {LEVEL:g}"
