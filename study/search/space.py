"""The space of a search: ranges between the least and the greatest values of the axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_spaces.base import By, Values
from study import tasks
from study.cell import HYBRIDS
from study.cell.axis import values_at
from study.cell.declared import SAME
from study.errors import RequestError
from study.terminal import counted

if TYPE_CHECKING:
    import optuna

SIGNIFICANT_DIGITS = 4
"""Suggested numbers are rounded to these: finer steps do not change how a cell learns, and a
cell's id must not depend on the last bit of a logarithm."""

_HYBRID_AXES = ("lr", "hard_lr", "switch_point")
_SEARCHED = ("paradigm", *_HYBRID_AXES)


@dataclass(frozen=True)
class Range:
    """The interval in which a number is searched.

    Args:
        low: its least value.
        high: its greatest value, > low.
        log: whether to draw uniformly in the logarithm.
    """

    low: float
    high: float
    log: bool

    def suggest(self, trial: optuna.Trial, name: str) -> float:
        """A suggested number within the bounds, rounded to `SIGNIFICANT_DIGITS`."""
        value = trial.suggest_float(name, self.low, self.high, log=self.log)
        return min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)

    @property
    def text(self) -> str:
        how = "log-uniform" if self.log else "uniform"
        return f"{self.low:g} to {self.high:g} ({how})"


@dataclass(frozen=True)
class Space:
    """The space of a search.

    Attributes:
        fixed: axis -> value, of the axes that are not searched.
        seeds: every suggestion trains with all of them.
        paradigms: paradigm -> axis -> range, or the value if there is only one; besides the
            searched axes, those whose value depends on the paradigm.
    """

    fixed: Mapping[str, Any]
    seeds: tuple[int, ...]
    paradigms: Mapping[str, Mapping[str, Range | float | str]]

    @classmethod
    def of(cls, axes: Mapping[str, Values | By]) -> Space:
        """The space between the least and the greatest values of the axes of a study.

        Args:
            axes: as `study.plan.axes.resolve` gives them.

        Raises:
            RequestError: another axis has several values, or nothing is left to search.
        """
        fixed: dict[str, Any] = {}
        others = [name for name in axes if name not in (*_SEARCHED, "seed", "confirm")]
        of_paradigm = [name for name in others if _depends_on_paradigm(axes[name])]
        # An axis that depends on another one comes after it.
        for name in sorted(others, key=lambda name: isinstance(axes[name], By)):
            if name not in of_paradigm:
                fixed[name] = _only(name, values_at(axes[name], name, fixed))
        paradigms = {}
        for paradigm in values_at(axes["paradigm"], "paradigm", fixed):
            names = _HYBRID_AXES if paradigm in HYBRIDS else ("lr",)
            point = {**fixed, "paradigm": paradigm}
            paradigms[paradigm] = {
                **{n: _only(n, values_at(axes[n], n, point)) for n in of_paradigm},
                **{n: _range(n, values_at(axes[n], n, point)) for n in names},
            }
        searched = [value for values in paradigms.values() for value in values.values()]
        if len(paradigms) == 1 and not any(isinstance(value, Range) for value in searched):
            raise RequestError(
                "nothing to search: every axis has one value. Give the ends of a range, "
                "e.g. --set lr=0.001,1."
            )
        return cls(fixed, tuple(values_at(axes["seed"], "seed", fixed)), paradigms)

    def suggest(self, trial: optuna.Trial) -> dict[str, Any]:
        """One point: paradigm, lr and, of a hybrid, hard_lr and switch_point.

        Optuna's parameters are named PARADIGM.AXIS, since ranges and meanings may differ.
        """
        names = list(self.paradigms)
        paradigm = trial.suggest_categorical("paradigm", names) if len(names) > 1 else names[0]
        point: dict[str, Any] = {"paradigm": paradigm}
        for axis, values in self.paradigms[paradigm].items():
            if isinstance(values, Range):
                point[axis] = values.suggest(trial, f"{paradigm}.{axis}")
            else:
                point[axis] = values
        return point

    def middles(self) -> Iterator[dict[str, Any]]:
        """One point a paradigm, in the middle of its ranges."""
        for paradigm, values in self.paradigms.items():
            yield {"paradigm": paradigm} | {
                axis: _middle(value) if isinstance(value, Range) else value
                for axis, value in values.items()
            }

    def examples(self) -> Iterator[dict[str, Any]]:
        """One full point a seed and paradigm, in the middle of its ranges."""
        for seed in self.seeds:
            for middle in self.middles():
                yield {**self.fixed, **middle, "seed": seed}

    def describe(self, num_samples: int, objective: Sequence[str]) -> str:
        """What a search would try, as lines for people."""
        count = len(self.seeds)
        head = (
            f"search: {counted(num_samples, 'suggestion')} x {counted(count, 'seed')} = "
            f"{counted(num_samples * count, 'cell')}, improving {self.improved(objective)}"
        )
        lines = [head]
        for paradigm, values in self.paradigms.items():
            parts = [
                f"{axis} {value.text if isinstance(value, Range) else value}"
                for axis, value in values.items()
            ]
            lines.append(f"  {paradigm}: {', '.join(parts)}")
        return "\n".join(lines)

    def improved(self, objective: Sequence[str]) -> str:
        """What a search improves, for people."""
        names = " and ".join(map(self.label, objective))
        return f"validation {names}" + " (a Pareto front)" * (len(objective) > 1)

    def label(self, metric: str) -> str:
        """The name for people of one of `study.request.OBJECTIVES`."""
        return "SAIF" if metric == "saif" else tasks.modality(self.fixed["task"]).score

    @property
    def key(self) -> list[Any]:
        """What all suggestions of one search share: seeds, paradigms and unsearched values.

        Ranges are left out, so that a search goes on when its ranges change.
        """
        paradigms = {
            paradigm: {a: None if isinstance(v, Range) else v for a, v in values.items()}
            for paradigm, values in self.paradigms.items()
        }
        return [self.seeds, paradigms]


def _depends_on_paradigm(axis: Values | By) -> bool:
    return isinstance(axis, By) and axis.axis == "paradigm"


def _only(name: str, values: Values) -> Any:
    if len(values) > 1:
        raise RequestError(
            f"a search compares cells that differ in {', '.join(_SEARCHED)} and seed only, but "
            f"{name} has {len(values)} values ({', '.join(map(str, values))}). "
            f"Give one with --set {name}={values[0]}."
        )
    return values[0]


def _range(axis: str, values: Values) -> Range | float | str:
    if axis == "hard_lr" and SAME in values:
        if len(values) > 1:
            raise RequestError(
                f"a search takes hard_lr either as {SAME} or as numbers, "
                f"got {', '.join(map(str, values))}. Give --set hard_lr={SAME} or two numbers."
            )
        return SAME
    low, high = float(min(values)), float(max(values))
    return low if low == high else Range(low, high, log=axis != "switch_point")


def _middle(values: Range) -> float:
    if values.log:
        return math.sqrt(values.low) * math.sqrt(values.high)
    return (values.low + values.high) / 2
