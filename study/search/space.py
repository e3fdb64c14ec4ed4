"""The space of a search: a grid whose learning rates and switch points are ranges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import FloatDistribution

from search_spaces.base import Values
from study import tasks
from study.cell import Cell
from study.cell.axis import Rules, possible_values, values_at
from study.cell.declared import SAME
from study.errors import RequestError
from study.kinds import KINDS
from study.plan.axes import tasks_of
from study.plan.grid import points_of

SIGNIFICANT_DIGITS = 4
"""Suggested numbers are rounded to these: finer steps do not change how a cell learns, and a
cell's id must not depend on the last bit of a logarithm."""

SEARCHED = ("lr", "hard_lr", "switch_point")


@dataclass(frozen=True)
class Space:
    """The space of a search.

    Attributes:
        points: paradigm -> axis -> value, or the range in which it is searched.
        seeds: every suggestion trains with all of them.
    """

    points: Mapping[str, Mapping[str, Any]]
    seeds: tuple[int, ...]

    @classmethod
    def of(cls, axes: Mapping[str, Rules]) -> Space:
        """The space between the least and the greatest values of the axes of a study.

        Args:
            axes: as `study.plan.axes.resolve` gives them.

        Raises:
            RequestError: another axis has several values, or nothing is left to search.
        """
        kind = KINDS["training"]
        known = {**kind.axes(tasks_of(axes))}
        del known["seed"]
        ranged = {**axes, **{name: _ranged(name, axes[name]) for name in SEARCHED}}
        points: dict[str, Mapping[str, Any]] = {}
        for point in points_of(known, ranged, kind.fastest):
            first = points.setdefault(point["paradigm"], point)
            for name in point:
                if point[name] != first[name]:
                    values = possible_values(axes[name])
                    raise RequestError(
                        f"a search varies paradigm, seed and numbers of {', '.join(SEARCHED)}, "
                        f"but {name} has {len(values)} values ({', '.join(map(str, values))}). "
                        f"Give one with --set {name}={values[0]}."
                    )
        fixed = {name: value for name, value in point.items() if name != "paradigm"}
        space = cls(points, tuple(values_at(axes["seed"], "seed", fixed)))
        if len(points) == 1 and not any(map(space.ranges, points)):
            raise RequestError(
                "nothing to search: every axis has one value. Give the ends of a range, "
                "e.g. --set lr=0.001,1."
            )
        return space

    def ranges(self, paradigm: str) -> dict[str, Any]:
        """Searched axis -> its range, a distribution of Optuna's."""
        point = self.points[paradigm]
        return {axis: each for axis, each in point.items() if isinstance(each, FloatDistribution)}

    def shares(self, num_samples: int) -> dict[str, int]:
        """Paradigm -> how many options it gets; one, if it has nothing to search."""
        return {name: num_samples if self.ranges(name) else 1 for name in self.points}

    def point(self, paradigm: str, values: Mapping[str, float], seed: int) -> dict[str, Any]:
        """The values of all axes, where those that are searched have the given values."""
        return {**self.points[paradigm], **values, "seed": seed}

    def examples(self) -> list[dict[str, Any]]:
        """A point for each seed and paradigm, in the middle of its ranges."""
        return [
            self.point(name, {axis: _middle(x) for axis, x in self.ranges(name).items()}, seed)
            for seed in self.seeds
            for name in self.points
        ]

    def rounded(self, paradigm: str, values: Mapping[str, float]) -> dict[str, float]:
        """Suggested values with `SIGNIFICANT_DIGITS`, within their ranges."""
        digits = {axis: float(f"{x:.{SIGNIFICANT_DIGITS}g}") for axis, x in values.items()}
        return self._within(paradigm, digits)

    def nearest(self, cell: Cell) -> dict[str, float]:
        """The values of a cell of a searched paradigm, moved into their ranges."""
        phases = cell.schedule.phases
        # Of phases of one paradigm the first has the rate that is given, before it drops.
        hard_lr = next(each.lr for each in phases if each.paradigm == phases[-1].paradigm)
        values: tuple[Any, ...] = (cell.lr, hard_lr, cell.switch_point)
        return self._within(cell.paradigm, dict(zip(SEARCHED, values, strict=True)))

    def _within(self, paradigm: str, values: Mapping[str, float]) -> dict[str, float]:
        ranges = self.ranges(paradigm).items()
        return {axis: min(max(values[axis], each.low), each.high) for axis, each in ranges}

    def label(self, metric: str) -> str:
        """The name for people of one of `study.request.OBJECTIVES`."""
        if metric == "saif":
            return "SAIF"
        first = next(iter(self.points.values()))
        return tasks.modality(first["task"]).score

    def improved(self, objective: Sequence[str]) -> str:
        """What a search improves, for people."""
        names = " and ".join(map(self.label, objective))
        return f"validation {names}" + " (a Pareto front)" * (len(objective) > 1)


def _ranged(name: str, rules: Rules) -> Rules:
    """The values of a searched axis, with a range in place of several numbers."""

    def ranged(values: Values) -> Values:
        if len(values) < 2 or SAME in values:
            return values
        return (FloatDistribution(min(values), max(values), log=name != "switch_point"),)

    return tuple(rule._replace(values=ranged(rule.values)) for rule in rules)


def _middle(each: FloatDistribution) -> float:
    if each.log:
        return math.sqrt(each.low) * math.sqrt(each.high)
    return (each.low + each.high) / 2
