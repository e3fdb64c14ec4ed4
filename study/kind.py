"""A kind of cell: its contract, and what all kinds share.

A kind declares the axes of its studies, makes cells of their points, knows what a cell costs, and
runs cells. All else is shared: plan, launch, resume, record, MLflow and report.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from study import terminal
from study.cell import AnyCell, Cell
from study.cell.declared import Axis
from study.cell.events import Report, Runner
from study.cell.work import Work
from study.errors import RequestError
from study.storage.storage import Storage
from study.tasks.task import Facts, FactsOf

if TYPE_CHECKING:
    import pandas as pd
    import torch

C = TypeVar("C", bound=AnyCell)


class Maker(ABC, Generic[C]):
    """Makes cells of points (axis -> value), and knows their cost."""

    def cell(self, point: Mapping[str, Any]) -> C:
        """The cell of a point.

        Raises:
            RequestError: a value is out of range.
        """
        try:
            return self.made(point)
        except ValueError as error:
            text = str(error).rstrip(".")
            raise RequestError(f"{text}. Change it with --set, see --help.") from error

    @abstractmethod
    def made(self, point: Mapping[str, Any]) -> C:
        """The cell of a point; raises ValueError if a value is out of range."""

    @abstractmethod
    def why_not(self, cell: C) -> str | None:
        """Why a cell cannot run; None if it can."""

    def runnable(self, point: Mapping[str, Any]) -> C:
        """The cell of a point; refuses one that cannot run.

        Raises:
            RequestError: a value is out of range, or the cell cannot run.
        """
        cell = self.cell(point)
        if reason := self.why_not(cell):
            raise RequestError(f"{cell.text}: {reason}. Change it with --set.")
        return cell

    @abstractmethod
    def facts(self, cell: C) -> Facts:
        """The facts of its data."""

    @abstractmethod
    def flops(self, cell: C) -> Any:
        """What its cost follows from: of cells that train, `study.models.flops.ModelFlops`."""


class Kind(ABC, Generic[C]):
    """A kind of cell. Its axes and cells are known without PyTorch; the rest imports it late.

    Attributes:
        cell: the type of its cells.
        trains: whether its cells take training steps. Only such cells are packed, share a common
            first phase, are searched, stopped early, or run on a GPU.
        uses: what options of a command may be of: `choice` among options of cells, `training` of
            cells or of the networks that they need.
        fastest: the axes that vary fastest in a grid, the last one most, so that a study stopped
            early has compared all their values on fewer seeds.
        row_names: what a row of the plan's table is of, see `row`.
    """

    cell: type[C]
    trains = False
    uses: tuple[str, ...] = ()
    fastest: tuple[str, ...]
    row_names: tuple[str, ...]

    @abstractmethod
    def axes(self, of_tasks: Sequence[str]) -> Mapping[str, Axis]:
        """The axes of its studies of some tasks, in the order of `--help`."""

    @abstractmethod
    def maker(self, facts_of: FactsOf) -> Maker[C]:
        """The maker of its cells.

        Args:
            facts_of: gives the facts of a task's data.
        """

    def needs(self, cells: Sequence[C]) -> Sequence[Cell]:
        """The cells of the kind `training` whose networks these cells take apart, each once."""
        return ()

    def flops_a_second(self, cell: C) -> float:
        """At what rate a cell computes, measured; of cells that train the plan times steps."""
        raise NotImplementedError

    def describe(self, rows: pd.DataFrame, facts: Facts) -> Iterator[str]:
        """A setting as the plan shows it: a heading, the facts' notes, and a table.

        Args:
            rows: of cells of one setting, see `study.plan.plan.rows_of`.
            facts: of their data.
        """
        yield from self.heading(rows, facts)
        table = []
        for row, mine in rows.groupby(rows["cell"].map(self.row), sort=False):
            counted = {"cells": len(mine), "seeds": mine["seed"].nunique(), **self.measured(mine)}
            table.append([*row, *map(str, counted.values())])
        yield from terminal.tabulated([*self.row_names, *counted], table)

    @abstractmethod
    def row(self, cell: C) -> tuple[str, ...]:
        """In which row of the plan's table a cell counts."""

    @abstractmethod
    def heading(self, rows: pd.DataFrame, facts: Facts) -> Iterator[str]:
        """The lines above the table, see `describe`."""

    def measured(self, rows: pd.DataFrame) -> dict[str, str]:
        """Further columns of the table, by their names: what the cells of a row cost."""
        return {"FLOPs <=": f"{rows['flops'].max():.2g}"}

    @abstractmethod
    def short(self, cell: C) -> C:
        """A cell that runs the same code as this one in moments, for a dry run."""

    @abstractmethod
    def runner(self, work: Work, device: torch.device, report: Report | None = None) -> Runner:
        """Runs the cells of one job; raises RequestError if the data differs from the plan's.

        Args:
            work: as the job's trial was given it.
            device: from `study.hardware.set_up`.
            report: told of events.
        """

    def discard(self, storage: Storage, cell_id: str) -> None:
        """Removes what is kept of a cell until it is recorded."""

    def sweep(self, storage: Storage, ended: Collection[str]) -> None:
        """Removes what killed processes left of cells that need no run."""

    @abstractmethod
    def run_name(self, row: Mapping[str, Any]) -> str:
        """The name of a cell's run in MLflow; `row` is its row of `CELLS_SCHEMA`."""

    def artifacts(self, row: Mapping[str, Any], evaluations: pd.DataFrame) -> dict[str, bytes]:
        """What MLflow shows of a cell besides its JSON: name of a file -> content."""
        return {}
