"""What the kinds share whose cells solve or sample the theory; see `study.kind.Kind`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from chapters.paths.posterior.theory_cell import TheoryCell
from study.cell.events import Report, Runner
from study.cell.work import Work
from study.door import imported
from study.kind import Kind

if TYPE_CHECKING:
    import torch

C = TypeVar("C", bound=TheoryCell)


class TheoryKind(Kind[C]):
    """A kind of cells of minutes at most, so that nothing is kept of an interrupted one.

    Attributes:
        run: where the function is that runs cells, with the work and who is told of events.
    """

    run: ClassVar[str]

    def flops_a_second(self, cell: C) -> float:
        from chapters.paths.posterior.posterior_cost import flops_a_second

        return flops_a_second(cell.n)

    def runner(self, work: Work, device: torch.device, report: Report | None = None) -> Runner:
        run = imported(self.run)
        return lambda cells, later: run(cells, work, report)

    def run_name(self, row: Mapping[str, Any]) -> str:
        width, paths = row["network_width"], row["paths"]
        named = (
            row["variant"],
            row["method"],
            f"N={width:.0f}" if width < math.inf else None,
            None if paths == "all" else paths,
            f"seed={row['seed']}",
        )
        return " ".join(part for part in named if isinstance(part, str))
