"""A claim of the paper, and how measurements decide it.

Sources: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), claims C1
to C17, and "Dissecting the Interplay of Attention Paths in a Statistical Mechanics Theory of
Transformers" (arXiv 2405.15926), claims P1 to P6; they are numbered as in the project's
specifications. A claim *holds* where the 95 % interval over seeds lies wholly on the claimed side
of a threshold, and *does not hold* where it lies wholly on the other. It is *undecided* where the
interval contains the threshold, there are fewer than `MIN_SEEDS` seeds, or a number is unknown,
and *not run* where what it is about has no cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics import CONFIDENCE, MIN_SEEDS, t_interval

Verdict = Literal["holds", "does not hold", "undecided", "not run"]

Side = Literal["below", "above"]
"""Side of a threshold."""

TOO_FEW = f"fewer than {MIN_SEEDS} seeds decide nothing"

OPEN = "an interval contains its threshold"
"""Why a claim is undecided where no part of it names another reason."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what the data says.

    Attributes:
        name: C1 to C17, P1 to P6.
        statement: the claim, in our words.
        test: what is measured, which threshold decides and why; the same for all data.
        verdict: holds, does not hold, undecided or not run.
        measured: one line with the numbers, intervals and n.
        setting: where it was tested, e.g. ``digits m=5``; empty: there is only one.
        why: why it is undecided or was not run, in a short clause for the terminal.
    """

    name: str
    statement: str
    test: str
    verdict: Verdict
    measured: str
    setting: str = ""
    why: str = ""


@dataclass(frozen=True)
class Finding:
    """One part of a claim.

    Attributes:
        so: whether it is true; None: undecided.
        text: its numbers.
        reason: why it is undecided.
        short: the same in a short clause, where `reason` is none.
    """

    so: bool | None
    text: str
    reason: str = ""
    short: str = ""


def decided(
    name: str, statement: str, test: str, findings: Sequence[Finding], setting: str = ""
) -> Claim:
    """The claim: holds if all parts are true, does not hold if one is false, else undecided."""
    verdict: Verdict = "undecided"
    if any(finding.so is False for finding in findings):
        verdict = "does not hold"
    elif findings and all(finding.so for finding in findings):
        verdict = "holds"
    texts = [finding.text for finding in findings] + [finding.reason for finding in findings]
    measured = "; ".join(text for text in dict.fromkeys(texts) if text)
    return Claim(name, statement, test, verdict, measured, setting, _why(verdict, findings))


def _why(verdict: Verdict, findings: Sequence[Finding]) -> str:
    """Why a claim is undecided: the first reason that an undecided part of it names."""
    if verdict != "undecided":
        return ""
    undecided = [finding for finding in findings if finding.so is None]
    texts = [finding.short or finding.reason for finding in undecided]
    return next(filter(None, texts), OPEN)


def beyond(values: ArrayLike, threshold: float, claimed: Side) -> bool | None:
    """Whether the t interval over seeds lies wholly on the claimed side of a threshold.

    Args:
        values: (n,) one number a seed.
        threshold: in the unit of `values`.
        claimed: the claimed side.

    Returns:
        False where it lies wholly on the other side; None where it contains the threshold, a value
        is unknown, or there are fewer than `MIN_SEEDS`.
    """
    array = np.asarray(values, np.float64)
    _, low, high = t_interval(array, CONFIDENCE)
    if len(array) >= MIN_SEEDS and (high < threshold or low > threshold):  # neither with NaN
        return (high < threshold) == (claimed == "below")
    return None


def side(
    name: str,
    values: ArrayLike,
    threshold: float,
    claimed: Side,
    lost: int = 0,
    form: Callable[[float], str] = lambda share: f"{round(100 * share, 1) + 0.0:.1f} %",
) -> Finding:
    """Tests on which side of a threshold the t interval over seeds lies.

    Args:
        name: what was measured.
        values: (n,) one number a seed.
        threshold: in the unit of `values`.
        claimed: the claimed side.
        lost: number of diverged seeds, which are not among the values.
        form: formats a value.
    """
    array = np.asarray(values, np.float64)
    mean, low, high = t_interval(array, CONFIDENCE)
    text = f"{name}: "
    if math.isnan(mean):
        unknown = int(np.isnan(array).sum())
        text += f"not known in {unknown} of {len(array)} seeds" if len(array) else "no seed"
    elif math.isnan(low):
        text += f"{form(mean)} (n=1, no interval)"
    else:
        text += f"{form(mean)} (95 % interval {form(low)} to {form(high)}, n={len(array)})"
    text += left_out(lost)
    reason = TOO_FEW if len(array) < MIN_SEEDS else ""
    short = "a number is not known" if len(array) and math.isnan(mean) else ""
    return Finding(beyond(array, threshold, claimed), text, reason, short)


def inside(
    name: str,
    values: ArrayLike,
    low: float,
    high: float,
    form: Callable[[float], str],
    lost: int = 0,
) -> Finding:
    """Tests whether the t interval over seeds lies between two thresholds.

    True where it lies between them, False where it lies beyond one, else undecided.

    Args:
        name: what was measured.
        values: (n,) one number a seed.
        low, high: in the unit of `values`.
        form: formats a value.
        lost: number of diverged seeds, which are not among the values.
    """
    found = side(name, values, high, "below", lost, form)
    both = (found.so, beyond(values, low, "above"))
    so = False if False in both else all(both) or None
    return replace(found, so=so)


def left_out(lost: int) -> str:
    """Says how many diverged seeds are not among the values, if any."""
    return f", {lost} diverged seed{'s' if lost > 1 else ''} left out" if lost else ""
