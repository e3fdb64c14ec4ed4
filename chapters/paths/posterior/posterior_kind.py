"""The kind of cell that solves or samples; see `study.kind.Kind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from chapters.paths.posterior.network import VARIANTS
from chapters.paths.posterior.posterior_cell import (
    LEAST_DRAWS,
    LIMIT,
    SAMPLING,
    SLICE,
    PosteriorCell,
)
from study.cell.declared import Axis, Name, axes_of
from study.cell.events import Report, Runner
from study.cell.work import Work
from study.kind import Kind, Maker
from study.tasks.task import Facts, FactsOf

if TYPE_CHECKING:
    import torch

_SIZES = ("n", "validation_size", "test_size")
_NAMED = [each.name for each in fields(PosteriorCell) if "axis" in each.metadata]

VARIANT = Axis(
    "the published heads and noise, unless heads and sigma_perp change them",
    Name(tuple(VARIANTS)),
    tuple(VARIANTS),
)


class PosteriorMaker(Maker[PosteriorCell]):
    """Makes cells from points, and knows their cost. NumPy is imported late."""

    def made(self, point: Mapping[str, Any]) -> PosteriorCell:
        from chapters.paths.posterior import hidden_markov

        named = {name: point[name] for name in _NAMED}
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

        return posterior_cost.flops(cell.method, posterior_cost.sizes_of(cell))


class Posterior(Kind[PosteriorCell]):
    """Cells solve or sample. NumPy is imported late, so that `--help` is quick.

    A cell takes minutes at most, so nothing is kept of one that was interrupted.
    """

    cell = PosteriorCell
    fastest = ("method", "paths", "width", *SAMPLING)
    row_names = ("method", "paths", "N")

    def axes(self, of_tasks: Sequence[str]) -> Mapping[str, Axis]:
        found: dict[str, Axis] = {}
        for name, axis in axes_of(PosteriorCell).items():
            found |= {name: axis} | ({"variant": VARIANT} if name == "task" else {})
        return found

    def maker(self, facts_of: FactsOf) -> PosteriorMaker:
        return PosteriorMaker()

    def flops_a_second(self, cell: PosteriorCell) -> float:
        from chapters.paths.posterior.posterior_cost import flops_a_second

        return flops_a_second(cell.n)

    def row(self, cell: PosteriorCell) -> tuple[str, ...]:
        return cell.method, cell.paths, "infinite" if cell.width is None else f"{cell.width:,}"

    def heading(
        self, cells: Sequence[PosteriorCell], facts: Facts, flops: Mapping[str, Any]
    ) -> Iterator[str]:
        first = cells[0]
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

    def runner(self, work: Work, device: torch.device, report: Report | None = None) -> Runner:
        from chapters.paths.posterior.run_posterior import run

        return lambda cells, later: run(cells, work, report)

    def run_name(self, row: Mapping[str, Any]) -> str:
        width, paths = row["network_width"], row["paths"]
        at = "" if width == float("inf") else f" N={width:.0f}"
        only = "" if paths == "all" else f" {paths}"
        return f"{row['variant']} {row['method']}{at}{only} seed={row['seed']}"


POSTERIOR = Posterior()
