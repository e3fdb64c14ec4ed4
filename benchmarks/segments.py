"""What a step and an evaluation cost as the number of segments grows, with fitted exponents.

    python benchmarks/segments.py --figure cost.png
    python benchmarks/segments.py --architecture scripts --m 4096 --seconds 0

Every point is measured in a process of its own, on made-up images: the step of the studies on one
batch, an evaluation of as many mosaics, and the most memory that the process held.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from study import hardware, paradigms, tasks
from study.evaluate.classification import evaluate
from study.models.flops import evaluating
from study.train.budget.cost import training_flops

PARADIGMS = ["soft", "hard", "hard-sampled", "lvml", "lvml-sampled"]
LARGE_M = 64
"""From here on what does not depend on m is small beside the rest."""

THREADS = 1
BATCH_SIZE = 64


def main() -> None:
    """Prints a table a quantity, with its exponents, and draws them."""
    args = measure.options(
        __doc__,
        architecture=("perceptron", "scripts"),
        m={"type": numbers, "default": [4, 16, 64, 128, 256, 512, 1_024, 2_048, 4_096]},
        paradigm={"nargs": "+", "choices": PARADIGMS, "default": PARADIGMS},
        seconds={"type": float, "default": 2.0, "help": "of each timing, at least"},
        figure={"type": Path, "metavar": "FILE", "help": "log-log, as PNG or PDF"},
    ).parse_args()
    points = []
    names = [*dict.fromkeys(args.paradigm)]
    for m, name in itertools.product(args.m, names):
        with measure.in_a_process(measured, args, name, m) as point:
            points.append({"paradigm": name, "m": m, **point()})
    print(f"{stepping.machine(hardware.set_up(THREADS))}\n{args.architecture}, batch {BATCH_SIZE}")
    import pandas as pd  # not in the processes, whose memory counts

    tables = pd.DataFrame(points).pivot(index="paradigm", columns="m").loc[names]
    large = [m for m in args.m if m >= LARGE_M]
    for quantity in tables.columns.unique(0):
        found = tables[quantity]
        exponents = [measure.exponent(large, row) for row in found[large].to_numpy()]
        found = found.assign(**{f"exponent, m >= {LARGE_M}": exponents})
        print(f"\n{quantity}\n{found.to_string(float_format='{:.3g}'.format)}")
    if args.figure:
        draw(tables, args.figure)


def measured(args: argparse.Namespace, name: str, m: int) -> Callable[[], dict[str, float]]:
    """Quantity -> its value, by the heads of their tables."""
    device = hardware.set_up(THREADS, gpu=False)
    shape = tasks.info(stepping.task_of(args.architecture)).nominal.input_shape
    mosaics = stepping.made_up_mosaics(BATCH_SIZE, m, device, shape, images=1_000)
    model = stepping.build_model(args.architecture)
    exact = paradigms.get(paradigms.get(name).exact)
    micro_batch = hardware.micro_batch(BATCH_SIZE, mosaics.bytes_each, device)
    step = stepping.step_of(model, name, mosaics, micro_batch)
    rows = torch.arange(BATCH_SIZE)

    def evaluation() -> None:
        with evaluating(model):
            evaluate(model, exact, mosaics)

    def point() -> dict[str, float]:
        return {
            "s a step": fastest(lambda: step(rows), args.seconds),
            "s an evaluation": fastest(evaluation, args.seconds),
            "GB at most": measure.peak_bytes() / 1e9,
            "training FLOPs a step": training_flops(name, model.flops(shape), m) * BATCH_SIZE,
        }

    return point


def fastest(function: Callable[[], object], least: float) -> float:
    """The least seconds of a call, in rounds that last as long as asked for, after a warm-up."""
    function()
    found, started = [measure.seconds_of(function)], time.perf_counter()
    while time.perf_counter() - started < least:
        found.append(measure.seconds_of(function))
    return min(found)


def draw(tables: Any, file: Path) -> None:
    """A panel a quantity, a line a paradigm, both axes logarithmic."""
    from matplotlib.figure import Figure

    from analysis.figures.style import line_styles

    quantities = tables.columns.unique(0)
    styles = line_styles(tables.index)
    figure = Figure(figsize=(14, 3.6), layout="constrained")
    for panel, quantity in zip(figure.subplots(1, len(quantities)), quantities, strict=True):
        of_all = tables[quantity].T
        of_all.plot(
            ax=panel, loglog=True, title=quantity, xlabel="segments m", grid=True,
            legend=quantity == quantities[0], color=[styles[name].colour for name in of_all],
            style=[styles[name].marker + "-" for name in of_all], markersize=4,
        )  # fmt: skip
    figure.savefig(file, dpi=150)


def numbers(text: str) -> list[int]:
    """Whole numbers from the command line, with commas between them."""
    return [measure.positive(each) for each in text.split(",")]


if __name__ == "__main__":
    main()
