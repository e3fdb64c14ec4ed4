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

from analysis.attention_paths.networks import ALL, DENOISING, GOOD, LIMIT, THEORY
from analysis.attention_paths.settings import Setting

SOURCE = (
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
        networks: as `analysis.attention_paths.numbers.networks` gives them.

    Returns:
        One row a number of the prototype: `measure`, `network_width`, `paths`, `num_seeds`,
        `ours` with `_low` and `_high`, `prototype`, and `difference`, ours minus the prototype's;
        NaN where we have none.
    """
    records = []
    for number in PROTOTYPE.get(setting.variant, ()):
        method = THEORY if math.isfinite(number.width) else LIMIT
        mine = networks[
            (networks["method"] == method)
            & (networks["network_width"] == number.width)
            & (networks["paths"] == number.paths)
        ]
        row = mine.iloc[0] if len(mine) else None
        ends = ("", "_low", "_high")
        ours = {
            f"ours{end}": math.nan if row is None else float(row[f"{number.measure}{end}"])
            for end in ends
        }
        records.append(
            {
                "measure": number.measure,
                "network_width": number.width,
                "paths": number.paths,
                "num_seeds": 0 if row is None else int(row["num_seeds"]),
                **ours,
                "prototype": number.value,
                "difference": ours["ours"] - number.value,
            }
        )
    columns = ["measure", "network_width", "paths", "num_seeds", "ours", "ours_low", "ours_high"]
    return pd.DataFrame(records, columns=[*columns, "prototype", "difference"])


def departures(setting: Setting) -> list[str]:
    """What differs from the prototype's configuration, e.g. ``n 50 instead of 100``."""
    first = setting.first
    return [
        f"{name} {first[name]:g} instead of {value:g}"
        for name, value in CONFIGURATION.items()
        if first[name] != value
    ]
