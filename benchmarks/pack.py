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
import statistics
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import (
    Figures,
    Timer,
    machine,
    members,
    positive,
    ratio,
    set_up,
    side_by_side,
    timed,
)
from study import hardware
from study.cell import PRECISIONS
from study.train.steps.side_by_side import stepping_on

ALONE = "one after the other"


def main() -> None:
    """Measures what the command line asks for and prints one table a number of members."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=positive, default=5)
    parser.add_argument(
        "--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft"]
    )
    parser.add_argument(
        "--architecture",
        choices=("scripts", "small", "perceptron", "embedding", "self-attention"),
        default="scripts",
    )
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--members", type=positive, nargs="+", default=[4])
    parser.add_argument("--whole", action="store_true", help="a batch in one pass")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--steps", type=positive, default=20, help="a turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    print(machine(device))
    figures = Figures(args.json, device, args)
    with hardware.products(args.precision, device):
        for count in args.members:
            for paradigm in args.paradigm:
                measure(paradigm, count, args, device, figures)


def measure(
    paradigm: str, count: int, args: argparse.Namespace, device: torch.device, figures: Figures
) -> None:
    """Times steps of one cell and of all members, and prints them."""
    hosts: dict[str, list[float]] = {ALONE: [], "side by side": []}
    timers = {
        ALONE: steps(paradigm, 1, args, device, hosts[ALONE]),
        "side by side": steps(paradigm, count, args, device, hosts["side by side"]),
    }
    seconds = side_by_side(timers, args.rounds)
    hosts = {name: each[-args.rounds :] for name, each in hosts.items()}  # without the warm-up
    for of_name in (seconds, hosts):  # one cell alone, times the number of cells
        of_name[ALONE] = [count * each for each in of_name[ALONE]]
    print(
        f"\n{paradigm}, {count} members, m={args.m}, batch {args.batch_size}, "
        f"{args.architecture}, {args.precision}"
    )
    print(
        f"{'cells':<24}{'ms a cell-step':>15}{'cell-steps/s':>14}{'host us':>9}{'x':>8}"
        "   least to most"
    )
    for name, times in seconds.items():
        typical, host = (
            statistics.median(each) / count / args.steps for each in (times, hosts[name])
        )
        middle, low, high = ratio(seconds, ALONE, name)
        print(
            f"{name:<24}{1000 * typical:>15.3f}{1 / typical:>14.1f}{1e6 * host:>9.1f}"
            f"{middle:>8.2f}   {low:.2f} to {high:.2f}",
            flush=True,
        )
        figures.add(
            paradigm=paradigm,
            m=args.m,
            precision=args.precision,
            members=count,
            way=name,
            seconds_a_cell_step=typical,
            host_seconds_a_cell_step=host,
            times_alone=middle,
            least_to_most=[low, high],
        )


def steps(
    paradigm: str, count: int, args: argparse.Namespace, device: torch.device, host: list[float]
) -> Timer:
    """A timer of steps of a pack; `host` takes the seconds until the device has got them all."""
    pack = members(
        count,
        args.architecture,
        paradigm,
        args.m,
        args.batch_size,
        args.precision,
        device,
        args.batch_size if args.whole else None,
    )
    stepping = stepping_on(device)
    stepping.prepare(pack)

    def take() -> None:
        started = time.perf_counter()
        for _ in stepping.steps(pack, args.steps):
            pass
        host.append(time.perf_counter() - started)

    return timed(take, device, 1)


if __name__ == "__main__":
    main()
