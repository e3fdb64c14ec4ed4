"""A trial: trains cells and records them. One importable function, usable without Ray."""

from __future__ import annotations

import datetime
import functools
import json
import platform
import socket
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from study import hardware, tasks
from study.cell import Cell, Options
from study.cell.kind import Report
from study.cell.version import source_digest
from study.errors import RequestError
from study.launch.work import Work
from study.results import Results, cell_columns
from study.tasks.base import Task
from study.train.checkpoints import Checkpoints, discard
from study.train.loop import train_pack
from study.train.member import OnEvaluation, Outcome


def train_cells(work: Work, report: Report | None = None) -> dict[str, str]:
    """Trains cells as one pack and records them when all have ended.

    Cells that the results directory already holds are left alone, and others go on from their
    checkpoints, so a trial can be repeated.

    Args:
        work: which cells, and how.
        report: told of events.

    Returns:
        Cell id -> how it ended now; cells that were recorded before are left out.

    Raises:
        RequestError: the data is not what the cells were planned on, the project is another
            version, or the results directory cannot be written.
    """
    results = Results(work.results)
    record = not work.dry_run
    if record and work.mark is not None:
        results.require_mark(work.mark)
    if work.source is not None and work.source != source_digest():
        raise RequestError(
            f"node {socket.gethostname()} has another version of this project than the command. "
            "Bring them to one (`ray up` again copies it) and restart Ray there."
        )
    device = hardware.set_up(work.threads, work.gpu)
    cells = list(work.cells)
    if record:
        recorded = _recorded(results, [cell.id for cell in cells], work.mark is not None)
        for cell_id in recorded:  # by a worker that was lost before it removed its checkpoint
            discard(results.storage, cell_id)
        cells = [cell for cell in cells if cell.id not in recorded]
    if not cells:
        return {}
    checkpoints = _checkpoints(work, results, cells, report) if record else None
    started = time.perf_counter()
    task = _task(
        cells[0].task,
        work.data_dir if tasks.takes_data_dir(cells[0].task) else None,
        work.cache_dir,
        cells[0].options,
    )
    _require_same_data(cells[0], task)
    outcomes = train_pack(cells, task, device, _reporter(report), work.micro_batch, checkpoints)
    for cell, outcome in zip(cells, outcomes, strict=True):
        if record:
            row = {
                "study": work.study,
                **cell_columns(cell),
                "num_classes": task.num_classes,
                "data_notes": "\n".join(task.facts.notes) or None,
                **_outcome_columns(outcome),
                "total_seconds": outcome.earlier_seconds + time.perf_counter() - started,
                **_circumstances(work, device, len(cells)),
            }
            evaluations = [{"cell_id": cell.id, **each} for each in outcome.evaluations]
            results.write_cell(row, evaluations)
            discard(results.storage, cell.id)
    return {cell.id: outcome.status for cell, outcome in zip(cells, outcomes, strict=True)}


def _recorded(results: Results, cell_ids: Sequence[str], of_a_command: bool) -> set[str]:
    """Which cells need no training.

    A command has looked into every file before it left its mark, and keeps others and compaction
    out meanwhile: then a cell has a file of its own name, or no file.
    """
    own = {cell_id for cell_id in cell_ids if results.has_cell(cell_id)}
    if of_a_command or len(own) == len(set(cell_ids)):
        return own
    statuses = results.survey().statuses
    return {cell_id for cell_id in cell_ids if statuses.get(cell_id, "censored") != "censored"}


@functools.lru_cache(maxsize=4)
def _task(name: str, data_dir: str | None, cache_dir: str | None, options: Options) -> Task:
    """Kept between the trials that one process runs."""
    return tasks.load(name, data_dir, cache_dir, options)


def _require_same_data(cell: Cell, task: Task) -> None:
    if task.facts.digest != cell.data_digest:
        raise RequestError(
            f"cell {cell.id} was planned on data with digest {cell.data_digest}, but here "
            f"{task.name} has digest {task.facts.digest}: the data changed. Run the command again "
            "to plan it anew."
        )


def _reporter(report: Report | None) -> OnEvaluation | None:
    if report is None:
        return None
    return lambda cell, row: report(
        {
            "event": "evaluation",
            "cell_id": cell.id,
            "comparison_id": cell.comparison_id,
            "paradigm": cell.paradigm,
            "schedule": cell.schedule.text,
            "budget_fraction": row["budget_fraction"],
            "accuracy": row["accuracy"],
            "saif": row["saif"],
        }
    )


def _checkpoints(
    work: Work, results: Results, cells: Sequence[Cell], report: Report | None
) -> Checkpoints:
    tell: Report = report or (lambda event: None)
    return Checkpoints(
        results.storage,
        work.checkpoint_every,
        work.fork_steps,
        work.share,
        note=lambda text: tell({"event": "note", "text": text}),
        on_fork=lambda steps: tell({"event": "fork", "cell_id": cells[0].id, "steps": steps}),
    )


def _outcome_columns(outcome: Outcome) -> dict[str, Any]:
    return {
        "status": outcome.status,
        "status_reason": outcome.status_reason,
        "steps": outcome.steps,
        "total_train_seconds": outcome.train_seconds,
        "total_evaluate_seconds": outcome.evaluate_seconds,
        "micro_batch": outcome.micro_batch,
        "shared_prefix": outcome.shared_prefix,
    }


def _circumstances(work: Work, device: torch.device, pack: int) -> dict[str, Any]:
    """What is recorded beside a cell and does not make it another one."""
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    return {
        "device": hardware.device_name(device),
        "threads": torch.get_num_threads(),
        "pack": pack,
        "code_version": work.code_version,
        "package_versions": json.dumps(versions),
        "finished_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
