"""How much of a cell's time its evaluations take, at the sizes of the published grids.

    python benchmarks/evaluation.py --m 5
    python benchmarks/evaluation.py --m 20 --paradigm soft lvml

Times one step and one evaluation of all splits side by side, and the evaluation as it would be
without sharing base images between mosaics. The share follows from the steps and the 11
evaluations of the CIFAR-10 preset `paper`.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import (
    CIFAR_SHAPE,
    build_model,
    machine,
    made_up_mosaics,
    positive,
    set_up,
    side_by_side,
    step_of,
    timed,
)
from study import hardware, paradigms
from study.evaluate.classification import evaluate
from study.models.base import Model
from study.tasks.mosaics.mosaics import Mosaics
from study.train.budget import cost

N, EPOCHS, BATCH_SIZE, EVALUATIONS = 10_000, 100, 256, 11
SPLITS = {"train": (2_000, 45_000), "validation": (2_000, 5_000), "test": (10_000, 10_000)}
"""Split -> mosaics to evaluate, and base images to draw them from."""


def main() -> None:
    """Prints one line a paradigm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--m", type=positive, default=5)
    parser.add_argument(
        "--paradigm", nargs="+", choices=("soft", "hard", "lvml"), default=["soft", "lvml"]
    )
    parser.add_argument("--architecture", choices=("scripts", "paper", "small"), default="scripts")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=positive, default=3)
    args = parser.parse_args()
    device = set_up(parser, args.device, args.threads)
    splits = [
        made_up_mosaics(count, args.m, device, images=images) for count, images in SPLITS.values()
    ]
    print(machine(device))
    print(f"m={args.m}, {args.architecture}, batch {BATCH_SIZE}, {EVALUATIONS} evaluations")
    print(
        f"{'paradigm':<10}{'s a step':>10}{'s an evaluation':>17}{'without sharing':>17}"
        f"{'steps':>8}{'share %':>9}{'without %':>11}"
    )
    for name in args.paradigm:
        model = build_model(args.architecture).to(device)
        micro_batch = hardware.micro_batch(BATCH_SIZE, splits[0].bytes_each, device)
        rows = torch.arange(BATCH_SIZE, device=device)
        functions = {
            "step": functools.partial(step_of(model, name, splits[0], micro_batch), rows),
            "evaluation": functools.partial(of_all, evaluate_split, model, name, splits),
            "without": functools.partial(of_all, mosaic_by_mosaic, model, name, splits),
        }
        timers = {key: timed(function, device) for key, function in functions.items()}
        seconds = side_by_side(timers, args.rounds)
        step, evaluation, without = (statistics.median(each) for each in seconds.values())
        flops = model.flops(CIFAR_SHAPE)
        budget = cost.soft_epochs(EPOCHS, flops, args.m, N).amount
        steps = budget // (BATCH_SIZE * cost.training_flops(name, flops, args.m))
        shares = [
            EVALUATIONS * each / (EVALUATIONS * each + steps * step)
            for each in (evaluation, without)
        ]
        print(
            f"{name:<10}{step:>10.3f}{evaluation:>17.2f}{without:>17.2f}{steps:>8}"
            f"{100 * shares[0]:>9.1f}{100 * shares[1]:>11.1f}",
            flush=True,
        )


def of_all(function, model: Model, paradigm: str, splits: list[Mosaics]) -> None:
    """Calls a function on each split."""
    for split in splits:
        function(model, paradigm, split)


def evaluate_split(model: Model, paradigm: str, mosaics: Mosaics) -> None:
    """Evaluates as studies do."""
    evaluate(model, paradigms.get(paradigm), mosaics)


@torch.no_grad()
def mosaic_by_mosaic(model: Model, paradigm: str, mosaics: Mosaics) -> None:
    """The same inference and loss, with every segment of every mosaic through the networks."""
    one, device = paradigms.get(paradigm), mosaics.labels.device
    size = hardware.pass_size(mosaics.bytes_each, device)
    for rows in torch.arange(len(mosaics), device=device).split(size):
        batch = mosaics.batch(rows)
        attention, _ = one.predict(model.focus, model.classifier, batch.segments)
        one.loss(model.focus, model.classifier, batch.segments, batch.labels, attention=attention)


if __name__ == "__main__":
    main()
