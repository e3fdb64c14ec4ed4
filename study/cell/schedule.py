"""How a cell trains: phases, each with a paradigm and learning rate, and the budget."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from study.cell.checks import is_int, is_positive, require
from study.paradigms import REGISTERED

PARADIGMS: Collection[str] = REGISTERED
"""Names of the paradigms that a phase can train with."""


@dataclass(frozen=True)
class Phase:
    """Train with one paradigm and learning rate until a fraction of the budget is spent.

    Args:
        paradigm: one of `PARADIGMS`.
        lr: learning rate of SGD, > 0, for focus and classifier alike.
        until: fraction of the budget at which the phase ends, in (0, 1].
    """

    paradigm: str
    lr: float
    until: float = 1.0

    def __post_init__(self) -> None:
        require(
            self.paradigm in PARADIGMS, "paradigm", self.paradigm, f"one of {', '.join(PARADIGMS)}"
        )
        require(is_positive(self.lr), "learning rate", self.lr, "a number > 0")
        require(
            is_positive(self.until) and self.until <= 1,
            "end of a phase",
            self.until,
            "a fraction of the budget in (0, 1]",
        )
        object.__setattr__(self, "lr", float(self.lr))
        object.__setattr__(self, "until", float(self.until))


@dataclass(frozen=True)
class Schedule:
    """A sequence of phases; the last one ends with the budget.

    Momentum is zeroed at a phase boundary, so that a phase starts from only the weights.
    """

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "phases", tuple(self.phases))
        require(len(self.phases) > 0, "schedule", self.phases, "at least one phase")
        ends = [phase.until for phase in self.phases]
        require(
            all(a < b for a, b in itertools.pairwise(ends)) and ends[-1] == 1.0,
            "ends of the phases",
            ends,
            "increasing, the last one 1",
        )

    @classmethod
    def single(cls, paradigm: str, lr: float) -> Schedule:
        """One paradigm from start to end."""
        return cls((Phase(paradigm, lr),))

    @classmethod
    def hybrid(cls, lr: float, hard_lr: float, switch_point: float) -> Schedule:
        """Soft until `switch_point`, a fraction of the budget in (0, 1), then hard (section 5)."""
        require(
            is_positive(switch_point) and switch_point < 1,
            "switch point",
            switch_point,
            "a fraction of the budget in (0, 1)",
        )
        return cls((Phase("soft", lr, switch_point), Phase("hard", hard_lr)))

    @property
    def paradigm(self) -> str:
        """The paradigm of a single phase, `hybrid` for soft then hard, else names joined by >."""
        names = [phase.paradigm for phase in self.phases]
        return "hybrid" if names == ["soft", "hard"] else ">".join(names)

    @property
    def switch_point(self) -> float | None:
        """The budget fraction at which the first phase ends; None for a single phase."""
        return self.phases[0].until if len(self.phases) > 1 else None

    @property
    def text(self) -> str:
        """The schedule for people: ``soft lr=0.01 until 0.3 > hard lr=0.005``."""
        parts = [
            f"{p.paradigm} lr={p.lr:g}" + (f" until {p.until:g}" if p.until < 1 else "")
            for p in self.phases
        ]
        return " > ".join(parts)


@dataclass(frozen=True)
class Budget:
    """When a cell ends: after analytic training FLOPs, or mosaics if a study compares by epoch.

    Args:
        amount: > 0, in units of `unit`.
        unit: `flops` (one multiply-add is 2 FLOPs, training is 3 x forward) or `mosaics`.
    """

    amount: int
    unit: Literal["flops", "mosaics"] = "flops"

    def __post_init__(self) -> None:
        require(
            is_int(self.amount) and 0 < self.amount < 2**63,
            "budget",
            self.amount,
            f"an integer > 0 and < 2^63 {self.unit}",
        )
        require(self.unit in ("flops", "mosaics"), "budget unit", self.unit, "flops or mosaics")
