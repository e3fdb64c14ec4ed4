"""A trial: trains cells and records them. One importable function, usable without Ray."""

from __future__ import annotations

import datetime
import functools
import json
import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from study import tasks
from study.cell import Cell
from study.results import Results, cell_columns
from study.tasks.mosaics import MosaicTask
from study.train import Outcome, train

Report = Callable[[dict[str, Any]], None]


def train_cells(config: Mapping[str, Any], report: Report | None = None) -> dict[str, str]:
    """Trains the cells of a config one after the other and records each when it has ended.

    Cells that the results directory already holds are left alone, so a trial can be repeated.

    Args:
        config: plain values:
            cells: list of `Cell.to_dict()`.
            study: name of the study, recorded beside each cell.
            results: results directory, path or URL.
            data_dir, cache_dir: as `study.tasks.load` takes them.
            threads: CPU threads a cell.
            code_version: recorded beside each cell.
            dry_run: if True, nothing is recorded.
        report: called after each evaluation with cell_id, budget_fraction, validation accuracy
            and SAIF.

    Returns:
        Cell id -> how it ended now; cells that were recorded before are left out.
    """
    results = Results(config["results"])
    torch.set_num_threads(config["threads"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cells = [Cell.from_dict(values) for values in config["cells"]]
    statuses = {}
    for cell in cells:
        if not config.get("dry_run") and results.has_cell(cell.id):
            continue
        task = _task(cell.task, config.get("data_dir"), config.get("cache_dir"))
        _require_same_data(cell, task)
        outcome = train(cell, task, device, _reporter(cell, report))
        statuses[cell.id] = outcome.status
        if not config.get("dry_run"):
            results.write_cell(
                _cell_row(cell, task, outcome, config, device),
                [{"cell_id": cell.id, **row} for row in outcome.evaluations],
            )
    return statuses


@functools.lru_cache(maxsize=1)
def _task(name: str, data_dir: str | None, cache_dir: str | None) -> MosaicTask:
    """Kept between the trials that one process runs."""
    return tasks.load(name, data_dir, cache_dir)


def _require_same_data(cell: Cell, task: MosaicTask) -> None:
    if task.data_digest != cell.data_digest:
        raise RuntimeError(
            f"cell {cell.id} was planned on data with digest {cell.data_digest}, but here "
            f"{task.name} has digest {task.data_digest}: the data changed, plan the study again"
        )


def _reporter(cell: Cell, report: Report | None) -> Report | None:
    if report is None:
        return None
    return lambda row: report(
        {
            "cell_id": cell.id,
            "budget_fraction": row["budget_fraction"],
            "accuracy": row["accuracy"],
            "saif": row["saif"],
        }
    )


def _cell_row(
    cell: Cell, task: MosaicTask, outcome: Outcome, config: Mapping[str, Any], device: str
) -> dict[str, Any]:
    return {
        "study": config["study"],
        **cell_columns(cell),
        "num_classes": task.num_classes,
        "status": outcome.status,
        "status_reason": outcome.status_reason,
        "steps": outcome.steps,
        "total_train_seconds": outcome.train_seconds,
        "total_evaluate_seconds": outcome.evaluate_seconds,
        "device": torch.cuda.get_device_name()
        if device == "cuda"
        else f"cpu {platform.machine()}",
        "threads": torch.get_num_threads(),
        "pack": 1,
        "shared_prefix": False,
        "code_version": config["code_version"],
        "package_versions": json.dumps(
            {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
            }
        ),
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
