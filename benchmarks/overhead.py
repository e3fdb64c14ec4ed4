"""How much of a study's time is training, and what a further trial costs to start.

    uv run python benchmarks/overhead.py digits
    uv run python benchmarks/overhead.py cifar10 --data-dir DIR --set seed=0

Takes the options of `study.run`. Runs the preset `quick` in one stage, without MLflow, into a
directory that is deleted after, and prints where the time of its cells went.
"""

from __future__ import annotations

import datetime
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.stepping import machine
from study import hardware
from study.plan.planning import planned
from study.results import Results
from study.run_options import requested
from study.terminal.command import guarded

PROJECT = Path(__file__).parents[1]


def main() -> int:
    """Runs a study and prints where its time went; the exit status is that of `study.run`."""
    with tempfile.TemporaryDirectory() as folder:
        asked = [*sys.argv[1:], "--results", folder, "--tracking", "none"]
        at = asked.index("--set") + 1 if "--set" in asked else len(asked)
        asked[at:at] = ["--set"] * (at == len(asked)) + ["confirm=none"]
        plan = planned(requested(asked))
        began = time.time()
        command = [sys.executable, "-m", "study.run", *asked]
        status = subprocess.run(command, cwd=PROJECT, stdout=subprocess.DEVNULL).returncode
        wall = time.time() - began
        cells = Results(folder).cells()
    print(machine(hardware.set_up(plan.threads)))
    print(f"{len(cells)} cells, {plan.concurrent} at a time, {wall:.0f} s")
    totals = ["total_train_seconds", "total_evaluate_seconds", "total_seconds"]
    train, evaluate, every = cells[totals].sum()
    parts = {
        "training steps": train,
        "evaluations": evaluate,
        "warm-up, mosaics, files": every - train - evaluate,
    }
    print(f"time of all cells         {every:8.1f} s")
    for name, part in parts.items():
        print(f"  {name:<24}{part:8.1f} s {100 * part / every:6.1f} %")
    share = evaluate / (train + evaluate)
    print(f"evaluations / (steps + evaluations): {100 * share:.1f} %")
    cells["end"] = [datetime.datetime.fromisoformat(at).timestamp() for at in cells["finished_at"]]
    cells = cells.sort_values("end")
    first, later = cells["end"][: plan.concurrent], cells[plan.concurrent :]
    print(f"first cells: {first.max() - began:.0f} s from the command to their end")
    if not later.empty:  # the workers do nothing but further trials
        busy = (cells["end"].max() - first).sum()
        spent = later["total_seconds"].sum()
        print(f"start-up of a further trial: {(busy - spent) / len(later):.2f} s")
    return status


if __name__ == "__main__":
    sys.exit(guarded("overhead", main, "stopped; nothing is kept"))
