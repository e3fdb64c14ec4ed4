"""How numbers, intervals, amounts and lists read; templates use them as filters.

Nothing here computes a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from analysis.groups import Axis
from analysis.rules.statistics import clopper_pearson
from study import terminal

Row = Mapping[Hashable, Any]
"""A row of a table."""

MANY = 10_000
"""Above this, a number of seeds or images is no longer stated."""


def known(value: float) -> bool:
    """Whether a value is finite."""
    return not pd.isna(value) and math.isfinite(value)


def number(value: float) -> str:
    """Three significant digits: ``0.005``, ``1.25e12``; ``-`` if not finite."""
    if not known(value):
        return "-"
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def three_decimals(value: float) -> str:
    """``0.123``; ``-`` if not finite."""
    return f"{value:.3f}" if known(value) else "-"


def percent(fraction: float, digits: int = 1) -> str:
    """0.1234 -> ``12.3``; ``-`` if not finite."""
    return f"{round(100 * fraction, digits) + 0.0:.{digits}f}" if known(fraction) else "-"


def points(difference: float) -> str:
    """A difference in points (hundredths): 0.123 -> ``+12.3``; ``-`` if not finite."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}" if known(difference) else "-"


def quantity(value: float, beside: Sequence[float] = ()) -> str:
    """``23.46``, ``1,235``, ``0.001234``; ``-`` if not finite.

    Four significant digits, or as many as tell it from the values beside it.
    """
    if not known(value) or not 1e-6 < abs(value) < 1e15:
        return "0" if value == 0 else number(value)
    there = [each for each in beside if known(each)]
    decimals = 3 - math.floor(math.log10(abs(value)))
    if len({*there}) > 1:
        decimals = max(decimals, 2 - math.floor(math.log10(max(there) - min(there))))
    return f"{value:,.{min(max(0, decimals), 15)}f}"


def change(difference: float) -> str:
    """A difference of quantities: ``+1.235``; ``-`` if not finite."""
    return f"{'+' * (difference >= 0)}{quantity(difference)}"


def level(confidence: float) -> str:
    """0.95 -> ``95 %``."""
    return f"{100 * confidence:g} %"


class Unit(NamedTuple):
    """What people read of the values of a measure.

    Attributes:
        scale: they are shown times this.
        sign: behind a value.
        of_change: what a difference is in, behind it.
        value: a value as text, without the sign.
        change: a difference as text, without what it is in.
    """

    scale: int
    sign: str
    of_change: str
    value: Callable[[float], str]
    change: Callable[[float], str]


SHARES = Unit(100, " %", " points", percent, points)
QUANTITIES = Unit(1, "", "", quantity, change)


# --- intervals


def between(low: float, high: float, form: Callable[[float], str] = points) -> str:
    """``+1.0 to +4.9``; ``-`` if an end is not finite."""
    return f"{form(low)} to {form(high)}" if known(low) and known(high) else "-"


def interval(
    row: Mapping[Hashable, Any], metric: str, form: Callable[[float], str] = percent
) -> str:
    """``10.1 to 14.9``, by default in per cent, or why there is none.

    Where seeds fall apart, ``11 of 12 learned (62 to 100 %)``: how many seeds, with an exact
    interval of the share.
    """
    seeds = int(row["num_seeds"])
    if seeds < 2:
        return f"no interval (n={seeds})"
    if known(row.get(f"{metric}_above", math.nan)):
        count = int(row[f"{metric}_learned"])
        low, high = (percent(end, 0) for end in clopper_pearson(count, seeds))
        return f"{count} of {seeds} learned ({low} to {high} %)"
    return between(row[f"{metric}_low"], row[f"{metric}_high"], form)


def interval_of_pair(row: Mapping[Hashable, Any], form: Callable[[float], str] = points) -> str:
    """``+1.0 to +4.9``, by default in points, or why there is none."""
    if row["num_pairs"] == 0:
        return "no common seed"
    if row["num_pairs"] < 2:
        return f"no interval (n={row['num_pairs']})"
    if known(row.get("above", math.nan)):
        counts = f"{row['learned_first']:g} and {row['learned_second']:g}"
        return f"{counts} of {row['num_pairs']} learned"
    return between(row["low"], row["high"], form)


# --- amounts of what a comparison may hold equal


def made_equal(axis: Axis, noun: str = "mosaics") -> str:
    """What a comparison along an axis holds equal; `noun` as of `Comparison.noun`."""
    return {
        "flops": "equal training compute",
        "seconds": "equal training time",
        "mosaics": f"equal numbers of training {noun}",
    }[axis]


def amount(value: float, axis: Axis, noun: str = "mosaics") -> str:
    """``2.5e10 training FLOPs``, ``3.2 s of training``, ``65,664 mosaics``; ``-`` if not known."""
    if axis == "mosaics":
        return f"{value:,.0f} {noun}" if known(value) else "-"
    return f"{number(value)} {'s of training' if axis == 'seconds' else 'training FLOPs'}"


def share_of_budget(fraction: float, budget: float, unit: Axis, noun: str = "mosaics") -> str:
    """``10 % of the budget (4.9e9 training FLOPs)``: what the cells were given up to there.

    They spend up to a step less.

    Args:
        fraction: fraction of the budget.
        budget: budget of a cell, in units of `unit`, FLOPs or mosaics.
        unit: what the budget is counted in.
        noun: as of `Comparison.noun`.
    """
    return f"{number(100 * fraction)} % of the budget ({amount(fraction * budget, unit, noun)})"


# --- counts, lists and text


def span(counts: Iterable[int]) -> str:
    """``3``; ``3 to 6`` where counts differ; ``0`` without any."""
    found = [int(count) for count in counts] or [0]
    return " to ".join(str(end) for end in dict.fromkeys([min(found), max(found)]))


def of_planned(count: str, planned: int) -> str:
    """``12``; ``6 of 12`` where some of the planned ones are missing."""
    return count if count == str(planned) else f"{count} of {planned}"


def listed(texts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def capital(text: str) -> str:
    """The text with a capital first letter: ``Accuracy``."""
    return text[:1].upper() + text[1:]


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table for the terminal, as lines."""
    return terminal.tabulated(header, rows, ruled=True)
