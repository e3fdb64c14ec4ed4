"""Words that tables, figures and sentences share: metrics, axes and amounts of them.

Nothing here computes a result.
"""

from __future__ import annotations

import math

import pandas as pd

from analysis.groups import Axis
from study.results import SAIF_THRESHOLD

METRIC_NAMES = {"saif": "SAIF", "accuracy": "accuracy"}

QUANTITIES: dict[Axis, str] = {
    "flops": "training compute",
    "seconds": "measured training time",
    "mosaics": "mosaics trained on",
}
"""Axis -> what it measures."""

MADE_EQUAL: dict[Axis, str] = {
    "flops": "equal training compute",
    "seconds": "equal training time",
    "mosaics": "equal numbers of training mosaics",
}
"""Axis -> what a comparison along it holds equal."""

MANY_SEEDS = 10_000
"""Beyond, a number of seeds is no longer told."""


def metric_name(metric: str, threshold: float = SAIF_THRESHOLD) -> str:
    """``SAIF`` or ``accuracy``; the threshold of SAIF where it is not the usual one.

    An unknown metric keeps its name.
    """
    name = METRIC_NAMES.get(metric, metric)
    if metric == "saif" and threshold != SAIF_THRESHOLD:
        return f"{name} at threshold {threshold:g}"
    return name


def amount(value: float, axis: Axis) -> str:
    """``2.5e10 training FLOPs``, ``3.2 s of training``, ``65,664 mosaics``; ``-`` if not known."""
    if axis == "mosaics":
        return f"{value:,.0f} mosaics" if known(value) else "-"
    return f"{number(value)} {'s of training' if axis == 'seconds' else 'training FLOPs'}"


def number(value: float) -> str:
    """Three significant digits: ``0.005``, ``1.25e12``; what is not finite is ``-``."""
    if not known(value):
        return "-"
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def known(value: float) -> bool:
    """Whether it is a finite number."""
    return not pd.isna(value) and math.isfinite(value)
