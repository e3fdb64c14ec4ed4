"""The values of an axis: at a point, in all, and as they are typed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from search_spaces.base import By, Values
from study.cell.checks import is_int
from study.errors import RequestError


class Rule(NamedTuple):
    """Values of an axis under conditions.

    Attributes:
        where: another axis -> its values for which the rule holds; empty: everywhere.
        values: of the axis.
    """

    where: Mapping[str, Values]
    values: Values


Rules = tuple[Rule, ...]
"""Of an axis: the first one that holds at a point counts; the last one holds everywhere."""


def rules_of(axis: Values | By) -> Rules:
    """The rules that a study declares of an axis."""
    if not isinstance(axis, By):
        return (Rule({}, axis),)
    narrower = [
        Rule({axis.axis: (value,), **rule.where}, rule.values)
        for value, inner in axis.values.items()
        for rule in rules_of(inner)
    ]
    return (*narrower, *rules_of(axis.otherwise))


def values_at(rules: Rules, name: str, point: Mapping[str, Any]) -> Values:
    """The values of an axis at a point of the other axes.

    Raises:
        RequestError: there are none, or they depend on an axis that the point lacks.
    """
    try:
        values = next(
            values
            for where, values in rules
            if all(point[other] in there for other, there in where.items())
        )
    except KeyError as error:
        raise RequestError(
            f"{name} cannot have values by {error.args[0]}, which is not known where {name} is "
            f"chosen. Give them for all with --set {name}=VALUE."
        ) from error
    if not values:
        raise RequestError(f"no value for the axis {name}. Give one with --set {name}=VALUE.")
    return values


def possible_values(rules: Rules) -> Values:
    """All values that an axis has at any point, each once."""
    return tuple(dict.fromkeys(value for rule in rules for value in rule.values))


def depends_on(rules: Rules) -> Mapping[str, None]:
    """The other axes that decide which values an axis has, in the order of its rules."""
    return dict.fromkeys(other for rule in rules for other in rule.where)


def as_typed(values: Iterable[Any]) -> str:
    """Values as --set takes them: ``0-2,7``, ``0.01,0.1``, ``none``."""
    there = dict.fromkeys(values)
    if not all(is_int(value) and value >= 0 for value in there):
        return ",".join("none" if v is None else _text(v) for v in there)
    first = sorted(value for value in there if value - 1 not in there)
    last = sorted(value for value in there if value + 1 not in there)
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in zip(first, last, strict=True))


def _text(value: Any) -> str:
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def fresh_seeds(taken: Collection[int], count: int) -> range:
    """So many seeds beyond all that are taken, from 100 on."""
    first = max(99, *taken) + 1
    return range(first, first + count)
