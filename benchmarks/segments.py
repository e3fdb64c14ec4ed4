"""What a step and an evaluation cost as the number of segments grows, with fitted exponents.

    python benchmarks/segments.py
    python benchmarks/segments.py --architecture scripts --m 4,16,64,256,1024,4096
    python benchmarks/segments.py --json cost.json --figure cost.png

Every point is measured in a process of its own, on made-up images: the step of the studies on one
batch, an evaluation of as many mosaics, and the most memory that the process held.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import (
    Child,
    Figures,
    build_model,
    machine,
    made_up_mosaics,
    positive,
    set_up,
    step_of,
    synchronise,
    task_of,
    timed,
)
from benchmarks.support.processes import peak_bytes
from study import hardware, paradigms, tasks
from study.evaluate.classification import evaluate
from study.models.flops import evaluating
from study.train.budget.cost import training_flops

PARADIGMS = ("soft", "hard", "hard-sampled", "lvml", "lvml-sampled")
QUANTITIES = {"step": "s a step", "evaluation": "s an evaluation", "memory": "GB at most",
              "flops": "training FLOPs a step"}  # fmt: skip
LARGE_M = 64
"""From here on what does not depend on m is small beside the rest."""

MOST_MEMORY = 4e9
"""Bytes that no point should need, at a batch of 64."""

Point = Mapping[str, float]


def main() -> None:
    """Prints a table a quantity, and its exponents."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--architecture", choices=("perceptron", "scripts"), default="perceptron")
    parser.add_argument(
        "--m", type=_numbers, default=[4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096]
    )
    parser.add_argument("--batch-size", type=positive, default=64)
    parser.add_argument("--paradigm", nargs="+", choices=PARADIGMS, default=PARADIGMS)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=positive, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timing, at least")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="log-log, as PNG or PDF")
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    print(machine(device))
    print(f"{args.architecture}, batch {args.batch_size}")
    figures = Figures(args.json, device, args)
    found: dict[str, dict[int, Point]] = {name: {} for name in args.paradigm}
    for m in args.m:
        for name, points in found.items():
            with Child(measured, args, name, m) as child:
                points[m] = child()
            figures.add(paradigm=name, m=m, **points[m])
    for quantity, title in QUANTITIES.items():
        _print_table(title, quantity, found)
    large = [(n, m) for n, of in found.items() for m, p in of.items() if p["memory"] > MOST_MEMORY]
    print(f"\nmore than {MOST_MEMORY / 1e9:g} GB: {large or 'none'}")
    if args.figure:
        _draw(found, args.figure)


def measured(args: argparse.Namespace, name: str, m: int) -> Callable[[], Point]:
    """Seconds of a step and of an evaluation, peak bytes, and analytic FLOPs of a step."""
    device = hardware.set_up(args.threads, gpu=args.device == "cuda")
    info = tasks.info(task_of(args.architecture))
    shape = (info.input_shape[0], info.input_shape[1], info.input_shape[2])
    mosaics = made_up_mosaics(args.batch_size, m, device, shape, images=1_000)
    model = build_model(args.architecture).to(device)
    paradigm = paradigms.get(name)
    micro_batch = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
    step = step_of(model, name, mosaics, micro_batch)
    rows = torch.arange(args.batch_size, device=device)
    flops = training_flops(name, model.flops(info.input_shape), m) * args.batch_size

    def evaluation() -> None:
        with evaluating(model):
            evaluate(model, paradigms.get(paradigm.exact), mosaics)

    def measure() -> Point:
        seconds = {
            "step": _fastest(lambda: step(rows), device, args.seconds),
            "evaluation": _fastest(evaluation, device, args.seconds),
        }
        return {**seconds, "memory": float(_peak(device)), "flops": float(flops)}

    return measure


def _fastest(function: Callable[[], object], device: torch.device, least: float) -> float:
    """The least seconds of a call, in rounds that last as long as asked for, after a warm-up."""
    timer = timed(function, device, 1)
    timer()
    found = [timer()]
    started = time.perf_counter()
    while time.perf_counter() - started < least:
        found.append(timer())
    return min(found)


def _peak(device: torch.device) -> int:
    """Bytes: of the GPU's memory that was allocated, or of this process, its imports included."""
    synchronise(device)
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else peak_bytes()


def exponent(points: Mapping[int, Point], quantity: str) -> tuple[float, float]:
    """The slope of log(quantity) over log(m) from `LARGE_M` on, and half of its 95 % interval.

    NaN with fewer than two points, or three for the interval.
    """
    from scipy.stats import linregress, t

    m = [each for each in points if each >= LARGE_M]
    if len(m) < 2:
        return math.nan, math.nan
    fit = linregress(np.log(m), np.log([points[each][quantity] for each in m]))
    half = fit.stderr * t.ppf(0.975, len(m) - 2) if len(m) > 2 else math.nan
    return float(fit.slope), float(half)


def _print_table(title: str, quantity: str, found: Mapping[str, Mapping[int, Point]]) -> None:
    ms = list(next(iter(found.values())))
    unit = 1e9 if quantity == "memory" else 1
    print(
        f"\n{title:<24}" + "".join(f"{f'm={m}':>11}" for m in ms) + f"  exponent, m >= {LARGE_M}"
    )
    for name, points in found.items():
        slope, half = exponent(points, quantity)
        values = "".join(f"{points[m][quantity] / unit:>11.3g}" for m in ms)
        print(f"{name:<24}{values}  {slope:.2f} ({slope - half:.2f} to {slope + half:.2f})")


def _draw(found: Mapping[str, Mapping[int, Point]], file: Path) -> None:
    """A panel a quantity, a line a paradigm, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from analysis.figures.style import line_styles

    figure, panels = plt.subplots(1, len(QUANTITIES), figsize=(14, 3.6), layout="constrained")
    for panel, (quantity, title) in zip(panels, QUANTITIES.items(), strict=True):
        for name, style in line_styles(found).items():
            points = found[name]
            values = np.array([each[quantity] for each in points.values()])
            look = {"color": style.colour, "linestyle": style.dashes, "marker": style.marker}
            panel.loglog(list(points), values / (1e9 if quantity == "memory" else 1), **look,
                         label=name, markersize=4)  # fmt: skip
        panel.set(title=title, xlabel="segments m")
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    figure.savefig(file, dpi=150)


def _numbers(text: str) -> Sequence[int]:
    return [positive(each) for each in text.split(",")]


if __name__ == "__main__":
    main()
