"""What theory says of the linear orthogonal setting, as the tables that a report shows.

A report asks for the same curves repeatedly. They take seconds, so each is computed once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from analysis.forms import known, number
from analysis.groups import PARADIGMS, paradigm_order
from chapters.dynamics import linear_orthogonal
from chapters.dynamics.linear_orthogonal import curvature

NAMES = tuple(paradigm_order(PARADIGMS))
"""Of the paradigms of section 4, in the order of tables."""

LEVELS = (0.5, 0.1, 0.01)
"""Shares of log C, the loss at the start, at which the time is taken."""

TIMES = [f"time_to_{100 * share:g}" for share in LEVELS]
"""Columns of `convergence`, one per level."""

HORIZON = 4e5
"""Gradient-flow time to which the published scripts integrate."""

PUBLISHED = ((20, 20), (100, 1_000))
"""(m, C) of figure 4; the second one as in the published scripts."""

SMALL = (5, 3)
"""A pair that is always shown beside them, because the paradigms rank differently there."""

CONFIDENT = 0.8
"""Attention on the foreground from which an instance may count for SAIF."""

_POINTS = 400
_FINE = 4_000  # eigenvalues change within a hundredth of the time
_EARLY = 0.01  # of the time at which the first loss is halved: before, nothing is seen to move

Pair = tuple[int, int]
"""(m, C)."""


def curves(pairs: Sequence[Pair], horizon: float) -> pd.DataFrame:
    """The trajectories of Theorem 2 for a figure, from before they begin to move up to a time.

    Returns:
        One row per (m, C), paradigm and time: `m`, `num_classes`, `paradigm` and the columns of
        `chapters.dynamics.linear_orthogonal.trajectory`; times evenly in their logarithm, the same
        for all paradigms.
    """
    trajectory = linear_orthogonal.trajectory
    return pd.concat([_along(trajectory, p, horizon, _POINTS) for p in pairs], ignore_index=True)


def curvatures() -> pd.DataFrame:
    """The Hessian of `PUBLISHED` up to `HORIZON`: as `curves`, of `curvature.along`."""
    parts = [_along(curvature.along, pair, HORIZON, _FINE) for pair in PUBLISHED]
    return pd.concat(parts, ignore_index=True)


def convergence(pairs: Sequence[Pair]) -> pd.DataFrame:
    """How fast each paradigm converges, by several measures.

    Returns:
        One row per (m, C) and paradigm: `time_to_50`, `time_to_10` and `time_to_1`, at which the
        loss is that per cent of log C; `time_to_focus`, at which attention on the foreground is
        `CONFIDENT`; `mu`, `nu` and `loss` at `HORIZON`.
    """
    return pd.concat([_convergence(*pair) for pair in pairs], ignore_index=True)


def at_time(m: int, num_classes: int, time: float) -> pd.DataFrame:
    """`mu`, `nu` and `loss` of each paradigm, its index, at a time."""
    rows = [linear_orthogonal.trajectory(name, m, num_classes, [time]) for name in NAMES]
    return pd.concat(rows).set_index(pd.Index(NAMES))[["mu", "nu", "loss"]]


def time_text(time: float) -> str:
    """Three significant digits, as people write them: ``53.7``, ``1,270``, ``400,000``."""
    if not known(time) or abs(time) < 1_000:
        return number(time)
    return f"{float(f'{time:.3g}'):,.0f}"


@functools.cache
def _convergence(m: int, num_classes: int) -> pd.DataFrame:
    losses = math.log(num_classes) * np.array(LEVELS)
    ends = at_time(m, num_classes, HORIZON)
    records = []
    for name in NAMES:
        to = functools.partial(linear_orthogonal.time_to, name, m, num_classes)
        times = dict(zip(TIMES, to("loss", losses), strict=True))
        times["time_to_focus"] = float(to("alpha", CONFIDENT))
        of = {"m": m, "num_classes": num_classes, "paradigm": name}
        records.append({**of, **times, "horizon": HORIZON, **ends.loc[name]})
    return pd.DataFrame(records)


@functools.cache
def _along(
    along: Callable[..., pd.DataFrame], pair: Pair, horizon: float, points: int
) -> pd.DataFrame:
    first = float(_convergence(*pair)[TIMES[0]].min())
    times = np.geomspace(_EARLY * first, max(horizon, first), points)
    m, num_classes = pair
    parts = [
        along(name, m, num_classes, times).assign(m=m, num_classes=num_classes, paradigm=name)
        for name in NAMES
    ]
    return pd.concat(parts)
