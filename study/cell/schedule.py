"""How a cell trains: phases, each with a paradigm and learning rate, and the budget."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from study.cell.checks import is_int, require
from study.cell.declared import NONE, Declared, Name, Number, checked, declared, part
from study.paradigms import REGISTERED

PARADIGMS: Collection[str] = REGISTERED
"""Names of the paradigms that a phase can train with."""

HYBRIDS: Mapping[str, str] = {
    "hybrid": "hard", "hybrid-sampled": "hard-sampled", "hybrid-running": "hard-running",
}  # fmt: skip
"""Schedules of soft and then hard attention -> the paradigm of the second (section 5)."""

_NAMED: dict[tuple[str, ...], str] = {("soft", hard): name for name, hard in HYBRIDS.items()}

OPTIMISERS = ("sgd", "adam")
"""Of a phase. SGD has the cell's momentum, Adam takes it for the decay of its first moment."""

BUDGET_UNITS = ("flops", "mosaics")

DROP = Fraction(1, 10)
"""Factor of the learning rate where it drops (appendix A.4: 1e-3 to 1e-4, 1e-4 to 1e-5)."""

WITHIN = Number(0, 1)
"""A fraction of the budget or of a phase, beyond its begin and before its end."""


@dataclass(frozen=True)
class Phase(Declared):
    """Train with one paradigm and learning rate until a fraction of the budget is spent.

    Attributes:
        lr: of focus and classifier, and of the encoder of posts.
        source: digest of the file that registered the paradigm; None: it is the project's own.
    """

    paradigm: str = checked(Name(PARADIGMS, ", or of a file given with --with FILE"))
    lr: float = declared("learning rate (of a hybrid: its soft part)", Number(0))
    until: float = checked(Number(0, 1, "(]"), 1.0)
    optimiser: str = declared("of all weights", Name(OPTIMISERS), "sgd", unsaid=True)
    encoder_lr: float | None = declared(
        "learning rate of the encoder; none: it is frozen, and its features are computed once",
        Number(0),
        None,
        words=(NONE,),
        rare=True,
    )
    teacher_forcing: float = declared(
        "share of words after which the decoder reads the true word, not its own (of a hybrid: in "
        "its soft part); all once lr has dropped",
        Number(0, 1, "[]"),
        1.0,
        unsaid=True,
        words=(NONE,),
        rare=True,
    )
    weight_decay: float | None = declared(
        "of Adam: share of a weight that is added to its gradient",
        Number(0),
        None,
        words=(NONE,),
    )
    source: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        decay = self.weight_decay
        rule = "none without the optimiser adam"
        require(decay is None or self.optimiser == "adam", "weight_decay", decay, rule)

    @property
    def text(self) -> str:
        """The phase for people, without its end: ``soft lr=0.01``."""
        parts = [f"{self.paradigm} lr={self.lr:g}"]
        said = self.to_dict()
        if "optimiser" in said:
            parts.append(self.optimiser)
        for name in ("encoder_lr", "teacher_forcing", "weight_decay"):
            if name in said:
                parts.append(f"{name}={said[name]:g}")
        if self.source is not None:  # so that versions of a file are options of one paradigm
            parts.append(f"({self.source[:8]})")
        return " ".join(parts)

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
        WITHIN.checked(axis, share)
        lr, start, end, part_of = (Fraction(str(n)) for n in (self.lr, begin, self.until, share))
        dropped = replace(self, lr=float(DROP * lr), teacher_forcing=1.0)
        return replace(self, until=float(start + part_of * (end - start))), dropped


@dataclass(frozen=True)
class Schedule(Declared):
    """A sequence of phases; the last one ends with the budget.

    A phase starts from only the weights: momentum, the moments of Adam and a running baseline are
    zeroed at its begin.
    """

    phases: tuple[Phase, ...] = part(Phase)

    def __post_init__(self) -> None:
        ends = [phase.until for phase in self.phases]
        require(
            ends[-1:] == [1.0] and all(a < b for a, b in itertools.pairwise(ends)),
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
        until = WITHIN.checked("switch_point", switch_point)
        return cls((Phase("soft", lr, until), Phase("hard", hard_lr)))

    @property
    def paradigm(self) -> str:
        """The paradigm of all phases, a name of `HYBRIDS`, else names joined by >.

        Phases of one paradigm in sequence, which differ in their rates, count as one.
        """
        names = [name for name, _ in itertools.groupby(phase.paradigm for phase in self.phases)]
        return _NAMED.get(tuple(names), ">".join(names))

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
class Budget(Declared):
    """When a cell ends: after analytic training FLOPs, or mosaics if a study compares by epoch.

    Attributes:
        amount: in units of `unit`.
        unit: `flops` (one multiply-add is 2 FLOPs, training is 3 x forward) or `mosaics`.
    """

    amount: int
    unit: str = checked(Name(BUDGET_UNITS), "flops")

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = is_int(self.amount) and 0 < self.amount < 2**63
        require(fits, "budget", self.amount, f"an integer > 0 and < 2^63 {self.unit}")
