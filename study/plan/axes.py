"""Resolves the axes of a grid: the preset's values, overridden by `--set`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from search_spaces.base import By, SearchSpace, Values
from study import tasks
from study.cell.axis import as_typed, possible_values, values_at
from study.cell.checks import is_int
from study.cell.declared import NONE, Axis, Whole
from study.errors import RequestError, as_seen, unknown
from study.kind import Kind
from study.kinds import KINDS

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
    the one with most conditions counts, of several such the last.

    Raises:
        RequestError: an unknown preset, axis or name (the nearest is named); a value of the wrong
            type; a condition that the study never meets; an assignment that is there twice; or a
            preset that declares an unknown axis.
    """
    if preset not in space.presets:
        raise unknown(f"preset of {space.name}", preset, space.presets)
    kind, declared = KINDS[space.kind], space.presets[preset].axes
    of_tasks = tasks_of({"task": (space.task,), **declared})
    for text in assignments:
        if text.startswith("task="):
            of_tasks = _assigned(kind.axes(of_tasks), text)[2]
    known, anywhere = kind.axes(of_tasks), kind.axes(tuple(tasks.TASKS))
    for name in declared:
        if name not in anywhere:
            raise unknown(f"axis in preset {preset} of {space.name}", name, anywhere)
    axes = {name: declared.get(name, axis.default) for name, axis in known.items()}
    axes["task"] = declared.get("task", of_tasks)
    given: dict[tuple[str, _Conditions], Values] = {}
    for text in assignments:
        if _of_others(kind, text, of_tasks):
            continue
        name, conditions, values = _assigned(known, text)
        if (name, conditions) in given:
            target = text.partition("=")[0]
            raise RequestError(f"--set names {target} twice; write {target}=v1,v2 once.")
        given[name, conditions] = values
    for (name, conditions), values in sorted(given.items(), key=lambda item: len(item[0][1])):
        axes[name] = _replaced(axes[name], conditions, values)
    for name, conditions in given:
        for other, where in conditions:
            _require_met(name, other, where, axes)
    return axes


def _of_others(kind: Kind, text: str, of_tasks: Sequence[str]) -> bool:
    """Whether an axis is one that only other tasks have, and is none, as it is here.

    Raises:
        RequestError: it is given another value.
    """
    name = re.split("[@=]", text)[0]
    having = [task for task in tasks.TASKS if name in kind.axes((task,))]
    if name in kind.axes(of_tasks) or not having:
        return False
    if as_seen(text.partition("=")[2]).lower() != NONE:
        raise RequestError(
            f"--set {text}: {name} is of {', '.join(having)}, not of {', '.join(of_tasks)}. Leave "
            "it out."
        )
    return True


def as_assignments(known: Mapping[str, Axis], axes: Mapping[str, Values | By]) -> Iterator[str]:
    """What `resolve` takes to give these axes, a line an axis that has several values.

    Args:
        known: the axes of the study.
        axes: as `resolve` gives them.
    """
    there = {name: possible_values(axis) for name, axis in axes.items()}
    for name, axis in known.items():
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


def tasks_in(space: SearchSpace) -> Values:
    """The tasks of all presets of a study."""
    of_presets = (preset.axes.get("task", (space.task,)) for preset in space.presets.values())
    return tuple(dict.fromkeys(task for axis in of_presets for task in possible_values(axis)))


_Condition = tuple[str, Values]
"""Another axis, and its values for which an assignment holds."""

_Conditions = frozenset[_Condition]


def _assigned(known: Mapping[str, Axis], text: str) -> tuple[str, _Conditions, Values]:
    """Axis, conditions and values of ``axis@where=v1,v2``."""
    target, equals, values = text.partition("=")
    if not equals:
        raise RequestError(f"--set takes axis=value[,value...], got {text!r}.")
    name, *wheres = target.split("@")
    if name not in known:
        raise unknown("axis", name, known)
    if wheres and known[name].whole:
        raise RequestError(
            f"--set {target}: {name} is the same for all cells of a study and takes no @. Write "
            f"{name}={values}."
        )
    conditions = frozenset(_condition(known, name, where) for where in wheres)
    if len({other for other, _ in conditions}) < len(wheres):
        raise RequestError(
            f"--set {target}: every @ names another axis; several values of one are separated by "
            "commas, as in lr@soft,hard=0.01."
        )
    return name, conditions, _parse_values(known[name], name, values, text)


def _condition(known: Mapping[str, Axis], name: str, where: str) -> _Condition:
    """Parses what follows an @: ``hard``, ``hard,lvml``, ``cifar10`` or ``m:20``."""
    other, colon, values = where.partition(":")
    if not colon:
        first, values = as_seen(where.split(",")[0]), where
        of = {value: axis for axis in NAMED if axis in known for value in known[axis].names or ()}
        if first not in of:
            raise unknown(f"paradigm or task in {name}@", first, [*of, "AXIS:VALUE"])
        other = of[first]
    elif other not in known:
        raise unknown(f"axis in {name}@{where}", other, known)
    elif known[other].whole:
        raise RequestError(
            f"--set {name}@{where}: {other} is the same for all cells of a study, so that nothing "
            "depends on it. Leave it out."
        )
    parsed = _parse_values(known[other], other, values, f"{name}@{where}")
    only = known[name].only
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


def _parse_values(axis: Axis, name: str, text: str, typed: str) -> Values:
    """Parses the values of an axis; `typed` is the whole assignment, for messages."""
    values: list[Any] = []
    for part in map(as_seen, text.split(",")):
        try:
            values += _parsed(axis, name, part)
        except ValueError as error:
            raise RequestError(f"--set {typed}: {error}.") from error
    return tuple(dict.fromkeys(values))


def _parsed(axis: Axis, name: str, part: str) -> Sequence[Any]:
    """The value of one part of a text, or those of a range; raises ValueError if it is wrong."""
    span = re.fullmatch(r"(\d+)[-\N{EN DASH}](\d+)", part)
    if span and isinstance(axis.takes, Whole):
        first, last = (axis.takes.checked(name, int(end)) for end in span.groups())
        if not first <= last < first + LARGEST_RANGE:
            rule = f"a range runs upwards and has at most {LARGEST_RANGE:,} values"
            raise ValueError(f"{rule}, got {part!r}")
        return range(first, last + 1)
    if part.lower() in axis.words:  # Same, None, too, where a word means something
        return [axis.meaning(part.lower())]
    if axis.names is not None and part not in axis.names:
        raise unknown(name, part, axis.names)
    try:
        value = axis.takes.parse(part)
    except ValueError:
        raise ValueError(f"{name} takes {axis.expects}, got {part!r}") from None
    return [axis.takes.checked(name, value)]
