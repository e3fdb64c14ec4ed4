"""Which settings vary among comparisons: the factors, the base, and what each setting differs in.

A *setting* is one comparison. The *factors* of a task are the fields in which its settings differ.
The *base* is the setting that has most fields in common with the others; the *levels* of a factor
are the settings that differ from it in that factor alone. Settings that differ in two factors make
a *grid*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from analysis.digest.compare import Comparison
from analysis.words import setting_text, setting_words
from study.tasks import modality

Value = float | str

_LEFT_OUT = {
    "task", "schedule", "seed", "budget", "data_digest", "evaluation_points",
    "train_metrics_size", "validation_size", "test_size",
}  # fmt: skip
"""Fields that are no factors: the task makes families, the budget follows from the others, and how
much is evaluated changes no training."""

_USUAL: Mapping[str, Value] = {
    "foregrounds": 1,
    "distractors": 0,
    "width": 1.0,
    "focus_width": 1.0,
    "classifier_width": 1.0,
    "depth": 0,
    "normalisation": "none",
    "activation": "relu",
}
"""What a cell means that does not name the field, in the order of the report."""

_WIDTHS = ("focus_width", "classifier_width")
"""Without a value of their own they are the cell's `width`."""

_ABSENT = "none"
"""The same of all other fields."""


@dataclass(frozen=True, eq=False)
class Setting:
    """One comparison among those of its task.

    Attributes:
        comparison: the comparison.
        values: factor -> its value.
        differs: the factors in which it differs from the base.
        name: of the base ``digits m=10 (base)``, of others what they differ in, ``m=20``, ``focus
            width 0.25, depth 1``; where nothing varies that of the comparison.
    """

    comparison: Comparison
    values: Mapping[str, Value]
    differs: tuple[str, ...]
    name: str


@dataclass(frozen=True, eq=False)
class Family:
    """The settings of one task.

    Attributes:
        task: name of the task.
        factors: their names, m first.
        follows: factor -> fields that are a function of it, and so no factors.
        base: the base.
        others: those that differ from it in fewest factors first, each combination of values once.
        repeats: further comparisons with the values of another one, from which they differ in what
            is no factor, as the budget. They are levels of nothing.
    """

    task: str
    factors: Sequence[str]
    follows: Mapping[str, Sequence[str]]
    base: Setting
    others: Sequence[Setting]
    repeats: Sequence[Setting]

    @property
    def settings(self) -> list[Setting]:
        """All of them, the base first."""
        return [self.base, *self.others, *self.repeats]

    def levels(self, factor: str) -> list[Setting]:
        """The settings that differ from the base in one factor alone, by its value."""
        return [each for each in self.others if each.differs == (factor,)]

    def grids(self) -> list[tuple[str, str]]:
        """The pairs of factors in both of which a setting differs from the base, and in no other.

        A pair is ordered as the factors are.
        """
        there = {each.differs for each in self.others}
        return [pair for pair in combinations(self.factors, 2) if pair in there]

    def plane(self, pair: tuple[str, str]) -> list[Setting]:
        """The settings that differ from the base in no factor but these two, with the base."""
        return [each for each in (self.base, *self.others) if set(each.differs) <= set(pair)]


def families(found: Sequence[Comparison]) -> list[Family]:
    """The settings of each task, in the order of the tasks.

    Args:
        found: as `analysis.digest.compare.compare` gives them.
    """
    tasks = dict.fromkeys(comparison.task for comparison in found)
    return [_family([each for each in found if each.task == task]) for task in tasks]


def setting_names(found: Sequence[Comparison]) -> dict[Comparison, str]:
    """What tells each comparison from the others, by task, the base of each first.

    Of several tasks, each setting names its own.
    """
    every = families(found)
    names = {}
    for family in every:
        task = f"{family.task}, " if len(every) > 1 else ""
        names[family.base.comparison] = family.base.name
        names |= {each.comparison: f"{task}{each.name}" for each in family.others}
        names |= {each.comparison: each.name for each in family.repeats}
    return names


def factor_name(factor: str, task: str) -> str:
    """``focus width``; of m what it counts in the task, ``segments m``."""
    return modality(task).m if factor == "m" else factor.replace("_", " ")


def value_text(value: Value) -> str:
    """``0.25``, ``20``, ``batch``."""
    return value if isinstance(value, str) else f"{value:g}"


def by_value(value: Value) -> tuple[bool, Value]:
    """Key that sorts numbers by size, and names behind them."""
    return isinstance(value, str), value


def _family(found: Sequence[Comparison]) -> Family:
    rows = _fields([comparison.settings for comparison in found])
    factors, follows = _factors(rows)
    values = [{name: row[name] for name in factors} for row in rows]
    base = values[_base(values)]
    settings = [
        _setting(comparison, each, base) for comparison, each in zip(found, values, strict=True)
    ]
    first = [each for i, each in enumerate(settings) if values.index(values[i]) == i]

    def place(setting: Setting) -> tuple[Any, ...]:
        own = setting.differs
        where = [factors.index(name) for name in own]
        return len(own), where, [by_value(setting.values[name]) for name in own]

    ordered = sorted(first, key=place)
    return Family(
        task=found[0].task,
        factors=factors,
        follows=follows,
        base=ordered[0],
        others=ordered[1:],
        repeats=[
            replace(each, name=each.comparison.name) for each in settings if each not in first
        ],
    )


def _setting(
    comparison: Comparison, values: Mapping[str, Value], base: Mapping[str, Value]
) -> Setting:
    differs = tuple(name for name in values if values[name] != base[name])
    name = f"{comparison.name} (base)" if values else comparison.name
    if differs:
        texts = {factor: value_text(values[factor]) for factor in differs}
        name = ", ".join(setting_words(texts, differs))
    return Setting(comparison, values, differs, name)


def _fields(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Value]]:
    """The fields of each setting that may be factors, nested ones among them."""
    rows = []
    for given in settings:
        row: dict[str, Any] = {}
        for name in (name for name in given if name not in _LEFT_OUT):
            value = given[name]
            row |= value if isinstance(value, Mapping) else {name: value}
        width = row.get("width", _USUAL["width"])
        rows.append({**_USUAL, **dict.fromkeys(_WIDTHS, width), **row})
    names = dict.fromkeys(["m", *(name for row in rows for name in row)])
    if any(row[name] != row["width"] for row in rows for name in _WIDTHS):
        del names["width"]  # focus and classifier have widths of their own, which say it all
    return [{name: _plain(row.get(name, _ABSENT)) for name in names} for row in rows]


def _plain(value: Any) -> Value:
    return value if isinstance(value, int | float | str) else setting_text(value)


def _factors(rows: Sequence[Mapping[str, Value]]) -> tuple[list[str], dict[str, list[str]]]:
    """The fields that vary and follow from no other, and what follows from each of them."""
    names = [name for name in rows[0] if len({row[name] for row in rows}) > 1]

    def follows(name: str, other: str) -> bool:
        pairs = {(row[other], row[name]) for row in rows}
        return len(pairs) == len({value for value, _ in pairs})

    # Of fields that follow from each other, the first one counts.
    factors = [
        name
        for i, name in enumerate(names)
        if not any(follows(name, other) for other in names[:i])
        and not any(follows(name, o) and not follows(o, name) for o in names[i + 1 :])
    ]
    rest = [name for name in names if name not in factors]
    return factors, {each: [name for name in rest if follows(name, each)] for each in factors}


def _base(values: Sequence[Mapping[str, Value]]) -> int:
    """Number of the setting that shares most values with the others; then has most usual ones."""

    def key(own: Mapping[str, Value]) -> tuple[int, int]:
        shared = sum(own[name] == other[name] for name in own for other in values)
        return shared, sum(own[name] == _USUAL.get(name, _ABSENT) for name in own)

    return max(range(len(values)), key=lambda number: key(values[number]))
