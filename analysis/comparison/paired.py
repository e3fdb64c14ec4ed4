"""Paradigms against each other on the same seeds, and how sure the difference is.

The seed determines the training mosaics, the initialisation and the order, whatever the paradigm,
so two paradigms' cells with the same seed are a pair. Two intervals answer two questions. The t
interval takes the chosen options as given. The bootstrap resamples the study's seeds, the same for
all paradigms, and repeats the choice of the option on validation in every resample, so it also
covers the chance in the choice. A verdict needs both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.comparison.choice import by_preference, options
from analysis.groups import GROUP, OPTION, Select, paradigm_order
from analysis.statistics import (
    MIN_SEEDS,
    PairedT,
    bootstrap_counts,
    counted_mean,
    holm,
    iqm,
    paired_t,
    percentile_interval,
    probability_of_improvement,
    seeds_needed,
)
from study.results import ResultsError

RESAMPLES = 2_000
"""Enough that the 2.5 % quantile rests on 50 resamples."""

SAME_EVERYWHERE = "the difference is the same on all seeds, so a t test says nothing"
"""Reason for an undecided pair whose differences do not vary."""

POWER = 0.8
"""Power of the test that `seeds_to_decide` plans."""

PAIRED_METRICS = ("saif", "accuracy")

PAIRED_COLUMNS = [
    "task", "m", "comparison_id", "metric", "first", "second", "num_pairs", "mean_first",
    "mean_second", "difference", "low", "high", "p", "p_holm", "boot_low", "boot_high",
    "probability", "probability_low", "probability_high", "verdict", "reason", "seeds_to_decide",
    "confidence",
]  # fmt: skip

_SPLITS = ("validation", "test")
_DIGITS = 12  # as in the choice: scores that differ in the last bit are equal
_RESOLUTION = 1e-9  # of differences: less than one instance in any test split
_CHUNK = 2**14  # numbers held at once for (resamples, options): they fit into a cache
_LARGEST = np.finfo(np.float64).max

_Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Table:
    """The rows of one paradigm as arrays: n seeds in rows, k options in columns.

    Attributes:
        options: k rows, the columns of OPTION, sorted by them.
        validated: (n, k) whether there is a validation row.
        score: (n, k) the validation score that chooses.
        loss: (n, k) on validation, nats.
        barred: (k,) whether the option cannot be chosen.
        tested: (n, k) whether there is a test row.
        test: metric -> (n, k) test scores; NaN where there are none.
    """

    options: pd.DataFrame
    validated: NDArray[np.bool_]
    score: _Floats
    loss: _Floats
    barred: NDArray[np.bool_]
    tested: NDArray[np.bool_]
    test: dict[str, _Floats]


@dataclass(frozen=True, eq=False)
class _Draws:
    """Test scores of one paradigm in r draws of its seeds, one option a draw.

    Attributes:
        counts: (r, n) how often the test score of a seed counts; 0 where there is none.
        test: metric -> (r, n) test scores; NaN where there are none.
    """

    counts: NDArray[np.int64]
    test: dict[str, _Floats]


@dataclass(frozen=True, eq=False)
class _Paradigm:
    """One paradigm: the given choice, and the choices of the resamples.

    Attributes:
        usable: whether one of its options was chosen.
        chosen: one draw in which every seed counts once, with the given choice.
        resampled: the resamples, each with its own choice.
    """

    usable: bool
    chosen: _Draws
    resampled: _Draws


@dataclass(frozen=True, eq=False)
class Resamples:
    """The paradigms of one comparison in the same resamples of its seeds; see `resample`."""

    head: dict[str, Any]
    groups: pd.DataFrame
    paradigms: dict[str, _Paradigm]


def resample(
    at_budget: pd.DataFrame,
    choice: pd.DataFrame,
    select: Select = "accuracy",
    resamples: int = RESAMPLES,
    seed: int = 0,
    tried: pd.DataFrame | None = None,
) -> Resamples:
    """Resamples the seeds of a comparison and repeats the choice of options in every resample.

    Args:
        at_budget: as `equal_compute` gives it, of one comparison.
        choice: as `choose` gives it for these rows and `select`.
        select: validation metric that the resamples choose options by.
        resamples: number of resamples.
        seed: seed of the bootstrap's own generator.
        tried: as `analysis.comparison.choice.options` gives it for these rows, if it is at
        hand.

    Raises:
        ValueError: `select` or `resamples` is out of range, `choice` was made by another metric
            or from other cells, or `at_budget` holds several comparisons.
        ResultsError: two cells of one option and seed.
    """
    head = {name: at_budget[name].iloc[0] for name in ("task", "m", "comparison_id")}
    _check(at_budget, choice, select)
    tried = options(at_budget) if tried is None else tried
    paradigms = _paradigms(at_budget, tried, choice, select, resamples, seed)
    return Resamples(head, choice[GROUP], paradigms)


def paired_table(resampled: Resamples, confidence: float = 0.95) -> pd.DataFrame:
    """Differences between the paradigms of one comparison on the test split, with verdicts.

    Differences are taken seed by seed, over the seeds that the chosen options of both paradigms
    have in common. A failed cell removes its pair and lowers `num_pairs`; a diverged one counts
    as SAIF 0 and accuracy 1/C. All rows of the table (pairs of paradigms x two metrics) are one
    family for Holm, since they are read together.

    A verdict needs `MIN_SEEDS` common seeds, `p_holm` below 1 - confidence, and a bootstrap
    interval, in which every resample repeats the choice, on the same side of 0.

    Args:
        resampled: as `resample` gives it.
        confidence: of all intervals, in (0, 1); 1 - confidence is the level of the tests.

    Returns:
        One row a (metric, first, second), in the order of `PAIRED_METRICS` and the paradigms:
        `task`, `m`, `comparison_id`, `metric`, `first` and `second` (paradigms, `first` the later
        in `PARADIGM_ORDER`), `num_pairs` (common seeds), `mean_first` and `mean_second` over
        them, `difference` = first - second with `low` and `high` of the paired t interval, its
        two-sided `p` and `p_holm`; `boot_low`, `boot_high` of the difference; `probability` that
        a run of `first` beats one of `second`, over all pairs of common seeds, ties half, with
        `probability_low`, `probability_high` of the same bootstrap; `verdict`: `first` is `better`
        or `worse` than `second`, or `undecided`; `reason`: why it is undecided, else empty;
        `seeds_to_decide`: pairs at which the t test, at this row's level after Holm, has 80 %
        power for the difference and spread seen, never fewer than `MIN_SEEDS`, inf where there is
        no difference, NaN with fewer than two pairs; `confidence`. Scores are fractions. What is
        not known is NaN: all bounds and p with fewer than two common seeds, those of the t test
        and `seeds_to_decide` where a difference is the same on all seeds, everything that a
        missing metric or a paradigm without a usable option touches.

    Raises:
        ValueError: `confidence` is out of range.
    """
    paradigms = resampled.paradigms
    pairs = [
        (metric, first, second)
        for metric in PAIRED_METRICS
        for second, first in combinations(paradigms, 2)
    ]
    tests = [_t_test(metric, paradigms[a], paradigms[b], confidence) for metric, a, b in pairs]
    # A row that cannot be tested stays in the family: missing data must make no verdict easier.
    adjusted, multipliers = holm([1.0 if math.isnan(t.p) else t.p for t in tests])
    adjusted = np.where([math.isnan(t.p) for t in tests], math.nan, adjusted)
    level = round(1 - confidence, _DIGITS)
    records = []
    for names, t, p_holm, multiplier in zip(pairs, tests, adjusted, multipliers, strict=True):
        metric, first, second = names
        record = {
            **resampled.head,
            **dict(zip(("metric", "first", "second"), names, strict=True)),
            "num_pairs": t.n,
            "difference": t.mean,
            "low": t.low,
            "high": t.high,
            "p": t.p,
            "p_holm": p_holm,
            **_means(metric, paradigms[first], paradigms[second]),
            **_bootstrap(metric, paradigms[first], paradigms[second], confidence),
            "seeds_to_decide": _seeds_to_decide(t, level / multiplier),
            "confidence": confidence,
        }
        unusable = [name for name in (first, second) if not paradigms[name].usable]
        record["verdict"], record["reason"] = _verdict(record, unusable, level)
        records.append(record)
    return pd.DataFrame(records, columns=PAIRED_COLUMNS)


def iqm_intervals(resampled: Resamples, confidence: float = 0.95) -> pd.DataFrame:
    """Interquartile mean over the seeds of each chosen option on test, with bootstrap intervals.

    Args:
        resampled: as `resample` gives it.
        confidence: of the intervals, in (0, 1).

    Returns:
        One row a group of the choice, in its order: the columns of GROUP, `saif_iqm`,
        `saif_iqm_low`, `saif_iqm_high`, `accuracy_iqm`, `accuracy_iqm_low`, `accuracy_iqm_high`:
        fractions, see `analysis.statistics.iqm`; all NaN where a seed has no value, the bounds
        with fewer than two seeds.

    Raises:
        ValueError: `confidence` is out of range.
    """
    records = []
    for group in resampled.groups.to_dict("records"):
        paradigm = resampled.paradigms[group["paradigm"]]
        for metric in PAIRED_METRICS:
            value = float(iqm(paradigm.chosen.test[metric], paradigm.chosen.counts)[0])
            low = high = math.nan
            if paradigm.chosen.counts.sum() >= 2 and not math.isnan(value):
                samples = iqm(paradigm.resampled.test[metric], paradigm.resampled.counts)
                low, high = percentile_interval(samples, confidence)
            group |= dict(zip(_iqm_names(metric), (value, low, high), strict=True))
        records.append(group)
    names = [name for metric in PAIRED_METRICS for name in _iqm_names(metric)]
    return pd.DataFrame(records, columns=[*GROUP, *names])


def _iqm_names(metric: str) -> tuple[str, str, str]:
    return f"{metric}_iqm", f"{metric}_iqm_low", f"{metric}_iqm_high"


def _paradigms(
    at_budget: pd.DataFrame,
    tried: pd.DataFrame,
    choice: pd.DataFrame,
    select: Select,
    resamples: int,
    seed: int,
) -> dict[str, _Paradigm]:
    """Every paradigm with cells, in the paper's order, all in the same resamples of the seeds."""
    seeds = np.sort(at_budget["seed"].unique())
    once = np.ones((1, len(seeds)), np.int64)
    counts = bootstrap_counts(len(seeds), resamples, seed)
    columns = ["cell_id", "paradigm", *OPTION, "seed", "split", "loss", *PAIRED_METRICS]
    rows = at_budget.loc[at_budget["split"].isin(_SPLITS), columns]
    parts = {str(name): part for name, part in rows.groupby("paradigm")}
    preferred = by_preference(tried, select)
    paradigms = {}
    for name in paradigm_order(parts):
        usable = preferred.loc[preferred["paradigm"] == name, OPTION].reset_index(drop=True)
        table = _table(parts[name], seeds, select, usable)
        given = _columns_of(choice.loc[choice["paradigm"] == name, OPTION], table.options)
        if len(given) > 1 or (given < 0).any():
            raise ValueError(f"choice must name one option of {name} that has cells, or none")
        option = given if len(given) else np.array([-1])
        chosen = _draw(table, option, once)
        resampled = _draw(table, _choose(table, counts), counts)
        paradigms[name] = _Paradigm(len(given) == 1, chosen, resampled)
    return paradigms


def _check(at_budget: pd.DataFrame, choice: pd.DataFrame, select: Select) -> None:
    if select not in ("accuracy", "saif"):
        raise ValueError(f"select must be accuracy or saif, got {select!r}")
    if (choice["select"] != select).any():
        raise ValueError(f"the choice was made by {choice['select'].iloc[0]}, not by {select}")
    if (found := at_budget["comparison_id"].nunique()) > 1:
        raise ValueError(f"at_budget must hold one comparison, got {found}")
    if unknown := set(choice["paradigm"]) - set(at_budget["paradigm"]):
        raise ValueError(f"at_budget has no cells of {', '.join(sorted(unknown))}")


def _table(
    rows: pd.DataFrame, seeds: NDArray[np.int64], select: Select, usable: pd.DataFrame
) -> _Table:
    """The rows of one paradigm as arrays; `seeds` (n,) sorted, `usable` may be chosen."""
    columns = rows[OPTION].drop_duplicates().sort_values(OPTION, ignore_index=True)
    at = (np.searchsorted(seeds, rows["seed"]), _columns_of(rows[OPTION], columns))
    shape = (len(seeds), len(columns))
    on = {split: (rows["split"] == split).to_numpy() for split in _SPLITS}

    def there(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        array = np.zeros(shape, bool)
        array[at[0][mask], at[1][mask]] = True
        return array

    def values(column: str, split: str) -> _Floats:
        array = np.full(shape, np.nan)
        numbers = rows[column].to_numpy(np.float64, na_value=np.nan)
        array[at[0][on[split]], at[1][on[split]]] = numbers[on[split]]
        return array

    for split, mask in on.items():
        if there(mask).sum() < mask.sum():
            _refuse_twice(rows[mask], split)
    return _Table(
        options=columns,
        validated=there(on["validation"]),
        score=values(select, "validation"),
        loss=values("loss", "validation"),
        barred=_columns_of(columns, usable) < 0,
        tested=there(on["test"]),
        test={metric: _rounded(values(metric, "test")) for metric in PAIRED_METRICS},
    )


def _columns_of(rows: pd.DataFrame, options: pd.DataFrame) -> NDArray[np.int64]:
    """(rows,) position of each row's option in `options`; -1: not among them."""
    numbered = options.assign(_option=np.arange(len(options)))
    found = rows.merge(numbered, on=OPTION, how="left")["_option"]
    return found.fillna(-1).to_numpy(np.int64)


def _refuse_twice(rows: pd.DataFrame, split: str) -> None:
    twice = rows[rows.duplicated([*OPTION, "seed"], keep=False)].sort_values([*OPTION, "seed"])
    one, other = sorted(twice["cell_id"].head(2))
    raise ResultsError(
        f"cells {one} and {other} are the same option and seed ({twice['schedule'].iloc[0]}, "
        f"seed {twice['seed'].iloc[0]}) on the {split} split."
    )


def _choose(table: _Table, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Applies the rule of `analysis.comparison.choice.choose` to every resample; counts (r, n).

    The score is the mean over an option's seeds, weighted by how often each was drawn and rounded
    to 12 digits. Ties go to the lower mean loss (an unknown one comes last), then to the order of
    OPTION. An option barred from the choice is barred in every resample; one without a seed in a
    resample cannot be chosen there.

    Returns:
        (r,) columns of the table; -1 where no option can be chosen.
    """
    size = max(1, _CHUNK // max(1, len(table.options)))
    starts = range(0, len(counts), size)
    return np.concatenate([_choose_part(table, counts[at : at + size]) for at in starts])


def _choose_part(table: _Table, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    drawn = counts.astype(np.float64)
    number = drawn @ table.validated
    score = _drawn_means(table.score, drawn, number)
    score[(number == 0) | table.barred] = -np.inf
    best = score.max(axis=1, keepdims=True)
    loss = np.nan_to_num(_drawn_means(table.loss, drawn, number), nan=_LARGEST)
    loss[score < best] = np.inf
    return np.where(best[:, 0] == -np.inf, -1, loss.argmin(axis=1))


def _drawn_means(values: _Floats, drawn: _Floats, number: _Floats) -> _Floats:
    """(r, k) means of (n, k) values drawn (r, n) times; `number` (r, k) counts the draws.

    NaN where the value of a drawn seed is not known, or the option has no drawn seed.
    """
    known = np.isfinite(values)
    sums = drawn @ np.where(known, values, 0.0)
    means = np.divide(sums, number, out=np.full(number.shape, np.nan), where=number > 0)
    means[drawn @ known < number] = np.nan
    return _rounded(means)


def _draw(table: _Table, option: NDArray[np.int64], counts: NDArray[np.int64]) -> _Draws:
    """Test scores of the options (r,) in the resamples (r, n); option -1 has none."""
    there = table.tested.T[option] & (option >= 0)[:, None]
    test = {metric: values.T[option] for metric, values in table.test.items()}
    return _Draws(np.where(there, counts, 0), test)


def _common(a: _Draws, b: _Draws, metric: str) -> tuple[_Floats, _Floats, NDArray[np.int64]]:
    """Scores of both, (r, n), and how often each common seed counts."""
    return a.test[metric], b.test[metric], np.where(b.counts > 0, a.counts, 0)


def _t_test(metric: str, first: _Paradigm, second: _Paradigm, confidence: float) -> PairedT:
    a, b, counts = _common(first.chosen, second.chosen, metric)
    return paired_t(_rounded(a - b)[counts > 0], confidence, _RESOLUTION)


def _means(metric: str, first: _Paradigm, second: _Paradigm) -> dict[str, float]:
    a, b, counts = _common(first.chosen, second.chosen, metric)
    return {
        "mean_first": float(counted_mean(a, counts)[0]),
        "mean_second": float(counted_mean(b, counts)[0]),
        "probability": float(probability_of_improvement(a, b, counts, counts)[0]),
    }


def _bootstrap(
    metric: str, first: _Paradigm, second: _Paradigm, confidence: float
) -> dict[str, float]:
    a, b, counts = _common(first.chosen, second.chosen, metric)
    boot = probability = (math.nan, math.nan)
    if counts.sum() >= 2 and not np.isnan((a - b)[counts > 0]).any():
        a, b, counts = _common(first.resampled, second.resampled, metric)
        boot = percentile_interval(_rounded(counted_mean(a - b, counts)), confidence)
        wins = probability_of_improvement(a, b, counts, counts)
        probability = percentile_interval(wins, confidence)
    return {
        "boot_low": boot[0],
        "boot_high": boot[1],
        "probability_low": probability[0],
        "probability_high": probability[1],
    }


def _seeds_to_decide(t: PairedT, level: float) -> float:
    needed = seeds_needed(t.mean, t.std, level, POWER)
    return needed if math.isnan(needed) else max(needed, float(MIN_SEEDS))


def _verdict(row: Mapping[str, Any], unusable: Sequence[str], level: float) -> tuple[str, str]:
    """The verdict and, if undecided, the reason."""
    doubts = list(_doubts(row, unusable, level))
    if doubts:
        return "undecided", "; ".join(doubts)
    return ("better" if row["difference"] > 0 else "worse"), ""


def _doubts(row: Mapping[str, Any], unusable: Sequence[str], level: float) -> Iterator[str]:
    n = row["num_pairs"]
    if unusable:
        yield f"no option of {' and '.join(unusable)} can be chosen"
    elif n < MIN_SEEDS:
        alone = ": with one seed no interval exists" if n == 1 else ""
        yield f"n={n}, fewer than {MIN_SEEDS} seeds{alone}"
    elif math.isnan(row["difference"]):
        yield f"{row['metric']} is not known for every seed"
    elif math.isnan(row["p"]):
        yield SAME_EVERYWHERE
    else:
        if not row["p_holm"] < level:
            yield f"p={row['p_holm']:.3g} after Holm, not below {level:g}"
        if math.isnan(row["boot_low"]):
            yield "the interval that repeats the choice is not known"
        elif row["boot_low"] <= 0 <= row["boot_high"]:
            yield "the interval that repeats the choice contains 0"
        elif (row["boot_low"] > 0) != (row["difference"] > 0):
            yield "the interval that repeats the choice lies on the other side of 0"


def _rounded(values: _Floats) -> _Floats:
    return np.round(values, _DIGITS)
