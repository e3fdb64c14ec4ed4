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

from benchmarks.support import measure, stepping
from benchmarks.support.baseline import ResearchScript
from benchmarks.support.roofline import Ceilings, ceilings, work
from benchmarks.support.stepping import Figures, Step, build_model, timed
from benchmarks.support.tables import Table
from study import hardware, paradigms
from study.cell import PRECISIONS
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics

N = 1_024
BASELINE, KEPT = "baseline", "baseline, memory kept"


def main() -> None:
    """Measures what the command line asks for and prints one table a paradigm and m."""
    parser = measure.options(
        __doc__,
        device="cpu",
        m=[5],
        paradigm=["soft"],
        architecture=("scripts", "paper", "small"),
        precision={"nargs": "+", "choices": PRECISIONS, "help": "default: all here"},
        batch_size=256,
        compile=False,
        threads=torch.get_num_threads(),
        rounds=7,
        steps={"type": measure.positive, "help": "of each in a round (1, on a GPU 20)"},
        json=measure.FILE,
    )
    args = stepping.set_up(parser)
    on_gpu = args.device.type == "cuda"
    args.precision = args.precision or [p for p in PRECISIONS if p != "tf32" or on_gpu]
    if "tf32" in args.precision and not on_gpu:
        parser.error("tf32 needs --device cuda")
    figures = Figures(args)
    print(stepping.machine(args.device))
    reached = ceilings(args.device)
    print(reached.text, flush=True)
    figures.add(ceilings=reached.flops, copy_bytes_per_second=reached.bytes)
    for m in args.m:
        for paradigm in args.paradigm:
            compare(paradigm, m, args, reached, figures)


def compare(
    paradigm: str, m: int, args: argparse.Namespace, reached: Ceilings, figures: Figures
) -> None:
    """Times all ways to take one step and prints them."""
    mosaics = stepping.made_up_mosaics(max(N, args.batch_size), m, args.device)
    fitting = hardware.micro_batch(args.batch_size, mosaics.bytes_each, args.device)
    ways = [(precision, BASELINE) for precision in args.precision]
    if args.device.type == "cpu" and "float32" in args.precision:
        ways.append(("float32", KEPT))
    timers: dict[tuple[str, str], measure.Timer] = {}
    with contextlib.ExitStack() as children:
        for precision, name in ways:
            child = measure.in_a_process(baseline, paradigm, m, precision, args, name == KEPT)
            timers[precision, name] = children.enter_context(child)
        for precision in args.precision:
            for name, step in study_steps(paradigm, precision, mosaics, fitting, args).items():
                timers[precision, name] = timed(step, args.device, args.steps)
        seconds = measure.side_by_side(timers, args.rounds)
    model = build_model(args.architecture)
    print(f"\n{paradigm}, m={m}, batch {args.batch_size}, {args.architecture}, parts of {fitting}")
    works = {p: work(model, paradigm, m, args.batch_size, p, reached) for p in args.precision}
    for precision, each in works.items():
        print(
            f"{precision} step: {each.flops / 1e9:.3g} GFLOP, {each.bytes / 1e6:.4g} MB through "
            f"memory, floor {1000 * each.floor:.3g} ms"
        )
    table = Table(
        "step", "ms", "mosaics/s", "x baseline", "  least to most", "x float32", "% of ceiling",
        first=36,
    )  # fmt: skip
    for (precision, name), times in seconds.items():
        typical = statistics.median(times)
        to_own = measure.ratio(seconds[precision, BASELINE], times)
        to_float32 = "-"
        if "float32" in args.precision:
            to_float32 = f"{measure.ratio(seconds['float32', BASELINE], times).median:.2f}"
        flops = works[precision].flops
        table.row(
            f"{precision}, {name}", f"{1000 * typical:.2f}", f"{args.batch_size / typical:.0f}",
            f"{to_own.median:.2f}", to_own.spread, to_float32,
            f"{100 * flops / typical / reached.flops[precision]:.1f}",
        )  # fmt: skip
        figures.add(
            paradigm=paradigm, m=m, precision=precision, step=name, seconds=times, flops=flops,
            flops_per_second=flops / typical, floor_seconds=works[precision].floor,
            times_baseline_of_its_precision=to_own.median,
            least_to_most=[to_own.least, to_own.most],
        )  # fmt: skip


def baseline(
    paradigm: str, m: int, precision: str, args: argparse.Namespace, keep_memory: bool
) -> measure.Timer:
    """A step of the research script, for a process of its own."""
    torch.set_num_threads(args.threads)
    if keep_memory:
        hardware.keep_freed_memory()
    mosaics = stepping.made_up_mosaics(max(N, args.batch_size), m, torch.device("cpu"))
    whole = mosaics.batch(torch.arange(len(mosaics)))
    model = build_model(args.architecture)
    script = ResearchScript(
        paradigm, model.focus, model.classifier, whole.segments.contiguous(), whole.labels,
        lr=stepping.LR, momentum=stepping.MOMENTUM, batch_size=args.batch_size,
        device=args.device.type, precision=precision,
    )  # fmt: skip
    return timed(script.step, args.device, args.steps)


def study_steps(
    paradigm: str, precision: str, mosaics: Mosaics, fitting: int, args: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    """The study's step in a precision, and variants of it, by name."""
    rows = torch.arange(args.batch_size, device=args.device)

    def new(of: Paradigm | str = paradigm, size: int = fitting) -> Step:
        model = build_model(args.architecture, precision).to(args.device)
        return stepping.step_of(model, of, mosaics, size)

    def nchw() -> Step:
        model = build_model(args.architecture, precision).to(args.device)
        model.to(memory_format=torch.contiguous_format)
        return stepping.step_of(model, paradigm, Contiguous(**vars(mosaics)), fitting)

    with hardware.products(precision, args.device):  # also while a step is captured
        steps = {"study": new(), "NCHW": nchw()}
        if fitting < args.batch_size:
            steps["whole batch"] = new(size=args.batch_size)
        if args.compile:
            steps["study, compiled"] = new(Compiled(paradigm))
        if rows.is_cuda:
            captured = {"study": new(), "NCHW": nchw()}
            if args.compile:
                captured["study, compiled"] = new(Compiled(paradigm))
            for name, step in captured.items():
                steps[f"{name}, captured"] = stepping.CapturedStep(step, rows)
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
