"""Trains the cells of a trial on their task, from their checkpoints if there are any."""

from __future__ import annotations

import functools

import torch

from study import parts, tasks
from study.cell import Cell, Options
from study.cell.events import Ended, Report
from study.cell.work import Work
from study.errors import RequestError
from study.evaluate.caption_scores import require_scorers
from study.models import kept
from study.storage.storage import Storage
from study.tasks.base import Task
from study.tasks.sources.places import Places
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.loop import train_pack
from study.train.steps.pack_member import OnEvaluation, Outcome


def run(work: Work, device: torch.device, report: Report | None = None) -> list[Ended]:
    """Trains a trial's cells as one pack; see `study.kind.Kind.run`."""
    for cell in work.cells:
        parts.require(cell)
    first = work.cells[0]
    if first.decoder is not None:  # this node may lack what the driver has
        require_scorers()
    task = loaded(first, work)
    checkpoints = None if work.dry_run else _checkpoints(work, report)
    outcomes = train_pack(
        work.cells, task, device, _reporter(work, report), work.micro_batch, checkpoints
    )
    for cell, outcome in zip(work.cells, outcomes, strict=True):
        if outcome.weights is not None and not work.dry_run:
            kept.keep(Storage(work.results), cell.id, outcome.weights)
    return [_ended(task, *each) for each in zip(work.cells, outcomes, strict=True)]


def loaded(cell: Cell, work: Work) -> Task:
    """The task of a cell.

    Raises:
        RequestError: its data differs from the plan's, or cannot be read.
    """
    places = Places(work.data_dir, work.cache_dir, work.weights, work.category_words)
    task = _task(cell.task, places, cell.options)
    _require_same_data(cell, task)
    return task


@functools.lru_cache(maxsize=4)
def _task(name: str, places: Places, options: Options) -> Task:
    """Loads a task; the last ones stay in memory for further trials of this process."""
    return tasks.load(name, places, options)


def _require_same_data(cell: Cell, task: Task) -> None:
    if task.facts.digest != cell.data_digest:
        raise RequestError(
            f"cell {cell.id} was planned on data with digest {cell.data_digest}, but here "
            f"{task.name} has digest {task.facts.digest}: the data changed. Run the command again "
            "to plan it anew."
        )


def _reporter(work: Work, report: Report | None) -> OnEvaluation | None:
    if report is None:
        return None
    return lambda cell, row: report(
        {
            "event": "evaluation",
            "cell_id": cell.id,
            "comparison_id": cell.comparison_id,
            "stage": work.stage(cell),
            "paradigm": cell.paradigm,
            "schedule": cell.schedule.text,
            "budget_fraction": row["budget_fraction"],
            "accuracy": row["accuracy"],
            "saif": row["saif"],
        }
    )


def _checkpoints(work: Work, report: Report | None) -> Checkpoints:
    tell: Report = report or (lambda event: None)
    return Checkpoints(
        Storage(work.results),
        work.checkpoint_every,
        work.fork_steps,
        work.share,
        note=lambda text: tell({"event": "note", "text": text}),
        on_fork=lambda steps: tell({"event": "fork", "cell_id": work.cells[0].id, "steps": steps}),
    )


def _ended(task: Task, cell: Cell, outcome: Outcome) -> Ended:
    columns = {
        "num_classes": task.num_classes,
        "data_notes": "\n".join(task.facts.notes) or None,
        "status": outcome.status,
        "status_reason": outcome.status_reason,
        "steps": outcome.steps,
        "total_train_seconds": outcome.train_seconds,
        "total_evaluate_seconds": outcome.evaluate_seconds,
        "micro_batch": outcome.micro_batch,
        "shared_prefix": outcome.shared_prefix,
        "network_digest": None if outcome.weights is None else kept.digest(outcome.weights),
    }
    marked = bool(outcome.evaluations) and "instance_known" in outcome.evaluations[-1]
    held = task.splits(cell)["test"].base_images if marked else None
    return Ended(
        outcome.status,
        columns,
        outcome.evaluations,
        outcome.earlier_seconds,
        base_images=None if held is None else held.numpy(),
    )
