"""Words that tables, figures and sentences share: tasks, metrics, axes and amounts of them.

Nothing here computes a result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.groups import Axis
from study.results import SAIF_THRESHOLD

METRIC_NAMES = {"saif": "SAIF", "accuracy": "accuracy"}

_TEXTS = ("hatexplain",)
"""Tasks whose instances are posts, and whose foreground is the tokens that people marked."""

MANY_SEEDS = 10_000
"""Beyond, a number of seeds is no longer told."""


def is_text(task: str) -> bool:
    """Whether the segments of a task are words, and its instances posts."""
    return task in _TEXTS


def instances(*tasks: str) -> str:
    """What the instances of tasks are called: ``mosaics``, ``posts``; of both, ``instances``."""
    nouns = {"posts" if is_text(task) else "mosaics" for task in tasks} or {"mosaics"}
    return nouns.pop() if len(nouns) == 1 else "instances"


def counted_instances(task: str) -> str:
    """What SAIF and heat maps are shares of: those whose foreground is known."""
    return "posts that have a rationale" if is_text(task) else "instances"


def setting_name(task: str, m: int, architecture: str) -> str:
    """What tells comparisons of a page apart: ``digits m=10``, ``hatexplain embedding m=64``.

    Every study of text compares several architectures, studies of mosaics only where asked to.
    """
    return f"{task} {architecture} m={m}" if is_text(task) else f"{task} m={m}"


def unusual_rules(settings: Mapping[str, Any]) -> list[str]:
    """What makes the data of a text another one than by default: ``labels by first``.

    Args:
        settings: as `study.cell.Cell.to_dict` gives it.
    """
    texts = []
    for name, what in (("label_rule", "labels"), ("rationale_rule", "rationales")):
        if (rule := settings.get(name, "majority")) != "majority":
            texts.append(f"{what} by {rule}")
    return texts


def quantity(axis: Axis, noun: str = "mosaics") -> str:
    """What an axis measures; `noun` as `instances` gives it."""
    return {
        "flops": "training compute",
        "seconds": "measured training time",
        "mosaics": f"{noun} trained on",
    }[axis]


def made_equal(axis: Axis, noun: str = "mosaics") -> str:
    """What a comparison along an axis holds equal."""
    return {
        "flops": "equal training compute",
        "seconds": "equal training time",
        "mosaics": f"equal numbers of training {noun}",
    }[axis]


def metric_name(metric: str, threshold: float = SAIF_THRESHOLD) -> str:
    """``SAIF`` or ``accuracy``; the threshold of SAIF where it is not the usual one.

    An unknown metric keeps its name.
    """
    name = METRIC_NAMES.get(metric, metric)
    if metric == "saif" and threshold != SAIF_THRESHOLD:
        return f"{name} at threshold {threshold:g}"
    return name


def amount(value: float, axis: Axis, noun: str = "mosaics") -> str:
    """``2.5e10 training FLOPs``, ``3.2 s of training``, ``65,664 mosaics``; ``-`` if not known."""
    if axis == "mosaics":
        return f"{value:,.0f} {noun}" if known(value) else "-"
    return f"{number(value)} {'s of training' if axis == 'seconds' else 'training FLOPs'}"


def share_of_budget(fraction: float, budget: float, unit: Axis, noun: str = "mosaics") -> str:
    """``10 % of the budget (4.9e9 training FLOPs)``: what the cells were given until there.

    What they spend of it is up to a step less.

    Args:
        fraction: of the budget.
        budget: of a cell, in units of `unit`, FLOPs or mosaics.
        unit: what it is counted in.
        noun: as `instances` gives it.
    """
    return f"{number(100 * fraction)} % of the budget ({amount(fraction * budget, unit, noun)})"


def number(value: float) -> str:
    """Three significant digits: ``0.005``, ``1.25e12``; what is not finite is ``-``."""
    if not known(value):
        return "-"
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def known(value: float) -> bool:
    """Whether it is a finite number."""
    return not pd.isna(value) and math.isfinite(value)
