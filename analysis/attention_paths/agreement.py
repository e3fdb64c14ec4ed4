"""How theory and sampling agree, seed by seed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from analysis.attention_paths.measures import relative_distance
from analysis.attention_paths.networks import ALL, SLICE, THEORY, of_network
from analysis.attention_paths.settings import Setting
from analysis.statistics import CONFIDENCE, interval_columns, named_interval

_PAIRED = [
    "predictor_error", "sampling_error", "accuracy_difference", "order_parameter_difference",
]  # fmt: skip
_COLUMNS = [
    "method", "network_width", "paths", "num_seeds", *interval_columns("predictor_error"),
    "sampling_error", *interval_columns("accuracy_difference"), "order_parameter_difference",
    "r_hat", "effective_sample_size", "num_unconverged",
]  # fmt: skip


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
    records = []
    for width in setting.sampled_widths:
        cells, lost = (
            of_network(table, SLICE, width, ALL) for table in (setting.cells, setting.unconverged)
        )
        both = pairs(setting, width)
        records.append(
            {
                "method": SLICE,
                "network_width": width,
                "paths": ALL,
                "num_seeds": len(both),
                **named_interval("predictor_error", both["predictor_error"], CONFIDENCE),
                "sampling_error": both["sampling_error"].mean(skipna=False),
                **named_interval("accuracy_difference", both["accuracy_difference"], CONFIDENCE),
                "order_parameter_difference": both["order_parameter_difference"].max(),
                "r_hat": cells["r_hat"].max(),
                "effective_sample_size": cells["effective_sample_size"].min(),
                "num_unconverged": len(lost),
            }
        )
    return pd.DataFrame(records, columns=_COLUMNS)


def pairs(setting: Setting, width: float) -> pd.DataFrame:
    """Theory beside sampling at one width.

    Returns:
        One row a common seed, its index: `predictor_error`, `sampling_error`,
        `accuracy_difference` and `order_parameter_difference`, see `agreement`.
    """
    theory, sampled = setting.of(THEORY, width), setting.of(SLICE, width)
    seeds = theory.index.intersection(sampled.index)
    records = []
    for seed in seeds:
        mine, other = theory.loc[seed], sampled.loc[seed]
        mean, error = other["predictor_mean"], other["predictor_mean_error"]
        apart = np.abs(mine["order_parameter"] - other["order_parameter"])
        records.append(
            {
                "predictor_error": relative_distance(mine["predictor_mean"], mean),
                "sampling_error": relative_distance(mean + error, mean)
                if len(error)
                else math.nan,
                "accuracy_difference": mine["accuracy"] - other["accuracy"],
                "order_parameter_difference": apart.max(),
            }
        )
    return pd.DataFrame(records, seeds, _PAIRED, np.float64)
