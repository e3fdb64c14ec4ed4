"""How many times faster a training step is than a research script's, side by side in one run.

    python benchmarks/train_step.py --device cpu --m 5 --paradigm soft
    python benchmarks/train_step.py --device cuda --m 5 20 --paradigm soft hard lvml

It needs torch, NumPy and pyarrow alone. The baseline is `benchmarks/baseline.py`; the other rows
are the step that studies train with, with one thing changed.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.baseline import ResearchScript
from benchmarks.measure import build_model, machine, made_up_mosaics, ratio, side_by_side
from study import execution, paradigms
from study.models.base import Model
from study.optimiser import SGD
from study.step import CapturedStep, train_step
from study.tasks.mosaics import Mosaics

N = 1_024
LR = 0.001


def main() -> None:
    """Measures what the command line asks for and prints one table a paradigm and m."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=int, nargs="+", default=[5])
    parser.add_argument("--paradigm", nargs="+", default=["soft"])
    parser.add_argument("--architecture", default="scripts")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.exit(2, "train_step.py: no CUDA device here\n")
    execution.set_up(args.threads)
    print(machine(device))
    for m in args.m:
        mosaics = made_up_mosaics(N, m, device)
        for paradigm in args.paradigm:
            measure(paradigm, m, mosaics, args, device)


def measure(
    paradigm: str, m: int, mosaics: Mosaics, args: argparse.Namespace, device: torch.device
) -> None:
    """Times all ways to take one step and prints them."""
    rows = torch.arange(args.batch_size, device=device)
    model = build_model(args.architecture)
    whole = mosaics.batch(torch.arange(N, device=device))
    script = ResearchScript(
        paradigm,
        model.focus,
        model.classifier,
        whole.segments.contiguous().cpu(),
        whole.labels.cpu(),
        lr=LR,
        batch_size=args.batch_size,
        device=device.type,
    )
    del whole
    fitting = execution.micro_batch(args.batch_size, mosaics.bytes_each, device)
    steps: dict[str, Callable[[], object]] = {"baseline": script.step}
    for precision in ("float32", "bfloat16"):
        for name, size in (("whole batch", args.batch_size), ("study", fitting)):
            if size == fitting and name != "study":
                continue
            one = build_model(args.architecture, precision=precision).to(device)
            steps[f"{precision}, {name}"] = functools.partial(
                step_of(one, paradigm, mosaics, size, device), rows
            )
        if device.type == "cuda":
            one = build_model(args.architecture, precision=precision).to(device)
            eager = step_of(one, paradigm, mosaics, fitting, device)
            steps[f"{precision}, study, captured"] = capture(eager, rows, device)
    seconds = side_by_side(steps, device, args.rounds)
    print(f"\n{paradigm}, m={m}, batch {args.batch_size}, {args.architecture}, parts of {fitting}")
    print(f"{'step':<28}{'ms':>9}{'mosaics/s':>12}{'x baseline':>12}   least to most")
    for name, times in seconds.items():
        typical = sorted(times)[len(times) // 2]
        middle, low, high = ratio(seconds, "baseline", name)
        print(
            f"{name:<28}{1000 * typical:>9.1f}{args.batch_size / typical:>12.0f}"
            f"{middle:>12.2f}   {low:.2f} to {high:.2f}",
            flush=True,
        )


def step_of(
    model: Model, paradigm: str, mosaics: Mosaics, micro_batch: int, device: torch.device
) -> Callable[[torch.Tensor], torch.Tensor]:
    """The study's step on a model."""
    return functools.partial(
        train_step,
        model=model,
        paradigm=paradigms.get(paradigm),
        optimiser=SGD(model.parameters(), LR, 0.9),
        mosaics=mosaics,
        generator=torch.Generator(device).manual_seed(0),
        micro_batch=micro_batch,
    )


def capture(
    eager: functools.partial, rows: torch.Tensor, device: torch.device
) -> Callable[[], object]:
    """The step as a CUDA graph, warmed up as the trainer does."""
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        for _ in range(3):
            eager(rows)
    torch.cuda.synchronize(device)
    return functools.partial(CapturedStep(eager, rows, eager.keywords["generator"]), rows)


if __name__ == "__main__":
    main()
