"""The kind of cell that trains a model; see `study.kinds.Kind`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from study.cell.events import Ended, Report
from study.cell.work import Work
from study.storage.storage import Storage
from study.tasks.base import FactsOf
from study.train.axes import AXES, choices

if TYPE_CHECKING:
    import torch

    from study.train.cells import CellMaker


class Training:
    """Cells are training runs. PyTorch is imported late, so that `--help` is quick."""

    axes = AXES
    fastest = ("paradigm", "lr", "hard_lr", "switch_point")
    columns = (
        "num_classes", "data_notes", "status", "status_reason", "steps", "total_train_seconds",
        "total_evaluate_seconds", "micro_batch", "shared_prefix",
    )  # fmt: skip

    def choices(self, axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
        return choices(axis, of_tasks)

    def maker(self, facts_of: FactsOf) -> CellMaker:
        from study.train.cells import CellMaker

        return CellMaker(facts_of)

    def run(self, work: Work, device: torch.device, report: Report | None = None) -> list[Ended]:
        from study.train.run import run

        return run(work, device, report)

    def discard(self, storage: Storage, cell_id: str) -> None:
        from study.train.checkpoints import discard

        discard(storage, cell_id)


TRAINING = Training()
