"""How many times faster a training step is than a research script's, side by side in one run.

    python benchmarks/train_step.py --device cpu --m 5 --paradigm soft
    python benchmarks/train_step.py --device cuda --m 5 20 --paradigm soft hard lvml --compile

It needs only torch, NumPy and pyarrow. The baseline is `benchmarks/baseline.py` in a process of
its own, with the default settings of PyTorch and the C library (on a GPU, convolutions may use
TensorFloat-32 there, but not in the study). "Memory kept" is the baseline with
`keep_freed_memory`. The other rows are the studies' step and variants of it. "% of ceiling" is the
counted FLOP/s as a share of a matrix product's in the same precision.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.baseline import ResearchScript
from benchmarks.measure import (
    CIFAR_SHAPE,
    LR,
    MOMENTUM,
    Child,
    Timer,
    build_model,
    captured,
    machine,
    made_up_mosaics,
    positive,
    ratio,
    set_up,
    side_by_side,
    step_of,
    timed,
)
from benchmarks.roofline import Ceilings, ceilings, work
from study import hardware, paradigms
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics
from study.train.step import Step

N = 1_024


def main() -> None:
    """Measures what the command line asks for and prints one table a paradigm and m."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=positive, nargs="+", default=[5])
    parser.add_argument(
        "--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft"]
    )
    parser.add_argument("--architecture", choices=("scripts", "paper", "small"), default="scripts")
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--compile", action="store_true", help="also with torch.compile")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--steps", type=positive, default=1, help="steps of each in a round")
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    print(machine(device))
    reached = ceilings(device)
    print(reached.text, flush=True)
    for m in args.m:
        for paradigm in args.paradigm:
            measure(paradigm, m, args, device, reached)


def measure(
    paradigm: str, m: int, args: argparse.Namespace, device: torch.device, reached: Ceilings
) -> None:
    """Times all ways to take one step and prints them."""
    mosaics = made_up_mosaics(max(N, args.batch_size), m, device)
    fitting = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
    baselines = {"baseline": False}
    if device.type == "cpu":
        baselines["baseline, memory kept"] = True
    timers: dict[str, Timer] = {}
    with contextlib.ExitStack() as children:
        for name, keep_memory in baselines.items():
            child = Child(baseline, paradigm, m, args, keep_memory)
            timers[name] = children.enter_context(child)
        for precision in ("float32", "bfloat16"):
            steps = study_steps(paradigm, precision, mosaics, fitting, args)
            timers |= {
                f"{precision}, {name}": timed(step, device, args.steps)
                for name, step in steps.items()
            }
        seconds = side_by_side(timers, args.rounds)
    works = {
        precision: work(
            build_model(args.architecture, precision=precision),
            paradigm,
            m,
            args.batch_size,
            CIFAR_SHAPE,
        )
        for precision in ("float32", "bfloat16")
    }
    print(f"\n{paradigm}, m={m}, batch {args.batch_size}, {args.architecture}, parts of {fitting}")
    for precision, each in works.items():
        print(
            f"{precision} step: {each.flops / 1e9:.3g} GFLOP, {each.bytes / 1e6:.4g} MB through "
            f"memory, floor {1000 * each.floor(reached):.3g} ms"
        )
    print(
        f"{'step':<36}{'ms':>9}{'mosaics/s':>11}{'x baseline':>12}   {'least to most':<15}"
        f"{'% of ceiling':>13}"
    )
    for name, times in seconds.items():
        typical = statistics.median(times)
        middle, low, high = ratio(seconds, "baseline", name)
        precision = "bfloat16" if name.startswith("bfloat16") else "float32"
        share = works[precision].flops / typical / reached.flops[precision]
        print(
            f"{name:<36}{1000 * typical:>9.2f}{args.batch_size / typical:>11.0f}"
            f"{middle:>12.2f}   {f'{low:.2f} to {high:.2f}':<15}{100 * share:>13.1f}",
            flush=True,
        )


def baseline(paradigm: str, m: int, args: argparse.Namespace, keep_memory: bool) -> Timer:
    """A step of the research script, for a child process."""
    torch.set_num_threads(args.threads)
    if keep_memory:
        hardware.keep_freed_memory()
    mosaics = made_up_mosaics(max(N, args.batch_size), m, torch.device("cpu"))
    whole = mosaics.batch(torch.arange(len(mosaics)))
    model = build_model(args.architecture)
    script = ResearchScript(
        paradigm,
        model.focus,
        model.classifier,
        whole.segments.contiguous(),
        whole.labels,
        lr=LR,
        momentum=MOMENTUM,
        batch_size=args.batch_size,
        device=args.device,
    )
    return timed(script.step, torch.device(args.device), args.steps)


def study_steps(
    paradigm: str, precision: str, mosaics: Mosaics, fitting: int, args: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    """The study's step in a precision, and variants of it, by name."""
    rows = torch.arange(args.batch_size, device=mosaics.labels.device)

    def new(of: Paradigm | str = paradigm, size: int = fitting) -> Step:
        model = build_model(args.architecture, precision=precision).to(rows.device)
        return step_of(model, of, mosaics, size)

    steps = {"study": new()}
    if fitting < args.batch_size:
        steps["whole batch"] = new(size=args.batch_size)
    if args.compile:
        steps["study, compiled"] = new(Compiled(paradigm))
    if rows.is_cuda:
        stream = torch.cuda.Stream()
        steps["study, captured"] = captured(new(), rows, stream)
        if args.compile:
            both = captured(new(Compiled(paradigm)), rows, stream)
            steps["study, compiled, captured"] = both
    return {name: functools.partial(step, rows) for name, step in steps.items()}


class Compiled:
    """A paradigm whose loss, networks included, goes through `torch.compile`."""

    def __init__(self, paradigm: str) -> None:
        self._paradigm = paradigms.get(paradigm)
        self.loss: Callable[..., Tensor] = torch.compile(self._paradigm.loss, dynamic=False)

    def __getattr__(self, name: str) -> object:
        return getattr(self._paradigm, name)


if __name__ == "__main__":
    main()
