"""An axis of a study: its meaning, how its values are typed, and its values at a point."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from search_spaces.base import By, Values
from study.errors import RequestError

_INEXACT = 2**53
"""From here on a float may stand for another whole number than the typed one."""


def number(text: str) -> float:
    """A typed number; a minus sign may be that of documents.

    Raises:
        ValueError: it is none.
    """
    return float(text.replace("\N{MINUS SIGN}", "-"))


def whole(text: str) -> int:
    """A typed whole number, also as tables and calculators write it: ``3.0``, ``1e3``.

    Raises:
        ValueError: it is none.
    """
    with contextlib.suppress(ValueError):
        return int(text)
    if not (value := number(text)).is_integer() or abs(value) >= _INEXACT:
        raise ValueError(text)
    return int(value)


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Args:
        about: meaning and unit, shown by `--help`.
        parse: one typed value -> value; raises ValueError.
        default: if a preset does not declare the axis; empty: it must.
        expects: what a value is, for error messages.
        only: (another axis, its values) without one of which the axis means nothing; None: always
            has a meaning.
        whole: whether its values are of the study as a whole: no direction of its grid, so that no
            condition (``@``) narrows or names it.
    """

    about: str
    parse: Callable[[str], Any]
    default: Values | By = ()
    expects: str = "a whole number"
    only: tuple[str, Values] | None = None
    whole: bool = False


def values_at(axis: Values | By, name: str, point: Mapping[str, Any]) -> Values:
    """The values of an axis at a point of the other axes.

    Raises:
        RequestError: there are none, or they depend on an axis that the point lacks.
    """
    while isinstance(axis, By):
        if axis.axis not in point:
            raise RequestError(
                f"{name} cannot have values by {axis.axis}, which is not known where {name} is "
                f"chosen. Give them for all with --set {name}=VALUE."
            )
        axis = axis.values.get(point[axis.axis], axis.otherwise)
    if not axis:
        raise RequestError(f"no value for the axis {name}. Give one with --set {name}=VALUE.")
    return axis


def possible_values(axis: Values | By) -> Values:
    """All values that an axis has at any point, each once."""
    if not isinstance(axis, By):
        return axis
    parts = map(possible_values, (*axis.values.values(), axis.otherwise))
    return tuple(dict.fromkeys(value for part in parts for value in part))


def as_typed(values: Iterable[int]) -> str:
    """Whole numbers as they are typed: ``0-2,7``."""
    runs: list[list[int]] = []
    for value in sorted(values):
        if runs and value == runs[-1][-1] + 1:
            runs[-1][1:] = [value]
        else:
            runs.append([value])
    return ",".join("-".join(map(str, run)) for run in runs)


def fresh_seeds(taken: Collection[int], count: int) -> range:
    """So many seeds beyond all that are taken, from 100 on."""
    first = max(99, *taken) + 1
    return range(first, first + count)
