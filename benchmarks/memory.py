"""Peak memory of training on many mosaics, each way in a process of its own.

    python benchmarks/memory.py
    python benchmarks/memory.py --baseline  # its data alone is 9.8 GB

A few steps at CIFAR's size, with the trainer of the studies and, with `--baseline`, as a research
script does it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure, stepping
from benchmarks.support.baseline import ResearchScript
from study import hardware
from study.cell import Budget, Schedule
from study.train.steps.loop import train

STEPS = 3
SMALL = 100  # mosaics of an evaluation, which is not measured here
IMAGES = 30_000  # train images, and as many for tests: together as many as CIFAR-10 has

IMPORTS, STUDY, WHOLE, BASELINE = "imports only", "study", "whole batch", "baseline"


def main() -> None:
    """Prints one row a way."""
    args = measure.options(
        __doc__,
        n=40_000,
        m=20,
        batch_size=256,
        paradigm=("soft", "hard", "lvml"),
        architecture=("scripts", "paper", "small"),
        baseline=False,
        threads=torch.get_num_threads(),
    ).parse_args()
    torch.set_num_threads(args.threads)
    print(stepping.machine(torch.device("cpu")))
    print(f"{args.paradigm}, n={args.n:,}, m={args.m}, batch {args.batch_size}, {STEPS} steps\n")

    def row(precision: str, way: str) -> tuple[str, str]:
        with measure.in_a_process(peak_of, args, precision, way) as peak:
            return f"{precision}, {way}", f"{peak() / 1e9:.2f}"

    ways = [("float32", IMPORTS), *itertools.product(("float32", "bfloat16"), (STUDY, WHOLE))]
    ways += [("float32", BASELINE)] * args.baseline
    measure.table(("training", "peak GB"), itertools.starmap(row, ways))


def peak_of(args: argparse.Namespace, precision: str, way: str) -> Callable[[], int]:
    """The most memory of this process after it has trained."""
    if way == BASELINE:
        train_research_script(args)
    elif way != IMPORTS:
        train_cell(args, precision, args.batch_size if way == WHOLE else None)
    return measure.peak_bytes


def train_cell(args: argparse.Namespace, precision: str, micro_batch: int | None) -> None:
    """The real training loop on a made-up task."""
    device = hardware.set_up(args.threads, gpu=False)
    cell, task = stepping.made_up(
        "cifar10", IMAGES, m=args.m, n=args.n, architecture=args.architecture,
        schedule=Schedule.single(args.paradigm, stepping.LR), batch_size=args.batch_size,
        budget=Budget(STEPS * args.batch_size, "mosaics"), evaluation_points=(1.0,),
        precision=precision, train_metrics_size=SMALL, validation_size=SMALL, test_size=SMALL,
    )  # fmt: skip
    train(cell, task, device, micro_batch=micro_batch)


def train_research_script(args: argparse.Namespace) -> None:
    """All mosaics as one float tensor, filled part by part so that memory holds it only once."""
    torch.set_num_threads(args.threads)
    mosaics = stepping.made_up_mosaics(args.n, args.m, torch.device("cpu"), images=2 * IMAGES)
    segments = torch.empty(args.n, args.m, *stepping.CIFAR_SHAPE)
    for rows in torch.arange(args.n).split(256):
        segments[rows] = mosaics.batch(rows).segments
    model = stepping.build_model(args.architecture)
    script = ResearchScript(
        args.paradigm, model.focus, model.classifier, segments, mosaics.labels, lr=stepping.LR,
        batch_size=args.batch_size,
    )  # fmt: skip
    for _ in range(STEPS):
        script.step()


if __name__ == "__main__":
    main()
