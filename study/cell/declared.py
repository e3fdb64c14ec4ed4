"""A fact of a cell is declared once: what it means, which values it takes, its default.

From the declaration follow how `--set` parses it, what `--help` says, how a cell refuses a wrong
value, the cell's JSON and id, its column in results and its parameter in MLflow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, ClassVar, Self, TypeVar, cast

from search_spaces.base import By, Values
from study.cell.checks import is_int, require

F = TypeVar("F", bound=Callable[..., Any])

LARGEST = 2**63 - 1
"""Whole number that seeds may be."""

_FAR = 1_000_000_000

_INEXACT = 2**53
"""From here on a float may stand for another whole number than the typed one."""

NONE, OWN, SAME, ALL = "none", "own", "same", "all"
"""Words that a value may be: nothing; that of something else; that of another axis, unless it is
given; the whole split. The first two stand for None."""


def _cached(function: F) -> F:
    """`functools.cache`, whose arguments may be classes for mypy, too."""
    return cast("F", functools.cache(function))


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
class Whole:
    """Whole numbers.

    Args:
        least: of them.
        most: by default far above any study, but low enough to catch a mistyped zero before it
            takes all memory.
    """

    least: int
    most: int = _FAR
    noun: ClassVar = "a whole number"

    @property
    def bounds(self) -> str:
        """``from 2 to 100,000``, for docs."""
        return f"from {self.least:,}" + (f" to {self.most:,}" if self.most < _FAR else "")

    def parse(self, text: str) -> int:
        return whole(text)

    def checked(self, name: str, value: Any) -> int:
        """The value; raises ValueError with the rule if it is another."""
        require(is_int(value) and value >= self.least, name, value, f"an integer >= {self.least}")
        most = "< 2^63" if self.most == LARGEST else f"at most {self.most:,}"
        require(value <= self.most, name, value, most)
        return value


@dataclass(frozen=True)
class Number:
    """Numbers of an interval.

    Args:
        low, high: the ends of their interval; infinity may belong to it.
        ends: which of them belong to it: ``(`` and ``)`` do not, ``[`` and ``]`` do.
    """

    low: float
    high: float = math.inf
    ends: str = "()"
    noun: ClassVar = "a number"

    @property
    def bounds(self) -> str:
        """``> 0`` or ``in (0, 1]``."""
        if self.high == math.inf:
            return f"{'>' if self.ends[0] == '(' else '>='} {self.low:g}"
        return f"in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"

    def parse(self, text: str) -> float:
        return number(text)

    def checked(self, name: str, value: Any) -> float:
        """The value as a float, -0 as 0; raises ValueError with the rule if it is another."""
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        fits = fits and (self.low < value < self.high or self._is_end(value))
        finite = "a finite number" if (self.high, self.ends[1]) == (math.inf, ")") else "a number"
        require(fits, name, value, f"{finite} {self.bounds}")
        return float(value) + 0.0

    def _is_end(self, value: float) -> bool:
        return (value == self.low and self.ends[0] == "[") or (
            value == self.high and self.ends[1] == "]"
        )


@dataclass(frozen=True)
class Name:
    """One of some names, to which files of parts may add; `others` says how, for messages."""

    names: Collection[str]
    others: str = ""
    noun: ClassVar = "a name"

    @property
    def bounds(self) -> str:
        return ", ".join(self.names)

    def parse(self, text: str) -> str:
        return text

    def checked(self, name: str, value: Any) -> str:
        rule = f"one of {', '.join(self.names)}{self.others}"
        require(value in self.names, name, value, rule)
        return value


@dataclass(frozen=True)
class Text:
    """A text that its task reads, of names joined by +."""

    noun: str = "names joined by +"

    @property
    def bounds(self) -> str:
        return self.noun

    def parse(self, text: str) -> str:
        if text.lower() == NONE:  # a word, where it is one; no name
            raise ValueError(text)
        return re.sub(r"\s*\+\s*", "+", text)

    def checked(self, name: str, value: Any) -> str:
        return value


Takes = Whole | Number | Name | Text
"""What values are."""


@dataclass(frozen=True)
class Axis:
    """An axis of a study: one fact of its cells, or one from which several follow.

    Args:
        about: meaning and unit, for `--help` and docs.
        takes: its values.
        default: if a preset does not declare the axis; empty: it must.
        words: that a value may be besides; `none` and `own` stand for None.
        only: (another axis, its values) without one of which the axis means nothing; None: always
            has a meaning.
        whole: whether its values are of the study as a whole: no direction of its grid, so that no
            condition (``@``) narrows or names it.
        rare: whether only tasks have it whose `study.tasks.task.Modality` says so.
        alone: whether its values may follow an @ without its name; no two such axes of a study
            share a value.
        column: its meaning as a column of results, in Markdown; empty: it is none.
        named: name of that column; empty: that of the axis.
        said: how names of comparisons say it where it is not the default, as ``labels by {}``;
            empty: they do not.
        usual: the value that is left out of a cell, since None stands for it.
    """

    about: str
    takes: Takes
    default: Values | By = ()
    words: tuple[str, ...] = ()
    only: tuple[str, Values] | None = None
    whole: bool = False
    rare: bool = False
    alone: bool = False
    column: str = ""
    named: str = ""
    said: str = ""
    usual: Any = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """All valid values; None if it takes numbers or a text."""
        return (*self.takes.names, *self.words) if isinstance(self.takes, Name) else None

    @property
    def expects(self) -> str:
        """What a value is, for error messages."""
        return " or ".join([", ".join([self.takes.noun, *self.words[:-1]]), *self.words[-1:]])

    @property
    def nothing(self) -> str:
        """The word that stands for None."""
        return OWN if OWN in self.words else NONE

    def meaning(self, word: str) -> str | None:
        """The value of one of its words."""
        return None if word in (NONE, OWN) else word


def declared(
    about: str,
    takes: Takes,
    default: Any = MISSING,
    *,
    unsaid: bool = False,
    as_axis: Any = MISSING,
    **more: Any,
) -> Any:
    """A field of a class on `Declared` that is an axis, too; None is allowed if it is the default.

    Args:
        about, takes, more: see `Axis`.
        default: of the field and of the axis.
        unsaid: whether JSON and id leave the default out. They do so with None.
        as_axis: the axis's default, where it is another; it may depend on another axis.
    """
    of_axis = default if as_axis is MISSING else as_axis
    values = () if of_axis is MISSING else of_axis if isinstance(of_axis, By) else (of_axis,)
    axis = Axis(about, takes, values, **more)
    return dataclasses.field(
        default=default, metadata={"axis": axis, "unsaid": default if unsaid else None}
    )


def checked(takes: Takes, default: Any = MISSING) -> Any:
    """A field of a class on `Declared` that no axis sets by itself."""
    return declared("", takes, default)


def part(of: type[Declared], default: Any = MISSING) -> Any:
    """A field whose value is of a class on `Declared`, or is several of them."""
    return dataclasses.field(default=default, metadata={"of": of})


class Declared:
    """A frozen dataclass whose fields are declared by `declared`, `checked` and `part`.

    Raises:
        ValueError: a value is out of range; the message names it and the rule.
    """

    def __post_init__(self) -> None:
        for name, takes, may_miss in _checks(type(self)):
            value = getattr(self, name)
            if not (value is None and may_miss):
                object.__setattr__(self, name, takes.checked(name, value))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `from_dict` gives an equal value back.

        What is None, usual or has no content is left out, so it is no part of a cell's id.
        """
        found = {}
        for name, unsaid in _unsaid(type(self)):
            value = getattr(self, name)
            if value is not None and value != unsaid and (plain := _plain(value)) != {}:
                found[name] = plain
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The value of what `to_dict` gives.

        Raises:
            TypeError, ValueError: a value is missing, unknown or out of range.
        """
        parts = _parts(cls)
        return cls(**{name: _read(value, parts.get(name)) for name, value in values.items()})

    def columns_of_fields(self) -> dict[str, Any]:
        """The columns of results that its fields declare."""
        axes = _axes(type(self)).items()
        return {axis.named or name: getattr(self, name) for name, axis in axes if axis.column}


@_cached
def _axes(cls: Any) -> dict[str, Axis]:
    """The checked fields of a class."""
    fields = dataclasses.fields(cls)
    return {each.name: each.metadata["axis"] for each in fields if "axis" in each.metadata}


@_cached
def _checks(cls: Any) -> list[tuple[str, Takes, bool]]:
    fields = [each for each in dataclasses.fields(cls) if "axis" in each.metadata]
    return [(each.name, each.metadata["axis"].takes, each.default is None) for each in fields]


@_cached
def _parts(cls: Any) -> dict[str, type[Declared]]:
    """The fields whose values are of a class on `Declared` -> that class."""
    fields = dataclasses.fields(cls)
    return {each.name: each.metadata["of"] for each in fields if "of" in each.metadata}


@_cached
def _unsaid(cls: Any) -> list[tuple[str, Any]]:
    fields = dataclasses.fields(cls)
    return [(each.name, each.metadata.get("unsaid")) for each in fields]


@_cached
def axes_of(cls: Any) -> Mapping[str, Axis]:
    """The axes that a class and its parts declare, in their order."""
    found: dict[str, Axis] = {}
    for each in dataclasses.fields(cls):
        axis, within = each.metadata.get("axis"), each.metadata.get("of")
        if within:
            found |= axes_of(within)
        elif axis and axis.about:
            found[each.name] = axis
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Declared):
        return value.to_dict()
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _read(value: Any, of: type[Declared] | None) -> Any:
    """What `_plain` gave."""
    if isinstance(value, list):
        return tuple(_read(each, of) for each in value)
    return of.from_dict(value) if of and isinstance(value, dict) else value
