"""Numbers of others, and ours beside them.

Of theory beside sampling they are an independent prototype's, measured with the published
configuration of the hidden Markov task; they are no numbers of the paper, which shows its results
in figure 2 only. Of trained networks they are those of figure 3 of the paper (arXiv 2405.15926): a
network of two layers with four heads each. Neither has an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.rules.statistics import interval_columns
from chapters.paths.posterior.posterior_cell import LIMIT, THEORY
from chapters.paths.section import means
from chapters.paths.section import pruned as pruning
from chapters.paths.section.networks import ALL, DENOISING, GOOD, NETWORK, of_network
from chapters.paths.section.settings import Setting
from chapters.paths.section.trained import Trained

_WIDTHS = (10, 30, 50, 100, 300, 500, 1000, math.inf)

_ACCURACIES: Mapping[str, Mapping[str, Sequence[float]]] = {
    "plain": {
        ALL: (0.964, 0.961, 0.945, 0.911, 0.855, 0.840, 0.834, 0.826),
        DENOISING: (0.955,),
        GOOD: (0.940,),
    },
    "noisy": {
        ALL: (0.957, 0.955, 0.954, 0.925, 0.881, 0.862, 0.857, 0.843),
        GOOD: (0.565,),
    },
}
"""Variant -> paths -> accuracy of the prototype at the largest of `_WIDTHS`; the noisy one has two
paths, so good + denoising are all."""

_OTHERS: Mapping[str, Sequence[tuple[str, float, float]]] = {
    "plain": (("largest_overlap", 10, 0.845), ("largest_overlap", math.inf, 0.361)),
    "noisy": (("accuracy_diagonal", 10, 0.862),),
}
"""Variant -> further measures of networks with all paths, at a width."""

CONFIGURATION: Mapping[str, float] = {"n": 100, "tokens": 30, "temperature": 0.01}
"""Columns of `cells` as the prototype had them."""

_PROTOTYPE = (
    "Prototype: an independent implementation of the theory at the published configuration (P=100,"
    " T=30, temperature .01), with one draw of data and random heads; another seed differs by "
    "about 2 points."
)

TASK, HEADS = "omniglot", 8

ACCURACY = 0.838
"""Published accuracy of the trained network before pruning."""

DROPS = (0.020, 0.008, 0.043, 0.084, 0.078, 0.073, 0.095, 0.089)
"""Published accuracy lost without one head, by increasing score of it."""

SOURCE = (
    "Published numbers (arXiv 2405.15926, figure 3) are of 1,623 characters and one network: they "
    "have no interval, and another network differs from them."
)


def beside_prototype(setting: Setting) -> pd.DataFrame:
    """The prototype's numbers beside ours; empty where it has none of this variant.

    Returns:
        One row a number of the prototype: `measure`, `method`, `network_width`, `paths`,
        `num_seeds`, `ours` with `_low` and `_high`, NaN where we have none, and `prototype`.
    """
    numbers = [
        ("accuracy", width, paths, value)
        for paths, values in _ACCURACIES.get(setting.variant, {}).items()
        for width, value in zip(_WIDTHS[-len(values) :], values, strict=True)
    ]
    numbers += [
        (name, width, ALL, value) for name, width, value in _OTHERS.get(setting.variant, ())
    ]
    table, records = means.networks(setting), []
    for measure, width, paths, value in numbers:
        method = THEORY if math.isfinite(width) else LIMIT
        mine = _ours(of_network(table, method, width, paths), measure)
        records.append((measure, method, width, paths, *mine, value))
    columns = ["measure", *NETWORK, "num_seeds", *interval_columns("ours"), "prototype"]
    return pd.DataFrame(records, columns=columns)


def source_of_prototype(setting: Setting) -> str:
    """Where the numbers are from, and in what the setting differs: ``n 50 instead of 100``."""
    ours = setting.first
    differ = [
        f"{name} {ours[name]:g} instead of {value:g}"
        for name, value in CONFIGURATION.items()
        if ours[name] != value
    ]
    return f"{_PROTOTYPE} Here: {', '.join(differ)}." if differ else _PROTOTYPE


def published_drops(setting: Trained) -> Sequence[float]:
    """`DROPS` where the setting is of their task and number of heads; else none."""
    return DROPS if setting.task == TASK and sum(setting.heads) == HEADS else ()


def beside_published(setting: Trained) -> pd.DataFrame:
    """The published numbers beside ours; empty of other tasks and numbers of heads.

    Returns:
        One row a published number: `measure` (accuracy, drop), `rank` of the head's score
        (missing for the accuracy), `num_seeds`, `ours` with `_low` and `_high`, NaN where we have
        none, and `published`.
    """
    columns = ["measure", "rank", "num_seeds", *interval_columns("ours"), "published"]
    if not published_drops(setting):
        return pd.DataFrame(columns=columns)
    trained, ranks = pruning.trained(setting).query("num_seeds > 0"), pruning.ranks(setting)
    one = trained if len(trained) == 1 else trained[:0]  # of several rates none is the paper's
    records = [("accuracy", math.nan, *_ours(one, "accuracy_test"), ACCURACY)]
    for rank, drop in enumerate(DROPS, start=1):
        records.append(("drop", rank, *_ours(ranks[ranks["rank"] == rank], "drop"), drop))
    return pd.DataFrame(records, columns=columns)


def _ours(rows: pd.DataFrame, measure: str) -> tuple[Any, ...]:
    """Number of seeds, mean and ends of the interval of the only row, if there is one."""
    for row in rows.to_dict("records"):
        return (row["num_seeds"], *(row[column] for column in interval_columns(measure)))
    return (0, math.nan, math.nan, math.nan)
