"""Theory's scores of single heads beside what a trained network loses without each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.rules.claim import evidence
from analysis.rules.statistics import CONFIDENCE, LEVEL, t_interval
from chapters.paths.heads.heads_cell import SOLVED
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.section.heads.heads_settings import Trained
from chapters.paths.section.means import by_entry, over_seeds
from chapters.paths.section.settings import Vector, once


@once
def scored(setting: Trained) -> pd.DataFrame:
    """Theory's scores at the reference width beside what the accuracy loses without each head.

    Returns:
        One row a seed that has both: `seed`, `score` (heads,), `drop` (heads,): test accuracy of
        the network minus that without the head, and their rank `correlation`.
    """
    theory = setting.of(THEORY, setting.reference)
    networks = setting.networks.set_index("cell_id")[["accuracy_test", "without_head"]]
    both = theory.join(networks, on="network", how="inner")
    both = both[(both["head_scores"].map(len) > 0) & (both["without_head"].map(len) > 0)]
    drops = both["accuracy_test"] - both["without_head"]
    numbers = {"score": both["head_scores"], "drop": drops}
    table = pd.DataFrame(numbers).rename_axis("seed").reset_index()
    correlations = [*map(rank_correlation, table["score"], table["drop"])]
    return table.assign(correlation=np.array(correlations, np.float64))


def rank_correlation(first: Vector, second: Vector) -> float:
    """Spearman's correlation of two vectors (heads,): that of their ranks, ties at their mean.

    NaN where one of them is constant, or a value is not known.
    """
    ranks = pd.DataFrame({"first": first, "second": second}).rank()
    return float(ranks.corr(min_periods=len(ranks)).to_numpy()[0, 1])


def correlation(setting: Trained) -> tuple[float, float, float, int]:
    """Rank correlation: mean over seeds, ends of its interval within -1 and 1, number of seeds."""
    values = scored(setting)["correlation"]
    mean, low, high = t_interval(values, CONFIDENCE)
    return mean, max(low, -1), min(high, 1), len(values)


def beyond_limit(setting: Trained) -> dict[str, Any]:
    """How many seeds say how much theory at the reference width gains over the limit, how many
    are lost, and the `verdict`: better, worse or undecided.
    """
    gains = setting.of(THEORY, setting.reference)["gain"]
    lost = len(setting.seeds) - len(gains)
    test = evidence(gains, 0, "above", lost)
    verdict = "better" if test.so else "worse"
    if setting.chosen_on_test or not test.p < LEVEL:
        verdict = "undecided"
    return {"num_seeds": len(gains), "num_lost": lost, "verdict": verdict}


def positions(setting: Trained) -> pd.DataFrame:
    """Scores and drops of each head by its place; heads of two networks share nothing else.

    Returns:
        One row a head: `layer` and `head` from 1, `num_seeds`, and `score` and `drop` with `_low`
        and `_high`; see `scored`.
    """
    return over_seeds(_single(setting), ["layer", "head"], ["score", "drop"])


@once
def ranks(setting: Trained) -> pd.DataFrame:
    """The same by rank of the score in each network: `rank` 1 is the lowest; ties by place."""
    heads = _single(setting).sort_values(["seed", "score"], kind="stable")
    ranked = heads.assign(rank=heads.groupby("seed").cumcount() + 1)
    return over_seeds(ranked, ["rank"], ["score", "drop"])


def _single(setting: Trained) -> pd.DataFrame:
    """`scored`, one row a seed and head, with its `layer` and `head`."""
    places = [(i, j) for i, h in enumerate(setting.heads, 1) for j in range(1, h + 1)]
    of_numbers = pd.DataFrame(places, range(1, len(places) + 1), ["layer", "head"])
    table = by_entry(scored(setting), "number", ["score", "drop"])
    return table.join(of_numbers, on="number").assign(status="done")


def by_score(setting: Trained) -> Trained:
    """Theory and limit with the heads of each layer by falling score of theory.

    The heads of a layer are exchangeable between networks: a mean of U over networks by their
    numbers would be one over arbitrary heads. Where there are no scores they stay as they are.
    """
    rows = setting.rows[setting.rows["method"].isin(SOLVED)]
    ordered = []
    for scores, entries in zip(rows["head_scores"], rows["order_parameter"], strict=True):
        order = _paths_by_score(scores, setting.heads)
        ordered.append(entries.reshape(len(order), -1)[np.ix_(order, order)].ravel())
    return replace(setting, cells=rows.assign(order_parameter=ordered))


def _paths_by_score(scores: Vector, heads: Sequence[int]) -> NDArray[np.intp]:
    """(D,) paths in C order of heads by falling score; as they are without scores."""
    paths = np.arange(math.prod(heads)).reshape(tuple(heads))
    if not len(scores):
        return paths.ravel()
    layers = np.split(scores, np.cumsum(heads)[:-1])
    return paths[np.ix_(*(np.argsort(-layer, kind="stable") for layer in layers))].ravel()
