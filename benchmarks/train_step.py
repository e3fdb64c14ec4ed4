"""How many times faster a training step is than a research script's, side by side in one run.

    python benchmarks/train_step.py --device cpu --m 5 --paradigm soft
    python benchmarks/train_step.py --device cuda --m 5 20 --paradigm soft hard lvml --compile

It needs only torch, NumPy and pyarrow. The baseline is `benchmarks/support/baseline.py` in a
process of its own, with the default settings of PyTorch and the C library, and in the precision of
the rows that are compared with it ("x baseline"). "x float32" compares with the float32 baseline
instead. "Memory kept" is the baseline with `keep_freed_memory`. The other rows are the studies'
step and variants of it; "NCHW" has weights and segments in PyTorch's default memory format, all
others have channels last. "% of ceiling" is the counted FLOP/s as a share of a matrix product's in
the same precision.
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

from benchmarks.support.baseline import ResearchScript
from benchmarks.support.measure import (
    CIFAR_SHAPE,
    LR,
    MOMENTUM,
    CapturedStep,
    Child,
    Figures,
    Step,
    Timer,
    build_model,
    machine,
    made_up_mosaics,
    positive,
    ratio,
    set_up,
    side_by_side,
    step_of,
    timed,
)
from benchmarks.support.roofline import Ceilings, ceilings, work
from study import hardware, paradigms
from study.cell import PRECISIONS
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics

N = 1_024
BASELINE = "baseline"


def main() -> None:
    """Measures what the command line asks for and prints one table a paradigm and m."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=positive, nargs="+", default=[5])
    parser.add_argument(
        "--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft"]
    )
    parser.add_argument("--architecture", choices=("scripts", "paper", "small"), default="scripts")
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, help="default: all here")
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--compile", action="store_true", help="also with torch.compile")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--steps", type=positive, help="of each in a round (1, on a GPU 20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    args.precision = args.precision or [
        p for p in PRECISIONS if p != "tf32" or device.type == "cuda"
    ]
    if "tf32" in args.precision and device.type == "cpu":
        parser.error("tf32 needs --device cuda")
    figures = Figures(args.json, device, args)
    print(machine(device))
    reached = ceilings(device)
    print(reached.text, flush=True)
    figures.add(ceilings=reached.flops, copy_bytes_per_second=reached.bytes)
    for m in args.m:
        for paradigm in args.paradigm:
            measure(paradigm, m, args, device, reached, figures)


def measure(
    paradigm: str,
    m: int,
    args: argparse.Namespace,
    device: torch.device,
    reached: Ceilings,
    figures: Figures,
) -> None:
    """Times all ways to take one step and prints them."""
    mosaics = made_up_mosaics(max(N, args.batch_size), m, device)
    fitting = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
    timers: dict[tuple[str, str], Timer] = {}
    with contextlib.ExitStack() as children:
        for precision in args.precision:
            child = Child(baseline, paradigm, m, precision, args, False)
            timers[precision, BASELINE] = children.enter_context(child)
        if device.type == "cpu" and "float32" in args.precision:
            child = Child(baseline, paradigm, m, "float32", args, True)
            timers["float32", f"{BASELINE}, memory kept"] = children.enter_context(child)
        for precision in args.precision:
            steps = study_steps(paradigm, precision, mosaics, fitting, args)
            timers |= {
                (precision, name): timed(step, device, args.steps) for name, step in steps.items()
            }
        seconds = side_by_side(timers, args.rounds)
    works = {
        precision: work(
            build_model(args.architecture), paradigm, m, args.batch_size, CIFAR_SHAPE, precision
        )
        for precision in args.precision
    }
    print(f"\n{paradigm}, m={m}, batch {args.batch_size}, {args.architecture}, parts of {fitting}")
    for precision, each in works.items():
        print(
            f"{precision} step: {each.flops / 1e9:.3g} GFLOP, {each.bytes / 1e6:.4g} MB through "
            f"memory, floor {1000 * each.floor(reached):.3g} ms"
        )
    print(
        f"{'step':<36}{'ms':>9}{'mosaics/s':>11}{'x baseline':>12}   {'least to most':<15}"
        f"{'x float32':>10}{'% of ceiling':>13}"
    )
    for (precision, name), times in seconds.items():
        typical = statistics.median(times)
        middle, low, high = ratio(seconds, (precision, BASELINE), (precision, name))
        to_float32 = "-"
        if "float32" in args.precision:
            found = ratio(seconds, ("float32", BASELINE), (precision, name))
            to_float32 = f"{found[0]:.2f}"
        rate = works[precision].flops / typical
        print(
            f"{f'{precision}, {name}':<36}{1000 * typical:>9.2f}{args.batch_size / typical:>11.0f}"
            f"{middle:>12.2f}   {f'{low:.2f} to {high:.2f}':<15}{to_float32:>10}"
            f"{100 * rate / reached.flops[precision]:>13.1f}",
            flush=True,
        )
        figures.add(
            paradigm=paradigm,
            m=m,
            precision=precision,
            step=name,
            seconds=times,
            flops=works[precision].flops,
            flops_per_second=rate,
            floor_seconds=works[precision].floor(reached),
            times_baseline_of_its_precision=middle,
            least_to_most=[low, high],
        )


def baseline(
    paradigm: str, m: int, precision: str, args: argparse.Namespace, keep_memory: bool
) -> Timer:
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
        precision=precision,
    )
    return timed(script.step, torch.device(args.device), args.steps)


def study_steps(
    paradigm: str, precision: str, mosaics: Mosaics, fitting: int, args: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    """The study's step in a precision, and variants of it, by name."""
    rows = torch.arange(args.batch_size, device=mosaics.labels.device)

    def new(of: Paradigm | str = paradigm, size: int = fitting, nchw: bool = False) -> Step:
        model = build_model(args.architecture, precision=precision).to(rows.device)
        if not nchw:
            return step_of(model, of, mosaics, size)
        model.to(memory_format=torch.contiguous_format)
        return step_of(model, of, Contiguous(**vars(mosaics)), size)

    with hardware.products(precision, rows.device):  # also while a step is captured
        steps = {"study": new(), "NCHW": new(nchw=True)}
        if fitting < args.batch_size:
            steps["whole batch"] = new(size=args.batch_size)
        if args.compile:
            steps["study, compiled"] = new(Compiled(paradigm))
        if rows.is_cuda:
            steps["study, captured"] = CapturedStep(new(), rows)
            steps["NCHW, captured"] = CapturedStep(new(nchw=True), rows)
            if args.compile:
                steps["study, compiled, captured"] = CapturedStep(new(Compiled(paradigm)), rows)
    return {
        name: functools.partial(in_precision, precision, step, rows)
        for name, step in steps.items()
    }


def in_precision(precision: str, step: Step, rows: Tensor) -> Tensor:
    """A step, whose products may be in TensorFloat-32."""
    with hardware.products(precision, rows.device):
        return step(rows)


class Contiguous(Mosaics):
    """Mosaics whose segments have PyTorch's default memory format."""

    def segments(self, images: Tensor) -> Tensor:
        return super().segments(images).contiguous()


class Compiled:
    """A paradigm whose loss, networks included, goes through `torch.compile`."""

    def __init__(self, paradigm: str) -> None:
        self._paradigm = paradigms.get(paradigm)
        self.loss: Callable[..., Tensor] = torch.compile(self._paradigm.loss, dynamic=False)

    def __getattr__(self, name: str) -> object:
        return getattr(self._paradigm, name)


if __name__ == "__main__":
    main()
