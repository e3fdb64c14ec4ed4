"""Cell-steps per second of cells in a pack, beside those of one cell alone.

    python benchmarks/pack.py --architecture perceptron --members 8
    python benchmarks/pack.py --device cuda --architecture scripts --m 20 --members 4 8
    python benchmarks/pack.py --device cuda --architecture embedding --m 64 --members 12

Cells of different seeds, each with its own batches, on made-up data:

- one after the other: one cell alone, whose rate is that of any number of cells in turn;
- side by side: as a pack trains (`study.train.steps.side_by_side`), in turns or as one CUDA graph.

"Host us" is what a cell-step takes of the host until the GPU has got it; on a CPU, all of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from study import hardware
from study.cell import Schedule
from study.train.steps.pack_member import Member
from study.train.steps.side_by_side import stepping_on

INPUTS = 4_096


def main() -> None:
    """Measures what the command line asks for and prints one table a number of members."""
    parser = measure.options(
        __doc__,
        device="cpu",
        m=5,
        paradigm=["soft"],
        architecture=("scripts", "small", "perceptron", "embedding", "self-attention"),
        precision="float32",
        batch_size=256,
        members=[4],
        threads=torch.get_num_threads(),
        rounds=7,
        steps={"type": measure.positive, "default": 20, "help": "a turn"},
        json=measure.JSON,
    )
    args = stepping.set_up(parser)
    print(stepping.machine(args.device))
    figures = stepping.Figures(args)
    with hardware.products(args.precision, args.device):
        for count in args.members:
            for paradigm in args.paradigm:
                compare(paradigm, count, args, figures)


def compare(
    paradigm: str, count: int, args: argparse.Namespace, figures: stepping.Figures
) -> None:
    """Times steps of one cell and of all members, and prints them."""
    members = {"one after the other": 1, "side by side": count}
    ways = {name: steps(paradigm, cells, args) for name, cells in members.items()}
    found = measure.side_by_side(ways, args.rounds)
    print(
        f"\n{paradigm}, {count} members, m={args.m}, batch {args.batch_size}, "
        f"{args.architecture}, {args.precision}\n"
    )

    def rows() -> Iterator[tuple[str, ...]]:
        alone: list[float] = []
        for name, cells in members.items():
            of_all = zip(*found[name], strict=True)
            seconds, host = ([s / cells / args.steps for s in each] for each in of_all)
            alone = alone or seconds
            times = measure.ratio(alone, seconds)
            yield (
                name, f"{1000 * median(seconds):.3f}", f"{1 / median(seconds):.1f}",
                f"{1e6 * median(host):.1f}", f"{times.median:.2f}", times.spread,
            )  # fmt: skip
            figures.add(
                paradigm=paradigm, m=args.m, precision=args.precision, members=count, way=name,
                seconds_a_cell_step=median(seconds), host_seconds_a_cell_step=median(host),
                times_alone=times.median, least_to_most=times[1:],
            )  # fmt: skip

    measure.table(
        ("cells", "ms a cell-step", "cell-steps/s", "host us", "x", "  least to most"), rows()
    )


def steps(
    paradigm: str, count: int, args: argparse.Namespace
) -> Callable[[], tuple[float, float]]:
    """Steps of a pack of cells that differ in seed: their seconds, and those of the host."""
    pack = []
    for seed in range(count):
        cell, task = stepping.made_up(
            stepping.task_of(args.architecture), INPUTS, m=args.m, seed=seed,
            architecture=args.architecture, schedule=Schedule.single(paradigm, stepping.LR),
            batch_size=args.batch_size, precision=args.precision,
        )  # fmt: skip
        pack.append(Member(cell, task, args.device, None))
        pack[-1].enter_phase(0)
    together = stepping_on(args.device)
    together.prepare(pack)

    def take() -> tuple[float, float]:
        stepping.synchronise(args.device)
        started = time.perf_counter()
        for _ in together.steps(pack, args.steps):
            pass
        host = time.perf_counter() - started
        stepping.synchronise(args.device)
        return time.perf_counter() - started, host

    return take


if __name__ == "__main__":
    main()
