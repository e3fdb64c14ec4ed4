"""The cell that solves or samples: one network on one task, by one method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from chapters.paths.posterior.network import (
    PATHS,
    SIGMA_PERP,
    VARIANTS,
    Network,
    parse,
    reduced,
    variant_of,
)
from chapters.paths.posterior.theory_cell import TheoryCell
from search_spaces.base import By
from study.cell.any_cell import NO_OPTIONS, Options
from study.cell.checks import require
from study.cell.declared import LARGEST, NONE, Name, Number, Text, Whole, declared

TASK = "hidden-markov"

THEORY, LIMIT, SLICE = METHODS = ("theory", "gp", "slice")
"""The saddle point at finite width; its limit of infinite width, a Gaussian process; and exact
samples of the posterior at finite width."""

SAMPLING = ("draws", "warmup", "thin", "chains")
"""Fields of a cell that is sampled."""

LEAST_DRAWS = 8
"""Of a chain: its halves are compared."""

WIDTH = Whole(1)
_SIZE = Whole(2, 1_000_000)
_DRAWS = 10_000_000


def _of_variant(values: Mapping[str, Any]) -> By:
    return By("variant", {name: (value,) for name, value in values.items()}, otherwise=())


def _sampled(about: str, least: int, default: int, column: str, most: int = _DRAWS) -> Any:
    """A field of samples alone."""
    of_slice = By("method", {SLICE: (default,)}, otherwise=(None,))
    takes = Whole(least, most)
    return declared(about, takes, None, words=(NONE,), as_axis=of_slice, column=column)


@dataclass(frozen=True, kw_only=True)
class PosteriorCell(TheoryCell):
    """The posterior of one network on one task, by one method.

    Attributes:
        data_digest: of the generator of the data.
        heads: of the attention, as `chapters.paths.posterior.network.parse` reads them.
        width: N, of every layer; None: infinite, of `gp` only.
        draws, warmup, thin, chains: of `slice` only, else None.
    """

    version: ClassVar = {"posterior": 1}
    options: ClassVar[Options] = NO_OPTIONS

    seed: int = declared(
        "seeds of sequences, random heads and chains; 0-11 is a range", Whole(0, LARGEST)
    )
    task: str = declared(TASK, Name((TASK,)), alone=True)
    data_digest: str
    heads: str = declared(
        "heads by layer, from good, uniform and random, as good+random/uniform+random",
        Text("heads as good+random/uniform"),
        as_axis=_of_variant(VARIANTS),
        column="heads of each layer",
    )
    sigma_perp: float = declared(
        "noise of the tokens outside the plane of the two states",
        Number(0, ends="[)"),
        as_axis=_of_variant(SIGMA_PERP),
        column="noise of the data",
    )
    tokens: int = declared("T, tokens a sequence", Whole(2, 10_000), 30, column="of an input")
    n: int = declared("P, training sequences, half of each class", _SIZE, 100)
    validation_size: int = declared("validation sequences", _SIZE, 100)
    test_size: int = declared("test sequences", _SIZE, 1_000)
    temperature: float = declared("of the posterior", Number(0), 0.01, column="of the posterior")
    method: str = declared(
        "theory (saddle point), gp (its limit of infinite width) or slice (elliptical slice "
        "sampling of the posterior)",
        Name(METHODS),
        alone=True,
        column="how the theory was solved or sampled, or the rule that scored heads",
    )
    paths: str = declared(
        "which paths the network has",
        Name(PATHS),
        "all",
        column="the network's attention paths",
    )
    width: int | None = declared(
        "N, neurons of every layer; none: infinite, for gp",
        WIDTH,
        None,
        words=(NONE,),
        as_axis=By("method", {LIMIT: (None,)}, otherwise=()),
        column="infinite: the limit of wide networks, or a rule of that limit",
        named="network_width",
    )
    draws: int | None = _sampled(
        "recorded draws of a chain",
        LEAST_DRAWS,
        1_000,
        "recorded by each chain; samples only, like the next three",
    )
    warmup: int | None = _sampled(
        "steps of a chain before its first draw",
        1,
        4_000,
        "steps before the first draw",
    )
    thin: int | None = _sampled(
        "steps of a chain from draw to draw", 1, 5, "steps from draw to draw"
    )
    chains: int | None = _sampled(
        "chains, each from a start of its own", 2, 4, "number of chains", most=1_000
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        reduced(parse(self.heads), self.paths)
        for name in ("n", "validation_size", "test_size"):
            value = getattr(self, name)
            require(value % 2 == 0, name, value, "an even number, half of each class")
        sampled = dict.fromkeys(SAMPLING, self.method == SLICE)
        self.require_only(width=self.method != LIMIT, **sampled)

    @cached_property
    def comparison_id(self) -> str:
        """Content hash of the task and its heads: what method, width and paths are compared on."""
        return self.hash_without("method", "width", "paths", *SAMPLING, "seed")

    @property
    def variant(self) -> str:
        """The published variant that heads and noise make; `own` if none."""
        return variant_of(self.heads, self.sigma_perp)

    @cached_property
    def network(self) -> Network:
        """The heads of each layer, of the paths that the network has."""
        return reduced(parse(self.heads), self.paths)

    @property
    def text(self) -> str:
        paths = "" if self.paths == "all" else f", {self.paths} only"
        return f"{self.method}{self.at_width}{paths}, {self.heads}, sigma_perp {self.sigma_perp:g}"

    @property
    def columns(self) -> dict[str, Any]:
        return {**super().columns, "variant": self.variant}
