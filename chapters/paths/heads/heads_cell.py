"""The cell that takes a trained network apart, by theory or by a simple rule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from chapters.paths.one_shot.transformer import TransformerSettings
from chapters.paths.posterior.posterior_cell import LIMIT, THEORY, WIDTH
from chapters.paths.posterior.theory_cell import TheoryCell
from study.cell import Cell
from study.cell.any_cell import Options
from study.cell.checks import require
from study.cell.declared import Name, Number, Whole, checked, declared, part

SOLVED = (THEORY, LIMIT)

WEIGHT_NORM, ENTROPY, SENSITIVITY = SIMPLE = ("weight-norm", "entropy", "sensitivity")
"""Rules that score heads without theory, see `chapters.paths.heads.scores`."""

RANDOM, GREEDY, BOUND = ("random", "greedy", "bound")
"""Random orders; the head whose removal leaves the best validation accuracy goes next; and the
best of all subsets on the split itself, which no order can beat."""

RULES = (*SIMPLE, RANDOM, GREEDY, BOUND)
METHODS = (*SOLVED, *RULES)

TEMPERATURES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
"""Ten from .01 to 1.5, as published; the paper's values between the ends are not known here."""

OF_THE_LIMIT = TEMPERATURES[1::2]
"""Five of the ten, among which the published limit is chosen; which five is not known here."""

VALIDATION, PUBLISHED, FIXED = CHOICES = ("validation", "published", "fixed")
"""How: by the best accuracy on validation episodes; the paper's way, by the best accuracy on the
very test episodes that are reported, the limit's among five only; or a given one."""


@dataclass(frozen=True, kw_only=True)
class HeadsCell(TheoryCell):
    """One trained network, its heads scored by one method and removed in that order.

    Attributes:
        network: the cell that trains it; its seed, data and evaluation sizes are this cell's.
        width: N of the theory's network; None: infinite (`gp`), or a rule.
        choice: of the temperature, one of `CHOICES`; None: a rule.
        temperature: where it is fixed.
    """

    version: ClassVar = {"heads": 1, **Cell.version}

    network: Cell = part(Cell)
    method: str = declared(
        "theory, gp (its limit), or a rule that scores heads: weight-norm, entropy, sensitivity, "
        "random, greedy, bound (the best of all subsets)",
        Name(METHODS),
        alone=True,
    )
    examples: int = declared(
        "P, training episodes for the theory and the rules",
        Whole(2, 1_000_000),
        600,
    )
    width: int | None = None
    choice: str | None = checked(Name(CHOICES), None)
    temperature: float | None = checked(Number(0), None)

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self.network.architecture
        has_heads = isinstance(self.network.settings, TransformerSettings)
        require(has_heads, "architecture", name, "one with heads")
        if self.width is not None:
            WIDTH.checked("network_width", self.width)
        self.require_only(
            width=self.method == THEORY,
            choice=self.method in SOLVED,
            temperature=self.choice == FIXED,
        )

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
    def sizes(self) -> TransformerSettings:
        """The sizes of the network."""
        assert isinstance(self.network.settings, TransformerSettings)
        return self.network.settings

    @property
    def heads(self) -> tuple[int, ...]:
        """(H_1, ..., H_L)."""
        return (self.sizes.heads,) * self.sizes.layers

    @property
    def heads_text(self) -> str:
        return "/".join(map(str, self.heads))

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Those that it tries, if it solves."""
        if self.temperature is not None:
            return (self.temperature,)
        of_five = self.choice == PUBLISHED and self.method == LIMIT
        return OF_THE_LIMIT if of_five else TEMPERATURES

    @cached_property
    def comparison_id(self) -> str:
        """Content hash of network and data: what methods are compared on, seed by seed."""
        network = {k: v for k, v in self.network.to_dict().items() if k != "seed"}
        return self.content_hash({"network": network, "examples": self.examples})

    @property
    def text(self) -> str:
        schedule = self.network.schedule.text
        return f"{self.method}{self.at_width} on {self.task}, heads {self.heads_text}, {schedule}"

    @property
    def columns(self) -> dict[str, Any]:
        return {
            **super().columns,
            "network": self.network.id,
            "heads": self.heads_text,
            "temperature_choice": self.choice,
        }
