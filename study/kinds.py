"""The kinds of cell, and their contract.

A kind declares the axes of its studies, makes cells of their points, knows what a cell costs, and
runs cells. All else is shared: plan, launch, resume, record, MLflow and report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from study.cell import Cell
from study.cell.axis import Axis
from study.cell.events import Ended, Report
from study.cell.work import Work
from study.storage.storage import Storage
from study.tasks.base import Facts, FactsOf
from study.train.kind import TRAINING

if TYPE_CHECKING:
    import torch

    from study.train.cost import ModelFlops


class Maker(Protocol):
    """Makes cells of points (axis -> value)."""

    def cell(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point.

        Raises:
            RequestError: a value is out of range.
        """
        ...

    def why_not(self, cell: Cell) -> str | None:
        """Why a cell cannot run; None if it can."""
        ...

    def runnable(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point; refuses one that cannot run.

        Raises:
            RequestError: a value is out of range, or the cell cannot run.
        """
        ...

    def facts(self, cell: Cell) -> Facts:
        """The facts of its data."""
        ...

    def flops(self, cell: Cell) -> ModelFlops:
        """The cost of its model, from which its whole cost follows."""
        ...


class Kind(Protocol):
    """A kind of cell. Only `maker` and `run` need PyTorch.

    Attributes:
        axes: of its studies, name -> axis, in the order of `--help`.
        fastest: the axes that vary fastest in a grid, the last one most, so that a study stopped
            early has compared all their values on fewer seeds.
        columns: of `study.results.CELLS_SCHEMA` that `run` fills.
    """

    @property
    def axes(self) -> Mapping[str, Axis]: ...

    @property
    def fastest(self) -> tuple[str, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def choices(self, axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
        """The valid names of an axis in a study of some tasks; None if it takes numbers."""
        ...

    def maker(self, facts_of: FactsOf) -> Maker:
        """The maker of its cells.

        Args:
            facts_of: gives the known or nominal facts of a task's data.
        """
        ...

    def run(self, work: Work, device: torch.device, report: Report | None = None) -> list[Ended]:
        """Runs cells, from where an interrupted process left them.

        Args:
            work: at least one cell.
            device: from `study.hardware.set_up`.
            report: told of events.

        Returns:
            How each cell ended, in their order.

        Raises:
            RequestError: the data differs from the plan's.
        """
        ...

    def discard(self, storage: Storage, cell_id: str) -> None:
        """Removes what `run` keeps of a cell until it is recorded."""
        ...


KINDS: Mapping[str, Kind] = {"training": TRAINING}
"""Name, as in `search_spaces.base.SearchSpace.kind` -> kind."""
