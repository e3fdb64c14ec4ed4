"""Which kinds of cell there are, and the contract of each.

A kind says what the axes of its studies are, makes cells of their points, tells what a cell costs,
and carries cells out. All else is shared: plan, launch, resume, record, MLflow and report.
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
    """Makes cells of points: axis -> value."""

    def cell(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point.

        Raises:
            RequestError: a value is out of range.
        """
        ...

    def why_not(self, cell: Cell) -> str | None:
        """Why a cell cannot run, None if it can."""
        ...

    def runnable(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point.

        Raises:
            RequestError: a value is out of range, or the cell cannot run.
        """
        ...

    def facts(self, cell: Cell) -> Facts:
        """What is known of its data."""
        ...

    def flops(self, cell: Cell) -> ModelFlops:
        """What its model costs, of which its whole cost follows."""
        ...


class Kind(Protocol):
    """A kind of cell. All but `maker` and `run` is known without PyTorch.

    Attributes:
        axes: of its studies, as `--help` lists them: name -> axis.
        fastest: those that vary fastest in a grid, the last one most, so that a study that is
            stopped early has compared all of their values on fewer seeds.
        columns: of `study.results.CELLS_SCHEMA` that `run` fills.
    """

    @property
    def axes(self) -> Mapping[str, Axis]: ...

    @property
    def fastest(self) -> tuple[str, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def choices(self, axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
        """The valid names of an axis of names in a study of some tasks, None for numbers."""
        ...

    def maker(self, facts_of: FactsOf) -> Maker:
        """Makes its cells.

        Args:
            facts_of: tells what is known of a task's data, or what is supposed of them.
        """
        ...

    def run(self, work: Work, device: torch.device, report: Report | None = None) -> list[Ended]:
        """Carries cells out, from where an interrupted process left them.

        Args:
            work: at least one cell.
            device: to use, made ready.
            report: told of events.

        Returns:
            How each ended, in their order.

        Raises:
            RequestError: the data is not what the cells were planned on.
        """
        ...

    def discard(self, storage: Storage, cell_id: str) -> None:
        """Removes what `run` keeps of a cell until it is recorded."""
        ...


KINDS: Mapping[str, Kind] = {"training": TRAINING}
"""The name of a kind, as `search_spaces.base.SearchSpace.kind` has it -> the kind."""
