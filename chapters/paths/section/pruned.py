"""Means over trained networks of accuracies, of scores of heads, and of what is left without them.

Theory's order of removal is held against every other one, paired by network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.digest.pairs import PAIRED_COLUMNS, of_seeds, with_verdicts
from analysis.rules.statistics import MIN_SEEDS, interval_columns, sign_test
from chapters.paths.heads.heads_cell import GREEDY, RANDOM, SIMPLE, SOLVED
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.section import means
from chapters.paths.section.networks import NETWORK, Vector, scorer_text
from chapters.paths.section.settings import once
from chapters.paths.section.trained import ON_TEST, Trained
from study.results import SPLITS

MEASURES = ("accuracy", "accuracy_diagonal", "interplay", "gain", "loss")
"""Measures of theory and limit that have a mean and an interval, on the test split; see
`chapters.paths.section.settings.with_measures`."""

REMOVAL, REVERSE = "removal", "reverse"
"""`order` of a scorer: heads with low scores first, or the same backwards."""

OTHERS = (*SIMPLE, RANDOM, REVERSE, GREEDY)
"""What theory's order is held against, in the order of the table; not the bound, which no order
can beat."""

ORDER = [*NETWORK, "order"]
"""Columns that name an order of removal."""

_CURVES = {REMOVAL: "accuracy_pruned", REVERSE: "accuracy_pruned_reverse"}
_NOT_OF_HEADS = {
    "m", "later_seeds", "ended_seeds", "planned_seeds", "above", "num_images", "image_se",
    "num_backgrounds", "background_se", "learned_first", "learned_second", "given_first",
    "given_second", "p_learned",
}  # fmt: skip
_PAIRED = [*(name for name in PAIRED_COLUMNS if name not in _NOT_OF_HEADS), "num_lost"]


@once
def trained(setting: Trained) -> pd.DataFrame:
    """The networks that gradient descent trained, by learning rate.

    Returns:
        One row a schedule: `lr`, `schedule`, `num_seeds` that are done, `num_diverged`,
        `num_censored`, and `accuracy_<split>` (fractions) and `loss_test` (mean squared error)
        at the end, each with `_low` and `_high`.
    """
    every = setting.trained
    return means.over_seeds(
        every,
        setting.networks,
        ["lr", "schedule"],
        [*(f"accuracy_{split}" for split in SPLITS), "loss_test"],
        **{f"num_{status}": every["status"] == status for status in ("diverged", "censored")},
    )


@once
def networks(setting: Trained) -> pd.DataFrame:
    """Theory and limit: what their mean predictors reach on the test split.

    Returns:
        One row a method and width: `NETWORK`, `num_seeds`, `num_diverged`, each of `MEASURES`
        with `_low` and `_high`, and the temperature over these seeds: `temperature_median`,
        `_least` and `_most`.
    """
    table = means.networks(setting)
    kept = setting.cells[setting.cells["cell_id"].isin(setting.rows["cell_id"])]
    by_network = kept.groupby(NETWORK)["temperature"]
    ends = by_network.agg(temperature_median="median", temperature_least="min",
                          temperature_most="max")  # fmt: skip
    columns = [*NETWORK, "num_seeds", "num_diverged", *interval_columns(*MEASURES), *ends]
    solved = table[table["method"].isin(SOLVED)]
    return solved.merge(ends.reset_index(), "left", NETWORK)[columns]


# --- heads that are removed


def orders(setting: Trained) -> pd.DataFrame:
    """What is left of every network in each order of removal.

    Returns:
        One row a seed and order that any seed of its scorer has: `ORDER`, `seed`, `pruned`
        (K + 1,): accuracy on the test split without 0, 1, ..., K heads, NaN where it is not
        known; and their mean, `area`.
    """
    rows = setting.rows[[*NETWORK, "seed", *_CURVES.values()]]
    parts = [rows.assign(order=order, pruned=rows[name]) for order, name in _CURVES.items()]
    table = pd.concat(parts).sort_index(kind="stable", ignore_index=True)
    lengths = table.assign(length=table["pruned"].map(len)).groupby(ORDER)["length"]
    table = table.assign(most=lengths.transform("max")).query("most > 0")
    pruned: list[Any] = [
        each if len(each) else np.full(most, math.nan)
        for each, most in zip(table["pruned"], table["most"], strict=True)
    ]
    areas = np.array([each.mean() for each in pruned], np.float64)
    return table.assign(pruned=pruned, area=areas)


@once
def pruning(setting: Trained) -> pd.DataFrame:
    """Accuracy on the test split without more and more heads.

    Returns:
        One row an order and number of heads: `ORDER`, `removed`, `num_seeds`, and `accuracy` with
        `_low` and `_high`, NaN where it is not known of a seed.
    """

    def of_order(rows: pd.DataFrame) -> pd.DataFrame:
        counts = pd.DataFrame({"removed": range(len(rows["pruned"].iloc[0]))})
        return means.over_entries(rows, counts, accuracy="pruned")

    columns = ["removed", "num_seeds", *interval_columns("accuracy")]
    return means.by_group(orders(setting), ORDER, columns, of_order)


def areas(setting: Trained) -> pd.DataFrame:
    """The area under each of these curves: mean accuracy without 0, 1, ..., K heads.

    Returns:
        One row an order: `ORDER`, `num_seeds`, and `area` with `_low` and `_high`.
    """
    rows = orders(setting)
    return means.over_seeds(rows, rows, ORDER, ["area"])


# --- theory against every other order


@once
def paired(setting: Trained) -> pd.DataFrame:
    """Theory against every order that there is, as one family of tests.

    Returns:
        One row an order: the columns of `analysis.digest.pairs.paired_table` that are not
        about images, with the metric ``area`` (mean accuracy on the test split without 0, 1, ...,
        K heads, a fraction), and `num_lost`, seeds without a difference, which count against
        either verdict: p is no smaller than that of a sign test in which they lie on the other
        side; empty without theory.
    """
    methods = set(setting.cells["method"])
    there = [name for name in OTHERS if name == REVERSE or name in methods]
    records = []
    for other in there if THEORY in methods else ():
        values, lost = differences(setting, other)
        mine = area(setting, THEORY)[values.index]
        numbers = of_seeds(values)
        if lost and len(values) >= MIN_SEEDS and not math.isnan(numbers["p"]):
            alike = int((np.sign(values) == np.sign(values.mean())).sum())
            numbers["p"] = max(numbers["p"], sign_test(alike, len(values) + lost))
        records.append(
            {
                **numbers,
                "task": setting.task,
                "comparison_id": setting.id,
                "metric": "area",
                "first": scorer_text(THEORY, setting.reference),
                "second": other,
                "num_lost": lost,
                "mean_first": mine.mean(skipna=False),
                "mean_second": (mine - values).mean(skipna=False),
            }
        )
    table = pd.DataFrame(with_verdicts(records), columns=_PAIRED)
    if setting.chosen_on_test:
        reason = table["reason"].mask(table["reason"] == "", ON_TEST)
        table = table.assign(verdict="undecided", reason=reason)
    return table


def differences(setting: Trained, other: str) -> tuple[pd.Series, int]:
    """Area of theory at the reference width minus another order's, seed by seed, and lost seeds.

    Args:
        setting: the setting.
        other: one of `OTHERS`.
    """
    both = pd.concat([area(setting, THEORY), area(setting, other)], axis="columns", join="inner")
    found = both.iloc[:, 0] - both.iloc[:, 1]
    return found.sort_index(), len(setting.seeds) - len(found)


def area(setting: Trained, order: str) -> pd.Series:
    """By seed, the mean accuracy without 0, 1, ..., K heads; NaN where it is not known.

    Args:
        setting: the setting.
        order: one of `OTHERS` or theory, both of which are theory at the reference width.
    """
    of_theory = order in (THEORY, REVERSE)
    rows = setting.of(THEORY, setting.reference) if of_theory else setting.of(order)
    curves = rows[_CURVES.get(order, _CURVES[REMOVAL])]
    return curves.map(lambda curve: curve.mean() if len(curve) else math.nan).astype(np.float64)


# --- single heads


@once
def scored(setting: Trained) -> pd.DataFrame:
    """Theory's scores at the reference width beside what the accuracy loses without each head.

    Returns:
        One row a seed, its index, that has both: `scores` (heads,), `drops` (heads,): test
        accuracy of the network minus that without the head, and their rank `correlation`.
    """
    theory = setting.of(THEORY, setting.reference)
    networks = setting.networks.set_index("cell_id")[["accuracy_test", "without_head"]]
    both = theory.join(networks, on="network", how="inner")
    both = both[(both["head_scores"].map(len) > 0) & (both["without_head"].map(len) > 0)]
    drops = both["accuracy_test"] - both["without_head"]
    pairs = zip(both["head_scores"], drops, strict=True)
    correlations = [rank_correlation(*pair) for pair in pairs]
    table = pd.DataFrame({"scores": both["head_scores"], "drops": drops})
    return table.assign(correlation=np.array(correlations, np.float64))


def rank_correlation(first: Vector, second: Vector) -> float:
    """Spearman's correlation of two vectors (heads,): that of their ranks, ties at their mean.

    NaN where one of them is constant, or a value is not known.
    """
    ranks = pd.DataFrame({"first": first, "second": second}).rank()
    return float(ranks.corr(min_periods=len(ranks)).to_numpy()[0, 1])


def correlations(setting: Trained) -> pd.DataFrame:
    """One row a seed: `seed` and `correlation`, see `scored`."""
    return scored(setting)["correlation"].rename_axis("seed").reset_index()


def positions(setting: Trained) -> pd.DataFrame:
    """Scores and drops of each head by its place; heads of two networks share nothing else.

    Returns:
        One row a head: `layer` and `head` from 1, `num_seeds`, and `score` and `drop` with `_low`
        and `_high`; see `scored`.
    """
    places = [(i, j) for i, h in enumerate(setting.heads, 1) for j in range(1, h + 1)]
    return _of_heads(scored(setting), pd.DataFrame(places, columns=["layer", "head"]))


def ranks(setting: Trained) -> pd.DataFrame:
    """The same by rank of the score in each network: `rank` 1 is the lowest; ties by place."""
    rows = scored(setting)
    order = rows["scores"].map(lambda scores: np.argsort(scores, kind="stable"))
    ranked = {
        column: [values[by] for values, by in zip(rows[column], order, strict=True)]
        for column in ("drops", "scores")
    }
    places = pd.DataFrame({"rank": range(1, sum(setting.heads) + 1)})
    return _of_heads(rows.assign(**ranked), places)


def _of_heads(rows: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    there = places if len(rows) else places.iloc[:0]
    return means.over_entries(rows, there, score="scores", drop="drops")


def by_score(setting: Trained) -> Trained:
    """Theory and limit with the heads of each layer by falling score of theory.

    The heads of a layer are exchangeable between networks: a mean of U over networks by their
    numbers would be one over arbitrary heads. Where there are no scores they stay as they are.
    """
    rows = setting.rows[setting.rows["method"].isin(SOLVED)]
    ordered = []
    for scores, matrix in zip(rows["head_scores"], rows["order_parameter"], strict=True):
        order = _paths_by_score(scores, setting.heads)
        ordered.append(matrix[np.ix_(order, order)])
    return replace(setting, rows=rows.assign(order_parameter=ordered))


def _paths_by_score(scores: Vector, heads: Sequence[int]) -> NDArray[np.intp]:
    """(D,) paths in C order of heads by falling score; as they are without scores."""
    paths = np.arange(math.prod(heads)).reshape(tuple(heads))
    if not len(scores):
        return paths.ravel()
    layers = np.split(scores, np.cumsum(heads)[:-1])
    return paths[np.ix_(*(np.argsort(-layer, kind="stable") for layer in layers))].ravel()
