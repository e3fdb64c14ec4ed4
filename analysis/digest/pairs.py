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

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd

from analysis.digest.choose import moved_by_choice
from analysis.digest.measures import measures_of, modality_of
from analysis.digest.scores import Scores, scores
from analysis.groups import paradigm_order
from analysis.rules.crossed import needed_seeds
from analysis.rules.learning import SHARES, Scale, apart, learned, without_spread
from analysis.rules.stages import looks, tested_choice
from analysis.rules.statistics import CONFIDENCE, LEVEL, MIN_SEEDS, ROUNDING, holm, sign_flip

SAME_EVERYWHERE = "the difference is the same on all seeds, so a t test says nothing"
"""Reason for an undecided pair whose differences do not vary."""

SCREENING = 12
"""With fewer seeds, differences that are decided are much overstated on average."""

POWER = 0.8
"""Power of the test that the columns `needed_seeds` and `seen_seeds` plan."""

_OF_TEST = ("low", "high", "seed_se", "image_se", "background_se", "p")
"""Of a mean difference, as `analysis.rules.crossed.CrossedMean` names it."""

Row = Mapping[str, Any]

PAIRED_COLUMNS = [
    "task", "m", "comparison_id", "metric", "first", "second", "num_pairs", "later_seeds",
    "ended_seeds", "planned_seeds",
    "num_images", "num_backgrounds",
    "mean_first", "mean_second", "difference", "low", "high", "seed_se", "image_se",
    "background_se", "above", "learned_first", "learned_second", "given_first", "given_second",
    "p_learned", "p", "num_tests", "p_holm", "p_signs", "verdict", "reason", "needed_effect",
    "needed_seeds", "seen_seeds", "confidence",
]  # fmt: skip


def paired_table(
    comparisons: Iterable[tuple[pd.DataFrame, pd.DataFrame, Sequence[str], pd.DataFrame]],
) -> pd.DataFrame:
    """Differences between the paradigms of each comparison on the test split, with verdicts.

    Differences are taken seed by seed and instance by instance, over the seeds that the chosen
    options of both paradigms have in common. A failed cell removes its pair and lowers
    `num_pairs`; a diverged one counts as SAIF 0 and accuracy 1/C on every image. All rows of a
    study (comparisons x pairs of paradigms x metrics) are one family for Holm, since they are read
    together.

    A verdict needs the first look at `MIN_SEEDS` common seeds or more, see
    `analysis.rules.stages.Looks`, enough images where they are known, `p_holm` below `LEVEL`,
    and `p_signs`, too.

    Args:
        comparisons: of each `at_budget`, as `equal_compute` gives it; `choice`, as `choose` gives
            it for these rows; the metrics that are tested; and its cells, one row a cell.

    Returns:
        One row a (comparison, metric, first, second), those of a comparison in the order of its
        metrics and paradigms: `task`, `m`, `comparison_id`, `metric`, `first` and `second`
        (paradigms, `first` the later in `PARADIGM_ORDER`), `num_pairs` (common seeds),
        `later_seeds` (further ones, added after a look), `ended_seeds` and `planned_seeds`
        (missing unless planned seeds have not ended yet,
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
    """
    families: dict[str, list[Row]] = defaultdict(list)
    for at_budget, choice, metrics, cells in comparisons:
        families[cells["study"].min()] += _tests(at_budget, choice, metrics, cells)
    judged = [row for rows in families.values() for row in with_verdicts(rows)]
    return pd.DataFrame(judged, columns=PAIRED_COLUMNS)


def of_seeds(differences: pd.Series, scale: Scale = SHARES) -> dict[str, Any]:
    """The numbers of a row for `with_verdicts` whose test is over seeds alone.

    Where differences, which are of values of that scale, fall apart, it has no interval.
    """
    both = Scores(differences.to_numpy(np.float64)[:, None])
    return _numbers(both, apart(differences, scale) is not None)


def of_pair(first: Scores, second: Scores, scale: Scale = SHARES) -> dict[str, Any]:
    """The numbers of a row for `with_verdicts` whose test is over seeds and images.

    Args:
        first: of some seeds.
        second: of the same seeds and instances.
        scale: of the scores, see `analysis.digest.measures.Measure.scale`.
    """
    sides = first.by_seed, second.by_seed
    means = [by_seed.mean() if len(by_seed) else math.nan for by_seed in sides]
    found = learned(*sides, scale)
    numbers = _numbers(first - second, bool(found)) | found
    return numbers | {"mean_first": means[0], "mean_second": means[1]}


def with_verdicts(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of one family of tests with verdicts, and what would decide them.

    Args:
        rows: see `decided`.

    Returns:
        The rows with the further columns of `paired_table`.
    """
    return [row | _advice(row) for row in decided(rows)]


def decided(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows of one family of tests with verdicts, and the level that each was `held_to`.

    Args:
        rows: `metric`, `first`, `second`, and what `of_seeds` or `of_pair` gives, whose `lacks`
            tell why there is no verdict; `between` and `moved_by_choice`, how far a difference may
            be off as its values, or those that chose options, are between evaluations, are 0
            where they are missing.
    """
    p = np.array([row["p"] for row in rows], np.float64)
    # A row that cannot be tested stays in the family: missing data must make no verdict easier.
    adjusted, multipliers = holm(np.nan_to_num(p, nan=1.0))
    of_family = {"num_tests": len(rows), "confidence": CONFIDENCE}
    of_each = zip(
        rows, np.where(np.isnan(p), math.nan, adjusted), LEVEL / multipliers, strict=True
    )
    return [
        {**row, **of_family, "p_holm": p_holm, "held_to": level, **_verdict(row, p_holm)}
        for row, p_holm, level in of_each
    ]


def _advice(row: Row) -> dict[str, float]:
    """What the difference at the far end of the interval, and the one seen, take to be found.

    Where the seeds at hand do not agree among themselves, more like them need not.
    """
    disagree = row["p_holm"] < LEVEL and row["num_pairs"] >= MIN_SEEDS
    if not row["reason"] or row["lacks"] or disagree or math.isnan(row["low"]):
        return {}
    far, seen = max(row["low"], row["high"], key=abs), row["difference"]
    crossed, level = row["crossed"], row["held_to"]
    needed, enough = (needed_seeds(crossed, each, level, POWER) for each in (far, seen))
    return {"needed_effect": far, "needed_seeds": needed, "seen_seeds": enough}


def _tests(
    at_budget: pd.DataFrame, choice: pd.DataFrame, metrics: Sequence[str], cells: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    """The rows of one comparison, without verdicts."""
    rows = tested_choice(at_budget, choice)
    ran, chosen, confirmed = (set(table["paradigm"]) for table in (at_budget, choice, rows))
    without = {
        "no option of {} can be chosen": ran - chosen,
        "the chosen option of {} is not confirmed yet": chosen - confirmed,
    }
    rows = rows[rows["split"] == "test"].sort_values("seed")
    looked_at = looks(cells, choice)
    down, up = moved_by_choice(at_budget, choice, metrics)
    shared = at_budget[["task", "m", "comparison_id", "num_classes"]].iloc[0]
    known, draws = measures_of(at_budget, metrics), modality_of(at_budget).draws
    for metric, (second, first) in product(metrics, combinations(paradigm_order(ran), 2)):
        look = looked_at.of(first, second)
        both = rows[rows["paradigm"].isin([first, second])]
        common = both[both["seed"].duplicated(keep=False)]
        tested = common[common["seed"].isin(look.tested)]
        of_both, is_first = scores(tested, metric), tested["paradigm"].eq(first).to_numpy()
        scale = known[metric].scale(shared["num_classes"])
        test = of_pair(of_both[is_first], of_both[~is_first], scale)
        ahead, behind = (first, second) if test["difference"] > 0 else (second, first)
        lacks = [
            why.format(" and ".join(names))
            for why, every in without.items()
            if (names := [name for name in (first, second) if name in every])
        ]
        yield {
            **shared,
            "metric": metric,
            "larger_is_better": known[metric].larger_is_better,
            "first": first,
            "second": second,
            **test,
            "later_seeds": common["seed"].nunique() - test["num_pairs"],
            "ended_seeds": look.ended,
            "planned_seeds": look.planned,
            "between": 2 * tested.get(f"between_{metric}", pd.Series([0.0])).mean(skipna=False),
            "moved_by_choice": down[metric].get(ahead, 0.0) + up[metric].get(behind, 0.0),
            "lacks": lacks
            or [
                *filter(None, [look.doubt]),
                *(each.format(draws=draws) for each in test["lacks"]),
            ],
        }


def _numbers(both: Scores, fall_apart: bool) -> dict[str, Any]:
    """The numbers of a mean difference, and why there is no verdict on it."""
    crossed = without_spread(both.mean()) if fall_apart else both.mean()
    return {
        "crossed": crossed,
        "num_pairs": crossed.num_seeds,
        "num_images": crossed.num_images if both.instances else math.nan,
        "num_backgrounds": crossed.num_backgrounds or math.nan,
        "difference": crossed.mean,
        **{name: getattr(crossed, name) for name in _OF_TEST},
        "p_signs": sign_flip(both.by_seed),
        "lacks": [*filter(None, [both.instances.lacking])],
    }


def _verdict(row: Row, p_holm: float) -> dict[str, str]:
    """Which paradigm is better, or the first reason why that is undecided."""
    n, lacks = row["num_pairs"], row["lacks"]
    between, moved = row.get("between", 0), row.get("moved_by_choice", 0)
    far = abs(row["difference"]) - ROUNDING
    alone = ": with one seed no interval exists" if n == 1 else ""
    reasons = {
        "; ".join(lacks): lacks,
        f"no seed in common: run both on the same seeds, {MIN_SEEDS} or more": n == 0,
        f"n={n}, fewer than {MIN_SEEDS} seeds{alone}": n < MIN_SEEDS,
        f"{row['metric']} is not known for every seed": math.isnan(row["difference"]),
        SAME_EVERYWHERE: math.isnan(row["p"]),
        "the difference may come from where the evaluations lie that it is between": (
            0 < between >= far
        ),
        "options were chosen between evaluations: another may be as good, and differ less": (
            0 < moved >= far - between
        ),
        f"p={p_holm:.3g} after Holm, not below {LEVEL:g}": not p_holm < LEVEL,
        f"p={row['p_signs']:.3g} by the signs of the seeds alone, not below {LEVEL:g}": (
            row["p_signs"] >= LEVEL
        ),
    }
    reason = next((reason for reason, holds in reasons.items() if holds), "")
    is_better = (row["difference"] > 0) == row.get("larger_is_better", True)
    verdict = "better" if is_better else "worse"
    return {"verdict": "undecided" if reason else verdict, "reason": reason}
