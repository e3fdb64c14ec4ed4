"""Cell-steps per second of cells in a pack, beside those of one cell alone.

    python benchmarks/pack.py --architecture perceptron --members 8
    python benchmarks/pack.py --device cuda --architecture scripts --m 20 --members 4 8

Cells of different seeds, each with its own batches:

- one after the other: one cell alone, whose rate is that of any number of cells in turn;
- side by side: as `study.train.loop` trains a pack, a CUDA stream and graph each, or a loop.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.baseline import PRECISIONS, tensor_float_32
from benchmarks.measure import (
    Figures,
    build_model,
    captured,
    machine,
    made_up_mosaics,
    positive,
    ratio,
    set_up,
    side_by_side,
    step_of,
    task_of,
    timed,
)
from study import hardware, paradigms, tasks
from study.models.base import Model
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics

N = 4_096
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
        "--architecture", choices=("scripts", "small", "perceptron"), default="scripts"
    )
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--members", type=positive, nargs="+", default=[4])
    parser.add_argument("--whole", action="store_true", help="a batch in one pass")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--steps", type=positive, default=5, help="a turn")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    print(machine(device))
    info = tasks.info(task_of(args.architecture))
    mosaics = made_up_mosaics(N, args.m, device, info.input_shape, info.num_classes)
    figures = Figures(args.json, device, args)
    for members in args.members:
        for paradigm in args.paradigm:
            with tensor_float_32(args.precision == "tf32"):
                measure(paradigm, members, mosaics, args, figures)


def measure(
    paradigm: str, members: int, mosaics: Mosaics, args: argparse.Namespace, figures: Figures
) -> None:
    """Times one step of one cell and of all members, and prints them."""
    device = mosaics.labels.device
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(N, (members, args.batch_size), generator=generator).to(device)
    micro_batch = args.batch_size
    if not args.whole:
        micro_batch = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
    products = "float32" if args.precision == "tf32" else args.precision
    timers = {}
    for name, of_way in ((ALONE, rows[:1]), ("side by side", rows)):
        pack = Pack(
            [
                build_model(args.architecture, seed, products).to(device)
                for seed in range(len(of_way))
            ],
            paradigms.get(paradigm),
            mosaics,
            micro_batch,
        )
        step = functools.partial(pack.captured(of_way) if rows.is_cuda else pack.step, of_way)
        timers[name] = timed(functools.partial(repeat, step, args.steps), device)
    seconds = side_by_side(timers, args.rounds)
    # The time of one cell alone, times the number of cells.
    seconds[ALONE] = [members * each for each in seconds[ALONE]]
    print(
        f"\n{paradigm}, {members} members, m={args.m}, batch {args.batch_size}, "
        f"{args.architecture}, {args.precision}, parts of {micro_batch}"
    )
    print(f"{'cells':<24}{'ms a cell-step':>15}{'cell-steps/s':>14}{'x':>8}   least to most")
    for name, times in seconds.items():
        typical = statistics.median(times) / members / args.steps
        middle, low, high = ratio(seconds, ALONE, name)
        print(
            f"{name:<24}{1000 * typical:>15.3f}{1 / typical:>14.1f}{middle:>8.2f}   "
            f"{low:.2f} to {high:.2f}",
            flush=True,
        )
        figures.add(
            paradigm=paradigm,
            m=args.m,
            precision=args.precision,
            members=members,
            way=name,
            seconds_a_cell_step=typical,
            times_alone=middle,
            least_to_most=[low, high],
        )


class Pack:
    """Cells that step side by side, each by itself.

    Args:
        models: of the members.
        paradigm: of all.
        mosaics: of all.
        micro_batch: mosaics that go through the networks at once.
    """

    def __init__(
        self,
        models: Sequence[Model],
        paradigm: Paradigm,
        mosaics: Mosaics,
        micro_batch: int,
    ) -> None:
        self._steps = [step_of(model, paradigm, mosaics, micro_batch) for model in models]

    def step(self, rows: Tensor) -> None:
        """One step of each member on its rows (k, B)."""
        for step, of_member in zip(self._steps, rows, strict=True):
            step(of_member)

    def captured(self, rows: Tensor) -> Callable[[Tensor], None]:
        """The steps as CUDA graphs, each on its stream."""
        streams = [torch.cuda.Stream() for _ in self._steps]
        graphs = [
            captured(step, of_member, stream)
            for step, of_member, stream in zip(self._steps, rows, streams, strict=True)
        ]

        def steps(rows: Tensor) -> None:
            for graph, stream, of_member in zip(graphs, streams, rows, strict=True):
                with torch.cuda.stream(stream):
                    graph(of_member)

        return steps


def repeat(function: Callable[[], object], times: int) -> None:
    """Calls a function several times."""
    for _ in range(times):
        function()


if __name__ == "__main__":
    main()
