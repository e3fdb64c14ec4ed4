"""The space of a search: ranges between the least and the greatest values of the axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search_spaces.base import Values
from study import tasks
from study.cell import HYBRIDS, Cell
from study.cell.axis import Rules, depends_on, values_at
from study.cell.declared import SAME
from study.errors import RequestError
from study.terminal import counted

SIGNIFICANT_DIGITS = 4
"""Suggested numbers are rounded to these: finer steps do not change how a cell learns, and a
cell's id must not depend on the last bit of a logarithm."""

_HYBRID_AXES = ("lr", "hard_lr", "switch_point")
_OTHERS = ("paradigm", "seed", "confirm")


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

    def __str__(self) -> str:
        how = "log-uniform" if self.log else "uniform"
        return f"{self.low:g} to {self.high:g} ({how})"

    @property
    def middle(self) -> float:
        if self.log:
            return math.sqrt(self.low) * math.sqrt(self.high)
        return (self.low + self.high) / 2

    def within(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    def rounded(self, value: float) -> float:
        """A suggested number, with `SIGNIFICANT_DIGITS`, within the bounds."""
        return self.within(float(f"{value:.{SIGNIFICANT_DIGITS}g}"))


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
    def of(cls, axes: Mapping[str, Rules]) -> Space:
        """The space between the least and the greatest values of the axes of a study.

        Args:
            axes: as `study.plan.axes.resolve` gives them.

        Raises:
            RequestError: another axis has several values, or nothing is left to search.
        """
        others = [name for name in axes if name not in (*_HYBRID_AXES, *_OTHERS)]
        of_paradigm = [name for name in others if "paradigm" in depends_on(axes[name])]
        fixed: dict[str, Any] = {}
        # An axis that depends on another one comes after it.
        for name in sorted(others, key=lambda name: len(depends_on(axes[name]))):
            if name not in of_paradigm:
                fixed[name] = _value(name, values_at(axes[name], name, fixed))
        paradigms = {}
        for paradigm in values_at(axes["paradigm"], "paradigm", fixed):
            point = {**fixed, "paradigm": paradigm}
            searched = _HYBRID_AXES if paradigm in HYBRIDS else ("lr",)
            paradigms[paradigm] = {
                name: _value(name, values_at(axes[name], name, point))
                for name in (*of_paradigm, *searched)
            }
        space = cls(fixed, tuple(values_at(axes["seed"], "seed", fixed)), paradigms)
        if len(paradigms) == 1 and not any(map(space.ranges, paradigms)):
            raise RequestError(
                "nothing to search: every axis has one value. Give the ends of a range, "
                "e.g. --set lr=0.001,1."
            )
        return space

    def ranges(self, paradigm: str) -> dict[str, Range]:
        """Searched axis -> its range."""
        values = self.paradigms[paradigm].items()
        return {axis: value for axis, value in values if isinstance(value, Range)}

    def shares(self, num_samples: int) -> dict[str, int]:
        """Paradigm -> how many options it gets; one, if it has nothing to search."""
        return {name: num_samples if self.ranges(name) else 1 for name in self.paradigms}

    def point(self, paradigm: str, searched: Mapping[str, float], seed: int) -> dict[str, Any]:
        """The values of all axes, where those that are searched have the given values."""
        values = {**self.fixed, "paradigm": paradigm, **self.paradigms[paradigm], **searched}
        return {**values, "seed": seed}

    def examples(self) -> list[dict[str, Any]]:
        """A point for each seed and paradigm, in the middle of its ranges."""
        middles = {
            name: {axis: each.middle for axis, each in self.ranges(name).items()}
            for name in self.paradigms
        }
        return [
            self.point(name, middle, seed)
            for seed in self.seeds
            for name, middle in middles.items()
        ]

    def nearest(self, cell: Cell) -> dict[str, float]:
        """The values of a cell on the searched axes, moved into their ranges.

        Raises:
            RequestError: its paradigm is not searched.
        """
        if cell.paradigm not in self.paradigms:
            raise RequestError(f"{cell.paradigm} is not searched")
        phases = cell.schedule.phases
        # Of phases of one paradigm the first has the rate that is given, before it drops.
        hard_lr = next(each.lr for each in phases if each.paradigm == phases[-1].paradigm)
        found: dict[str, Any] = {
            "lr": cell.lr, "hard_lr": hard_lr, "switch_point": cell.switch_point,
        }  # fmt: skip
        ranges = self.ranges(cell.paradigm)
        return {axis: each.within(found[axis]) for axis, each in ranges.items()}

    def describe(self, num_samples: int, objective: Sequence[str]) -> str:
        """What a search would try, as lines for people."""
        count = len(self.seeds)
        total = sum(self.shares(num_samples).values())
        lines = [
            f"search: {counted(num_samples, 'suggestion')} a paradigm, {total} in all, x "
            f"{counted(count, 'seed')} = {counted(total * count, 'cell')}, improving "
            f"{self.improved(objective)}"
        ]
        for paradigm, values in self.paradigms.items():
            parts = [f"{axis} {value}" for axis, value in values.items()]
            lines.append(f"  {paradigm}: {', '.join(parts)}")
        return "\n".join(lines)

    def improved(self, objective: Sequence[str]) -> str:
        """What a search improves, for people."""
        names = " and ".join(map(self.label, objective))
        return f"validation {names}" + " (a Pareto front)" * (len(objective) > 1)

    def label(self, metric: str) -> str:
        """The name for people of one of `study.request.OBJECTIVES`."""
        return "SAIF" if metric == "saif" else tasks.modality(self.fixed["task"]).score


def _value(name: str, values: Values) -> Any:
    """The only value of an axis, or the range between the least and the greatest."""
    if len(values) == 1:
        return values[0]
    if name not in _HYBRID_AXES or SAME in values:
        raise RequestError(
            f"a search varies paradigm, seed and numbers of {', '.join(_HYBRID_AXES)}, but "
            f"{name} has {len(values)} values ({', '.join(map(str, values))}). "
            f"Give one with --set {name}={values[0]}."
        )
    low, high = float(min(values)), float(max(values))
    return low if low == high else Range(low, high, log=name != "switch_point")
