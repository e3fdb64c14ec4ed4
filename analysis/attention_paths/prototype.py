"""Numbers of an independent prototype of the theory, and ours beside them.

They were measured with the published configuration of the hidden Markov task and one draw of data
and random heads; another seed differs by about 2 points. They are no numbers of the paper, which
shows its results in figure 2 only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from analysis.attention_paths.networks import (
    ALL,
    DENOISING,
    GOOD,
    LIMIT,
    NETWORK,
    THEORY,
    of_network,
)
from analysis.attention_paths.settings import Setting
from analysis.statistics import interval_columns

_SOURCE = (
    "Prototype: an independent implementation of the theory at the published configuration (P=100,"
    " T=30, temperature .01), with one draw of data and random heads; another seed differs by "
    "about 2 points."
)


class Number(NamedTuple):
    """A number of the prototype: which measure of which network, as a fraction."""

    measure: str
    width: float
    paths: str
    value: float


def _accuracies(
    limits: Mapping[str, float], by_width: Mapping[float, float]
) -> tuple[Number, ...]:
    return (
        *(Number("accuracy", width, ALL, value) for width, value in by_width.items()),
        *(Number("accuracy", math.inf, paths, value) for paths, value in limits.items()),
    )


PROTOTYPE: Mapping[str, tuple[Number, ...]] = {
    "plain": (
        *_accuracies(
            {ALL: 0.826, DENOISING: 0.955, GOOD: 0.940},
            {10: 0.964, 30: 0.961, 50: 0.945, 100: 0.911, 300: 0.855, 500: 0.840, 1000: 0.834},
        ),
        Number("largest_overlap", 10, ALL, 0.845),
        Number("largest_overlap", math.inf, ALL, 0.361),
    ),
    "noisy": (
        *_accuracies(
            {ALL: 0.843, GOOD: 0.565},
            {10: 0.957, 30: 0.955, 50: 0.954, 100: 0.925, 300: 0.881, 500: 0.862, 1000: 0.857},
        ),
        Number("accuracy_diagonal", 10, ALL, 0.862),
    ),
}
"""Variant -> its numbers; the noisy one has two paths, so good + denoising are all."""

CONFIGURATION: Mapping[str, float] = {"n": 100, "tokens": 30, "temperature": 0.01}
"""Columns of `cells` as the prototype had them."""


def beside(setting: Setting, networks: pd.DataFrame) -> pd.DataFrame:
    """The prototype's numbers beside ours; empty where it has none of this variant.

    Args:
        setting: the setting.
        networks: as `analysis.attention_paths.means.networks` gives them.

    Returns:
        One row a number of the prototype: `measure`, `method`, `network_width`, `paths`,
        `num_seeds`, `ours` with `_low` and `_high`, NaN where we have none, and `prototype`.
    """
    records = []
    for measure, width, paths, value in PROTOTYPE.get(setting.variant, ()):
        method = THEORY if math.isfinite(width) else LIMIT
        ours, seeds = [math.nan] * 3, 0
        for row in of_network(networks, method, width, paths).to_dict("records"):
            ours = [row[column] for column in interval_columns(measure)]
            seeds = row["num_seeds"]
        records.append((measure, method, width, paths, seeds, *ours, value))
    columns = ["measure", *NETWORK, "num_seeds", *interval_columns("ours"), "prototype"]
    return pd.DataFrame(records, columns=columns)


def source(setting: Setting) -> str:
    """Where the numbers are from, and in what the setting differs: ``n 50 instead of 100``."""
    ours = setting.first
    differ = [
        f"{name} {ours[name]:g} instead of {value:g}"
        for name, value in CONFIGURATION.items()
        if ours[name] != value
    ]
    return f"{_SOURCE} Here: {', '.join(differ)}." if differ else _SOURCE
