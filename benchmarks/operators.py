"""What a training step on a CPU spends its time on, operator by operator.

    python benchmarks/operators.py --batch-size 32 --architecture small --paradigm soft lvml

Each operator of PyTorch is timed by itself within the step, so caches hold what they hold there.
(A profiler takes memory for its events, and so makes large tensors pay page faults.) The least
time of the steps counts, since other work on the machine only adds. What convolutions and matrix
products take is the floor of all that a study can do around them.
"""

from __future__ import annotations

import collections
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from study import hardware

GROUPS = {
    "convolutions": ("convolution",),
    "products": ("mm", "addmm", "bmm"),
    "pooling": ("max_pool2d",),
    "ReLU": ("relu", "threshold"),
    "copies, casts": ("clone", "_to_copy", "copy_", "index_select"),
    "SGD": ("_foreach",),
    "others": ("",),
}
"""Names in the table -> beginnings of the names of operators; the first that fits counts."""


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
    parser = measure.options(
        __doc__,
        m=5,
        paradigm={"nargs": "+", "default": ["soft"]},
        precision=["float32", "bfloat16"],
        architecture={"default": "scripts"},
        batch_size=32,
        threads=torch.get_num_threads(),
        steps=50,
        top={"type": measure.positive, "default": 8, "help": "operators to print"},
    )
    parser.set_defaults(device="cpu")
    args = stepping.set_up(parser)
    print(stepping.machine(args.device))
    mosaics = stepping.made_up_mosaics(max(1_000, args.batch_size), args.m, args.device)
    parts = hardware.micro_batch(args.batch_size, mosaics.bytes_each, args.device)
    rows = torch.arange(args.batch_size)
    for paradigm, precision in itertools.product(args.paradigm, args.precision):
        model = stepping.build_model(args.architecture, precision)
        step = stepping.step_of(model, paradigm, mosaics, parts)
        for _ in range(stepping.WARM_UP_STEPS):
            step(rows)
        with Clock() as clock:
            for _ in range(args.steps):
                step(rows)
        sizes = f"m={args.m}, batch {args.batch_size}, {args.architecture}"
        print(f"\n{paradigm}, {precision}, {sizes}")
        show(clock, args.steps, args.top)


def show(clock: Clock, steps: int, top: int) -> None:
    """Prints the milliseconds of a step by groups of operators, and the dearest operators."""
    spent = {key: 1000 * min(each) * len(each) / steps for key, each in clock.seconds.items()}
    total = sum(spent.values())
    groups = dict.fromkeys(GROUPS, 0.0)
    for (name, _), milliseconds in spent.items():
        groups[next(g for g, starts in GROUPS.items() if name.startswith(starts))] += milliseconds
    for group, milliseconds in groups.items():
        print(f"{group:<16}{milliseconds:>8.2f} ms{100 * milliseconds / total:>7.1f} %")
    print(f"{'all':<16}{total:>8.2f} ms")
    for name, shapes in sorted(spent, key=spent.__getitem__, reverse=True)[:top]:
        print(f"    {spent[name, shapes]:>8.3f} ms  {name} {shapes}")


if __name__ == "__main__":
    main()
