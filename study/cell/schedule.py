"""How a cell trains: phases, each with a paradigm and learning rate, and the budget."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from study.cell.checks import is_int, is_positive, require
from study.paradigms import REGISTERED

PARADIGMS: Collection[str] = REGISTERED
"""Names of the paradigms that a phase can train with."""

HYBRIDS: Mapping[str, str] = {
    "hybrid": "hard", "hybrid-sampled": "hard-sampled", "hybrid-running": "hard-running",
}  # fmt: skip
"""Schedules of soft and then hard attention -> the paradigm of the second (section 5)."""


OPTIMISERS = ("sgd", "adam")
"""Of a phase. SGD has the cell's momentum, Adam takes it for the decay of its first moment."""

DROP = Fraction(1, 10)
"""Factor of the learning rate where it drops (appendix A.4: 1e-3 to 1e-4, 1e-4 to 1e-5)."""


@dataclass(frozen=True)
class Phase:
    """Train with one paradigm and learning rate until a fraction of the budget is spent.

    Args:
        paradigm: one of `PARADIGMS`.
        lr: learning rate, > 0, for focus and classifier alike.
        until: fraction of the budget at which the phase ends, in (0, 1].
        optimiser: one of `OPTIMISERS`; None: SGD.
        encoder_lr: of captions, learning rate of the encoder, > 0; None: it is frozen. (The
            encoder of posts trains with `lr`.)
        teacher_forcing: of captions, the share of words in [0, 1] before which the decoder reads
            the true word, not its own; None: all.
        weight_decay: of Adam, the share of a weight, > 0, that is added to its gradient; None: 0.
        source: digest of the file that registered the paradigm; None: it is the project's own.
    """

    paradigm: str
    lr: float
    until: float = 1.0
    optimiser: str | None = None
    encoder_lr: float | None = None
    teacher_forcing: float | None = None
    weight_decay: float | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        rule = f"one of {', '.join(PARADIGMS)}, or of a file given with --with FILE"
        require(self.paradigm in PARADIGMS, "paradigm", self.paradigm, rule)
        require(is_positive(self.lr), "learning rate", self.lr, "a finite number > 0")
        require(
            is_positive(self.until) and self.until <= 1,
            "end of a phase",
            self.until,
            "a fraction of the budget in (0, 1]",
        )
        require(
            self.optimiser is None or self.optimiser in OPTIMISERS,
            "optimiser",
            self.optimiser,
            f"one of {', '.join(OPTIMISERS)}",
        )
        rate, share = self.encoder_lr, self.teacher_forcing
        require(rate is None or is_positive(rate), "encoder_lr", rate, "a finite number > 0")
        require(
            share is None
            or (isinstance(share, int | float) and share is not True and 0 <= share <= 1),
            "teacher_forcing",
            share,
            "a number in [0, 1]",
        )
        decay = self.weight_decay
        rule = "a finite number > 0, or none"
        require(decay is None or is_positive(decay), "weight_decay", decay, rule)
        rule = "none without the optimiser adam"
        require(decay is None or self.optimiser == "adam", "weight_decay", decay, rule)
        for name in ("lr", "until", "encoder_lr", "teacher_forcing", "weight_decay"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(value))

    @property
    def text(self) -> str:
        """The phase for people, without its end: ``soft lr=0.01``."""
        parts = [f"{self.paradigm} lr={self.lr:g}", self.optimiser or ""]
        if self.encoder_lr is not None:
            parts.append(f"encoder_lr={self.encoder_lr:g}")
        if self.teacher_forcing is not None:
            parts.append(f"teacher_forcing={self.teacher_forcing:g}")
        if self.weight_decay is not None:
            parts.append(f"weight_decay={self.weight_decay:g}")
        if self.source is not None:  # so that versions of a file are options of one paradigm
            parts.append(f"({self.source[:8]})")
        return " ".join(filter(None, parts))

    def dropping(
        self, begin: float, share: float | None, axis: str = "drop_at"
    ) -> tuple[Phase, ...]:
        """The phase in two, or as it is: where the second begins, the learning rate drops.

        The decoder of captions reads only true words from there on (appendix A.4).

        Args:
            begin: fraction of the budget at which this phase begins, in [0, 1).
            share: of this phase, before its rate drops, in (0, 1); None: it never does.
            axis: that says it, for messages.

        Raises:
            ValueError: the share is out of range.
        """
        if share is None:
            return (self,)
        require(is_positive(share) and share < 1, axis, share, "a fraction in (0, 1)")
        lr, start, end, part = (Fraction(str(n)) for n in (self.lr, begin, self.until, share))
        dropped = replace(self, lr=float(DROP * lr), teacher_forcing=None)
        return replace(self, until=float(start + part * (end - start))), dropped


@dataclass(frozen=True)
class Schedule:
    """A sequence of phases; the last one ends with the budget.

    A phase starts from only the weights: momentum, the moments of Adam and a running baseline are
    zeroed at its begin.
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
        """The paradigm of all phases, a name of `HYBRIDS`, else names joined by >.

        Phases of one paradigm in sequence, which differ in their rates, count as one.
        """
        names = [name for name, _ in itertools.groupby(phase.paradigm for phase in self.phases)]
        hybrids: dict[tuple[str, ...], str] = {
            ("soft", hard): name for name, hard in HYBRIDS.items()
        }
        return hybrids.get(tuple(names), ">".join(names))

    @property
    def switch_point(self) -> float | None:
        """The budget fraction at which the first paradigm ends; None if there is no other."""
        for phase, following in itertools.pairwise(self.phases):
            if phase.paradigm != following.paradigm:
                return phase.until
        return None

    @property
    def text(self) -> str:
        """The schedule for people: ``soft lr=0.01 until 0.3 > hard lr=0.005``."""
        ends = (f" until {p.until:g}" if p.until < 1 else "" for p in self.phases)
        return " > ".join(p.text + end for p, end in zip(self.phases, ends, strict=True))


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
