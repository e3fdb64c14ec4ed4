"""Paradigms against each other on the same seeds and images, and how sure the difference is.

The seed determines the training mosaics, the initialisation and the order, whatever the paradigm,
and the test mosaics are the same for all cells. So two paradigms' cells with the same seed are a
pair, image by image. Seeds and images are both samples: a verdict holds over both, where the
counts of images are recorded, else over seeds with the images fixed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from analysis.comparison.by_image import scores
from analysis.comparison.choice import ROUNDING, moved_by_choice
from analysis.comparison.stages import tested_choice
from analysis.crossed import CrossedMean, Needed, crossed_mean, needed
from analysis.groups import paradigm_order
from analysis.statistics import MIN_SEEDS, holm
from analysis.words import METRICS
from study.results import IMAGES, ResultsError

SAME_EVERYWHERE = "the difference is the same on all seeds, so a t test says nothing"
"""Reason for an undecided pair whose differences do not vary."""

SCREENING = 12
"""With fewer seeds, differences that are decided are much overstated on average."""

POWER = 0.8
"""Power of the test that the columns `needed_seeds` and `needed_images` plan."""

PAIRED_COLUMNS = [
    "task", "m", "comparison_id", "metric", "first", "second", "num_pairs", "num_images",
    "mean_first", "mean_second", "difference", "low", "high", "seed_se", "image_se", "p",
    "p_holm", "verdict", "reason", "needed_effect", "needed_seeds", "needed_images",
    "needed_seeds_most", "confidence",
]  # fmt: skip


def paired_table(
    at_budget: pd.DataFrame,
    choice: pd.DataFrame,
    confidence: float = 0.95,
    metrics: Sequence[str] = METRICS,
) -> pd.DataFrame:
    """Differences between the paradigms of one comparison on the test split, with verdicts.

    Differences are taken seed by seed and image by image, over the seeds that the chosen options
    of both paradigms have in common. A failed cell removes its pair and lowers `num_pairs`; a
    diverged one counts as SAIF 0 and accuracy 1/C on every image. All rows of the table (pairs of
    paradigms x metrics) are one family for Holm, since they are read together.

    A verdict needs `MIN_SEEDS` common seeds and `p_holm` below 1 - confidence.

    Args:
        at_budget: as `equal_compute` gives it, of one comparison.
        choice: as `choose` gives it for these rows.
        confidence: of all intervals, in (0, 1); 1 - confidence is the level of the tests.
        metrics: that are tested.

    Returns:
        One row a (metric, first, second), in the order of the metrics and the paradigms:
        `task`, `m`, `comparison_id`, `metric`, `first` and `second` (paradigms, `first` the later
        in `PARADIGM_ORDER`), `num_pairs` (common seeds), `num_images` (missing: the test is over
        seeds alone), `mean_first` and `mean_second` over them, `difference` = first - second with
        `low`, `high`, the standard errors over seeds `seed_se` and over images `image_se`, and
        two-sided `p` of `analysis.crossed.crossed_mean`, and `p_holm`; `verdict`: `first` is
        `better` or `worse` than `second`, or `undecided`; `reason`: why it is undecided, else
        empty. Of an undecided row, `needed_seeds` and `needed_images` are what finding a
        difference of `needed_effect` takes at this row's level after Holm with 80 % power, see
        `analysis.crossed.needed`: that at the end of the interval that is farther from 0; or, if
        there are seeds enough for that, the one that was seen, where images hide it from any
        number of seeds; `needed_seeds_most` is what the other end takes, inf where the interval
        contains 0; `confidence`.
        Scores are fractions. What is not known is NaN.

    Raises:
        ValueError: `confidence` is out of range, `choice` has a paradigm without cells, or
            `at_budget` holds several comparisons.
        ResultsError: two cells of one option and seed.
    """
    if (held := at_budget["comparison_id"].nunique()) > 1:
        raise ValueError(f"at_budget must hold one comparison, got {held}")
    there = set(at_budget["paradigm"].unique())
    if unknown := set(choice["paradigm"]) - there:
        raise ValueError(f"at_budget has no cells of {', '.join(sorted(unknown))}")
    rows = tested_choice(at_budget, choice)
    chosen, known = set(choice["paradigm"]), set(rows["paradigm"])
    absent = {
        "no option of {} can be chosen": there - chosen,
        "the chosen option of {} is not confirmed yet": chosen - known,
    }
    rows = rows[rows["split"] == "test"].sort_values("seed")
    _refuse_twice(rows)
    paradigms = paradigm_order(at_budget["paradigm"].unique())
    read = {"seed", "diverged", *metrics, *map("between_{}".format, metrics), *IMAGES}
    columns = [name for name in rows if name in read]
    sides = {name: rows.loc[rows["paradigm"] == name, columns] for name in paradigms}
    pairs = [(metric, *pair[::-1]) for metric in metrics for pair in combinations(paradigms, 2)]
    tests = [
        _test(sides[first], sides[second], metric, confidence) for metric, first, second in pairs
    ]
    moves = moved_by_choice(at_budget, choice, metrics)
    for (metric, *pair), (test, _) in zip(pairs, tests, strict=True):
        better_first = pair if test["difference"] > 0 else pair[::-1]
        moved = [moves.get((name, metric), (0.0, 0.0))[n] for n, name in enumerate(better_first)]
        test["moved_by_choice"] = sum(moved)
    head = {name: at_budget[name].iloc[0] for name in ("task", "m", "comparison_id")}
    records = [
        {**head, **dict(zip(("metric", "first", "second"), pair, strict=True)), **test}
        for pair, (test, _) in zip(pairs, tests, strict=True)
    ]
    judged = with_verdicts(records, [crossed for _, crossed in tests], confidence, absent)
    return pd.DataFrame(judged, columns=PAIRED_COLUMNS)


def with_verdicts(
    records: Sequence[Mapping[str, Any]],
    crossed: Sequence[CrossedMean],
    confidence: float = 0.95,
    absent: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """The rows of one family of tests with `p_holm`, verdict, and what would decide them.

    Args:
        records: `metric`, `first`, `second`, `num_pairs`, `difference` and `p` of each row.
        crossed: the mean difference of each row.
        confidence: see `paired_table`.
        absent: reason, with ``{}`` for names -> names of what has no numbers for it.

    Returns:
        The records with the further columns of `paired_table`.
    """
    # A row that cannot be tested stays in the family: missing data must make no verdict easier.
    unknown_p = [math.isnan(record["p"]) for record in records]
    adjusted, multipliers = holm(np.where(unknown_p, 1.0, [record["p"] for record in records]))
    level = round(1 - confidence, 12)
    judged = []
    for given, mean, p_holm, multiplier in zip(
        records, crossed, np.where(unknown_p, math.nan, adjusted), multipliers, strict=True
    ):
        record = {**given, "p_holm": p_holm, "confidence": confidence}
        record["reason"] = "; ".join(_doubts(record, absent, level))
        record["verdict"] = "better" if record["difference"] > 0 else "worse"
        if record["reason"]:
            record["verdict"] = "undecided"
            effect, found = advice(mean, level / multiplier)
            record |= {
                "needed_effect": effect,
                "needed_seeds": found.seeds,
                "needed_images": found.images,
                "needed_seeds_most": _most_seeds(mean, level / multiplier),
            }
        judged.append(record)
    return judged


def _refuse_twice(rows: pd.DataFrame) -> None:
    twice = rows[rows.duplicated(["paradigm", "seed"], keep=False)]
    if len(twice):
        one, other = sorted(twice["cell_id"].head(2))
        raise ResultsError(
            f"cells {one} and {other} are the same option and seed "
            f"({twice['schedule'].iloc[0]}, seed {twice['seed'].iloc[0]})."
        )


def _test(
    first: pd.DataFrame, second: pd.DataFrame, metric: str, confidence: float
) -> tuple[dict[str, Any], CrossedMean]:
    """Numbers of a row of the table, on the common seeds of two paradigms."""
    common = set(first["seed"]) & set(second["seed"])
    sides = [side[side["seed"].isin(common)] for side in (first, second)]
    both = scores(pd.concat(sides), metric)
    n = len(common)
    crossed = crossed_mean(both.values[:n] - both.values[n:], both.weights, confidence)
    means = [_mean(side[metric]) for side in sides]
    between = (side[f"between_{metric}"] for side in sides if f"between_{metric}" in side)
    return {
        "between": sum(abs(_mean(each)) for each in between),
        "num_pairs": n,
        "num_images": len(both.weights) if both.by_image else math.nan,
        "mean_first": means[0],
        "mean_second": means[1],
        "difference": crossed.mean,
        "low": crossed.low,
        "high": crossed.high,
        "seed_se": crossed.seed_se,
        "image_se": crossed.image_se,
        "p": crossed.p,
    }, crossed


def _mean(values: pd.Series) -> float:
    return float(values.astype(float).mean(skipna=False)) if len(values) else math.nan


def advice(crossed: CrossedMean, level: float) -> tuple[float, Needed]:
    """The difference that an undecided row names, and what finding it takes.

    It is the far end of the interval; where the seeds at hand would do for that, but images hide
    the difference seen from any number of seeds, it is the one seen.
    """
    far = max(crossed.low, crossed.high, key=abs)
    found = needed(crossed, far, level, POWER)
    if found.seeds <= crossed.num_seeds and crossed.num_images > 1:
        seen = needed(crossed, crossed.mean, level, POWER)
        if math.isinf(seen.seeds) and math.isfinite(seen.images):
            return crossed.mean, seen
    return far, found


def _most_seeds(crossed: CrossedMean, level: float) -> float:
    """What the end of the interval nearest to 0 takes; inf where 0 is inside."""
    if crossed.low <= 0 <= crossed.high:
        return math.inf
    return needed(crossed, min(crossed.low, crossed.high, key=abs), level, POWER).seeds


def _doubts(
    row: Mapping[str, Any], absent: Mapping[str, Collection[str]], level: float
) -> Iterator[str]:
    n, pair = row["num_pairs"], (row["first"], row["second"])
    between, moved = row.get("between", 0), row.get("moved_by_choice", 0)
    far = abs(row["difference"]) - ROUNDING
    missing = {why: [name for name in pair if name in names] for why, names in absent.items()}
    if any(missing.values()):
        yield from (why.format(" and ".join(names)) for why, names in missing.items() if names)
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
    elif not row["p_holm"] < level:
        yield f"p={row['p_holm']:.3g} after Holm, not below {level:g}"
