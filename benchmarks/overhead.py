"""How much of a study's time is training, and what a further trial costs to start.

    uv run python benchmarks/overhead.py digits
    uv run python benchmarks/overhead.py cifar10 --data-dir DIR --set seed=0

Runs the cells of the preset `quick` that tune, through Ray Tune, into a directory that is deleted
after, and prints where the trials' wall time went. MLflow is off.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.stepping import machine
from search_spaces import all_studies
from study import hardware, tasks
from study.cell.work import Work
from study.errors import RequestError
from study.launch.cluster import ray_session
from study.launch.watching import Watch
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.plan.plan import Plan
from study.results import Results
from study.tasks.sources.places import Places
from study.terminal.progress import Progress


class Times(Progress):
    """Notes when each trial starts and ends."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.concurrent, stream=io.StringIO())
        self.expect(plan.cells, dict.fromkeys((cell.id for cell in plan.cells), 1.0))
        self.starts: dict[str, float] = {}
        self.ends: dict[str, float] = {}

    def started(self, cell_id: str) -> None:
        self.starts[cell_id] = time.perf_counter()
        super().started(cell_id)

    def ended(self, cell_id: str, status: str) -> None:
        self.ends[cell_id] = time.perf_counter()
        super().ended(cell_id, status)


def main() -> None:
    """Runs a study and prints one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=sorted(all_studies()))
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--set", nargs="+", default=[])
    args = parser.parse_args()
    space = all_studies()[args.study]
    data_dir = str(args.data_dir.resolve()) if args.data_dir else None
    places = Places(data_dir)
    try:
        axes = resolve(space, "quick", args.set)
        plan = make_plan(space, "quick", axes, lambda task, o: tasks.load(task, places, o).facts)
    except RequestError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    with tempfile.TemporaryDirectory() as folder:
        results = Results(folder)
        results.prepare()
        times = Times(plan)
        watch = Watch(times, lambda cell_id, status: None)
        work = Work(
            study=space.name, results=folder, data_dir=data_dir, code_version="benchmark",
            threads=plan.threads,
        )  # fmt: skip
        began = time.perf_counter()
        with ray_session(plan.concurrent * plan.threads) as ray:
            from study.launch.tune import run_trials

            gpus = 1 if ray.cluster_resources().get("GPU") else 0
            run_trials(plan.jobs, work, watch, gpus_per_trial=gpus)
            wall = time.perf_counter() - began
        cells = results.cells().set_index("cell_id")
    if watch.failures:
        sys.exit(f"{len(watch.failures)} cells failed: {watch.failures[0].reason}")
    print(machine(hardware.set_up(plan.threads)))
    print(f"{args.study}: {len(cells)} cells, {plan.concurrent} at a time, {wall:.0f} s")
    ends = pd.Series(times.ends).sort_values()
    trials = (ends - pd.Series(times.starts)).sum()
    totals = ["total_train_seconds", "total_evaluate_seconds", "total_seconds"]
    train, evaluate, every = cells[totals].sum()
    print(f"trials' wall time      {trials:8.1f} s")
    for name, part in (
        ("training steps", train),
        ("evaluations", evaluate),
        ("warm-up, mosaics, files", every - train - evaluate),
    ):
        print(f"  {name:<24}{part:8.1f} s {100 * part / trials:6.1f} %")
    share = evaluate / (train + evaluate)
    print(f"evaluations / (steps + evaluations): {100 * share:.1f} %")
    first, later = ends[: plan.concurrent], ends[plan.concurrent :]
    if later.empty:
        return
    print(f"first trials: {first.max() - began:.1f} s from launch to end")
    # After the first trials, the workers do nothing but further trials.
    busy = (ends.max() - first).sum()
    spent = cells.loc[later.index, "total_seconds"].sum()
    print(f"start-up of a further trial: {(busy - spent) / len(later):.2f} s")


if __name__ == "__main__":
    main()
