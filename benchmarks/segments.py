"""What a step and an evaluation cost as the number of segments grows, with fitted exponents.

    python benchmarks/segments.py
    python benchmarks/segments.py --architecture scripts --m 4,16,64,256,1024,4096
    python benchmarks/segments.py --json cost.json --figure cost.png

Every point is measured in a process of its own, on made-up images: the step of the studies on one
batch, an evaluation of as many mosaics, and the most memory that the process held.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from benchmarks.support.tables import Table
from study import hardware, paradigms, tasks
from study.evaluate.classification import evaluate
from study.models.flops import evaluating
from study.train.budget.cost import training_flops

PARADIGMS = ["soft", "hard", "hard-sampled", "lvml", "lvml-sampled"]
QUANTITIES = {"step": "s a step", "evaluation": "s an evaluation", "memory": "GB at most",
              "flops": "training FLOPs a step"}  # fmt: skip
LARGE_M = 64
"""From here on what does not depend on m is small beside the rest."""

MOST_MEMORY = 4.0
"""GB that no point should need, at a batch of 64."""


def main() -> None:
    """Prints a table a quantity, and its exponents."""
    parser = measure.options(
        __doc__,
        architecture=("perceptron", "scripts"),
        m={"type": numbers, "default": [4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096]},
        batch_size=64,
        paradigm={"nargs": "+", "choices": PARADIGMS, "default": PARADIGMS},
        device="cpu",
        threads=1,
        seconds={"type": float, "default": 2.0, "help": "of each timing, at least"},
        json=measure.FILE,
        figure={**measure.FILE, "help": "log-log, as PNG or PDF"},
    )
    args = stepping.set_up(parser)
    print(stepping.machine(args.device))
    print(f"{args.architecture}, batch {args.batch_size}")
    figures = stepping.Figures(args)
    points = []
    for m in args.m:
        for name in args.paradigm:
            with measure.in_a_process(measured, args, name, m) as point:
                points.append({"paradigm": name, "m": m, **point()})
            figures.add(**points[-1])
    import pandas as pd  # not in the processes, whose memory counts

    found = pd.DataFrame(points)
    found["memory"] /= 1e9
    for quantity, title in QUANTITIES.items():
        print()
        table = Table(title, *map("m={}".format, args.m), f"exponent, m >= {LARGE_M}", first=24)
        for name, rows in found.groupby("paradigm", sort=False):
            large = rows[rows["m"] >= LARGE_M]
            slope, low, high = measure.exponent(large["m"], large[quantity])
            values = map("{:.3g}".format, rows[quantity])
            table.row(name, *values, f"{slope:.2f} ({low:.2f} to {high:.2f})")
    most = found.loc[found["memory"] > MOST_MEMORY, ["paradigm", "m"]]
    print(f"\nmore than {MOST_MEMORY:g} GB: {most.to_records(index=False).tolist() or 'none'}")
    if args.figure:
        draw(found, args.figure)


def measured(args: argparse.Namespace, name: str, m: int) -> Callable[[], dict[str, float]]:
    """Seconds of a step and of an evaluation, peak bytes, and analytic FLOPs of a step."""
    device = hardware.set_up(args.threads, gpu=args.device.type == "cuda")
    shape = tasks.info(stepping.task_of(args.architecture)).input_shape
    mosaics = stepping.made_up_mosaics(args.batch_size, m, device, shape, images=1_000)
    model = stepping.build_model(args.architecture).to(device)
    exact = paradigms.get(paradigms.get(name).exact)
    micro_batch = hardware.micro_batch(args.batch_size, mosaics.bytes_each, device)
    step = stepping.step_of(model, name, mosaics, micro_batch)
    rows = torch.arange(args.batch_size, device=device)
    flops = training_flops(name, model.flops(shape), m) * args.batch_size

    def evaluation() -> None:
        with evaluating(model):
            evaluate(model, exact, mosaics)

    def point() -> dict[str, float]:
        seconds = {
            "step": fastest(lambda: step(rows), device, args.seconds),
            "evaluation": fastest(evaluation, device, args.seconds),
        }
        return {**seconds, "memory": float(stepping.peak_memory(device)), "flops": float(flops)}

    return point


def fastest(function: Callable[[], object], device: torch.device, least: float) -> float:
    """The least seconds of a call, in rounds that last as long as asked for, after a warm-up."""
    timer = stepping.timed(function, device, 1)
    timer()
    found, started = [timer()], time.perf_counter()
    while time.perf_counter() - started < least:
        found.append(timer())
    return min(found)


def draw(found: Any, file: Path) -> None:
    """A panel a quantity, a line a paradigm, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from analysis.figures.style import line_styles

    figure, panels = plt.subplots(1, len(QUANTITIES), figsize=(14, 3.6), layout="constrained")
    for panel, (quantity, title) in zip(panels, QUANTITIES.items(), strict=True):
        for name, style in line_styles(found["paradigm"].unique()).items():
            points = found[found["paradigm"] == name]
            panel.loglog(
                points["m"], points[quantity], label=name, color=style.colour,
                linestyle=style.dashes, marker=style.marker, markersize=4,
            )  # fmt: skip
        panel.set(title=title, xlabel="segments m")
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    figure.savefig(file, dpi=150)


def numbers(text: str) -> list[int]:
    """Whole numbers from the command line, with commas between them."""
    return [measure.positive(each) for each in text.split(",")]


if __name__ == "__main__":
    main()
