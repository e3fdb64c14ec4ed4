"""What the benchmarks share: made-up data, the study's step, timing in turns, the machine."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import multiprocessing
import statistics
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from study import hardware, models, paradigms, tasks
from study.models.base import Model
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics
from study.train.optimiser import SGD
from study.train.step import CapturedStep, Step, train_step

Timer = Callable[[], float]
"""Does something once and returns how many seconds it took."""

CIFAR_SHAPE = (3, 32, 32)
LR = 0.001
MOMENTUM = 0.9
WARM_UP_STEPS = 3


def set_up(parser: argparse.ArgumentParser, name: str, threads: int) -> torch.device:
    """Sets this process up like a trial's, and returns the device asked for.

    Ends the program with status 2 if the device is missing.
    """
    if name == "cuda" and not torch.cuda.is_available():
        parser.exit(2, f"{parser.prog}: no CUDA device here\n")
    hardware.set_up(threads)
    return torch.device(name)


def positive(text: str) -> int:
    """A whole number from the command line, at least 1."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)


def task_of(architecture: str) -> str:
    """The task whose networks are measured; perceptrons are defined only for digits."""
    return "digits" if architecture == "perceptron" else "cifar10"


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
        index=torch.randint(images, (n, m), generator=generator, dtype=torch.int32).to(device),
        labels=torch.randint(num_classes, (n,), generator=generator).to(device),
        foreground=torch.nn.functional.one_hot(positions, m).bool().to(device),
        max_value=255,
    )


def step_of(model: Model, paradigm: Paradigm | str, mosaics: Mosaics, micro_batch: int) -> Step:
    """The study's step on a model, on the device of the mosaics."""
    device = mosaics.labels.device
    return functools.partial(
        train_step,
        model=model,
        paradigm=paradigms.get(paradigm) if isinstance(paradigm, str) else paradigm,
        optimiser=SGD(model.parameters(), LR, MOMENTUM),
        split=mosaics,
        generator=torch.Generator(device).manual_seed(0),
        micro_batch=micro_batch,
    )


def captured(step: Step, rows: Tensor, stream: torch.cuda.Stream) -> Step:
    """The step as a CUDA graph, after a few steps on its stream."""
    synchronise(rows.device)  # its arguments were made on another stream
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_STEPS):
            step(rows)
    synchronise(rows.device)
    return CapturedStep(step, rows, stream)


def timed(function: Callable[[], object], device: torch.device, calls: int = 1) -> Timer:
    """A timer of a function, the work of the device included: mean seconds of so many calls."""

    def timer() -> float:
        synchronise(device)
        started = time.perf_counter()
        for _ in range(calls):
            function()
        synchronise(device)
        return (time.perf_counter() - started) / calls

    return timer


def side_by_side(timers: Mapping[str, Timer], rounds: int) -> dict[str, list[float]]:
    """Seconds of each timer in each round; they take turns, so that conditions are equal."""
    for timer in timers.values():  # a warm-up
        timer()
    seconds: dict[str, list[float]] = {name: [] for name in timers}
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


def ratio(seconds: Mapping[str, list[float]], of: str, to: str) -> tuple[float, float, float]:
    """Median, least and largest ratio over the rounds."""
    ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def synchronise(device: torch.device) -> None:
    """Waits for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def machine(device: torch.device) -> str:
    """Device, threads, version and date of a measurement."""
    return (
        f"{hardware.device_name(device)}, {torch.get_num_threads()} CPU threads, "
        f"torch {torch.__version__}, {datetime.date.today()}"
    )
