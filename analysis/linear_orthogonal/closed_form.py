"""What theory says of the linear orthogonal setting, as the tables that a report shows.

A report asks for the same curves repeatedly. They take seconds, so each is computed once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.linear_orthogonal.claims import HORIZON, LEVELS, NAMES, Exact
from study.theory import linear_orthogonal
from study.theory.linear_orthogonal import curvature

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


def curves(pairs: Sequence[Pair], horizon: float = HORIZON) -> pd.DataFrame:
    """The trajectories of Theorem 2 for a figure, from before they begin to move up to a time.

    Returns:
        One row a (m, C), paradigm and time: `m`, `num_classes`, `paradigm` and the columns of
        `study.theory.linear_orthogonal.trajectory`; times evenly in their logarithm, the same
        for all paradigms.
    """
    return _each(pairs, horizon, linear_orthogonal.trajectory)


def curvatures(pairs: Sequence[Pair]) -> pd.DataFrame:
    """The Hessian along the trajectories up to `HORIZON`: as `curves`, of `curvature.along`."""
    return _each(pairs, HORIZON, curvature.along, _FINE)


def exact(m: int, num_classes: int, trained: float = math.nan) -> Exact:
    """The closed form for claim C15, for one (m, C).

    Args:
        m: segments a mosaic.
        num_classes: C.
        trained: time at which training ended; NaN: none was.
    """
    pair, start = (m, num_classes), math.log(num_classes)
    times = {
        name: tuple(_time_to(name, pair, "loss", share * start) for share in LEVELS)
        for name in NAMES
    }
    known = math.isfinite(trained)
    return Exact(
        m=m,
        num_classes=num_classes,
        times=times,
        nu=_nu_at(m, num_classes, HORIZON),
        trained=trained,
        nu_trained=_nu_at(m, num_classes, trained) if known else None,
    )


def convergence(pairs: Sequence[Pair]) -> pd.DataFrame:
    """How fast each paradigm converges, by several measures.

    Returns:
        One row a (m, C) and paradigm: `time_to_50`, `time_to_10` and `time_to_1`, at which the
        loss is that per cent of log C; `time_to_focus`, at which attention on the foreground is
        `CONFIDENT`; `mu`, `nu` and `loss` at `HORIZON`.
    """
    records = []
    for m, num_classes in pairs:
        found = exact(m, num_classes)
        for name in NAMES:
            end = linear_orthogonal.trajectory(name, m, num_classes, [HORIZON]).iloc[0]
            times = {
                f"time_to_{100 * share:g}": time
                for share, time in zip(LEVELS, found.times[name], strict=True)
            }
            records.append(
                {
                    "m": m,
                    "num_classes": num_classes,
                    "paradigm": name,
                    **times,
                    "time_to_focus": _time_to(name, (m, num_classes), "alpha", CONFIDENT),
                    "horizon": HORIZON,
                    **{quantity: float(end[quantity]) for quantity in ("mu", "nu", "loss")},
                }
            )
    return pd.DataFrame(records)


@functools.cache
def _time_to(paradigm: str, pair: Pair, column: str, value: float) -> float:
    return float(linear_orthogonal.time_to(paradigm, *pair, column, value))


def _nu_at(m: int, num_classes: int, time: float) -> dict[str, float]:
    return {
        name: float(linear_orthogonal.trajectory(name, m, num_classes, [time])["nu"].iloc[0])
        for name in NAMES
    }


def _each(
    pairs: Sequence[Pair],
    horizon: float,
    along: Callable[[str, int, int, NDArray[np.float64]], pd.DataFrame],
    points: int = _POINTS,
) -> pd.DataFrame:
    return pd.concat([_along(along, p, horizon, points) for p in pairs], ignore_index=True)


@functools.cache
def _along(
    along: Callable[[str, int, int, NDArray[np.float64]], pd.DataFrame],
    pair: Pair,
    horizon: float,
    points: int,
) -> pd.DataFrame:
    m, num_classes = pair
    half = LEVELS[0] * math.log(num_classes)
    first = min(_time_to(name, pair, "loss", half) for name in NAMES)
    times = np.geomspace(_EARLY * first, max(horizon, first), points)
    parts = [
        along(name, m, num_classes, times).assign(m=m, num_classes=num_classes, paradigm=name)
        for name in NAMES
    ]
    return pd.concat(parts)
