"""Resolves the axes of a grid: the preset's values, overridden by `--set`."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from search_spaces.base import By, SearchSpace, Values
from study.cell.axis import as_typed, possible_values, values_at
from study.cell.checks import is_int
from study.errors import RequestError, as_seen, unknown
from study.kinds import KINDS, Kind

LARGEST_RANGE = 1_000_000

_MOST_NAMED = 12
"""Most values that an error names."""


NAMED = ("paradigm", "method", "task")
"""Axes whose values may follow an @ alone, without the axis: no two of them share a name."""


def resolve(space: SearchSpace, preset: str, assignments: Sequence[str]) -> dict[str, Values | By]:
    """All axes of a study: the preset's, overridden by assignments.

    ``axis=v1,v2`` replaces the preset's values of an axis. ``axis@where=v1,v2`` replaces them
    where a condition holds: `where` is a paradigm, a task or ``other_axis:value``, or several
    values with commas. After several @, all conditions have to hold. If several assignments fit,
    the one with most conditions counts.

    Raises:
        RequestError: an unknown preset, axis or name (the nearest is named); a value of the wrong
            type; a condition that the study never meets; assignments of equal precedence that may
            both hold; or a preset that declares an unknown axis.
    """
    kind = KINDS[space.kind]
    axes = _declared(kind, space, preset)
    given: dict[tuple[str, _Conditions], Values] = {}
    for text in sorted(assignments, key=lambda text: not text.startswith("task=")):
        name, conditions, values = _assigned(kind, text, tasks_of(axes))
        if (name, conditions) in given:
            target = text.partition("=")[0]
            what = "the values of" if conditions else "the axis"
            raise RequestError(f"--set names {what} {target} twice; write {target}=v1,v2 once.")
        given[name, conditions] = values
        if not conditions:
            axes[name] = values
    _require_order(given)
    for (name, conditions), values in sorted(given.items(), key=lambda item: len(item[0][1])):
        if conditions:
            axes[name] = _replaced(axes[name], conditions, values)
    for name, conditions in given:
        for other, where in conditions:
            _require_met(name, other, where, axes)
    return axes


def _declared(kind: Kind, space: SearchSpace, preset: str) -> dict[str, Values | By]:
    """All axes with the preset's values, or their defaults."""
    if preset not in space.presets:
        raise unknown(f"preset of {space.name}", preset, space.presets)
    declared = space.presets[preset].axes
    for name in declared:
        if name not in kind.axes:
            raise unknown(f"axis in preset {preset} of {space.name}", name, kind.axes)
    axes = {name: declared.get(name, axis.default) for name, axis in kind.axes.items()}
    return {**axes, "task": declared.get("task", (space.task,))}


def as_assignments(kind: Kind, axes: Mapping[str, Values | By]) -> Iterator[str]:
    """What `resolve` takes to give these axes, a line an axis that has several values.

    Args:
        kind: of the study.
        axes: as `resolve` gives them.
    """
    there = {name: possible_values(axis) for name, axis in axes.items()}
    for name, axis in kind.axes.items():
        other, having = axis.only or ("", ())
        meant = [value for value in there.get(other, ()) if value in having]
        if axis.only and not meant:
            continue
        spelt = _spelt(axes[name], {**there, other: tuple(meant)} if axis.only else there)
        spelt = [each for each in spelt if each[1] != (None,)] or spelt[:1]  # else said twice
        if len(spelt) > 1 or len(spelt[0][1]) > 1:
            yield " ".join(f"{name}{where}={_typed(values)}" for where, values in spelt)


def _spelt(axis: Values | By, there: Mapping[str, Values]) -> Sequence[tuple[str, Values]]:
    """Conditions on other axes, whose values are `there`, and the values of an axis under them."""
    if not isinstance(axis, By):
        return (("", axis),)
    met: dict[Sequence[tuple[str, Values]], list[Any]] = {}
    for value in there[axis.axis]:
        inner = axis.values.get(value, axis.otherwise)
        met.setdefault(_spelt(inner, {**there, axis.axis: (value,)}), []).append(value)
    if len(met) == 1:
        return next(iter(met))
    of = "" if axis.axis in NAMED else f"{axis.axis}:"
    return tuple(
        (f"@{of}{_typed(some)}{where}", values)
        for spelt, some in met.items()
        for where, values in spelt
    )


def _typed(values: Iterable[Any]) -> str:
    """Values as --set takes them: ``0-11``, ``0.01,0.1``, ``none``."""
    values = tuple(values)
    if all(is_int(value) and value >= 0 for value in values):
        return as_typed(values)
    return ",".join("none" if v is None else str(v).removesuffix(".0") for v in values)


def tasks_of(axes: Mapping[str, Values | By]) -> Values:
    return values_at(axes["task"], "task", {})


_Condition = tuple[str, Values]
"""Another axis, and its values for which an assignment holds."""

_Conditions = frozenset[_Condition]


def _assigned(kind: Kind, text: str, of_tasks: Sequence[str]) -> tuple[str, _Conditions, Values]:
    """Axis, conditions and values of ``axis@where=v1,v2``."""
    target, equals, values = text.partition("=")
    if not equals:
        raise RequestError(f"--set takes axis=value[,value...], got {text!r}.")
    name, *wheres = target.split("@")
    if name not in kind.axes:
        raise unknown("axis", name, kind.axes)
    if wheres and kind.axes[name].whole:
        raise RequestError(
            f"--set {target}: {name} is the same for all cells of a study and takes no @. Write "
            f"{name}={values}."
        )
    conditions = frozenset(_condition(kind, name, where, of_tasks) for where in wheres)
    if len({other for other, _ in conditions}) < len(wheres):
        raise RequestError(
            f"--set {target}: every @ names another axis; several values of one are separated by "
            "commas, as in lr@soft,hard=0.01."
        )
    return name, conditions, _parse_values(kind, name, values, of_tasks, text)


def _condition(kind: Kind, name: str, where: str, of_tasks: Sequence[str]) -> _Condition:
    """Parses what follows an @: ``hard``, ``hard,lvml``, ``cifar10`` or ``m:20``."""
    other, colon, values = where.partition(":")
    if not colon:
        valid = [value for axis in NAMED for value in kind.choices(axis, of_tasks) or ()]
        first, values = as_seen(where.split(",")[0]), where
        if first not in valid:
            raise unknown(f"paradigm or task in {name}@", first, [*valid, "AXIS:VALUE"])
        other = next(axis for axis in NAMED if first in (kind.choices(axis, of_tasks) or ()))
    elif other not in kind.axes:
        raise unknown(f"axis in {name}@{where}", other, kind.axes)
    elif kind.axes[other].whole:
        raise RequestError(
            f"--set {name}@{where}: {other} is the same for all cells of a study, so that nothing "
            "depends on it. Leave it out."
        )
    parsed = _parse_values(kind, other, values, of_tasks, f"{name}@{where}")
    only = kind.axes[name].only
    if only is not None and only[0] == other and not set(only[1]) & set(parsed):
        raise RequestError(
            f"--set {name}@{where}: only a {only[1][0]} has a {name}. Write {name}=VALUE; the "
            f"rate of {parsed[0]} itself is lr@{parsed[0]}=VALUE."
        )
    return other, parsed


def _replaced(axis: Values | By, conditions: Iterable[_Condition], values: Values) -> Values | By:
    """The axis with other values where all conditions hold."""
    replaced: Values | By = values
    for other, where in conditions:
        replaced = By(other, dict.fromkeys(where, replaced), otherwise=axis)
    return replaced


def _require_order(given: Collection[tuple[str, _Conditions]]) -> None:
    """Refuses two assignments with equally many conditions that may hold together."""
    for (name, one), (other, two) in itertools.combinations(given, 2):
        common = dict(one).keys() & dict(two).keys()
        together = all(set(dict(one)[axis]) & set(dict(two)[axis]) for axis in common)
        if name == other and len(one) == len(two) and together and (name, one | two) not in given:
            first, second = (
                "".join(f"@{axis}:{','.join(map(str, values))}" for axis, values in each)
                for each in (one, two)
            )
            raise RequestError(
                f"--set gives {name}{first} and {name}{second}, which may both hold, and neither "
                f"goes before the other. Say what holds there with {name}{first}{second}=VALUE."
            )


def _require_met(name: str, other: str, values: Values, axes: Mapping[str, Values | By]) -> None:
    there = possible_values(axes[other])
    for value in values:
        if value not in there:
            where = value if other in NAMED else f"{other}:{value}"
            has = ", ".join(map(str, there[:_MOST_NAMED])) + ", ..." * (len(there) > _MOST_NAMED)
            raise RequestError(
                f"--set {name}@{where}: the study has no {other} {value}, only {has}. Leave it "
                f"out, or add {value} with --set {other}=V,V."
            )


def _parse_values(kind: Kind, name: str, text: str, of_tasks: Sequence[str], typed: str) -> Values:
    """Parses the values of an axis; `typed` is the whole assignment, for messages."""
    axis, names = kind.axes[name], kind.choices(name, of_tasks)
    values: list[Any] = []
    for part in text.split(","):
        part = as_seen(part)
        part = "none" if part.lower() == "none" else part  # None, too, as programs write it
        span = re.fullmatch(r"(\d+)[-\N{EN DASH}](\d+)", part)
        if span and isinstance(axis.parse(span[1]), int):
            first, last = int(span[1]), int(span[2])
            if not first <= last < first + LARGEST_RANGE:
                raise RequestError(
                    f"--set {typed}: a range runs upwards and has at most "
                    f"{LARGEST_RANGE:,} values, got {part!r}."
                )
            values.extend(range(first, last + 1))
            continue
        if names is not None and part not in names:
            raise unknown(name, part, names)
        for each in (part, part.lower()):  # Same, too, where a word means something
            with contextlib.suppress(ValueError):
                values.append(axis.parse(each))
                break
        else:
            raise RequestError(f"--set {typed}: {name} takes {axis.expects}, got {part!r}.")
    return tuple(dict.fromkeys(values))
