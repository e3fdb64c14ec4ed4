"""How much a pass through the networks should hold: `study.hardware.PASS_BYTES`.

    python benchmarks/pass_size.py --m 5 --threads 2

Times a training step and an evaluation at several sizes of a pass, side by side in one run, and
prints each as a ratio to the fastest.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import (
    build_model,
    machine,
    made_up_mosaics,
    positive,
    set_up,
    side_by_side,
    step_of,
    timed,
)
from study import hardware, paradigms
from study.evaluate.classification import evaluate

SIZES_MB = (0.5, 1, 2, 3, 6, 12, 24)


def main() -> None:
    """Prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=positive, default=5)
    parser.add_argument("--paradigm", nargs="+", default=["soft", "lvml"])
    parser.add_argument("--architecture", default="scripts")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=7)
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    mosaics = made_up_mosaics(max(1_000, args.batch_size), args.m, device)
    rows = torch.arange(args.batch_size, device=device)
    print(machine(device))
    print(f"m={args.m}, batch {args.batch_size}, {args.architecture}, {args.precision}")
    print(f"{'MB a pass':<22}" + "".join(f"{size:>8g}" for size in SIZES_MB))
    for paradigm in args.paradigm:
        model = build_model(args.architecture, precision=args.precision).to(device)

        def step(size: float, paradigm=paradigm, model=model) -> Callable[[], object]:
            hardware.PASS_BYTES[device.type] = int(size * 2**20)
            parts = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
            return functools.partial(step_of(model, paradigm, mosaics, parts), rows)

        def evaluation(size: float, paradigm=paradigm, model=model) -> Callable[[], object]:
            def function() -> None:
                hardware.PASS_BYTES[device.type] = int(size * 2**20)
                evaluate(model, paradigms.get(paradigm), mosaics)

            return function

        for name, of_size in (("step", step), ("evaluation", evaluation)):
            seconds = side_by_side(
                {str(size): timed(of_size(size), device) for size in SIZES_MB}, args.rounds
            )
            typical = [statistics.median(times) for times in seconds.values()]
            cells = "".join(f"{each / min(typical):>8.2f}" for each in typical)
            print(f"{paradigm + ' ' + name:<22}{cells}", flush=True)


if __name__ == "__main__":
    main()
