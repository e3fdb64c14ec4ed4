"""Resolves the axes of a grid: the preset's values, overridden by `--set`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from search_spaces.base import SearchSpace, Values
from study import tasks
from study.cell.axis import Rule, Rules, as_typed, depends_on, possible_values, rules_of, values_at
from study.cell.declared import NONE, Axis, Whole
from study.errors import RequestError, as_seen, unknown
from study.kinds import KINDS

LARGEST_RANGE = 1_000_000

Known = Mapping[str, Axis]
"""The axes of a study, by name."""


def resolve(space: SearchSpace, preset: str, assignments: Sequence[str]) -> dict[str, Rules]:
    """All axes of a study: the preset's, overridden by assignments.

    ``axis=v1,v2`` replaces the preset's values of an axis. ``axis@where=v1,v2`` replaces them
    where a condition holds: `where` is a paradigm, a task or ``other_axis:value``, or several
    values with commas. After several @, all conditions have to hold. If several assignments fit,
    the one with most conditions counts, of several such the last.

    Raises:
        RequestError: an unknown preset, axis or name (the nearest is named); a value of the wrong
            type, or none where the study needs one; a condition that the study never meets; an
            assignment that is there twice; or a preset that declares an unknown axis or task, or
            no tuple of values.
    """
    if preset not in space.presets:
        raise unknown(f"preset of {space.name}", preset, space.presets)
    axes_of, declared = KINDS[space.kind].axes, space.presets[preset].axes
    anywhere = axes_of(tuple(tasks.TASKS))
    for name, axis in declared.items():
        if name not in anywhere:
            raise unknown(f"axis in preset {preset} of {space.name}", name, anywhere)
        for rule in rules_of(axis):
            if not isinstance(rule.values, tuple):
                raise RequestError(
                    f"preset {preset} of {space.name}: {name} is {rule.values!r}, must be a tuple "
                    f"of values, ({rule.values!r},)."
                )
    declared = {"task": (space.task,), **declared}
    of_tasks = _there(space, rules_of(declared["task"]))
    for text in assignments:
        if text.startswith("task="):
            of_tasks = _assigned(anywhere, text).values
    known = axes_of(of_tasks)
    axes = {name: rules_of(declared.get(name, axis.default)) for name, axis in known.items()}
    given: dict[frozenset[str], tuple[str, str, Rule]] = {}
    for text in assignments:
        target, _, values = text.partition("=")
        name, *wheres = target.split("@")
        if name in anywhere and name not in known:
            if as_seen(values).lower() == NONE:
                continue  # as it is here
            having = ", ".join(task for task in tasks.TASKS if name in axes_of((task,)))
            raise RequestError(
                f"--set {text}: {name} belongs to {having}, not to {', '.join(of_tasks)}. Leave "
                "it out."
            )
        place = frozenset([name, *wheres])
        if place in given:
            raise RequestError(f"--set names {target} twice; write {target}=v1,v2 once.")
        given[place] = (text, name, _assigned(known, text))
    for _, name, rule in sorted(given.values(), key=lambda each: len(each[-1].where)):
        axes[name] = (rule, *axes[name]) if rule.where else (rule,)
    for text, name, rule in given.values():
        if reason := _why_not(name, rule.where, known, axes):
            raise RequestError(f"--set {text}: {reason}.")
    for name in space.needs:
        if None in possible_values(axes[name]):
            takes = known[name].takes
            raise RequestError(
                f"{space.name} takes no {name}=none: give {takes.noun} {takes.bounds}."
            )
    return axes


def tasks_of(axes: Mapping[str, Rules]) -> Values:
    return values_at(axes["task"], "task", {})


def tasks_in(space: SearchSpace) -> Values:
    """The tasks of all presets of a study."""
    declared = [preset.axes.get("task", (space.task,)) for preset in space.presets.values()]
    return _there(space, tuple(rule for axis in declared for rule in rules_of(axis)))


def _there(space: SearchSpace, rules: Rules) -> Values:
    """The tasks that these rules name; refuses one that nobody has registered."""
    names = possible_values(rules)
    known = KINDS[space.kind].axes(tuple(tasks.TASKS))["task"].names
    for name in names:
        if known is not None and name not in known:
            raise unknown(f"task of the study {space.name}", name, known)
    return names


def _assigned(known: Known, text: str) -> Rule:
    """Conditions and values of ``axis@where=v1,v2``."""
    target, equals, values = text.partition("=")
    if not equals:
        raise RequestError(f"--set takes axis=value[,value...], got {text!r}.")
    name, *wheres = target.split("@")
    conditions = [_condition(known, name, where) for where in wheres]
    if len(dict(conditions)) < len(wheres):
        raise RequestError(
            f"--set {text}: every @ names another axis; several values of one are separated by "
            "commas, as in lr@soft,hard=0.01."
        )
    try:
        where = {other: _parsed(known, other, some) for other, some in conditions}
        return Rule(where, _parsed(known, name, values))
    except ValueError as error:
        raise RequestError(f"--set {text}: {error}.") from error


def _condition(known: Known, name: str, where: str) -> tuple[str, str]:
    """The axis and the values of what follows an @: ``hard,lvml``, ``cifar10`` or ``m:20``."""
    other, colon, values = where.partition(":")
    if colon:
        return other, values
    of = {value: axis for axis in known if known[axis].alone for value in known[axis].names or ()}
    first = as_seen(where.split(",")[0])
    if first not in of:
        raise unknown(f"paradigm or task in {name}@", first, [*of, "AXIS:VALUE"])
    return of[first], where


def _parsed(known: Known, name: str, text: str) -> Values:
    """Values of an axis from their text; raises ValueError if one is wrong."""
    if name not in known:
        raise unknown("axis", name, known)
    axis = known[name]
    values: list[Any] = []
    for part in map(as_seen, text.split(",")):
        span = re.fullmatch(r"(\d+)[-\N{EN DASH}](\d+)", part)
        if span and isinstance(axis.takes, Whole):
            first, last = (axis.takes.checked(name, int(end)) for end in span.groups())
            if not first <= last < first + LARGEST_RANGE:
                rule = f"a range runs upwards and has at most {LARGEST_RANGE:,} values"
                raise ValueError(f"{rule}, got {part!r}")
            values += range(first, last + 1)
        elif part.lower() in axis.words:  # Same, None, too, where a word means something
            values.append(axis.meaning(part.lower()))
        elif axis.names is not None and part not in axis.names:
            raise unknown(name, part, axis.names)
        else:
            values.append(axis.takes.checked(name, _value(axis, name, part)))
    return tuple(dict.fromkeys(values))


def _value(axis: Axis, name: str, part: str) -> Any:
    try:
        return axis.takes.parse(part)
    except ValueError:
        raise ValueError(f"{name} takes {axis.expects}, got {part!r}") from None


def _why_not(
    name: str, where: Mapping[str, Values], known: Known, axes: Mapping[str, Rules]
) -> str | None:
    """Why an axis cannot have values of its own under these conditions; None if it can."""
    for whole in [axis for axis in (name, *where) if where and known[axis].whole]:
        return (
            f"{whole} is the same for all cells of a study and takes no @, and nothing depends "
            "on it. Leave the @ out"
        )
    other, having = known[name].only or ("", ())
    if other in where and not set(having) & set(where[other]):
        one = where[other][0]
        return (
            f"only a {having[0]} has a {name}. Write {name}=VALUE; the rate of {one} itself is "
            f"lr@{one}=VALUE"
        )
    for other, values in where.items():
        there = possible_values(axes[other])
        has = as_typed(there).replace(",", ", ")
        for value in set(values).difference(there):
            return (
                f"the study has no {other} {value}, only {has}. Leave it out, or add "
                f"{value} with --set {other}=V,V"
            )
    return None


# As typed


def as_assignments(
    known: Known, axes: Mapping[str, Rules], named: Collection[str] = ()
) -> Iterator[str]:
    """What `resolve` takes to give these axes, a line an axis that has several values.

    Args:
        known: the axes of the study.
        axes: as `resolve` gives them.
        named: axes that are there with a single value, too.
    """
    every = {name: possible_values(rules) for name, rules in axes.items()}
    for name, axis in known.items():
        there = every
        if axis.only:
            other, having = axis.only
            there = every | {other: tuple(value for value in every[other] if value in having)}
            if not there[other]:
                continue
        spelt = _spelt(known, axes[name], name, list(depends_on(axes[name])), there, {})
        spelt = [each for each in spelt if each[1] != (None,)] or spelt[:1]  # else said twice
        if len(spelt) > 1 or len(spelt[0][1]) > 1 or name in named:
            yield shlex.join(
                f"{name}{where}={as_typed(axis.nothing if v is None else v for v in values)}"
                for where, values in spelt
            )


def _spelt(
    known: Known,
    rules: Rules,
    name: str,
    others: Sequence[str],
    there: Mapping[str, Values],
    point: Mapping[str, Any],
) -> Sequence[tuple[str, Values]]:
    """Conditions on other axes, whose values are `there`, and the values of an axis under them."""
    if not others:
        return (("", values_at(rules, name, point)),)
    other, *rest = others
    met: dict[Sequence[tuple[str, Values]], list[Any]] = {}
    for value in there[other]:
        spelt = _spelt(known, rules, name, rest, there, {**point, other: value})
        met.setdefault(spelt, []).append(value)
    if len(met) == 1:
        return next(iter(met))
    of = "" if known[other].alone else f"{other}:"
    return tuple(
        (f"@{of}{as_typed(some)}{where}", values)
        for spelt, some in met.items()
        for where, values in spelt
    )
