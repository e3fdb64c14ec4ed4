"""How much of a cell's time its evaluations take, at the sizes of the published grids.

    python benchmarks/evaluation.py --m 5
    python benchmarks/evaluation.py --m 20 --paradigm soft lvml

Times one step and one evaluation of all splits side by side, and the evaluation as it would be
without sharing base images between mosaics. The share follows from the steps and the 11
evaluations of the CIFAR-10 preset `paper`.
"""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from benchmarks.support.tables import Table
from study import hardware
from study.evaluate.classification import evaluate
from study.models.base import Model
from study.paradigms import get
from study.paradigms.base import Paradigm
from study.tasks.mosaics.mosaics import Mosaics
from study.train.budget import cost

N, EPOCHS, BATCH_SIZE, EVALUATIONS = 10_000, 100, 256, 11
SPLITS = {"train": (2_000, 45_000), "validation": (2_000, 5_000), "test": (10_000, 10_000)}
"""Split -> mosaics to evaluate, and base images to draw them from."""


def main() -> None:
    """Prints one line a paradigm."""
    parser = measure.options(
        __doc__,
        device="cpu",
        m=5,
        paradigm=["soft", "lvml"],
        architecture=("scripts", "paper", "small"),
        threads=torch.get_num_threads(),
        rounds=3,
    )
    args = stepping.set_up(parser)
    splits = [
        stepping.made_up_mosaics(count, args.m, args.device, images=images)
        for count, images in SPLITS.values()
    ]
    print(stepping.machine(args.device))
    print(f"m={args.m}, {args.architecture}, batch {BATCH_SIZE}, {EVALUATIONS} evaluations")
    table = Table(
        "paradigm", "s a step", "s an evaluation", "without sharing", "steps", "share %",
        "without %", first=10,
    )  # fmt: skip
    micro_batch = hardware.micro_batch(BATCH_SIZE, splits[0].bytes_each, args.device)
    rows = torch.arange(BATCH_SIZE, device=args.device)
    for name in args.paradigm:
        model = stepping.build_model(args.architecture).to(args.device)
        ways = {
            "step": functools.partial(stepping.step_of(model, name, splits[0], micro_batch), rows),
            "evaluation": functools.partial(on_all, splits, evaluate, model, get(name)),
            "without": functools.partial(on_all, splits, mosaic_by_mosaic, model, get(name)),
        }
        timers = {key: stepping.timed(way, args.device) for key, way in ways.items()}
        found = measure.side_by_side(timers, args.rounds)
        step, evaluation, without = map(statistics.median, found.values())
        flops = model.flops(stepping.CIFAR_SHAPE)
        budget = cost.soft_epochs(EPOCHS, flops, args.m, N).amount
        steps = budget // (BATCH_SIZE * cost.training_flops(name, flops, args.m))
        shares = [100 / (1 + steps * step / EVALUATIONS / each) for each in (evaluation, without)]
        table.row(
            name, f"{step:.3f}", f"{evaluation:.2f}", f"{without:.2f}", f"{steps}",
            *(f"{share:.1f}" for share in shares),
        )  # fmt: skip


def on_all(splits: list[Mosaics], evaluate: Callable[..., object], *known: object) -> None:
    """Evaluates each split."""
    for split in splits:
        evaluate(*known, split)


@torch.no_grad()
def mosaic_by_mosaic(model: Model, paradigm: Paradigm, mosaics: Mosaics) -> None:
    """The same inference and loss, with every segment of every mosaic through the networks."""
    networks = model.focus, model.classifier
    for rows in mosaics.passes(hardware.pass_size(mosaics.bytes_each, mosaics.labels.device)):
        batch = mosaics.batch(rows)
        attention, _ = paradigm.predict(*networks, batch.segments)
        paradigm.loss(*networks, batch.segments, batch.labels, attention=attention)


if __name__ == "__main__":
    main()
