"""Peak memory of training on many mosaics, each way in a process of its own.

    python benchmarks/memory.py
    python benchmarks/memory.py --baseline  # its data alone is 9.8 GB

A few steps at CIFAR's size, with the trainer of the studies and, with `--baseline`, as a research
script does it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.baseline import ResearchScript
from benchmarks.support.measure import Child, build_model, machine, positive
from benchmarks.support.processes import peak_bytes
from study import hardware, tasks
from study.cell import Budget, Cell, Schedule
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.cifar import CIFAR10_CLASSES
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.steps.loop import train

STEPS = 3
SMALL = 100  # mosaics of an evaluation, which is not measured here


def main() -> None:
    """Prints one row a way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=positive, default=40_000)
    parser.add_argument("--m", type=positive, default=20)
    parser.add_argument("--batch-size", type=positive, default=256)
    parser.add_argument("--paradigm", choices=("soft", "hard", "lvml"), default="soft")
    parser.add_argument("--architecture", choices=("scripts", "paper", "small"), default="scripts")
    parser.add_argument("--baseline", action="store_true", help="also as a research script")
    parser.add_argument("--threads", type=positive, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(machine(torch.device("cpu")))
    print(
        f"{args.paradigm}, n={args.n:,}, m={args.m}, batch {args.batch_size}, "
        f"{args.architecture}, {STEPS} steps"
    )
    ways: dict[str, tuple[Callable[..., Callable[[], int]], *tuple[object, ...]]] = {
        "imports only": (imports_only,),
        "float32, study": (study_train, args, "float32", None),
        "float32, whole batch": (study_train, args, "float32", args.batch_size),
        "bfloat16, study": (study_train, args, "bfloat16", None),
        "bfloat16, whole batch": (study_train, args, "bfloat16", args.batch_size),
    }
    if args.baseline:
        ways["baseline"] = (research_script, args)
    print(f"{'training':<24}{'peak GB':>9}")
    for name, (prepare, *arguments) in ways.items():
        with Child(prepare, *arguments) as child:
            print(f"{name:<24}{child() / 1e9:>9.2f}", flush=True)


def imports_only() -> Callable[[], int]:
    """Only what a process imports."""
    return peak_bytes


def study_train(
    args: argparse.Namespace, precision: str, micro_batch: int | None
) -> Callable[[], int]:
    """The real training loop on a made-up task."""
    device = hardware.set_up(args.threads)
    task = MosaicTask("cifar10", made_up_base(), tasks.info("cifar10").classes)
    cell = Cell(
        task="cifar10",
        data_digest=task.facts.digest,
        m=args.m,
        n=args.n,
        architecture=args.architecture,
        schedule=Schedule.single(args.paradigm, 0.001),
        seed=0,
        budget=Budget(STEPS * args.batch_size, "mosaics"),
        train_metrics_size=SMALL,
        validation_size=SMALL,
        test_size=SMALL,
        batch_size=args.batch_size,
        evaluation_points=(1.0,),
        precision=precision,
    )
    train(cell, task, device, micro_batch=micro_batch)
    return peak_bytes


def research_script(args: argparse.Namespace) -> Callable[[], int]:
    """All mosaics as one float tensor, filled part by part so that memory holds it only once."""
    torch.set_num_threads(args.threads)
    task = MosaicTask("cifar10", made_up_base(), tasks.info("cifar10").classes)
    segments = torch.empty(args.n, args.m, *task.input_shape)
    rng = np.random.default_rng(0)
    for part in segments.split(256):
        index = torch.from_numpy(rng.integers(len(task.base.train_images), size=part.shape[:2]))
        pixels = torch.from_numpy(task.base.train_images)[index]
        part.copy_((pixels / 255 - 0.5).div_(0.5).permute(0, 1, 4, 2, 3))
    labels = torch.from_numpy(rng.integers(task.num_classes, size=args.n))
    model = build_model(args.architecture)
    script = ResearchScript(
        args.paradigm,
        model.focus,
        model.classifier,
        segments,
        labels,
        lr=0.001,
        batch_size=args.batch_size,
    )
    for _ in range(STEPS):
        script.step()
    return peak_bytes


def made_up_base() -> BaseImages:
    """Random images, as many as CIFAR-10 has."""
    rng = np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    for count in (50_000, 10_000):
        arrays.append(rng.integers(256, size=(count, 32, 32, 3), dtype=np.uint8))
        arrays.append(rng.integers(len(CIFAR10_CLASSES), size=count))
    return BaseImages.create(
        *arrays, class_names=CIFAR10_CLASSES, max_value=255, source="the benchmark"
    )


if __name__ == "__main__":
    main()
