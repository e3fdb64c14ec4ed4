"""The kind of cell that trains a model; see `study.kind.Kind`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from study.cell import Budget, Cell, Schedule
from study.cell.declared import Axis
from study.cell.events import Report, Runner
from study.cell.work import Work
from study.door import imported
from study.kind import Kind
from study.storage.storage import Storage
from study.tasks import TASKS, modality
from study.tasks.task import Facts, FactsOf
from study.train.training_axes import axes

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from study.train.cell_maker import CellMaker


class Training(Kind[Cell]):
    """Cells are training runs. PyTorch is imported late, so that `--help` is quick."""

    cell = Cell
    trains = True
    uses = ("choice", "training")
    fastest = (
        "paradigm", "drop_at", "hard_drop_at", "teacher_forcing", "hard_teacher_forcing",
        "lr", "hard_lr", "switch_point",
    )  # fmt: skip
    row_names = ("paradigm",)

    def axes(self, of_tasks: Sequence[str]) -> Mapping[str, Axis]:
        return axes(of_tasks)

    def maker(self, facts_of: FactsOf) -> CellMaker:
        from study.train.cell_maker import CellMaker

        return CellMaker(facts_of)

    def row(self, cell: Cell) -> tuple[str, ...]:
        return (cell.paradigm,)

    def heading(self, rows: pd.DataFrame, facts: Facts) -> Iterator[str]:
        from study.train.plan_lines import heading

        return heading(rows, facts)

    def measured(self, rows: pd.DataFrame) -> dict[str, str]:
        from study.train.plan_lines import measured

        return measured(rows)

    def short(self, cell: Cell) -> Cell:
        """A few steps a phase."""
        count = len(cell.schedule.phases)
        phases = (
            replace(phase, until=(number + 1) / count)
            for number, phase in enumerate(cell.schedule.phases)
        )
        return replace(
            cell,
            schedule=Schedule(tuple(phases)),
            budget=Budget(2 * count * cell.batch_size, "mosaics"),
            evaluation_points=(0.0, 1.0),
        )

    def runner(self, work: Work, device: torch.device, report: Report | None = None) -> Runner:
        from study.train.run_training import Trainer

        return Trainer(work, device, report)

    def discard(self, storage: Storage, cell_id: str) -> None:
        from study.train.steps.checkpoints import discard

        discard(storage, cell_id)

    def sweep(self, storage: Storage, ended: Collection[str]) -> None:
        from study.train.steps.checkpoints import sweep

        sweep(storage, ended)

    def run_name(self, row: Mapping[str, Any]) -> str:
        from pandas import notna

        held = f"alpha={row['alpha']:g} " if notna(row["alpha"]) else ""
        named_by = modality(row["task"]).named_by
        model = f"{row[named_by]} " if named_by else ""
        return f"{row['paradigm']} {model}m={row['m']} {held}lr={row['lr']:g} seed={row['seed']}"

    def artifacts(self, row: Mapping[str, Any], evaluations: pd.DataFrame) -> dict[str, bytes]:
        """As its task has them. With a held attention there are none: a map is one line."""
        from pandas import notna

        own = TASKS[row["task"]].artifacts
        if not own or evaluations.empty or notna(row["alpha"]):
            return {}
        last = evaluations[evaluations["step"] == evaluations["step"].max()]
        files: dict[str, bytes] = imported(own)(row, last)
        return files


TRAINING = Training()
