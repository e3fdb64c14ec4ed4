"""The cell that solves or samples: one network on one task, by one method."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from study.cell.any_cell import AnyCell
from study.cell.checks import is_int, is_positive, require
from study.posterior.network import Network, parse, reduced, variant_of

TASK = "hidden-markov"

THEORY, LIMIT, SLICE = METHODS = ("theory", "gp", "slice")
"""The saddle point at finite width; its limit of infinite width, a Gaussian process; and exact
samples of the posterior at finite width."""

SAMPLING = ("draws", "warmup", "thin", "chains")
"""Fields of a cell that is sampled."""

LEAST_DRAWS = 8
"""Of a chain: its halves are compared."""

LARGEST_WIDTH = 1_000_000_000
LARGEST_SIZE = 1_000_000
LARGEST_TOKENS = 10_000
MOST_DRAWS = 10_000_000
"""Far above any study, but low enough to catch a mistyped zero."""


@dataclass(frozen=True, kw_only=True)
class PosteriorCell(AnyCell):
    """The posterior of one network on one task, by one method.

    Args:
        task: `TASK`.
        data_digest: of the generator of the data.
        heads: of the attention, as `study.posterior.network.parse` reads them.
        paths: which of its paths the network has, one of `study.posterior.network.PATHS`.
        sigma_perp: noise of the tokens outside the plane of the states, >= 0.
        tokens: T, of a sequence, >= 2.
        n: P, training sequences, even, >= 2.
        validation_size, test_size: sequences, even, >= 2.
        temperature: of the posterior, > 0.
        method: one of `METHODS`.
        width: N, of every layer, >= 1; None: infinite, of `gp` only.
        draws: recorded, a chain; these four are of `slice` only.
        warmup: steps a chain, thrown away first.
        thin: steps a recorded draw.
        chains: from starts of their own, >= 2.
        seed: draws sequences, random heads and chains.

    Raises:
        ValueError: a value is out of range; the message names it and the rule.
    """

    version: ClassVar = {"posterior": 1}

    task: str
    data_digest: str
    heads: str
    paths: str
    sigma_perp: float
    tokens: int
    n: int
    validation_size: int
    test_size: int
    temperature: float
    method: str
    width: int | None = None
    draws: int | None = None
    warmup: int | None = None
    thin: int | None = None
    chains: int | None = None
    seed: int
    evaluation_points: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        reduced(parse(self.heads), self.paths)
        require(self.method in METHODS, "method", self.method, f"one of {', '.join(METHODS)}")
        sigma = self.sigma_perp
        require(sigma == 0 or is_positive(sigma), "sigma_perp", sigma, "a finite number >= 0")
        require(
            is_positive(self.temperature), "temperature", self.temperature, "a finite number > 0"
        )
        for name in ("n", "validation_size", "test_size"):
            value = getattr(self, name)
            rule = f"an even number from 2 to {LARGEST_SIZE:,}"
            require(is_int(value) and 2 <= value <= LARGEST_SIZE, name, value, rule)
            require(value % 2 == 0, name, value, f"{rule}, half of each class")
        counts = {
            "tokens": (2, LARGEST_TOKENS, True),
            "width": (1, LARGEST_WIDTH, self.method != LIMIT),
            "draws": (LEAST_DRAWS, MOST_DRAWS, self.method == SLICE),
            "warmup": (1, MOST_DRAWS, self.method == SLICE),
            "thin": (1, MOST_DRAWS, self.method == SLICE),
            "chains": (2, 1_000, self.method == SLICE),
            "seed": (0, 2**63 - 1, True),
        }
        for name, (least, most, taken) in counts.items():
            value = getattr(self, name)
            rule = f"a whole number from {least} to {most:,}"
            if name == "width":
                rule += f" (none is infinite, for {LIMIT} only)"
            if taken:
                require(is_int(value) and least <= value <= most, name, value, rule)
            else:
                require(value is None, name, value, f"none for method {self.method}")
        require(self.evaluation_points == (1.0,), "evaluation points", "others", "(1,)")
        object.__setattr__(self, "sigma_perp", float(self.sigma_perp))
        object.__setattr__(self, "temperature", float(self.temperature))

    @cached_property
    def comparison_id(self) -> str:
        """Content hash of the task and its heads: what method, width and paths are compared on."""
        return self.hash_without("method", "width", "paths", *SAMPLING, "seed")

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
    def variant(self) -> str:
        """The published variant that heads and noise make; `own` if none."""
        return variant_of(self.heads, self.sigma_perp)

    @property
    def network(self) -> Network:
        """The heads of each layer, of the paths that the network has."""
        return reduced(parse(self.heads), self.paths)

    @property
    def text(self) -> str:
        width = "" if self.width is None else f" at N={self.width:,}"
        paths = "" if self.paths == "all" else f", {self.paths} only"
        return f"{self.method}{width}{paths}, {self.heads}, sigma_perp {self.sigma_perp:g}"

    @property
    def columns(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "variant": self.variant,
            "heads": self.heads,
            "paths": self.paths,
            "network_width": math.inf if self.width is None else float(self.width),
            "temperature": self.temperature,
            "sigma_perp": self.sigma_perp,
            "tokens": self.tokens,
            **{name: getattr(self, name) for name in SAMPLING},
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PosteriorCell:
        return cls(**{**values, "evaluation_points": tuple(values["evaluation_points"])})
