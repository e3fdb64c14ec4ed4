"""Makes cells that solve or sample from points (axis -> value)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.errors import RequestError
from study.posterior import cost, hidden_markov
from study.posterior.cell import LIMIT, SAMPLING, SLICE, PosteriorCell
from study.tasks.base import Facts

_NAMED = (
    "task", "heads", "paths", "sigma_perp", "tokens", "n", "validation_size", "test_size",
    "temperature", "method", "width", *SAMPLING, "seed",
)  # fmt: skip


class PosteriorMaker:
    """Makes cells from points, and knows their cost; see `study.kinds.Maker`."""

    def cell(self, point: Mapping[str, Any]) -> PosteriorCell:
        named = {name: point[name] for name in _NAMED}
        if point["method"] == LIMIT:  # the width of the limit is infinite, whatever --set says
            named["width"] = None
        if point["method"] != SLICE:
            named |= dict.fromkeys(SAMPLING)
        try:
            return PosteriorCell(data_digest=hidden_markov.DIGEST, **named)
        except ValueError as error:
            raise RequestError(
                f"{str(error).rstrip('.')}. Change it with --set, see --help."
            ) from error

    def why_not(self, cell: PosteriorCell) -> str | None:
        return cost.lacks_memory(cell)

    def runnable(self, point: Mapping[str, Any]) -> PosteriorCell:
        cell = self.cell(point)
        if reason := self.why_not(cell):
            raise RequestError(f"{cell.text}: {reason}. Change it with --set.")
        return cell

    def facts(self, cell: PosteriorCell) -> Facts:
        return Facts(hidden_markov.DIGEST, input_shape=(), sizes={}, lengths={})

    def flops(self, cell: PosteriorCell) -> int:
        return cost.nominal_flops(cell.method, cost.sizes_of(cell))
