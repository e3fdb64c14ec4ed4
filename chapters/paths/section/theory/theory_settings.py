"""Settings of theory beside sampling: their cells, and how far the two agree."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from chapters.paths.posterior.posterior_cell import SLICE, THEORY
from chapters.paths.section.means import in_bounds, over_seeds
from chapters.paths.section.networks import NETWORK, line
from chapters.paths.section.settings import (
    UNCONVERGED,
    Setting,
    last_evaluations,
    named,
    once,
    relative_distance,
    with_numbers,
)
from study.results import Results

VARIANTS = ("plain", "noisy", "own")
"""In the order of the report."""

MEASURES = (
    "accuracy", "accuracy_diagonal", "interplay", "gain", "loss", "distance", "largest_overlap",
)  # fmt: skip
"""Measures of a network that have a mean and an interval, see `settings.with_numbers`."""

_TOLD_APART = {
    "n": "P={:g}",
    "tokens": "T={:g}",
    "sigma_perp": "sigma_perp={:g}",
    "temperature": "temperature {:g}",
    "heads": "heads {}",
}
_PAIR = ["network_width", "seed", "predictor_error", "sampling_error", "accuracy_difference",
         "order_parameter_difference"]  # fmt: skip


def read(results: Results, cells: pd.DataFrame) -> list[Setting]:
    """The settings of a directory: plain, noisy, own.

    Args:
        results: the directory.
        cells: rows of `cells`.

    Raises:
        ResultsError: unreadable results, or see `settings.with_numbers`.
    """
    last = last_evaluations(results, cells)
    drafts = []
    for key, recorded in cells.groupby("comparison_id"):
        first, kept = recorded.iloc[0], recorded.reset_index(drop=True)
        facts = {name: text.format(first[name]) for name, text in _TOLD_APART.items()}
        numbers = with_numbers(kept, last)
        drafts.append(Setting(str(key), "", str(first["variant"]), kept, numbers, facts))
    return named(sorted(drafts, key=lambda each: (VARIANTS.index(each.variant), each.id)))


@once
def networks(setting: Setting) -> pd.DataFrame:
    """Every network of a setting: means over its seeds.

    Returns:
        One row a network: `method`, `network_width`, `paths`, `num_seeds`, `num_diverged`,
        `num_unconverged`, and each of `MEASURES` with `_low` and `_high`.
    """
    return in_bounds(over_seeds(setting.cells, NETWORK, MEASURES, lost=("diverged", UNCONVERGED)))


@once
def agreement(setting: Setting) -> pd.DataFrame:
    """How far theory is from what was sampled, at every sampled width.

    Returns:
        One row a sampled network: `method`, `network_width`, `paths`, `num_seeds` that theory and
        sampling share, `predictor_error` (distance of theory's mean predictor from the sampled
        one as a share of the latter) and `accuracy_difference` (theory minus sampled), each with
        `_low` and `_high`; `sampling_error`, the sampled mean's own Monte Carlo error as the same
        share; `order_parameter_difference`, the largest of any seed and entry of U; `r_hat` and
        `effective_sample_size`, the largest and smallest of all cells, converged or not;
        `num_unconverged`.
    """
    sampled = line(setting.cells, SLICE).merge(
        pairs(setting), how="left", on=["network_width", "seed"]
    )
    alone = (sampled["status"] == "done") & sampled["accuracy_difference"].isna()
    sampled["status"] = sampled["status"].mask(alone, "without theory")
    measures = ("predictor_error", "sampling_error", "accuracy_difference")
    table = over_seeds(sampled, NETWORK, measures, lost=(UNCONVERGED,))
    ends = sampled.groupby(NETWORK, sort=False).agg(
        {"order_parameter_difference": "max", "r_hat": "max", "effective_sample_size": "min"}
    )
    columns = [
        *NETWORK, "num_seeds", "predictor_error", "predictor_error_low", "predictor_error_high",
        "sampling_error", "accuracy_difference", "accuracy_difference_low",
        "accuracy_difference_high", *ends, "num_unconverged",
    ]  # fmt: skip
    return table.join(ends, on=NETWORK)[columns]


@once
def pairs(setting: Setting) -> pd.DataFrame:
    """Theory beside sampling.

    Returns:
        One row a width and seed that both have: `_PAIR`, see `agreement`.
    """
    theory, sampled = (line(setting.rows, method) for method in (THEORY, SLICE))
    both = theory.merge(sampled, on=["network_width", "seed"], suffixes=("", "_sampled"))
    records = []
    for row in both.to_dict("records"):
        mean, error = row["predictor_mean_sampled"], row["predictor_mean_error_sampled"]
        apart = np.abs(row["order_parameter"] - row["order_parameter_sampled"])
        records.append(
            [
                row["network_width"],
                row["seed"],
                relative_distance(row["predictor_mean"], mean),
                relative_distance(mean + error, mean) if len(error) else math.nan,
                row["accuracy"] - row["accuracy_sampled"],
                apart.max(),
            ]
        )
    return pd.DataFrame(records, columns=_PAIR, dtype=np.float64)
