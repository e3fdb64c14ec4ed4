"""The space of a search: ranges between the least and the greatest values of the axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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

    def rounded(self, value: float) -> float:
        """A suggested number, with `SIGNIFICANT_DIGITS`, within the bounds."""
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
    def of(cls, axes: Mapping[str, Rules]) -> Space:
        """The space between the least and the greatest values of the axes of a study.

        Args:
            axes: as `study.plan.axes.resolve` gives them.

        Raises:
            RequestError: another axis has several values, or nothing is left to search.
        """
        fixed: dict[str, Any] = {}
        others = [name for name in axes if name not in (*_SEARCHED, "seed", "confirm")]
        of_paradigm = [name for name in others if "paradigm" in depends_on(axes[name])]
        # An axis that depends on another one comes after it.
        for name in sorted(others, key=lambda name: len(depends_on(axes[name])) > 0):
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

    def ranges(self, paradigm: str) -> dict[str, Any]:
        """Searched axis -> Optuna's distribution."""
        from optuna.distributions import FloatDistribution

        return {
            axis: FloatDistribution(values.low, values.high, log=values.log)
            for axis, values in self.paradigms[paradigm].items()
            if isinstance(values, Range)
        }

    def shares(self, num_samples: int) -> dict[str, int]:
        """Paradigm -> how many options it gets; one, if it has nothing to search."""
        return {name: num_samples if self.ranges(name) else 1 for name in self.paradigms}

    def rounded(self, paradigm: str, suggested: Mapping[str, float]) -> dict[str, float]:
        """A suggestion as a point of the space: searched axis -> value."""
        values = self.paradigms[paradigm]
        return {
            axis: each.rounded(suggested[axis])
            for axis, each in values.items()
            if isinstance(each, Range)
        }

    def full(self, paradigm: str, point: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """A point with the values of all axes, one a seed."""
        for seed in self.seeds:
            yield {
                **self.fixed, "paradigm": paradigm, **self.paradigms[paradigm], **point,
                "seed": seed,
            }  # fmt: skip

    def point_of(self, cell: Cell) -> dict[str, float] | None:
        """Where a cell lies in the space; None: outside."""
        if cell.paradigm not in self.paradigms:
            return None
        phases = cell.schedule.phases
        found = {"lr": cell.lr, "hard_lr": phases[-1].lr, "switch_point": cell.switch_point}
        point = {}
        for axis, values in self.paradigms[cell.paradigm].items():
            if isinstance(values, Range):
                value = found[axis]
                if value is None or not values.low <= value <= values.high:
                    return None
                point[axis] = value
        return point

    def middles(self) -> dict[str, dict[str, Any]]:
        """Paradigm -> the point in the middle of its ranges."""
        return {
            paradigm: {a: _middle(v) for a, v in values.items() if isinstance(v, Range)}
            for paradigm, values in self.paradigms.items()
        }

    def examples(self) -> list[dict[str, Any]]:
        """One full point a seed and paradigm, in the middle of its ranges."""
        points = [[*self.full(paradigm, point)] for paradigm, point in self.middles().items()]
        return [point for of_seed in zip(*points, strict=True) for point in of_seed]

    def describe(self, num_samples: int, objective: Sequence[str]) -> str:
        """What a search would try, as lines for people."""
        count = len(self.seeds)
        total = sum(self.shares(num_samples).values())
        head = (
            f"search: {counted(num_samples, 'suggestion')} a paradigm, {total} in all, x "
            f"{counted(count, 'seed')} = {counted(total * count, 'cell')}, improving "
            f"{self.improved(objective)}"
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
