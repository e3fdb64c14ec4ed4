"""The kinds of cell, and their contract.

A kind declares the axes of its studies, makes cells of their points, knows what a cell costs, and
runs cells. All else is shared: plan, launch, resume, record, MLflow and report.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from study.cell import AnyCell, Cell
from study.cell.axis import Axis
from study.cell.events import Ended, Report
from study.cell.work import RECORDED, Work
from study.errors import RequestError
from study.heads.kind import HEADS
from study.posterior.kind import POSTERIOR
from study.storage.storage import Storage
from study.tasks.base import Facts, FactsOf
from study.train.kind import TRAINING

if TYPE_CHECKING:
    import pandas as pd
    import torch


C = TypeVar("C", bound=AnyCell)


class Maker(Protocol[C]):
    """Makes cells of points (axis -> value)."""

    def cell(self, point: Mapping[str, Any]) -> C:
        """The cell of a point.

        Raises:
            RequestError: a value is out of range.
        """
        ...

    def why_not(self, cell: C) -> str | None:
        """Why a cell cannot run; None if it can."""
        ...

    def runnable(self, point: Mapping[str, Any]) -> C:
        """The cell of a point; refuses one that cannot run.

        Raises:
            RequestError: a value is out of range, or the cell cannot run.
        """
        ...

    def facts(self, cell: C) -> Facts:
        """The facts of its data."""
        ...

    def flops(self, cell: C) -> Any:
        """What its cost follows from: of cells that train, `study.models.flops.ModelFlops`."""
        ...


class Kind(Protocol[C]):
    """A kind of cell. Only `maker`, `seconds` and `run` need PyTorch.

    Attributes:
        cell: the type of its cells.
        trains: whether its cells take training steps. Only such cells are packed, share a common
            first phase, are searched, stopped early, or run on a GPU.
        axes: of its studies, name -> axis, in the order of `--help`.
        fastest: the axes that vary fastest in a grid, the last one most, so that a study stopped
            early has compared all their values on fewer seeds.
        columns: of `study.results.CELLS_SCHEMA` that `run` fills.
        no_use: options of `python -m study.run` that mean nothing for its cells.
    """

    @property
    def cell(self) -> type[C]: ...

    @property
    def trains(self) -> bool: ...

    @property
    def axes(self) -> Mapping[str, Axis]: ...

    @property
    def fastest(self) -> tuple[str, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def no_use(self) -> tuple[str, ...]: ...

    def choices(self, axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
        """The valid names of an axis in a study of some tasks; None if it takes numbers."""
        ...

    def maker(self, facts_of: FactsOf) -> Maker[C]:
        """The maker of its cells.

        Args:
            facts_of: gives the known or nominal facts of a task's data.
        """
        ...

    def needs(self, cells: Sequence[C]) -> Sequence[Cell]:
        """The cells of the kind `training` whose networks these cells take apart, each once."""
        ...

    def seconds(self, cells: Sequence[C], threads: int) -> dict[str, float] | None:
        """Cell id -> estimated seconds; None: they train, and the plan times steps."""
        ...

    def describe(
        self,
        cells: Sequence[C],
        facts: Facts,
        flops: Mapping[str, Any],
        seconds: Mapping[str, float],
    ) -> Iterator[str]:
        """A setting as the plan shows it: a heading, the facts' notes, and a table.

        Args:
            cells: of one setting.
            facts: of their data.
            flops: cell id -> as `Maker.flops` gives it.
            seconds: cell id -> estimated seconds, of the cells to run.
        """
        ...

    def short(self, cell: C) -> C:
        """A cell that runs the same code as this one in moments, for a dry run."""
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

    def sweep(self, storage: Storage, cells: Collection[C], ended: Collection[str]) -> None:
        """Removes what killed processes left and no cell needs.

        Args:
            storage: of the results directory.
            cells: of the study.
            ended: ids of those that need no run.
        """
        ...

    def run_name(self, row: Mapping[str, Any]) -> str:
        """The name of a cell's run in MLflow; `row` is its row of `CELLS_SCHEMA`."""
        ...

    def artifacts(self, row: Mapping[str, Any], evaluations: pd.DataFrame) -> dict[str, bytes]:
        """What MLflow shows of a cell besides its JSON: name of a file -> content."""
        ...


KINDS: Mapping[str, Kind[Any]] = {
    "training": TRAINING,
    "posterior": POSTERIOR,
    "heads": HEADS,
}
"""Name, as in `search_spaces.base.SearchSpace.kind` -> kind."""


def kind_of(row: Mapping[Any, Any]) -> Kind[Any]:
    """The kind of a recorded cell, by its row of `study.results.CELLS_SCHEMA`.

    Raises:
        RequestError: another training loop trained the cell, so it is of none.
    """
    if row["kind"] == RECORDED:
        raise RequestError(
            f"run {row['cell_id']} was trained elsewhere and recorded by analysis.record: only "
            "the training loop that trained it can do that again."
        )
    return KINDS[row["kind"]]
