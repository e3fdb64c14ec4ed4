"""The values of an axis: at a point, in all, and as they are typed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from search_spaces.base import By, Values
from study.errors import RequestError


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


def depends_on(axis: Values | By) -> set[str]:
    """The other axes that decide which values an axis has."""
    if not isinstance(axis, By):
        return set()
    return {axis.axis}.union(*map(depends_on, (*axis.values.values(), axis.otherwise)))


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
