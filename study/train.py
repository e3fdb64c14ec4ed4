"""The training loop: from cells and their task to evaluations at fixed fractions of the budget."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from study import compute, execution, models, packs, paradigms
from study.cell import Cell, stream_seed
from study.evaluate import evaluate
from study.models.base import Model
from study.optimiser import SGD
from study.paradigms.base import Paradigm
from study.step import CapturedStep, Step, train_step
from study.tasks.mosaics import MosaicTask

OnEvaluation = Callable[[Cell, dict[str, Any]], None]
"""Called with each evaluation row of the validation split, as soon as it is known."""

WARM_UP_STEPS = {"cpu": 1, "cuda": 3}


@dataclass(frozen=True)
class Outcome:
    """How a cell ended.

    Attributes:
        status: `done`, or `diverged` where a loss or a metric became NaN or infinite.
        status_reason: for people, empty when done.
        steps: optimiser steps taken.
        evaluations: rows of `study.results.EVALUATIONS_SCHEMA` but `cell_id`, all finite.
        train_seconds: spent on training steps, of the whole pack; warm-up and evaluation excluded.
        evaluate_seconds: spent on the evaluations of this cell.
        micro_batch: mosaics a forward and backward pass.
    """

    status: str
    status_reason: str
    steps: int
    evaluations: list[dict[str, Any]]
    train_seconds: float
    evaluate_seconds: float
    micro_batch: int


def train(
    cell: Cell,
    task: MosaicTask,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
    micro_batch: int | None = None,
) -> Outcome:
    """Trains one cell to the end of its budget; see `train_pack`."""
    return train_pack([cell], task, device, on_evaluation, micro_batch)[0]


def train_pack(
    cells: Sequence[Cell],
    task: MosaicTask,
    device: torch.device | str = "cpu",
    on_evaluation: OnEvaluation | None = None,
    micro_batch: int | None = None,
) -> list[Outcome]:
    """Trains cells side by side, step by step, each to the end of its budget.

    The members of a pack share the device and nothing else: each has its own weights, order and
    random stream, and on a GPU its own CUDA stream and graph, so that their kernels overlap. A
    packed cell has the numbers of its separate run, bitwise on a CPU, and a member that diverges
    leaves the others as they are.

    Two calls with equal cells give bitwise equal numbers on one CPU at equal threads.

    Args:
        cells: of one pack: they differ in seed and learning rates only.
        task: of the cells.
        device: to train on.
        on_evaluation: told of each evaluation.
        micro_batch: mosaics a forward and backward pass, >= 1; None: what fits the device's cache
            or memory best.

    Returns:
        One outcome a cell, in their order.

    Raises:
        ValueError: the cells cannot train as one pack.
    """
    packs.require_one(cells)
    device = torch.device(device)
    members = [_Member(cell, task, device, micro_batch) for cell in cells]
    steps, train_seconds = 0, 0.0
    for stop in members[0].stops:
        running = [member for member in members if not member.diverged]
        for member in running:
            member.enter_phase(stop.phase)
        started = _now(device)
        for _ in range(stop.steps_done - steps):
            for member in running:
                member.step()
        train_seconds += _now(device) - started
        steps = stop.steps_done
        for member in running:
            member.stop(stop, train_seconds, on_evaluation)
    return [member.outcome for member in members]


class _Member:
    """A cell in training: its data, weights, order and random stream, and what it has shown."""

    def __init__(
        self, cell: Cell, task: MosaicTask, device: torch.device, micro_batch: int | None
    ) -> None:
        self.cell = cell
        self._device = device
        self._splits = task.splits(cell, device)
        self._mosaics = self._splits["train"]
        self._splits["train"] = self._mosaics.head(cell.train_metrics_size)
        model = models.build(
            cell.architecture,
            task.name,
            task.input_shape,
            task.num_classes,
            width=cell.width,
            seed=cell.seed,
            precision=cell.precision,
        )
        self.stops = compute.timeline(cell, compute.model_flops(model, task.input_shape))
        self._model = model.to(device)
        self._optimiser = SGD(self._model.parameters(), cell.lr, cell.momentum)
        self._batches = batch_order(cell, device)
        self._generator = torch.Generator(device).manual_seed(stream_seed("sampling", cell.seed))
        if micro_batch is None:
            micro_batch = execution.micro_batch(cell.batch_size, self._mosaics.bytes_each, device)
        self._micro_batch = min(micro_batch, cell.batch_size)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._phase: int | None = None
        self._summed_loss = torch.zeros((), device=device)
        self.outcome = Outcome("done", "", 0, [], 0.0, 0.0, self._micro_batch)

    @property
    def diverged(self) -> bool:
        return self.outcome.status == "diverged"

    def enter_phase(self, index: int) -> None:
        """Makes ready for the steps of a phase, so that none of them pays for a first time."""
        if index == self._phase:
            return
        self._phase = index
        phase = self.cell.schedule.phases[index]
        self._paradigm = paradigms.get(phase.paradigm)
        self._optimiser.begin_phase(phase.lr)
        rows = torch.zeros(self.cell.batch_size, dtype=torch.int64, device=self._device)
        _now(self._device)  # what was done on other streams is done
        with self._on_stream():
            self._warm_up(rows)
            self._step = self._step_of(self._model, self._optimiser, self._generator)
        if self._stream is not None:
            self._step = CapturedStep(self._step, rows, self._stream)

    def step(self) -> None:
        """One training step; the device may still be at it when this returns."""
        with self._on_stream():
            self._summed_loss += self._step(next(self._batches))

    def stop(
        self, stop: compute.Stop, train_seconds: float, on_evaluation: OnEvaluation | None
    ) -> None:
        """Takes stock at a stop: has it diverged, and the evaluations that are due."""
        before, started = self.outcome, _now(self._device)
        exact = paradigms.get(self._paradigm.exact)
        metrics: dict[str, dict[str, Any]] | None = {}
        if not torch.isfinite(self._summed_loss):
            metrics = None
        elif stop.evaluate_at:
            metrics = self._evaluate(exact)
        rows = [
            {
                "step": stop.steps_done,
                "mosaics_seen": stop.steps_done * self.cell.batch_size,
                "budget_fraction": fraction,
                "compute_flops": stop.compute_flops,
                "train_seconds": train_seconds,
                "split": split,
                "inference": exact.name,
                **values,
            }
            for fraction in stop.evaluate_at
            for split, values in (metrics or {}).items()
        ]
        self.outcome = dataclasses.replace(
            before,
            steps=stop.steps_done,
            evaluations=before.evaluations + rows,
            train_seconds=train_seconds,
            evaluate_seconds=before.evaluate_seconds + _now(self._device) - started,
        )
        if metrics is None:
            reason = (
                f"the loss became NaN or infinite between steps {before.steps} "
                f"and {stop.steps_done}"
            )
            self.outcome = dataclasses.replace(
                self.outcome, status="diverged", status_reason=reason
            )
        for row in rows:
            if on_evaluation and row["split"] == "validation":
                on_evaluation(self.cell, row)

    def _evaluate(self, paradigm: Paradigm) -> dict[str, dict[str, Any]] | None:
        """The metrics of each split, None where any is not finite."""
        found = {}
        for name, split in self._splits.items():
            metrics = evaluate(self._model, paradigm, split)
            if metrics is None:
                return None
            found[name] = metrics
        return found

    def _step_of(self, model: Model, optimiser: SGD, generator: torch.Generator) -> Step:
        return functools.partial(
            train_step,
            model=model,
            paradigm=self._paradigm,
            optimiser=optimiser,
            mosaics=self._mosaics,
            generator=generator,
            micro_batch=self._micro_batch,
        )

    def _warm_up(self, rows: Tensor) -> None:
        """Steps of a copy: libraries choose and set up their kernels on first use."""
        model = copy.deepcopy(self._model)
        optimiser = SGD(model.parameters(), lr=1e-6, momentum=self.cell.momentum)
        step = self._step_of(model, optimiser, torch.Generator(self._device).manual_seed(0))
        for _ in range(WARM_UP_STEPS[self._device.type]):
            step(rows)

    def _on_stream(self) -> contextlib.AbstractContextManager[Any]:
        if self._stream is None:
            return contextlib.nullcontext()
        return torch.cuda.stream(self._stream)


def batch_order(cell: Cell, device: torch.device) -> Iterator[Tensor]:
    """Endless batches of row indices, each (batch_size,) int64.

    The order is a sequence of permutations of the n mosaics, each a function of seed and epoch
    alone, cut into batches of equal size: a batch may end one epoch and begin the next.
    """
    waiting = torch.empty(0, dtype=torch.int64, device=device)
    epoch = 0
    while True:
        while len(waiting) < cell.batch_size:
            rng = np.random.default_rng(stream_seed("order", cell.seed, epoch))
            permutation = torch.from_numpy(rng.permutation(cell.n))
            if device.type == "cuda":  # from pinned memory the copy waits for nothing
                permutation = permutation.pin_memory().to(device, non_blocking=True)
            waiting = torch.cat([waiting, permutation])
            epoch += 1
        yield waiting[: cell.batch_size]
        waiting = waiting[cell.batch_size :]


def _now(device: torch.device) -> float:
    """Seconds on a wall clock, when all work given to the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
