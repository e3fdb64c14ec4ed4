"""The training loop: from a cell and its task to evaluations at fixed fractions of the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from study import compute, models, paradigms
from study.cell import Cell, stream_seed
from study.evaluate import evaluate
from study.models.base import Model
from study.optimiser import SGD
from study.paradigms.base import Paradigm
from study.tasks.mosaics import Mosaics, MosaicTask

OnEvaluation = Callable[[dict[str, Any]], None]
"""Called with each evaluation row of the validation split, as soon as it is known."""


@dataclass(frozen=True)
class Outcome:
    """How a cell ended.

    Attributes:
        status: `done`, or `diverged` where a loss or a metric became NaN or infinite.
        status_reason: for people, empty when done.
        steps: optimiser steps taken.
        evaluations: rows of `study.results.EVALUATIONS_SCHEMA` but `cell_id`, all finite.
        train_seconds: spent on training steps, evaluation excluded.
        evaluate_seconds: spent on evaluations.
    """

    status: str
    status_reason: str
    steps: int
    evaluations: list[dict[str, Any]]
    train_seconds: float
    evaluate_seconds: float


def train(
    cell: Cell,
    task: MosaicTask,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
) -> Outcome:
    """Trains one cell to the end of its budget.

    Two calls with equal cells give bitwise equal numbers on one CPU at equal threads.
    """
    device = torch.device(device)
    splits = task.splits(cell, device)
    train_split = splits["train"]
    splits["train"] = train_split.head(cell.train_metrics_size)
    model = models.build(
        cell.architecture,
        task.name,
        task.input_shape,
        task.num_classes,
        width=cell.width,
        seed=cell.seed,
    )
    stops = compute.timeline(cell, compute.model_flops(model, task.input_shape))
    model = model.to(device)
    batches = batch_order(cell, device)
    generator = torch.Generator(device).manual_seed(stream_seed("sampling", cell.seed))
    optimiser = SGD(model.parameters(), cell.lr, cell.momentum)

    evaluations: list[dict[str, Any]] = []
    train_seconds = evaluate_seconds = 0.0
    steps, phase_index = 0, 0
    for stop in stops:
        phase = cell.schedule.phases[stop.phase]
        paradigm = paradigms.get(phase.paradigm)
        if stop.phase != phase_index:
            phase_index = stop.phase
            optimiser.begin_phase(phase.lr)

        started, steps_before = _now(device), steps
        summed_loss = torch.zeros((), device=device)
        while steps < stop.steps_done:
            rows = next(batches)
            summed_loss += train_step(model, paradigm, optimiser, train_split, rows, generator)
            steps += 1
        trained = _now(device)
        train_seconds += trained - started

        metrics: dict[str, dict[str, Any] | None] = {}
        if stop.evaluate_at:
            exact = paradigms.get(paradigm.exact)
            metrics = {name: evaluate(model, exact, split) for name, split in splits.items()}
            evaluate_seconds += _now(device) - trained
        finite = {name: values for name, values in metrics.items() if values is not None}
        if not torch.isfinite(summed_loss) or len(finite) < len(metrics):
            reason = f"the loss became NaN or infinite between steps {steps_before} and {steps}"
            return Outcome("diverged", reason, steps, evaluations, train_seconds, evaluate_seconds)
        for fraction in stop.evaluate_at:
            for split, values in finite.items():
                row = {
                    "step": steps,
                    "mosaics_seen": steps * cell.batch_size,
                    "budget_fraction": fraction,
                    "compute_flops": stop.compute_flops,
                    "train_seconds": train_seconds,
                    "split": split,
                    "inference": paradigm.exact,
                    **values,
                }
                evaluations.append(row)
                if on_evaluation and split == "validation":
                    on_evaluation(row)
    return Outcome("done", "", steps, evaluations, train_seconds, evaluate_seconds)


def train_step(
    model: Model,
    paradigm: Paradigm,
    optimiser: SGD,
    mosaics: Mosaics,
    rows: Tensor,
    generator: torch.Generator,
) -> Tensor:
    """One step of any paradigm on the mosaics of these rows; its loss, still on the device."""
    inputs, labels, _, mask = mosaics.batch(rows)
    segments = model.encode(inputs, mask)
    loss = paradigm.loss(
        model.focus, model.classifier, segments, labels, mask, generator=generator
    )
    optimiser.step(loss)
    return loss.detach()


def batch_order(cell: Cell, device: torch.device) -> Iterator[Tensor]:
    """Endless batches of row indices, each (batch_size,) int64.

    The order is a sequence of permutations of the n mosaics, each a function of seed and epoch
    alone, cut into batches of equal size: a batch may end one epoch and begin the next.
    """
    waiting = np.empty(0, np.int64)
    epoch = 0
    while True:
        while len(waiting) < cell.batch_size:
            rng = np.random.default_rng(stream_seed("order", cell.seed, epoch))
            waiting = np.concatenate([waiting, rng.permutation(cell.n)])
            epoch += 1
        batch, waiting = waiting[: cell.batch_size], waiting[cell.batch_size :]
        yield torch.from_numpy(batch).to(device)


def _now(device: torch.device) -> float:
    """Seconds on a wall clock, when all work given to the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
