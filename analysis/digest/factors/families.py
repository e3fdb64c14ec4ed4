"""Which settings vary among comparisons: the factors, the base, and what each setting differs in.

A *setting* is one comparison. The *factors* of a task are the fields in which its settings differ.
The *base* is the setting that has most fields in common with the others; the *levels* of a factor
are the settings that differ from it in that factor alone. Settings that differ in two factors make
a *grid*.
"""

from __future__ import annotations

from collections import Counter
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
        repeats: whether another one has its values, from which it differs in what is no factor, as
            the budget. It is a level of nothing.
        name: of the base ``digits m=10 (base)``, of others what they differ in, ``m=20``, ``focus
            width 0.25, depth 1``; of what repeats, or where nothing varies, that of the
            comparison.
    """

    comparison: Comparison
    values: Mapping[str, Value]
    differs: tuple[str, ...]
    repeats: bool
    name: str


@dataclass(frozen=True, eq=False)
class Family:
    """The settings of one task.

    Attributes:
        task: name of the task.
        follows: factor, m first -> fields that are a function of it, and so no factors.
        settings: the base first, then those that differ from it in fewest factors, and those that
            repeat another one last.
    """

    task: str
    follows: Mapping[str, Sequence[str]]
    settings: Sequence[Setting]

    @property
    def factors(self) -> list[str]:
        """Their names, m first."""
        return [*self.follows]

    @property
    def base(self) -> Setting:
        """The base."""
        return self.settings[0]

    def levels(self, factor: str) -> list[Setting]:
        """The settings that differ from the base in one factor alone, by its value."""
        return [each for each in self.plane((factor,)) if each.differs]

    def grids(self) -> list[tuple[str, str]]:
        """The pairs of factors in both of which a setting differs from the base, and in no other.

        A pair is ordered as the factors are.
        """
        there = {each.differs for each in self.settings}
        return [pair for pair in combinations(self.factors, 2) if pair in there]

    def plane(self, factors: Sequence[str]) -> list[Setting]:
        """The settings that differ from the base in no factor but these, each once, base first."""
        return [
            each for each in self.settings if not each.repeats and {*factors} >= {*each.differs}
        ]


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
        for each in family.settings:
            alone = len(every) == 1 or each.repeats or not each.differs
            names[each.comparison] = each.name if alone else f"{family.task}, {each.name}"
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
    rows = [dict(zip(follows, own, strict=True)) for own in fields[[*follows]].to_numpy()]
    base = _base(rows)
    settings = []
    for number, (comparison, own) in enumerate(zip(found, rows, strict=True)):
        texts = {each: value_text(own[each]) for each in own if own[each] != base[each]}
        name, repeats = comparison.name, own in rows[:number]
        if follows and not repeats:
            name = ", ".join(setting_words(texts, texts)) or f"{name} (base)"
        settings.append(Setting(comparison, own, tuple(texts), repeats, name))
    return Family(found[0].task, follows, sorted(settings, key=_place))


def _fields(settings: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row per setting, a column per field that may be a factor, nested ones among them."""
    rows = []
    for given in settings:
        width = given.get("width", 1.0)  # that of focus and classifier, unless they have their own
        row = {**_USUAL, "focus_width": width, "classifier_width": width}
        for name, value in given.items():
            if name not in _LEFT_OUT:
                row |= value if isinstance(value, Mapping) else {name: value}
        rows.append(row)
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


def _base(rows: Sequence[Mapping[str, Value]]) -> Mapping[str, Value]:
    """The setting that shares most values with the others; then has most usual ones."""
    counts = Counter(pair for row in rows for pair in row.items())
    usual = {(name, _USUAL.get(name, _ABSENT)) for name in rows[0]}
    return max(
        rows, key=lambda row: (sum(counts[pair] for pair in row.items()), len(usual & row.items()))
    )


def _place(setting: Setting) -> tuple[Any, ...]:
    """Key that sorts settings: by how many factors differ, which, and by their values."""
    values = setting.values.items()
    unlike = [(name not in setting.differs, by_value(value)) for name, value in values]
    return setting.repeats, len(setting.differs), unlike
