"""The kind of cell that takes a trained network apart; see `study.kinds.Kind`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from study.cell import Cell
from study.cell.events import Ended, Report
from study.cell.work import Work
from study.heads.axes import AXES, choices
from study.heads.cell import HeadsCell
from study.storage.storage import Storage
from study.tasks.base import Facts, FactsOf
from study.train.kind import TRAINING

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from study.heads.maker import HeadsMaker


class Heads:
    """Cells take a network apart that a cell of another kind has trained.

    A cell takes a minute or so, so nothing is kept of one that was interrupted.
    """

    cell = HeadsCell
    trains = False
    axes = AXES
    fastest = ("method", "network_width", "temperature")
    columns = (
        "status", "status_reason", "steps", "total_train_seconds", "total_evaluate_seconds",
        "shared_prefix", "path_names", "order_parameter", "overlaps", "residual",
        "network_digest", "temperature", "temperatures", "head_scores", "removal_order",
    )  # fmt: skip

    no_use = ("select", "search", "num_samples", "objective", "scheduler")

    def choices(self, axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
        return choices(axis, of_tasks)

    def maker(self, facts_of: FactsOf) -> HeadsMaker:
        from study.heads.maker import HeadsMaker

        return HeadsMaker(facts_of)

    def needs(self, cells: Sequence[HeadsCell]) -> list[Cell]:
        return list({cell.network.id: cell.network for cell in cells}.values())

    def seconds(self, cells: Sequence[HeadsCell], threads: int) -> dict[str, float]:
        from study.heads.cost import seconds

        return seconds(cells, threads)

    def describe(
        self,
        cells: Sequence[HeadsCell],
        facts: Facts,
        flops: Mapping[str, int],
        seconds: Mapping[str, float],
    ) -> Iterator[str]:
        from study.heads.describe import describe

        return describe(cells, flops, seconds)

    def short(self, cell: HeadsCell) -> HeadsCell:
        """Few episodes."""
        few = replace(TRAINING.short(cell.network), validation_size=20, test_size=20)
        return replace(cell, network=few, examples=min(cell.examples, 20))

    def run(self, work: Work, device: torch.device, report: Report | None = None) -> list[Ended]:
        from study.heads.run import run

        return run(work, report)

    def discard(self, storage: Storage, cell_id: str) -> None:
        pass

    def sweep(
        self, storage: Storage, cells: Collection[HeadsCell], ended: Collection[str]
    ) -> None:
        pass

    def run_name(self, row: Mapping[str, Any]) -> str:
        width = row["network_width"]
        at = "" if width == float("inf") else f" N={width:.0f}"
        return f"{row['method']}{at} seed={row['seed']}"

    def artifacts(self, row: Mapping[str, Any], evaluations: pd.DataFrame) -> dict[str, bytes]:
        """The order parameter, see `study.posterior.order_parameter_image`."""
        from study.posterior.order_parameter_image import order_parameter_files

        return order_parameter_files(row, self.run_name(row))


HEADS = Heads()
