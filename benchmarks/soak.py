"""Many small cells, and a driver or a worker killed every few seconds: is anything lost?

    uv run python benchmarks/soak.py
    uv run python benchmarks/soak.py --cells 40 --kills 3 --seed 7

The same command is started again after each kill -9 of the driver, until as many were killed as
asked, and then to its end. Beside it runs an uninterrupted study; the two must hold equal bits.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.processes import training
from study.results import Results

PROJECT = Path(__file__).parents[1]

CELLS_A_SEED = 5
"""Soft, hard and lvml, and hybrids with two switch points that fork from soft."""

GRID = [
    "m=4", "n=200", "epochs=20", "lr=0.1", "batch_size=10", "paradigm=soft,hard,lvml,hybrid",
    "switch_point=0.3,0.6", "evaluations=4", "train_metrics_size=50", "validation_size=50",
    "test_size=50",
]  # fmt: skip

PATIENCE = 600.0
"""Seconds without a training worker after which the study counts as hung."""


def main() -> int:
    args = arguments()
    seeds = args.cells // CELLS_A_SEED
    command = [
        sys.executable, "-m", "study.run", "digits", "--checkpoint-every", "0.5",
        "--max-retries", "10", "--set", *GRID, f"seed=0-{seeds - 1}", "confirm=none",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        started = time.monotonic()
        run(command, whole, "--tracking", "none")
        straight = time.monotonic() - started
        started = time.monotonic()
        kills, seen = soak(command, broken, args.kills, args.every, random.Random(args.seed))
        seconds = time.monotonic() - started
        found = faults(whole, broken, seen)
        cells = Results(broken).cells()
        print(f"seed {args.seed}, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores")
        print(f"cells: {len(cells)}, {int(cells['shared_prefix'].sum())} of them forked")
        print(f"kills: {kills['driver']} of the driver, {kills['worker']} of workers")
        print(f"cells complete when the driver was last killed: {len(seen) // 2}")
        for name, count in found.items():
            print(f"{name}: {count}")
        print(f"seconds: {seconds:.0f}; uninterrupted and without MLflow: {straight:.0f}")
        return int(any(found.values()))


def soak(
    command: list[str], results: Path, count: int, every: float, rng: random.Random
) -> tuple[Counter[str], dict[Path, bytes]]:
    """Kills `count` processes; returns what was killed, and the files of then complete cells."""
    kills: Counter[str] = Counter()
    seen: dict[Path, bytes] = {}
    while kills.total() < count:
        process = start(command, results)
        while process.poll() is None and kills.total() < count:
            if not wait_for_training(process):
                break
            time.sleep(rng.expovariate(1 / every))
            workers = training(process.pid)
            target = rng.choice(["driver", "worker"])
            if target == "worker" and workers:
                os.kill(rng.choice(workers), signal.SIGKILL)
                kills["worker"] += 1
            elif target == "driver" and process.poll() is None:
                process.kill()
                process.wait()
                kills["driver"] += 1
                seen |= complete(results)
        process.wait()
        if process.returncode == 0:
            break
    run(command, results)
    return kills, seen


def start(command: list[str], results: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command, *more, "--results", str(results)],
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def run(command: list[str], results: Path, *more: str) -> None:
    """Runs the study to its end."""
    done = subprocess.run(
        [*command, *more, "--results", str(results)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the study ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


def wait_for_training(process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None:
        if training(process.pid):
            return True
        if time.monotonic() > deadline:
            raise SystemExit("no worker began to train: the study hangs")
        time.sleep(0.2)
    return False


def complete(results: Path) -> dict[Path, bytes]:
    """The files of the complete cells."""
    tables = ("cells", "evaluations")
    paths = [
        results / table / f"{cell_id}.parquet"
        for cell_id in Results(results).finished()
        for table in tables
    ]
    return {path: path.read_bytes() for path in paths}


def faults(whole: Path, broken: Path, seen: dict[Path, bytes]) -> dict[str, int]:
    """Counts of faults that must all be 0."""
    expected, got = Results(whole), Results(broken)
    ids = expected.cells()["cell_id"]
    files = [path.stem for path in broken.glob("cells/**/*.parquet")]
    one, other = (numbers(results) for results in (expected, got))
    left = [p for f in ("checkpoints", "forks") for p in broken.glob(f"{f}/*")]
    return {
        "lost": len(set(ids) - got.finished()),
        "doubled": len(files) - len(set(files)) + len(set(files) - set(ids)),
        "half-written": len(got.survey().damaged) + len(list(broken.rglob("*.part"))),
        "changed after they were complete": sum(
            not path.exists() or path.read_bytes() != data for path, data in seen.items()
        ),
        "wrong": sum(not one[cell_id].equals(other.get(cell_id)) for cell_id in ids),
        "checkpoints and fork points left": len(left),
        **runs(broken, set(ids)),
    }


def numbers(results: Results) -> dict[str, pd.DataFrame]:
    """Cell id -> its evaluations without times."""
    table = results.evaluations().drop(columns="train_seconds")
    table = table.sort_values(["cell_id", "budget_fraction", "split"])
    table["heatmap"] = table["heatmap"].map(tuple)
    return {
        str(cell_id): rows.reset_index(drop=True) for cell_id, rows in table.groupby("cell_id")
    }


def runs(results: Path, ids: set[str]) -> dict[str, int]:
    """How many MLflow runs are missing or doubled."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{results / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("digits").experiment_id
    found: Counter[str] = Counter()
    token = None
    while True:
        page = client.search_runs([experiment], max_results=1000, page_token=token)
        found.update(run.data.tags.get("cell_id", "") for run in page)
        token = page.token
        if not token:
            break
    del found[""]
    return {
        "MLflow runs missing": len(ids - set(found)),
        "MLflow runs doubled": found.total() - len(found),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--cells", type=int, default=500, help=f"a multiple of {CELLS_A_SEED} (500)")
    add("--kills", type=int, default=20)
    add("--every", type=float, default=5.0, help="mean seconds of training between kills (5)")
    add("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the moments")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
