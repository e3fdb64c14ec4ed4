"""How the batch size of an evaluation changes its time on a CPU, on made-up images.

    uv run python benchmarks/evaluation_batch.py

Prints seconds for 1,000 mosaics (m = 5, network `small`, one thread; fastest of three) and their
ratio to the fastest batch size.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from unittest import mock

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from study import models, paradigms
from study.evaluate import evaluate
from study.tasks.mosaics import Mosaics

COUNT, M = 1_000, 5
BATCH_SIZES = (16, 32, 64, 128, 256, 1_000)


def main() -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    mosaics = Mosaics(
        images=torch.randint(256, (10_000, 32, 32, 3), generator=generator, dtype=torch.uint8),
        index=torch.randint(10_000, (COUNT, M), generator=generator, dtype=torch.int32),
        labels=torch.randint(3, (COUNT,), generator=generator),
        foreground_index=torch.randint(M, (COUNT,), generator=generator),
        max_value=255,
    )
    model = models.build("small", "cifar10", (3, 32, 32), 3)
    for name in ("soft", "lvml"):
        seconds = {size: measure(model, name, mosaics, size) for size in BATCH_SIZES}
        for size, value in seconds.items():
            ratio = value / min(seconds.values())
            print(f"{name}: batch {size:>5}: {value:.2f} s, {ratio:.2f} x the fastest")


def measure(model: models.Model, name: str, mosaics: Mosaics, size: int) -> float:
    """Seconds of the fastest of three evaluations, after one to warm up."""
    times = []
    with mock.patch("study.evaluate.BATCH_BYTES", {"cpu": size * mosaics.bytes_each}):
        for _ in range(4):
            started = time.perf_counter()
            evaluate(model, paradigms.get(name), mosaics)
            times.append(time.perf_counter() - started)
    return min(times[1:])


if __name__ == "__main__":
    main()
