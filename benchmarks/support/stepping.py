"""Steps of the studies on made-up data: how they are made, timed and told of.

It needs torch, NumPy and pyarrow alone.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.support.measure import Timer, write
from study import hardware, models, paradigms, tasks
from study.cell import NO_OPTIONS, Budget, Cell, Schedule
from study.models.model import Model
from study.paradigms.paradigm import Paradigm, Sampling
from study.tasks.mosaics.mosaics import Mosaics
from study.tasks.task import Task
from study.train.steps.step import SGD, train_step

Step = Callable[[Tensor], Tensor]
"""Rows of the train split (B,) int64 -> their mean loss before the step, on the device."""

CIFAR_SHAPE = (3, 32, 32)
LR = 0.001
MOMENTUM = 0.9
WARM_UP_STEPS = 3
CALLS = {"cpu": 1, "cuda": 20}
"""Calls between two waits for the device, by device: a wait takes as long as a small step."""

CLOCK_SECONDS = 1.0
"""Work after which a GPU runs at the clock that it keeps."""


def set_up(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Reads the command line, and sets this process up like a trial's on the device asked for.

    Ends the program with status 2 if the device is missing.

    Returns:
        The options; `device` is a device of PyTorch.
    """
    args = parser.parse_args()
    if args.device == "cuda" and not hardware.has_gpu():
        parser.exit(2, f"{parser.prog}: no CUDA device here\n")
    args.device = hardware.set_up(args.threads, gpu=args.device == "cuda")
    if args.device.type == "cuda":
        a = torch.randn(4_096, 4_096, device=args.device)
        end = time.perf_counter() + CLOCK_SECONDS
        while time.perf_counter() < end:
            a @ a
            torch.cuda.synchronize()
    return args


def task_of(architecture: str) -> str:
    """The task whose networks are measured."""
    return {
        "perceptron": "digits", "embedding": "hatexplain", "self-attention": "hatexplain"
    }.get(architecture, "cifar10")  # fmt: skip


def build_model(architecture: str, precision: str = "float32") -> Model:
    """The networks of an architecture for its task."""
    task = task_of(architecture)
    info = tasks.info(task)
    return models.build(
        architecture, task, info.nominal.input_shape, info.num_classes, seed=0, precision=precision
    )


def made_up(task: str, count: int, **of_cell: Any) -> tuple[Cell, Task]:
    """A cell, and its task with noise for data.

    Args:
        task: its name.
        count: least inputs of the data, and those that train unless `of_cell` says otherwise.
        of_cell: fields of the cell that count; evaluations are as small as can be.
    """
    options = tasks.resolved(task, NO_OPTIONS)
    info = tasks.info(task, options)
    data = info.made_up(info.nominal, count)
    known: dict[str, Any] = {
        "n": count, "seed": 0, "budget": Budget(count, "mosaics"),
        "schedule": Schedule.single("soft", LR),
        "train_metrics_size": 1, "validation_size": 1, "test_size": 1,
    }  # fmt: skip
    known |= {"task": task, "data_digest": data.facts.digest, "options": options} | of_cell
    return Cell(**known), data


def made_up_mosaics(
    n: int,
    m: int,
    device: torch.device,
    shape: tuple[int, ...] = CIFAR_SHAPE,
    images: int = 10_000,
) -> Mosaics:
    """Mosaics of random images, on which a step takes as long as on real ones."""
    random = functools.partial(torch.randint, generator=torch.Generator().manual_seed(0))
    channels, height, width = shape
    pixels = random(256, (images, height, width, channels), dtype=torch.uint8)
    positions = random(m, (n,))
    return Mosaics(
        images=pixels.to(device),
        sources=torch.arange(images, device=device),
        index=random(images, (n, m), dtype=torch.int32).to(device),
        labels=random(3, (n,)).to(device),
        foreground=torch.nn.functional.one_hot(positions, m).bool().to(device),
        max_value=255,
    )


def step_of(model: Model, paradigm: Paradigm | str, mosaics: Mosaics, micro_batch: int) -> Step:
    """The study's step on a model, on the device of the mosaics."""
    return functools.partial(
        train_step,
        model=model,
        paradigm=paradigms.get(paradigm) if isinstance(paradigm, str) else paradigm,
        optimiser=SGD(model.parameters(), LR, MOMENTUM),
        split=mosaics,
        sampling=Sampling(torch.Generator(mosaics.labels.device).manual_seed(0)),
        micro_batch=micro_batch,
    )


class CapturedStep:
    """A step as a CUDA graph. (Studies capture packs: `study.train.steps.side_by_side`.)

    Args:
        step: to record, after a few steps. It is kept with its weights and data, since the graph
            holds addresses alone.
        rows: example of its argument; calls take tensors of this shape.
    """

    def __init__(self, step: Step, rows: Tensor) -> None:
        self._step = step
        self._rows = rows.clone()
        self._graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        synchronise(rows.device)  # the arguments were made on another stream
        with hardware.autotuned(), torch.cuda.stream(stream):
            for _ in range(WARM_UP_STEPS):
                step(self._rows)
        synchronise(rows.device)
        with torch.cuda.graph(self._graph, stream=stream):  # in which nothing may be tried
            self._loss = step(self._rows)

    def __call__(self, rows: Tensor) -> Tensor:
        """See `Step`; the next call overwrites what is returned."""
        self._rows.copy_(rows)
        self._graph.replay()
        return self._loss


def timed(function: Callable[[], object], device: torch.device, calls: int | None = None) -> Timer:
    """A timer of a function, the work of the device included: mean seconds of so many calls.

    Args:
        function: to time.
        device: that works.
        calls: between two waits for the device; None: as many as `CALLS` says.
    """
    calls = calls or CALLS[device.type]

    def timer() -> float:
        synchronise(device)
        started = time.perf_counter()
        for _ in range(calls):
            function()
        synchronise(device)
        return (time.perf_counter() - started) / calls

    return timer


def synchronise(device: torch.device) -> None:
    """Waits for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def circumstances(device: torch.device) -> dict[str, Any]:
    """Device, threads, version and date of a measurement."""
    return {
        "device": hardware.device_name(device),
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
        "date": str(datetime.date.today()),
    }


def machine(device: torch.device) -> str:
    """The same as a line."""
    return "{device}, {threads} CPU threads, torch {torch}, {date}".format_map(
        circumstances(device)
    )


class Figures:
    """The figures of a benchmark in the JSON file of `--json`, which is whole after each of them.

    Args:
        args: options of the benchmark, as `set_up` returns them.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._path: Path | None = args.json
        options = {name: str(value) for name, value in vars(args).items()}
        self._rows: list[dict[str, Any]] = []
        self._all = {**circumstances(args.device), "options": options, "figures": self._rows}

    def add(self, **row: Any) -> None:
        """Adds a figure with what it is of."""
        self._rows.append(row)
        if self._path is not None:
            write(self._path, json.dumps(self._all, indent=1))
