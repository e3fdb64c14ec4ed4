"""What the benchmarks share: made-up data, the study's step, timing in turns, the machine."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from study import hardware, models, paradigms, tasks
from study.cell import NO_OPTIONS, Budget, Cell, Schedule
from study.models.base import Model
from study.paradigms.base import Paradigm, Sampling
from study.tasks.mosaics.mosaics import Mosaics
from study.terminal.options import positive as positive
from study.train.steps.pack_member import Member
from study.train.steps.step import SGD, train_step

Step = Callable[[Tensor], Tensor]
"""Rows of the train split (B,) int64 -> their mean loss before the step, on the device."""

T = TypeVar("T")

Timer = Callable[[], float]
"""Does something once and returns how many seconds it took."""

CIFAR_SHAPE = (3, 32, 32)
LR = 0.001
MOMENTUM = 0.9
MADE_UP_INPUTS = 4_096
WARM_UP_STEPS = 3
CALLS = {"cpu": 1, "cuda": 20}
"""Calls between two waits for the device, by device: a wait takes as long as a small step."""

CLOCK_SECONDS = 1.0
"""Work after which a GPU runs at the clock that it keeps."""


def set_up(parser: argparse.ArgumentParser, name: str, threads: int) -> torch.device:
    """Sets this process up like a trial's, and returns the device asked for.

    Ends the program with status 2 if the device is missing.
    """
    if name == "cuda" and not hardware.has_gpu():
        parser.exit(2, f"{parser.prog}: no CUDA device here\n")
    hardware.set_up(threads, gpu=name == "cuda")
    if name == "cuda":
        _raise_clock(torch.device(name))
    return torch.device(name)


def _raise_clock(device: torch.device) -> None:
    a = torch.randn(4_096, 4_096, device=device)
    end = time.perf_counter() + CLOCK_SECONDS
    while time.perf_counter() < end:
        a @ a
        synchronise(device)


def task_of(architecture: str) -> str:
    """The task whose networks are measured."""
    return {
        "perceptron": "digits", "embedding": "hatexplain", "self-attention": "hatexplain"
    }.get(architecture, "cifar10")  # fmt: skip


def build_model(architecture: str, seed: int = 0, precision: str = "float32") -> Model:
    """The networks of an architecture for its task."""
    task = task_of(architecture)
    info = tasks.info(task)
    return models.build(
        architecture, task, info.input_shape, info.num_classes, seed=seed, precision=precision
    )


def made_up_mosaics(
    n: int,
    m: int,
    device: torch.device,
    shape: tuple[int, int, int] = CIFAR_SHAPE,
    num_classes: int = 3,
    images: int = 10_000,
) -> Mosaics:
    """Mosaics of random images, on which a step takes as long as on real ones."""
    generator = torch.Generator().manual_seed(0)
    channels, height, width = shape
    pixels = torch.randint(
        256, (images, height, width, channels), generator=generator, dtype=torch.uint8
    )
    positions = torch.randint(m, (n,), generator=generator)
    return Mosaics(
        images=pixels.to(device),
        sources=torch.arange(images, device=device),
        index=torch.randint(images, (n, m), generator=generator, dtype=torch.int32).to(device),
        labels=torch.randint(num_classes, (n,), generator=generator).to(device),
        foreground=torch.nn.functional.one_hot(positions, m).bool().to(device),
        max_value=255,
    )


def members(
    count: int,
    architecture: str,
    paradigm: str,
    m: int,
    batch_size: int,
    precision: str,
    device: torch.device,
    micro_batch: int | None = None,
) -> list[Member]:
    """Cells in training that differ in seed, on made-up data of their architecture's task."""
    task = task_of(architecture)
    options = tasks.resolved(task, NO_OPTIONS)
    info = tasks.info(task, options)
    made_up = info.made_up(info.nominal, MADE_UP_INPUTS)
    cells = [
        Cell(
            task=task,
            data_digest=made_up.facts.digest,
            m=m,
            n=MADE_UP_INPUTS,
            architecture=architecture,
            schedule=Schedule.single(paradigm, LR),
            seed=seed,
            budget=Budget(batch_size, "mosaics"),
            batch_size=batch_size,
            precision=precision,
            train_metrics_size=1,
            validation_size=1,
            test_size=1,
            options=options,
        )
        for seed in range(count)
    ]
    made = [Member(cell, made_up, device, micro_batch) for cell in cells]
    for member in made:
        member.enter_phase(0)
    return made


def step_of(model: Model, paradigm: Paradigm | str, mosaics: Mosaics, micro_batch: int) -> Step:
    """The study's step on a model, on the device of the mosaics."""
    device = mosaics.labels.device
    return functools.partial(
        train_step,
        model=model,
        paradigm=paradigms.get(paradigm) if isinstance(paradigm, str) else paradigm,
        optimiser=SGD(model.parameters(), LR, MOMENTUM),
        split=mosaics,
        sampling=Sampling(torch.Generator(device).manual_seed(0)),
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


def side_by_side(timers: Mapping[T, Timer], rounds: int) -> dict[T, list[float]]:
    """Seconds of each timer in each round; they take turns, so that conditions are equal."""
    for timer in timers.values():  # a warm-up
        timer()
    seconds: dict[T, list[float]] = {name: [] for name in timers}
    for _ in range(rounds):
        for name, timer in timers.items():
            seconds[name].append(timer())
    return seconds


class Child(contextlib.AbstractContextManager["Child"]):
    """A function in a fresh process without this one's settings; it idles between calls.

    Args:
        prepare: called once in the child; returns the function that calls of this object run
            there. It is pickled with the arguments, so it has to be a module's function.
        arguments: of `prepare`.

    Raises:
        EOFError: on a call, if the child has died; it printed why.
    """

    def __init__(self, prepare: Callable[..., Callable[[], Any]], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, prepare, arguments), daemon=True
        )
        self._process.start()
        theirs.close()  # so that the death of the child closes the pipe

    def __call__(self) -> Any:
        """Calls the function in the child and returns its result."""
        self._pipe.send(None)
        return self._pipe.recv()

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()


def _serve(
    pipe: Connection, prepare: Callable[..., Callable[[], Any]], arguments: tuple[object, ...]
) -> None:
    function = prepare(*arguments)
    with contextlib.suppress(EOFError):  # the parent is done
        while True:
            pipe.recv()
            pipe.send(function())


def ratio(seconds: Mapping[T, list[float]], of: T, to: T) -> tuple[float, float, float]:
    """Median, least and largest ratio over the rounds."""
    ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


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
    """The figures of a benchmark in a JSON file, which is whole after each of them.

    Args:
        path: of the file; None: none is written.
        device: that is measured.
        args: options of the benchmark.
    """

    def __init__(self, path: Path | None, device: torch.device, args: argparse.Namespace) -> None:
        self._path = path
        self._device = device
        self._options = {name: str(value) for name, value in vars(args).items()}
        self._rows: list[dict[str, Any]] = []

    def add(self, **row: Any) -> None:
        """Adds a figure with what it is of."""
        if self._path is None:
            return
        self._rows.append(row)
        values = {**circumstances(self._device), "options": self._options, "figures": self._rows}
        write(self._path, json.dumps(values, indent=1))


def write(path: Path, text: str) -> None:
    """Replaces a file as a whole; one that a kill leaves is replaced by the next."""
    partial = path.with_name(f"{path.name}.part")
    partial.write_text(text)
    partial.replace(path)
