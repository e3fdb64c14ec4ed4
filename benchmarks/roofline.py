"""The least time that a training step can take, operator by operator; needs no GPU.

    python benchmarks/train_step.py --device cuda --m 5 20 --paradigm soft hard lvml --json FILE
    python benchmarks/roofline.py --m 5 20 --paradigm soft hard lvml [--measured FILE] [--detail]

The study's own step runs on tensors without memory or arithmetic, so what is counted is what
PyTorch does. An operator reads its tensors once and writes its results once; it takes the longer
of what its FLOPs take at the rate of a large matrix product and what its bytes take at the rate of
a copy. "Least" is that of all operators, one after the other. "x least" is how many times longer a
step took in FILE, whose rates are taken, too; without FILE they are an H200's.

A step of fused kernels can take less: then "x least" says how much of PyTorch's way is left.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import stepping
from benchmarks.support.measure import table
from study import paradigms
from study.cell import PRECISIONS
from study.cell.declared import Whole
from study.paradigms.paradigm import Sampling
from study.terminal.options import positive, typed
from study.train.steps.step import SGD, train_step

at_least_two = typed(Whole(2))

H200: dict[str, Any] = {
    "ceilings": {"float32": 51e12, "tf32": 405e12, "bfloat16": 770e12},
    "bandwidth": 4.2e12,
}
"""FLOP/s of a matrix product of 8,192 x 8,192, and bytes/s of a copy (docs/performance.md)."""

ROWS = {"index_select", "index"}
"""Operators that read only the rows that they take."""

NO_KERNELS = {
    "view", "permute", "expand", "transpose", "t", "slice", "select", "unsqueeze", "squeeze",
    "detach", "alias", "as_strided", "split", "_unsafe_view", "unbind", "lift_fresh", "empty",
    "empty_like", "new_empty", "empty_strided", "new_empty_strided", "device",
}  # fmt: skip
"""Operators that move nothing."""


class Operator(NamedTuple):
    """What one operator does.

    Attributes:
        kind: what it is part of, for people.
        flops: of products.
        bytes: read and written.
    """

    kind: str
    flops: int
    bytes: int


class Rates(NamedTuple):
    """Of a device: FLOP/s of a large product, and bytes/s that a copy reads and writes."""

    flops: float
    bytes: float


def main() -> None:
    """Prints the least times, and how many times longer steps took."""
    head = (
        "step", "operators", "GFLOP", "MB", "ms by FLOPs", "ms by bytes", "ms least",
        "ms measured", "x least",
    )  # fmt: skip
    table(head, rows(arguments()))


def arguments() -> argparse.Namespace:
    """The options."""
    about, _, more = __doc__.partition("\n\n")
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, epilog=more, formatter_class=how)
    add = parser.add_argument
    add("--m", nargs="+", type=at_least_two, default=[5])
    add("--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft"])
    add("--precision", nargs="+", choices=PRECISIONS, default=[*PRECISIONS])
    add("--architecture", choices=("scripts", "paper", "small"), default="scripts")
    add("--batch-size", type=positive, default=256)
    add("--detail", action="store_true", help="by kind of operator, too")
    add("--measured", type=measured, metavar="FILE", help="what train_step.py wrote with --json")
    args = parser.parse_args()
    for name, value in (args.measured or {"options": {}})["options"].items():
        if name in ("architecture", "batch_size") and value != str(getattr(args, name)):
            flag = f"--{name.replace('_', '-')}"
            parser.error(f"--measured is of {flag} {value}, not {getattr(args, name)}")
    return args


def measured(text: str) -> dict[str, Any]:
    """What train_step.py wrote into a file."""
    try:
        found: dict[str, Any] = json.loads(Path(text).read_bytes())
        assert found["options"].keys()
        assert found["figures"][0].keys() >= H200.keys()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError):
        wanted = "must be a file that train_step.py wrote with --json"
        raise argparse.ArgumentTypeError(f"{wanted}, got {text!r}") from None
    return found


def rows(args: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The rows of the table: steps, how long each took, and its kinds of operators."""
    rates, *timed = args.measured["figures"] if args.measured else [H200]
    precisions = [name for name in args.precision if name in rates["ceilings"]]
    for m, paradigm, precision in itertools.product(args.m, args.paradigm, precisions):
        done = operators(m, paradigm, precision, args)
        of_device = Rates(rates["ceilings"][precision], rates["bandwidth"])
        yield limits(f"{paradigm}, m={m}, {precision}", done, of_device)
        least = sum(least_seconds(each, of_device) for each in done)
        for each in timed:
            step = each["paradigm"], each["m"], each["precision"]
            if step == (paradigm, m, precision) and "baseline" not in each["step"]:
                took = float(np.median(each["seconds"]))
                yield f"- {each['step']}", *[""] * 6, f"{1e3 * took:.3f}", f"{took / least:.2f}"
        kinds = {each.kind for each in done} if args.detail else ()
        for kind in sorted(kinds):
            of_kind = [each for each in done if each.kind == kind]
            yield limits(f"  {kind}", of_kind, of_device)


def limits(name: str, done: Sequence[Operator], rates: Rates) -> tuple[str, ...]:
    """A row of the least times of some operators."""
    flops, moved = sum(each.flops for each in done), sum(each.bytes for each in done)
    least = sum(least_seconds(each, rates) for each in done)
    seconds = flops / rates.flops, moved / rates.bytes, least
    times = [f"{1e3 * each:.3f}" for each in seconds]
    return name, f"{len(done)}", f"{flops / 1e9:.4g}", f"{moved / 1e6:.4g}", *times, "", ""


def least_seconds(done: Operator, rates: Rates) -> float:
    """Of an operator."""
    return max(done.flops / rates.flops, done.bytes / rates.bytes)


def operators(m: int, paradigm: str, precision: str, args: argparse.Namespace) -> list[Operator]:
    """What one step of the study does; TensorFloat-32 moves what float32 does."""
    half = "bfloat16" if precision == "bfloat16" else "float32"
    model = stepping.build_model(args.architecture, half)
    mosaics = stepping.made_up_mosaics(args.batch_size, m, torch.device("cpu"), images=256)
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        for module in model.modules():
            for name, weight in module.named_parameters(recurse=False):
                setattr(module, name, nn.Parameter(fake.from_tensor(weight.detach())))
        optimiser = SGD(model.parameters(), 0.001, 0.9)
        rows, sampling = torch.zeros(args.batch_size, dtype=torch.int64), Sampling()
        with Counted() as counted:
            train_step(
                rows, model, paradigms.get(paradigm), optimiser, mosaics, sampling, len(rows)
            )
    return counted.done


class Counted(TorchDispatchMode):
    """Notes the operators within."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[Operator] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name, packet = func.overloadpacket.__name__, func.overloadpacket
        if name in NO_KERNELS:
            return out
        inputs, results = tensors((args, kwargs)), tensors(out)
        moved = sum(map(size, results))
        if name in ROWS:
            moved += moved + sum(map(size, inputs[1:]))
        elif name == "max_pool2d_with_indices_backward":  # zeros first; it reads no inputs
            moved += moved + sum(map(size, inputs[:1] + inputs[2:]))
        else:
            moved += sum(map(size, inputs))
        flops = 0
        if packet in flop_registry:
            flops = flop_registry[packet](*args, **(kwargs or {}), out_val=out)
        self.done.append(Operator(kind_of(name, results, bool(flops)), int(flops), moved))
        return out


def tensors(tree: Any) -> list[Tensor]:
    """Each once."""
    return [*{id(each): each for each in tree_leaves(tree) if isinstance(each, Tensor)}.values()]


def size(tensor: Tensor) -> int:
    """Bytes of the memory behind it: what is broadcast is read once."""
    lengths = (n for n, step in zip(tensor.shape, tensor.stride(), strict=True) if step)
    return int(np.prod([*lengths], dtype=np.int64)) * tensor.element_size()


def kind_of(name: str, results: list[Tensor], multiplies: bool) -> str:
    """What an operator is part of, for people."""
    way = "backward" if "backward" in name else "forward"
    if "pool" in name:
        return f"pooling {way}"
    if name.startswith("convolution"):
        return f"convolution {way}"
    if multiplies:
        return "linear layers, mixture"
    if name in ("relu", "threshold_backward"):
        return "ReLU"
    if name.startswith("_foreach"):
        return "optimiser"
    of_images = any(each.ndim == 4 for each in results) or name in ROWS
    return "pixels" if of_images else "further"


if __name__ == "__main__":
    main()
