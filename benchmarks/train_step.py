"""How many times faster a training step is than a research script's, side by side in one run.

    python benchmarks/train_step.py --device cpu --m 5 --paradigm soft
    python benchmarks/train_step.py --device cpu --m 20 --micro-batch 10 21 85 256
    python benchmarks/train_step.py --device cuda --m 5 20 --paradigm soft hard lvml --compile

It needs only torch, NumPy and pyarrow. The baseline is `benchmarks/support/baseline.py` in a
process of its own, with the default settings of PyTorch and the C library, and in the precision of
the rows that are compared with it ("x baseline"). "x float32" compares with the float32 baseline
instead. "Memory kept" is the baseline with `keep_freed_memory`. The other rows are the studies'
step and variants of it: with passes of other sizes, and "NCHW", which has weights and segments in
PyTorch's default memory format, where all others have channels last. "% of ceiling" is the counted
FLOP/s as a share of what a large matrix product reaches in the same precision.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from benchmarks.support.baseline import ResearchScript
from benchmarks.support.stepping import Figures, Step, build_model, timed
from study import hardware, paradigms
from study.cell import PRECISIONS
from study.paradigms.paradigm import Paradigm
from study.tasks.mosaics.mosaics import Mosaics
from study.train.budget.cost import training_flops

N = 1_024
BASELINE, KEPT = "baseline", "baseline, memory kept"

MATRIX_SIZE = {"cpu": 2_048, "cuda": 8_192}
EMULATED_SIZE = 512
"""Of a product in bfloat16 on a CPU without its instructions; a larger one takes seconds."""

COPY_BYTES = {"cpu": 2**28, "cuda": 2**32}
REPEATS = 8


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
        micro_batch={"nargs": "+", "type": measure.positive, "help": "mosaics a pass, too"},
        compile=False,
        threads=torch.get_num_threads(),
        rounds=7,
        steps={"type": measure.positive, "help": "of each in a round (1, on a GPU 20)"},
        json=measure.JSON,
    )
    args = stepping.set_up(parser)
    on_gpu = args.device.type == "cuda"
    args.precision = args.precision or [p for p in PRECISIONS if p != "tf32" or on_gpu]
    args.micro_batch = args.micro_batch or [args.batch_size]
    if "tf32" in args.precision and not on_gpu:
        parser.error("tf32 needs --device cuda")
    figures = Figures(args)
    print(stepping.machine(args.device))
    reached = {precision: ceiling(precision, args.device) for precision in args.precision}
    copied = copy_rate(args.device)
    products = ", ".join(f"{each / 1e12:.3g} TFLOP/s {name}" for name, each in reached.items())
    print(f"ceilings: matrix product {products}; copy {copied / 1e9:.3g} GB/s", flush=True)
    figures.add(ceilings=reached, copy_bytes_per_second=copied)
    for m in args.m:
        for paradigm in args.paradigm:
            compare(paradigm, m, args, reached, figures)


def ceiling(precision: str, device: torch.device) -> float:
    """FLOP/s of a large matrix product."""
    half = precision == "bfloat16"
    emulated = half and not hardware.has_bfloat16(device)
    size = EMULATED_SIZE if emulated else MATRIX_SIZE[device.type]
    dtype = torch.bfloat16 if half else torch.float32
    a = torch.randn(size, size, device=device).to(dtype)
    out = torch.empty_like(a)
    with hardware.products(precision, device):
        return 2 * size**3 / fastest(functools.partial(torch.mm, a, a, out=out), device)


def copy_rate(device: torch.device) -> float:
    """Bytes a second that a large copy reads and writes."""
    source = torch.zeros(COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return 2 * len(source) / fastest(lambda: target.copy_(source), device)


def fastest(function: Callable[[], object], device: torch.device) -> float:
    """The least seconds of a few calls."""
    timer = timed(function, device, 1)
    return min(timer() for _ in range(REPEATS))


def compare(
    paradigm: str, m: int, args: argparse.Namespace, reached: dict[str, float], figures: Figures
) -> None:
    """Times all ways to take one step and prints them."""
    mosaics = stepping.made_up_mosaics(max(N, args.batch_size), m, args.device)
    ways = [(precision, BASELINE) for precision in args.precision]
    if args.device.type == "cpu" and "float32" in args.precision:
        ways.append(("float32", KEPT))
    timers: dict[tuple[str, str], measure.Timer] = {}
    with contextlib.ExitStack() as children:
        for precision, name in ways:
            child = measure.in_a_process(baseline, paradigm, m, precision, args, name == KEPT)
            timers[precision, name] = children.enter_context(child)
        for precision in args.precision:
            for name, step in study_steps(paradigm, precision, mosaics, args).items():
                timers[precision, name] = timed(step, args.device, args.steps)
        seconds = measure.side_by_side(timers, args.rounds)
    model = build_model(args.architecture)
    flops = args.batch_size * training_flops(paradigm, model.flops(stepping.CIFAR_SHAPE), m)
    sizes = f"m={m}, batch {args.batch_size}, {args.architecture}"
    print(f"\n{paradigm}, {sizes}: {flops / 1e9:.3g} GFLOP\n")

    def rows() -> Iterator[tuple[str, ...]]:
        for (precision, name), times in seconds.items():
            typical = statistics.median(times)
            to_own = measure.ratio(seconds[precision, BASELINE], times)
            to_float32 = "-"
            if "float32" in args.precision:
                to_float32 = f"{measure.ratio(seconds['float32', BASELINE], times).median:.2f}"
            yield (
                f"{precision}, {name}", f"{1000 * typical:.2f}", f"{to_own.median:.2f}",
                to_own.spread, to_float32, f"{100 * flops / typical / reached[precision]:.1f}",
            )  # fmt: skip
            figures.add(
                paradigm=paradigm, m=m, precision=precision, step=name, seconds=times,
                flops_per_second=flops / typical, least_to_most=to_own[1:],
                times_baseline_of_its_precision=to_own.median,
            )  # fmt: skip

    measure.table(
        ("step", "ms", "x baseline", "  least to most", "x float32", "% of ceiling"), rows()
    )


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
    paradigm: str, precision: str, mosaics: Mosaics, args: argparse.Namespace
) -> dict[str, Callable[[], object]]:
    """The study's step in a precision, and variants of it, by name."""
    rows = torch.arange(args.batch_size, device=args.device)
    fitting = hardware.micro_batch(args.batch_size, mosaics.bytes_each, args.device)
    contiguous = Contiguous(**vars(mosaics))

    def new(
        of: Paradigm | str = paradigm, data: Mosaics = mosaics, micro_batch: int = fitting
    ) -> Step:
        model = build_model(args.architecture, precision).to(args.device)
        if data is contiguous:
            model.to(memory_format=torch.contiguous_format)
        step = stepping.step_of(model, of, data, micro_batch)
        return functools.partial(in_precision, precision, step)

    steps = {"study": new, "NCHW": functools.partial(new, data=contiguous)}
    if args.compile:
        steps["study, compiled"] = functools.partial(new, Compiled(paradigm))
    made = {name: make() for name, make in steps.items()}
    for size in dict.fromkeys(each for each in args.micro_batch if each != fitting):
        name = "whole batch" if size >= args.batch_size else f"passes of {size}"
        made[name] = new(micro_batch=size)
    if rows.is_cuda:
        for name, make in steps.items():
            made[f"{name}, captured"] = stepping.CapturedStep(make(), rows)
    return {name: functools.partial(step, rows) for name, step in made.items()}


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
