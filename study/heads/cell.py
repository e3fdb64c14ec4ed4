"""The cell that takes a trained network apart, by theory or by a simple rule."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from study.cell import Cell
from study.cell.any_cell import AnyCell, Options
from study.cell.checks import is_int, is_positive, require
from study.heads.temperatures import CHOICES, FIXED
from study.posterior.cell import LARGEST_SIZE, LARGEST_WIDTH, LIMIT, THEORY

SOLVED = (THEORY, LIMIT)

WEIGHT_NORM, ENTROPY, SENSITIVITY = SIMPLE = ("weight-norm", "entropy", "sensitivity")
"""Rules that score heads without theory, see `study.theory.heads.scores`."""

RANDOM, GREEDY, BOUND = ("random", "greedy", "bound")
"""Random orders; the head whose removal leaves the best validation accuracy goes next; and the
best of all subsets on the split itself, which no order can beat."""

RULES = (*SIMPLE, RANDOM, GREEDY, BOUND)
METHODS = (*SOLVED, *RULES)


@dataclass(frozen=True, kw_only=True)
class HeadsCell(AnyCell):
    """One trained network, its heads scored by one method and removed in that order.

    Args:
        network: the cell that trains it; its seed, data and evaluation sizes are this cell's.
        method: one of `METHODS`.
        examples: P, training episodes on which theory solves, and rules that need any score.
        width: N of the theory's network, >= 1; None: infinite (`gp`), or a rule.
        choice: of the temperature, one of `study.heads.temperatures.CHOICES`; None: a rule.
        temperature: > 0, where it is fixed.

    Raises:
        ValueError: a value is out of range; the message names it and the rule.
    """

    version: ClassVar = {"heads": 1, **Cell.version}

    network: Cell
    method: str
    examples: int
    width: int | None = None
    choice: str | None = None
    temperature: float | None = None
    evaluation_points: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        require(self.method in METHODS, "method", self.method, f"one of {', '.join(METHODS)}")
        require(self.network.transformer is not None, "network", self.network, "with heads")
        none = f"none for method {self.method}"
        _require_count("examples", self.examples, 2, LARGEST_SIZE)
        if self.method == THEORY:
            _require_count("network_width", self.width, 1, LARGEST_WIDTH)
        else:
            require(self.width is None, "width", self.width, none)
        if self.method in SOLVED:
            require(self.choice in CHOICES, "choice", self.choice, f"one of {', '.join(CHOICES)}")
        else:
            require(self.choice is None, "choice", self.choice, none)
        require(self.evaluation_points == (1.0,), "evaluation points", "others", "(1,)")
        heat, fixed = self.temperature, self.choice == FIXED
        require(
            is_positive(heat) if fixed else heat is None,
            "temperature",
            heat,
            "a finite number > 0" if fixed else "none where it is chosen",
        )
        if heat is not None:
            object.__setattr__(self, "temperature", float(heat))

    @property
    def task(self) -> str:
        return self.network.task

    @property
    def data_digest(self) -> str:
        return self.network.data_digest

    @property
    def n(self) -> int:
        return self.examples

    @property
    def seed(self) -> int:
        return self.network.seed

    @property
    def options(self) -> Options:
        return self.network.options

    @property
    def heads(self) -> tuple[int, ...]:
        """(H_1, ..., H_L)."""
        sizes = self.network.transformer
        assert sizes is not None
        return (sizes.heads,) * sizes.layers

    @cached_property
    def comparison_id(self) -> str:
        """Content hash of network and data: what methods are compared on, seed by seed."""
        network = {k: v for k, v in self.network.to_dict().items() if k != "seed"}
        return self.content_hash({"network": network, "examples": self.examples})

    @property
    def setting(self) -> Hashable:
        return self.comparison_id

    @property
    def label(self) -> str:
        return self.method

    @property
    def precision(self) -> str:
        return "float64"

    @property
    def text(self) -> str:
        width = "" if self.width is None else f" at N={self.width:,}"
        heads = "/".join(map(str, self.heads))
        return f"{self.method}{width} on {self.task}, heads {heads}, {self.network.schedule.text}"

    @property
    def columns(self) -> dict[str, Any]:
        return {
            "network": self.network.id,
            "method": self.method,
            "heads": "/".join(map(str, self.heads)),
            "network_width": math.inf if self.width is None else float(self.width),
            "temperature_choice": self.choice,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> HeadsCell:
        points = tuple(values["evaluation_points"])
        network = Cell.from_dict(values["network"])
        return cls(**{**values, "network": network, "evaluation_points": points})


def _require_count(axis: str, value: Any, least: int, most: int) -> None:
    rule = f"a whole number from {least} to {most:,}"
    require(is_int(value) and least <= value <= most, axis, value, rule)
