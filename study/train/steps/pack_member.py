"""A cell in training: its data, weights, order, random stream and outcome so far."""

from __future__ import annotations

import copy
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from study import hardware, models, paradigms
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.door import imported
from study.kernels import Kernels, text_of
from study.models.flops import evaluating
from study.models.gpu_layers import put_in
from study.models.model import Model
from study.paradigms.paradigm import Paradigm, Sampling
from study.tasks.task import Task
from study.train.budget import cost
from study.train.budget.timeline import flow_time, steps_by_phase, timeline
from study.train.steps.order import BatchOrder
from study.train.steps.step import SGD, Adam, HasLoss, Optimiser, Together, train_step

OnEvaluation = Callable[[Mapping[Cell, Mapping[str, Any]]], bool | None]
"""Called with the validation rows of a pack's cells at a point of the budget, without those of
cells that diverged before, as soon as all have been evaluated; True stops the cells there."""

WARM_UP_STEPS = {"cpu": 1, "cuda": 3}


@dataclass
class Outcome:
    """How a cell ended, or how far it is.

    Attributes:
        status: `done`; `diverged` if a loss or a metric became NaN or infinite; `censored` if it
            was stopped before the end of its budget.
        status_reason: for people, empty when done.
        steps: optimiser steps taken.
        evaluations: rows of `study.results.EVALUATIONS_SCHEMA` without `cell_id`, all finite.
        train_seconds: of the whole pack's training steps; warm-up and evaluation excluded.
        evaluate_seconds: of this cell's evaluations.
        earlier_seconds: wall time before the state from which this process went on.
        micro_batch: inputs a forward and backward pass.
        kernels: of the steps; None: they were taken on a CPU.
        shared_prefix: whether another cell took its first steps.
        weights: of the trained network, by their names; None: it is not done.
    """

    status: str = "done"
    status_reason: str = ""
    steps: int = 0
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    train_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    earlier_seconds: float = 0.0
    micro_batch: int = 0
    kernels: str | None = None
    shared_prefix: bool = False
    weights: Mapping[str, Tensor] | None = None


class Member:
    """A cell that trains, alone or in a pack, with whose members it shares only the device.

    Attributes:
        cell: the cell.
        device: where it trains.
        phase: in which it is; None before the first.
        stops: when it evaluates and changes phase.
        steps: taken so far.
        stops_done: how many of `stops` it has passed.
        outcome: its results so far.
    """

    def __init__(
        self,
        cell: Cell,
        task: Task,
        device: torch.device,
        micro_batch: int | None,
        kernels: Kernels = (),
    ) -> None:
        self.cell = cell
        self.device = device
        self._splits = dict(task.splits(cell, device))
        self._train = self._splits["train"]
        self._splits["train"] = self._train.head(cell.train_metrics_size)
        facts = task.facts
        model = models.model_of(cell, task)
        if model.encoder is not None and (weights := task.encoder_weights) is not None:
            model.encoder.load_state_dict(weights)
        self._flops = model.flops(facts.input_shape, facts.lengths, cell.m)
        self.stops = timeline(cell, cost.cell_flops(cell, self._flops))
        self._model = model.to(device)
        self._kernels = put_in(self._model, kernels, cell.precision)
        self._order = BatchOrder(cell)
        self._generator = torch.Generator(device).manual_seed(stream_seed("sampling", cell.seed))
        self._baseline = torch.zeros((), device=device)
        self._sampling = Sampling(self._generator, self._baseline)
        if cell.takes_whole_batches:
            micro_batch = cell.batch_size  # the statistics of a part would be others
        elif micro_batch is None:
            micro_batch = hardware.micro_batch(cell.batch_size, self._train.bytes_each, device)
        self._micro_batch = min(micro_batch, cell.batch_size)
        self.phase: int | None = None
        self._summed_loss = torch.zeros((), device=device)
        self._began = time.perf_counter()
        self.steps = self.stops_done = 0
        self.outcome = self._new_outcome()

    @property
    def ended(self) -> bool:
        """Whether it takes no further step: it is done, diverged or stopped."""
        return self.outcome.status != "done" or self.stops_done == len(self.stops)

    def fork_steps(self, cells: Iterable[Cell]) -> set[int]:
        """Steps after which those of some cells part from its own that share its first phase."""
        found = set()
        for cell in cells:
            if len(cell.schedule.phases) > 1 and cell.first_phase == self.cell.first_phase:
                stops = timeline(cell, cost.cell_flops(cell, self._flops))
                found.add(steps_by_phase(cell, stops)[0])
        return found

    @property
    def widest(self) -> int:
        """The largest width that a batch may have."""
        return max(self.widths(torch.arange(len(self._train))[None]))

    @property
    def random_streams(self) -> Sequence[torch.Generator]:
        """From which its steps draw."""
        samples = self._paradigm.exact != self._paradigm.name or self._model.draws
        return [self._generator] if samples else []

    def enter_phase(self, index: int) -> None:
        """Begins a phase from the weights alone, without momentum, unless it is in it."""
        if index != self.phase:
            self.phase = index
            self._phase = self.cell.schedule.phases[index]
            self._paradigm = paradigms.get(self._phase.paradigm)
            self._losses, self._optimiser = self._ready(self._model)
            self._baseline.zero_()

    def warm_up(self, width: int | None = None) -> None:
        """Takes steps on a copy, since libraries set up their kernels on first use."""
        model, optimiser = self._ready(copy.deepcopy(self._model))
        generator = torch.Generator(self.device).manual_seed(0)
        sampling = Sampling(generator, torch.zeros_like(self._baseline))
        rows = torch.zeros(self.cell.batch_size, dtype=torch.int64, device=self.device)
        for _ in range(WARM_UP_STEPS[self.device.type]):
            self._train_step(rows, model, optimiser, sampling, width)

    def next_rows(self, steps: int) -> Tensor:
        """The rows of its next steps, on the host: (steps, batch_size) int64."""
        return self._order.take(steps)

    def widths(self, rows: Tensor) -> Sequence[int]:
        """Segments to which batches of these rows are padded in a CUDA graph."""
        return self._train.widths(rows)

    def take(self, rows: Tensor, width: int | None = None) -> None:
        """Takes a step on rows of its device, all state in place, and counts no step.

        The device may still work on it when this returns.
        """
        self._summed_loss += self._train_step(
            rows, self._losses, self._optimiser, self._sampling, width
        )

    def step(self) -> None:
        """Takes its next step, on a CPU."""
        self.take(self.next_rows(1)[0])
        self.steps += 1

    def spend(self, seconds: float) -> None:
        """Adds wall time of the pack's training steps."""
        self.outcome.train_seconds += seconds

    def stop(self) -> None:
        """At a stop: checks for divergence, makes the evaluations due, and ends the cell if so."""
        stop, outcome = self.stops[self.stops_done], self.outcome
        started = now(self.device)
        exact = paradigms.get(self._paradigm.exact)
        metrics: dict[str, dict[str, Any]] | None = {}
        if not torch.isfinite(self._summed_loss):
            metrics = None
        elif stop.evaluate_at:
            metrics = self._evaluate(exact)
        projections = self._projections(stop.steps_done) if metrics else {}
        rows = [
            {
                "step": stop.steps_done,
                "mosaics_seen": stop.steps_done * self.cell.batch_size,
                "budget_fraction": fraction,
                "compute_flops": stop.compute_flops,
                "train_seconds": outcome.train_seconds,
                "split": split,
                "inference": self._inference(exact).name,
                **values,
                **projections,
            }
            for fraction in stop.evaluate_at
            for split, values in (metrics or {}).items()
        ]
        self.stops_done += 1
        if metrics is None:
            between = f"between steps {outcome.steps} and {stop.steps_done}"
            self._end("diverged", f"the loss became NaN or infinite {between}")
        outcome.steps = stop.steps_done
        outcome.evaluations += rows
        outcome.evaluate_seconds += now(self.device) - started
        if self.ended and outcome.status == "done":
            outcome.weights = self._model.state_dict()

    def censor(self, fraction: float) -> None:
        """Ends the cell here, at this fraction of its budget, unless it has ended."""
        if not self.ended:
            self._end("censored", f"stopped by the scheduler at {fraction:g} of the budget")

    def state(self) -> dict[str, Any]:
        """All that further steps depend on, as plain values and tensors.

        A member of the same cell that restores it goes on as this one does, bitwise on a CPU at
        equal threads.
        """
        now(self.device)
        return {
            "device": self.device.type,
            "steps": self.steps,
            "weights": dict(self._model.state_dict()),
            "velocity": list(self._optimiser.state),
            "generator": self._generator.get_state(),
            "baseline": self._baseline,
            "summed_loss": self._summed_loss,
            "evaluations": self.outcome.evaluations,
            "train_seconds": self.outcome.train_seconds,
            "evaluate_seconds": self.outcome.evaluate_seconds,
            "total_seconds": self.outcome.earlier_seconds + time.perf_counter() - self._began,
            "shared_prefix": self.outcome.shared_prefix,
        }

    def restore(self, state: Mapping[str, Any], fork: bool = False) -> None:
        """Goes on from a state, before any step was taken here.

        Args:
            state: of this cell, or of one with the same `first_phase` if `fork`.
            fork: whether it is the state of another cell.
        """
        self.steps = state["steps"]
        # A stop at exactly this step is still to come: cells that share a first phase may evaluate
        # different things there.
        self.stops_done = sum(stop.steps_done < self.steps for stop in self.stops)
        before = self.stops[self.stops_done - 1].steps_done if self.stops_done else 0
        self.outcome = self._new_outcome(
            steps=before,
            evaluations=list(state["evaluations"]),  # several cells may go on from a state
            train_seconds=state["train_seconds"],
            evaluate_seconds=state["evaluate_seconds"],
            earlier_seconds=state["total_seconds"],
            shared_prefix=fork or state["shared_prefix"],
        )
        self._model.load_state_dict(state["weights"])
        self._generator.set_state(state["generator"])
        self._summed_loss.copy_(state["summed_loss"])
        self._order = BatchOrder(self.cell, self.steps)
        self.enter_phase(self.stops[self.stops_done].phase)
        for kept, saved in zip(self._optimiser.state, state["velocity"], strict=True):
            kept.copy_(saved)
        self._baseline.copy_(state["baseline"])

    def _new_outcome(self, **so_far: Any) -> Outcome:
        kernels = text_of(self._kernels) if self.device.type == "cuda" else None
        return Outcome(micro_batch=self._micro_batch, kernels=kernels, **so_far)

    def _end(self, status: str, reason: str) -> None:
        self.outcome.status, self.outcome.status_reason = status, reason

    def _evaluate(self, paradigm: Paradigm) -> dict[str, dict[str, Any]] | None:
        """The metrics of each split; None if one is not finite."""
        found = {}
        inference = self._inference(paradigm)
        evaluate = imported(self._train.modality.evaluation)
        is_last = self.stops_done == len(self.stops) - 1
        for name, split in self._splits.items():
            held: dict[str, Any] = {}
            if self.cell.alpha is not None:
                held = {"alpha": self.cell.alpha, "with_incentive": name == "train"}
            last = is_last and name == "test"
            with evaluating(self._model):
                metrics = evaluate(
                    self._model, paradigm, split, inference=inference, last=last, **held
                )
            if metrics is None:
                return None
            found[name] = metrics
        return found

    def _inference(self, paradigm: Paradigm) -> Paradigm:
        """The paradigm that predicts: the cell's `inference` if it has one, else the trained."""
        name = self.cell.inference
        return paradigm if name is None else paradigms.get(name)

    def _projections(self, steps: int) -> dict[str, float]:
        """A theory's projections of the weights; empty for most models."""
        time = flow_time(self.cell, self.stops, steps)
        return self._model.projections(time, self.cell.alpha is not None)

    def _ready(self, model: Model) -> tuple[HasLoss, Optimiser]:
        """What a step takes of a model: what gives the loss, and the phase's optimiser."""
        optimiser = self._optimiser_of(model)
        if not self._kernels:
            return model, optimiser
        from study.train.steps.with_kernels import ready  # imports what only a GPU needs

        return ready(model, optimiser, self._kernels)

    def _optimiser_of(self, model: Model) -> Optimiser:
        """The phase's optimiser of all weights; of only the classifier's if alpha is held."""
        phase, momentum = self._phase, self.cell.momentum
        make: Callable[..., Optimiser] = SGD
        if phase.optimiser == "adam":
            make = functools.partial(Adam, weight_decay=phase.weight_decay or 0.0)
        if phase.encoder_lr is None or model.encoder is None:
            trained = model if self.cell.alpha is None else model.classifier
            return make(trained.parameters(), phase.lr, momentum)
        of_encoder = list(model.encoder.parameters())
        known = set(map(id, of_encoder))
        others = [each for each in model.parameters() if id(each) not in known]
        return Together(
            make(of_encoder, phase.encoder_lr, momentum), make(others, phase.lr, momentum)
        )

    def _train_step(
        self,
        rows: Tensor,
        model: HasLoss,
        optimiser: Optimiser,
        sampling: Sampling,
        width: int | None,
    ) -> Tensor:
        return train_step(
            rows,
            model,
            self._paradigm,
            optimiser,
            self._train,
            sampling,
            self._micro_batch,
            self.cell.alpha,
            width,
            self._phase.teacher_forcing,
        )


def now(device: torch.device) -> float:
    """Seconds on a wall clock, once the device has done all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
