"""The kind of cell that solves or samples; see `study.kinds.Kind`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from study.cell.events import Ended, Report
from study.cell.work import Work
from study.posterior.axes import AXES, choices
from study.posterior.cell import LEAST_DRAWS, SAMPLING, SLICE, PosteriorCell
from study.storage.storage import Storage
from study.tasks.base import Facts, FactsOf

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from study.posterior.maker import PosteriorMaker


_SIZES = ("n", "validation_size", "test_size")


class Posterior:
    """Cells solve or sample. NumPy is imported late, so that `--help` is quick.

    A cell takes minutes at most, so nothing is kept of one that was interrupted.
    """

    cell = PosteriorCell
    trains = False
    axes = AXES
    fastest = ("method", "paths", "width", *SAMPLING)
    columns = (
        "status", "status_reason", "steps", "total_train_seconds", "total_evaluate_seconds",
        "shared_prefix", "path_names", "order_parameter", "order_parameter_error", "overlaps",
        "residual", "r_hat", "effective_sample_size",
    )  # fmt: skip

    no_use = (
        "data_dir", "select", "pack", "micro_batch", "search", "num_samples", "objective",
        "scheduler", "share", "gpus_per_trial", "weights", "category_words",
    )  # fmt: skip

    def choices(self, axis: str, of_tasks: Sequence[str]) -> Sequence[str] | None:
        return choices(axis, of_tasks)

    def maker(self, facts_of: FactsOf) -> PosteriorMaker:
        from study.posterior.maker import PosteriorMaker

        return PosteriorMaker()

    def needs(self, cells: Sequence[PosteriorCell]) -> tuple[()]:
        return ()

    def seconds(self, cells: Sequence[PosteriorCell], threads: int) -> dict[str, float]:
        from study.posterior.cost import seconds

        return seconds(cells, threads)

    def describe(
        self,
        cells: Sequence[PosteriorCell],
        facts: Facts,
        flops: Mapping[str, int],
        seconds: Mapping[str, float],
    ) -> Iterator[str]:
        from study.posterior.describe import describe

        return describe(cells, flops, seconds)

    def short(self, cell: PosteriorCell) -> PosteriorCell:
        """Few sequences, and of samples few draws."""
        few: dict[str, Any] = {name: min(getattr(cell, name), 20) for name in _SIZES}
        if cell.method == SLICE:
            few |= {"draws": LEAST_DRAWS, "warmup": 1}
        return replace(cell, **few)

    def run(self, work: Work, device: torch.device, report: Report | None = None) -> list[Ended]:
        from study.posterior.run import run

        return run(work, report)

    def discard(self, storage: Storage, cell_id: str) -> None:
        pass

    def sweep(
        self, storage: Storage, cells: Collection[PosteriorCell], ended: Collection[str]
    ) -> None:
        pass

    def run_name(self, row: Mapping[str, Any]) -> str:
        width, paths = row["network_width"], row["paths"]
        at = "" if width == float("inf") else f" N={width:.0f}"
        only = "" if paths == "all" else f" {paths}"
        return f"{row['variant']} {row['method']}{at}{only} seed={row['seed']}"

    def artifacts(self, row: Mapping[str, Any], evaluations: pd.DataFrame) -> dict[str, bytes]:
        """The order parameter, see `study.posterior.order_parameter_image`."""
        from study.posterior.order_parameter_image import order_parameter_files

        return order_parameter_files(row, self.run_name(row))


POSTERIOR = Posterior()
