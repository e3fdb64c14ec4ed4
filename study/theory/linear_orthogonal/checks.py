"""Checks the arguments of the theory; a wrong one raises a `RequestError` of one line."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from study.errors import RequestError

LATEST = 1e300
"""The latest time that is accepted: e^mu grows as t, and must stay finite."""

LEAST_MU = -500.0
"""The least mu that is accepted: C e^-mu must stay finite."""

Floats = NDArray[np.float64]


def whole(name: str, value: object, least: int) -> int:
    """An integer of at least `least`.

    Raises:
        RequestError: it is not.
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise RequestError(f"{name} must be an integer >= {least}, got {value!r}.")
    return int(value)


def attention(alpha: ArrayLike) -> Floats:
    """alpha as float64, in [0, 1].

    Raises:
        RequestError: it is not.
    """
    values = _numbers("alpha", alpha)
    if not ((values >= 0) & (values <= 1)).all():
        raise RequestError(f"alpha must be in [0, 1], got {_first_not(values, 0, 1)}.")
    return values


def finite(name: str, values: ArrayLike, least: float = -np.inf) -> Floats:
    """float64, finite, at least `least`.

    Raises:
        RequestError: it is not.
    """
    array = _numbers(name, values)
    if not (np.isfinite(array) & (array >= least)).all():
        rule = "finite" if least == -np.inf else f"finite and >= {least:g}"
        raise RequestError(f"{name} must be {rule}, got {_first_not(array, least, np.inf)}.")
    return array


def times(values: ArrayLike) -> Floats:
    """(T,) float64 in [0, LATEST], non-decreasing.

    Raises:
        RequestError: they are not.
    """
    array = _numbers("times", values)
    if array.ndim != 1:
        raise RequestError(f"times must be one-dimensional, got {array.ndim} dimensions.")
    if not ((array >= 0) & (array <= LATEST)).all():
        raise RequestError(
            f"times must be finite, >= 0 and <= {LATEST:g}, got {_first_not(array, 0, LATEST)}."
        )
    falls = np.flatnonzero(np.diff(array) < 0)
    if len(falls):
        before, after = array[falls[0] : falls[0] + 2]
        raise RequestError(f"times must not decrease, got {after:g} after {before:g}. Sort them.")
    return array


def _numbers(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.asarray(values)
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
    except (TypeError, ValueError):  # a ragged list
        pass
    raise RequestError(f"{name} must be numbers, got {values!r:.60}.")


def _first_not(values: Floats, low: float, high: float) -> str:
    wrong = ~((values >= low) & (values <= high) & np.isfinite(values))
    return f"{values[wrong].flat[0]:g}"
