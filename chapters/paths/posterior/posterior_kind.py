"""The kind of cell that solves or samples; see `study.kind.Kind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chapters.paths.posterior.network import VARIANTS
from chapters.paths.posterior.posterior_cell import (
    LEAST_DRAWS,
    LIMIT,
    SAMPLING,
    SLICE,
    PosteriorCell,
)
from chapters.paths.posterior.theory_kind import TheoryKind
from study.cell.declared import Axis, Name, axes_of
from study.kind import Maker
from study.tasks.task import Facts, FactsOf

if TYPE_CHECKING:
    import pandas as pd

_SIZES = ("n", "validation_size", "test_size")

VARIANT = Axis(
    "the published heads and noise, unless heads and sigma_perp change them",
    Name(tuple(VARIANTS)),
    tuple(VARIANTS),
)


class PosteriorMaker(Maker[PosteriorCell]):
    """Makes cells from points, and knows their cost. NumPy is imported late."""

    def made(self, point: Mapping[str, Any]) -> PosteriorCell:
        from chapters.paths.posterior import hidden_markov

        named = {name: point[name] for name in axes_of(PosteriorCell)}
        if point["method"] == LIMIT:  # the width of the limit is infinite, whatever --set says
            named["width"] = None
        if point["method"] != SLICE:
            named |= dict.fromkeys(SAMPLING)
        return PosteriorCell(data_digest=hidden_markov.DIGEST, **named)

    def why_not(self, cell: PosteriorCell) -> str | None:
        from chapters.paths.posterior import posterior_cost

        return posterior_cost.lacks_memory(cell)

    def facts(self, cell: PosteriorCell) -> Facts:
        return Facts(cell.data_digest, input_shape=(), sizes={}, lengths={})

    def flops(self, cell: PosteriorCell) -> int:
        from chapters.paths.posterior import posterior_cost

        return posterior_cost.cost_of(cell).flops(cell.method)


class Posterior(TheoryKind[PosteriorCell]):
    """Cells solve or sample. NumPy is imported late, so that `--help` is quick."""

    cell = PosteriorCell
    run = "chapters.paths.posterior.run_posterior:run"
    fastest = ("method", "paths", "width", *SAMPLING)
    row_names = ("method", "paths", "N")

    def axes(self, of_tasks: Sequence[str]) -> Mapping[str, Axis]:
        own = dict(axes_of(PosteriorCell))
        seed, task = (own.pop(name) for name in ("seed", "task"))
        return {"seed": seed, "task": task, "variant": VARIANT, **own}

    def maker(self, facts_of: FactsOf) -> PosteriorMaker:
        return PosteriorMaker()

    def row(self, cell: PosteriorCell) -> tuple[str, ...]:
        return cell.method, cell.paths, "infinite" if cell.width is None else f"{cell.width:,}"

    def heading(self, rows: pd.DataFrame, facts: Facts) -> Iterator[str]:
        first: PosteriorCell = rows["cell"].iloc[0]
        yield (
            f"{first.task} ({first.variant}): heads {first.heads}, sigma_perp "
            f"{first.sigma_perp:g}, T={first.tokens} tokens, P={first.n:,}, temperature "
            f"{first.temperature:g}"
        )

    def short(self, cell: PosteriorCell) -> PosteriorCell:
        """Few sequences, and of samples few draws."""
        few: dict[str, Any] = {name: min(getattr(cell, name), 20) for name in _SIZES}
        if cell.method == SLICE:
            few |= {"draws": LEAST_DRAWS, "warmup": 1}
        return replace(cell, **few)


POSTERIOR = Posterior()
