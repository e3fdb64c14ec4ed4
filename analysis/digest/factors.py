"""Which settings vary among comparisons: the factors, the base, and what each setting differs in.

A *setting* is one comparison. The *factors* of a task are the fields in which its settings differ.
The *base* is the setting that has most fields in common with the others; the *levels* of a factor
are the settings that differ from it in that factor alone. Settings that differ in two factors make
a *grid*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.settings import setting_text, setting_words
from study.tasks import modality

Value = float | str

_LEFT_OUT = {
    "task", "schedule", "seed", "budget", "data_digest", "evaluation_points",
    "train_metrics_size", "validation_size", "test_size",
}  # fmt: skip
"""Fields that are no factors: the task makes families, the budget follows from the others, and how
much is evaluated changes no training."""

_ABSENT = "none"
"""What a cell means that does not name a field, unless that is in `_USUAL`."""

_USUAL: Mapping[str, Value] = {
    "m": _ABSENT,
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
        follows: factor, m first -> fields that are a function of it, and so no factors.
        base: the base.
        others: those that differ from it in fewest factors first, each combination of values once.
        repeats: further comparisons with the values of another one, from which they differ in what
            is no factor, as the budget. They are levels of nothing.
    """

    task: str
    follows: Mapping[str, Sequence[str]]
    base: Setting
    others: Sequence[Setting]
    repeats: Sequence[Setting]

    @property
    def factors(self) -> list[str]:
        """Their names, m first."""
        return [*self.follows]

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
        for each in family.settings:
            own = each in family.others
            names[each.comparison] = f"{task}{each.name}" if own else each.name
    return names


def settings_table(found: Sequence[Comparison]) -> pd.DataFrame:
    """The settings of the tasks of which anything varies.

    Returns:
        One row per setting, by task, the base of each first: `task`, `comparison_id`, `setting`
        (its name), `base` (whether it is the base), `differs` (the factors in which it differs
        from that, comma-separated), then one column per factor.
    """
    return pd.DataFrame(
        {
            "task": family.task,
            "comparison_id": each.comparison.id,
            "setting": each.name,
            "base": each is family.base,
            "differs": ", ".join(each.differs),
            **each.values,
        }
        for family in families(found)
        if family.factors
        for each in family.settings
    )


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
    fields = _fields(comparison.settings for comparison in found)
    follows = _factors(fields)
    values = fields[[*follows]]
    rows = [dict(zip(follows, own, strict=True)) for own in values.to_numpy()]
    base = rows[_base(values)]
    settings: list[Setting] = []
    repeats: list[Setting] = []
    for number, (comparison, own) in enumerate(zip(found, rows, strict=True)):
        texts = {each: value_text(own[each]) for each in own if own[each] != base[each]}
        name = comparison.name
        again = own in rows[:number]
        if follows and not again:
            name = ", ".join(setting_words(texts, texts)) or f"{name} (base)"
        (repeats if again else settings).append(Setting(comparison, own, tuple(texts), name))
    settings.sort(key=_place)
    return Family(found[0].task, follows, settings[0], settings[1:], repeats)


def _fields(settings: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row per setting, a column per field that may be a factor, nested ones among them."""
    rows = []
    for given in settings:
        row: dict[str, Any] = {}
        for name, value in given.items():
            if name not in _LEFT_OUT:
                row |= value if isinstance(value, Mapping) else {name: value}
        width = row.get("width", 1.0)  # that of focus and classifier, unless they have their own
        rows.append({**_USUAL, "focus_width": width, "classifier_width": width, **row})
    fields = pd.DataFrame(rows, dtype=object)
    return fields.where(fields.notna(), _ABSENT).map(
        lambda value: value if isinstance(value, int | float | str) else setting_text(value)
    )


def _factors(fields: pd.DataFrame) -> dict[str, list[str]]:
    """The fields that vary and follow from none before, and what follows from each of them."""
    follows: dict[str, list[str]] = {}
    for name in fields.columns[fields.nunique() > 1]:
        sources = [
            each for each in follows if fields.groupby(each, sort=False)[name].nunique().max() == 1
        ]
        for source in sources:
            follows[source].append(name)
        if not sources:
            follows[name] = []
    return follows


def _base(values: pd.DataFrame) -> int:
    """Number of the setting that shares most values with the others; then has most usual ones."""
    shared = values.apply(lambda column: column.map(column.value_counts())).sum(axis=1)
    usual = pd.Series(_USUAL, dtype=object).reindex(values.columns, fill_value=_ABSENT)
    as_usual = values.eq(usual).sum(axis=1)
    return max(values.index, key=lambda number: (shared[number], as_usual[number]))


def _place(setting: Setting) -> tuple[Any, ...]:
    """Key that sorts settings: by how many factors differ, which, and by their values."""
    values = setting.values.items()
    return len(setting.differs), [(name not in setting.differs, by_value(v)) for name, v in values]
