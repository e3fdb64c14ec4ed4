"""What a training step on a CPU spends its time on, operator by operator.

    python benchmarks/operators.py --batch-size 32 --architecture small --paradigm soft lvml

Each operator of PyTorch is timed by itself within the step, so caches hold what they hold there.
(A profiler takes memory for its events, and so makes large tensors pay page faults.) The least
time of the steps counts, since other work on the machine only adds. What convolutions and matrix
products take is the floor of all that a study can do around them.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import (
    WARM_UP_STEPS,
    build_model,
    machine,
    made_up_mosaics,
    positive,
    set_up,
    step_of,
)
from study import hardware

GROUPS = {
    "convolutions": ("convolution",),
    "products": ("mm", "addmm", "bmm"),
    "pooling": ("max_pool2d",),
    "ReLU": ("relu", "threshold"),
    "copies, casts": ("clone", "_to_copy", "copy_", "index_select"),
    "SGD": ("_foreach",),
}
"""Names in the table -> beginnings of the names of operators."""


class Clock(TorchDispatchMode):
    """Times the operators that run.

    Attributes:
        seconds: of each call, by the operator's name and the shapes of its tensors.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[tuple[str, str], list[float]] = collections.defaultdict(list)

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        started = time.perf_counter()
        result = function(*args, **(kwargs or {}))
        seconds = time.perf_counter() - started
        shapes = " ".join(str(list(each.shape)) for each in args if isinstance(each, Tensor))
        self.seconds[function.overloadpacket.__name__, shapes].append(seconds)
        return result


def main() -> None:
    """Prints a table of groups and one of the dearest operators, a paradigm and precision."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--m", type=positive, default=5)
    parser.add_argument("--paradigm", nargs="+", default=["soft"])
    parser.add_argument("--precision", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--architecture", default="scripts")
    parser.add_argument("--batch-size", type=positive, default=32)
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--steps", type=positive, default=50)
    parser.add_argument("--top", type=positive, default=8, help="operators to print")
    args = parser.parse_args()
    device = set_up(parser, "cpu", args.threads)
    print(machine(device))
    mosaics = made_up_mosaics(max(1_000, args.batch_size), args.m, device)
    parts = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
    rows = torch.arange(args.batch_size)
    for paradigm in args.paradigm:
        for precision in args.precision:
            model = build_model(args.architecture, precision=precision)
            step = step_of(model, paradigm, mosaics, parts)
            for _ in range(WARM_UP_STEPS):
                step(rows)
            with Clock() as clock:
                for _ in range(args.steps):
                    step(rows)
            print(f"\n{paradigm}, {precision}, m={args.m}, batch {args.batch_size}, ", end="")
            print(args.architecture)
            show(clock, args.steps, args.top)


def show(clock: Clock, steps: int, top: int) -> None:
    """Prints the milliseconds of a step by groups of operators, and the dearest operators."""
    spent = {key: 1000 * min(each) * len(each) / steps for key, each in clock.seconds.items()}
    total = sum(spent.values())
    groups = dict.fromkeys((*GROUPS, "others"), 0.0)
    for (name, _), milliseconds in spent.items():
        groups[group_of(name)] += milliseconds
    for group, milliseconds in groups.items():
        print(f"{group:<16}{milliseconds:>8.2f} ms{100 * milliseconds / total:>7.1f} %")
    print(f"{'all':<16}{total:>8.2f} ms")
    for name, shapes in sorted(spent, key=spent.__getitem__, reverse=True)[:top]:
        print(f"    {spent[name, shapes]:>8.3f} ms  {name} {shapes}")


def group_of(name: str) -> str:
    """The group of an operator's name."""
    return next(
        (group for group, beginnings in GROUPS.items() if name.startswith(beginnings)), "others"
    )


if __name__ == "__main__":
    main()
