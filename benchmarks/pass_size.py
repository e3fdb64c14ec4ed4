"""How much a pass through the networks should hold: `study.hardware.PASS_BYTES`.

    python benchmarks/pass_size.py --m 5 --threads 2

Times a training step and an evaluation at several sizes of a pass, side by side in one run, and
prints each as a ratio to the fastest.
"""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from benchmarks.support.tables import Table
from study import hardware, paradigms
from study.evaluate.classification import evaluate

SIZES_MB = (0.5, 1, 2, 3, 6, 12, 24)


def main() -> None:
    """Prints one table."""
    parser = measure.options(
        __doc__,
        device="cpu",
        m=5,
        paradigm={"nargs": "+", "default": ["soft", "lvml"]},
        architecture={"default": "scripts"},
        precision="float32",
        batch_size=256,
        threads=torch.get_num_threads(),
        rounds=7,
    )
    args = stepping.set_up(parser)
    device, batch_size = args.device, args.batch_size
    mosaics = stepping.made_up_mosaics(max(1_000, batch_size), args.m, device)
    rows = torch.arange(batch_size, device=device)
    print(stepping.machine(device))
    print(f"m={args.m}, batch {batch_size}, {args.architecture}, {args.precision}")
    table = Table("MB a pass", *(f"{size:g}" for size in SIZES_MB), first=22)

    def step() -> Callable[[], object]:
        parts = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
        return functools.partial(stepping.step_of(model, paradigm, mosaics, parts), rows)

    def evaluation() -> Callable[[], object]:
        return functools.partial(evaluate, model, paradigms.get(paradigm), mosaics)

    def holding(size: float, way: Callable[[], Callable[[], object]]) -> measure.Timer:
        """A timer of a way to use the networks, with passes of so many MB."""

        def act() -> None:
            hardware.PASS_BYTES[device.type] = int(size * 2**20)
            function()

        hardware.PASS_BYTES[device.type] = int(size * 2**20)
        function = way()
        return stepping.timed(act, device)

    for paradigm in args.paradigm:
        model = stepping.build_model(args.architecture, args.precision).to(device)
        for way in (step, evaluation):
            timers = {size: holding(size, way) for size in SIZES_MB}
            found = measure.side_by_side(timers, args.rounds)
            typical = [statistics.median(times) for times in found.values()]
            ratios = (f"{each / min(typical):.2f}" for each in typical)
            table.row(f"{paradigm} {way.__name__}", *ratios)


if __name__ == "__main__":
    main()
