"""Trains the cells of a trial on their task, from their checkpoints if there are any."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from study import parts, tasks
from study.cell import Cell, Options
from study.cell.events import Ended, Instances, Report
from study.cell.work import MOST_EXAMPLES, TUNE, Work
from study.door import imported
from study.errors import RequestError
from study.evaluate.examples import first
from study.models import kept
from study.storage.storage import Storage
from study.tasks.sources.places import Places
from study.tasks.task import Split, Task, carried, class_names
from study.train.steps.checkpoints import Checkpoints
from study.train.steps.loop import train_pack
from study.train.steps.pack_member import OnEvaluation, Outcome


class Trainer:
    """Trains the packs of a job, one after the other; see `study.kind.Kind.runner`."""

    def __init__(self, work: Work, device: torch.device, report: Report | None) -> None:
        self._work, self._device, self._report = work, device, report
        self._checkpoints = None if work.dry_run else _checkpoints(work, report)

    def __call__(self, cells: Sequence[Cell], later: Sequence[Cell] = ()) -> list[Ended]:
        """Trains cells as one pack; later ones may go on from states that these pass through."""
        for cell in cells:
            parts.require(cell)
        work, first = self._work, cells[0]
        if requires := tasks.TASKS[first.task].requires:
            imported(requires)()  # this node may lack what the driver has
        task = loaded(first, work)
        if self._checkpoints:
            self._checkpoints.expect(cells, later)
        tell = _reporter(cells, task, self._report)
        kernels = work.kernels if self._device.type == "cuda" else ()
        outcomes = train_pack(
            cells, task, self._device, tell, work.micro_batch, self._checkpoints, kernels
        )
        return [
            _ended(task, work, cell, outcome, self._kept(cell, task, outcome))
            for cell, outcome in zip(cells, outcomes, strict=True)
        ]

    def _kept(self, cell: Cell, task: Task, outcome: Outcome) -> str | None:
        """Keeps a trained network and gives the digest of its weights; None: it is not kept."""
        work = self._work
        asked = work.keep_weights and work.stage(cell) != TUNE
        keeps = asked or tasks.modality(cell.task).keeps_networks
        if outcome.weights is None or work.dry_run or not keeps:
            return None
        return kept.keep(Storage(work.results), cell.id, outcome.weights, carried(task))


def loaded(cell: Cell, work: Work) -> Task:
    """The task of a cell where a worker finds its files, see `task_of`."""
    return task_of(cell, Places(*work.places))


def task_of(cell: Cell, places: Places) -> Task:
    """The task of a cell.

    Raises:
        RequestError: its data differs from the plan's, or cannot be read.
    """
    task = opened_task(cell.task, places, cell.options)
    _require_same_data(cell, task)
    return task


@functools.lru_cache(maxsize=4)
def opened_task(name: str, places: Places, options: Options) -> Task:
    """As `study.tasks.load`; the last tasks stay in memory for this process."""
    return tasks.load(name, places, options)


def _require_same_data(cell: Cell, task: Task) -> None:
    if task.facts.digest != cell.data_digest:
        raise RequestError(
            f"cell {cell.id} was planned on data with digest {cell.data_digest}, but here "
            f"{task.name} has digest {task.facts.digest}: the data changed. Run the command again "
            "to plan it anew, or name the folder of the data that it had with --data-dir DIR "
            "(data_dir in Python)."
        )


def _reporter(cells: Sequence[Cell], task: Task, report: Report | None) -> OnEvaluation | None:
    """Reports a pack's evaluations; in their mean a cell that diverged counts as a guess."""
    if report is None:
        return None
    guess = tasks.modality(task.name).guess(task.num_classes)

    def tell(rows: Mapping[Cell, Mapping[str, Any]]) -> bool | None:
        if not rows:
            return False
        event: dict[str, Any] = {"event": "evaluation"}
        event["budget_fraction"] = next(iter(rows.values()))["budget_fraction"]
        for metric, guessed in guess.items():
            values = [rows[cell][metric] if cell in rows else guessed for cell in cells]
            event[metric] = None if None in values else sum(values) / len(values)
        event["cells"] = {cell.id: row["accuracy"] for cell, row in rows.items()}
        return report(event)

    return tell


def _checkpoints(work: Work, report: Report | None) -> Checkpoints:
    tell: Report = report or (lambda event: None)
    return Checkpoints(
        Storage(work.results),
        work.checkpoint_every,
        note=lambda text: tell({"event": "note", "text": text}),
    )


def _ended(
    task: Task, work: Work, cell: Cell, outcome: Outcome, network_digest: str | None
) -> Ended:
    columns = {
        "num_classes": task.num_classes,
        "data_notes": "\n".join(task.facts.notes) or None,
        "status": outcome.status,
        "status_reason": outcome.status_reason,
        "steps": outcome.steps,
        "total_train_seconds": outcome.train_seconds,
        "total_evaluate_seconds": outcome.evaluate_seconds,
        "micro_batch": outcome.micro_batch,
        "kernels": outcome.kernels,
        "shared_prefix": outcome.shared_prefix,
        "network_digest": network_digest,
    }
    evaluations = list(outcome.evaluations)
    if evaluations and (text := evaluations[-1].get("examples")):
        evaluations[-1] = evaluations[-1] | {"examples": first(text, _examples_asked(cell, work))}
    if evaluations and work.stage(cell) == TUNE:  # nobody sees those of options that are tried
        evaluations[-1] = evaluations[-1] | dict.fromkeys(("instance_bits", "class_heatmaps"))
    marked = bool(evaluations) and "instance_known" in evaluations[-1]
    return Ended(
        outcome.status,
        columns,
        evaluations,
        outcome.earlier_seconds,
        instances=_instances(task.splits(cell)["test"]) if marked else None,
    )


def _instances(split: Split) -> Instances | None:
    """What the instances of a split on the CPU hold; None: nothing that others share."""
    if split.base_images is None:
        return None
    labels = None
    if split.modality.chance:
        labels = np.array(class_names(split))[split.labels.numpy()]
    return Instances(split.base_images.numpy(), labels)


def _examples_asked(cell: Cell, work: Work) -> int:
    """How many inputs a cell records; none if it only tries an option, as nobody sees those."""
    if work.stage(cell) == TUNE:
        return 0
    usual = 0 if tasks.TASKS[cell.task].warning else MOST_EXAMPLES
    return usual if work.examples is None else work.examples
