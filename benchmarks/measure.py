"""What the benchmarks share: made-up data, timing side by side, and the machine's description."""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Callable, Mapping

import torch

from study import models
from study.execution import device_name
from study.models.base import Model
from study.tasks.mosaics import Mosaics

SHAPE, NUM_CLASSES = (3, 32, 32), 3


def made_up_mosaics(n: int, m: int, device: torch.device, images: int = 10_000) -> Mosaics:
    """Mosaics of random CIFAR-sized images: a step takes as long on them as on real ones."""
    generator = torch.Generator().manual_seed(0)
    channels, height, width = SHAPE
    pixels = torch.randint(
        256, (images, height, width, channels), generator=generator, dtype=torch.uint8
    )
    return Mosaics(
        images=pixels.to(device),
        index=torch.randint(images, (n, m), generator=generator, dtype=torch.int32).to(device),
        labels=torch.randint(NUM_CLASSES, (n,), generator=generator).to(device),
        foreground_index=torch.randint(m, (n,), generator=generator).to(device),
        max_value=255,
    )


def build_model(architecture: str, seed: int = 0, precision: str = "float32") -> Model:
    """The CIFAR-10 networks of that name."""
    return models.build(
        architecture, "cifar10", SHAPE, NUM_CLASSES, seed=seed, precision=precision
    )


def side_by_side(
    functions: Mapping[str, Callable[[], object]], device: torch.device, rounds: int
) -> dict[str, list[float]]:
    """Seconds of each function in each round; they take turns, so that they share the weather."""
    for function in functions.values():  # what is done once is not timed
        function()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            synchronise(device)
            started = time.perf_counter()
            function()
            synchronise(device)
            seconds[name].append(time.perf_counter() - started)
    return seconds


def ratio(seconds: Mapping[str, list[float]], of: str, to: str) -> tuple[float, float, float]:
    """Median, least and largest ratio over the rounds."""
    ratios = [a / b for a, b in zip(seconds[of], seconds[to], strict=True)]
    return statistics.median(ratios), min(ratios), max(ratios)


def synchronise(device: torch.device) -> None:
    """Waits for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def machine(device: torch.device) -> str:
    """Device, threads, version and date: what a number belongs to."""
    return (
        f"{device_name(device)}, {torch.get_num_threads()} CPU threads, "
        f"torch {torch.__version__}, {datetime.date.today()}"
    )
