"""What many cells cost besides training: made-up cells, of which none trains.

    uv run python benchmarks/scale.py --cells 10000
    uv run python benchmarks/scale.py --cells 2000 --evaluations 6
    uv run python benchmarks/scale.py --requests
    uv run python benchmarks/scale.py --cells 100000 --analysis
    uv run python benchmarks/scale.py --cells 100000 --write DIR

The cells go the usual way through `study.run` into the results and MLflow, in a directory that is
deleted after, but a part replaces training by made-up evaluations. It prints what a cell costs the
command in each quarter of the run, which shows what grows with the number of cells; then how long
the commands take that read and write so many cells, and how large these are. Of fewer than 1,000
cells it prints what one costs in the whole run, and how large they are.

`--requests` instead counts a cell's requests to an S3 server on this machine (moto). `--analysis`
compares the paradigms of a compacted directory, of which each comparison has 500 options, 20 seeds
and 10,000 instances, see `benchmarks/support/compared.py`. `--write` leaves the results of so many
cells in a directory, as a study leaves them, for the commands that read them.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import seconds_of, table
from search_spaces import STUDIES
from study import tasks
from study.cell import Cell
from study.cell.events import Instances
from study.cell.work import Job, Work
from study.launch.run_job import run_job
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.results import SPLITS, Results, cell_columns, cell_file, instances
from study.results.columns import CELLS_SCHEMA, EVALUATIONS_SCHEMA
from study.results.merging import MOST_SMALL_FILES, ROWS_A_FILE, merge
from study.tasks.task import Task
from study.terminal.options import positive
from study.train.steps.pack_member import Outcome

PROJECT = Path(__file__).parents[1]

WORKERS = 2
PAUSE = 0.2
"""Seconds between two looks at the results."""

FEW_OPTIONS = ["paradigm=soft,hard", "lr=0.01,0.02,0.03,0.05,0.1"]
OPTIONS_A_SEED = 10

MANY_OPTIONS = [
    "paradigm=soft,hard,lvml,hybrid",
    f"lr={','.join(str(i / 100) for i in range(1, 21))}",
    f"switch_point={','.join(str(i / 100) for i in range(4, 92, 4))}",
    "seed=0-19",
]
CELLS_A_COMPARISON = 10_000

INSTANCES, M = 10_000, 20
"""Of the test split, and segments of each, as of CIFAR-10."""

SHARES = ("accuracy", "saif", "foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf", "loss")
PARTS = 25  # of a heat map

FEW = 1_000
"""With fewer, a quarter is over at once, and commands take as long as Python needs to start."""

QUARTERS = ("1st quarter", "2nd", "3rd", "4th")
WHOLE = ("all of the run",)
MB = 1e6
KEPT = {
    "results": "cells/*", "MLflow's database": "mlflow.db*",
    "MLflow's artifacts": "mlflow-artifacts/**/*",
}  # fmt: skip
"""What is kept of cells -> its files in the results directory."""

METHODS = ("GET", "HEAD", "PUT", "DELETE", "POST")

NOTHING = f"""
import sys
sys.path.insert(0, {str(PROJECT)!r})
import study.train.run_training
from benchmarks.scale import made_up
from search_spaces.base import Preset, SearchSpace
from study.parts import register_study

register_study(SearchSpace("nothing", "digits", "", {{"quick": Preset("", {{}})}}))
study.train.run_training.train_pack = made_up
"""
"""A part with which workers train nothing."""


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--cells", type=positive, default=2_000, help="2,000")
    add("--evaluations", type=positive, help="a cell, from the start (21; of --analysis 100)")
    add("--requests", action="store_true", help="count requests to S3 instead")
    add("--analysis", action="store_true", help="time the analysis of so many cells instead")
    add("--write", metavar="DIR", help="leave made-up results there instead")
    args = parser.parse_args()
    evaluations = args.evaluations or (100 if args.analysis else 21)
    print(f"{os.cpu_count()} cores, {date.today()}, {evaluations} evaluations\n")
    if args.requests:
        table(("requests to S3", *METHODS, "all"), requests(evaluations))
        return
    axes = [*FEW_OPTIONS, f"seed=0-{math.ceil(args.cells / OPTIONS_A_SEED) - 1}"]
    if args.analysis:
        comparisons = math.ceil(args.cells / CELLS_A_COMPARISON)
        axes = [*MANY_OPTIONS, f"m={','.join(str(2 + i) for i in range(comparisons))}"]
    axes += ["epochs=4", f"evaluations={evaluations - 1}", "confirm=none"]
    if args.write:
        record(Results(args.write), cells_of(axes)[: args.cells], MOST_SMALL_FILES)
        return
    with tempfile.TemporaryDirectory(prefix="scale-") as folder:
        results = Results(f"{folder}/results")
        results.prepare()
        if args.analysis:
            cells = cells_of(axes)[: args.cells]
            table(("what", "seconds", "peak GB"), analysed(results, cells))
            return
        costs = driven(results, axes)
        cells = len(results.finished())
        table(
            ("a cell", *costs),
            ((name, *map("{:.2f}".format, row)) for name, *row in costs.itertuples()),
        )
        print(f"\nAfter {cells:,} cells\n")
        found = sizes(results) if cells < FEW else afterwards(results, axes)
        table(("what", "measured"), found)


def cells_of(axes: Sequence[str]) -> Sequence[Cell]:
    """Cells of the digits that ship with scikit-learn."""
    space = STUDIES["digits"]
    resolved = resolve(space, "quick", axes)
    plan = make_plan(space, "quick", resolved, lambda task, of: tasks.load(task, options=of).facts)
    return plan.cells


def record(results: Results, cells: Sequence[Cell], a_file: int, instances: str = "") -> None:
    """Records cells, so many in a file; see `evaluations_of`."""
    results.prepare()
    for first in range(0, len(cells), a_file):
        some = cells[first : first + a_file]
        ended = pa.Table.from_pylist([row_of(cell) for cell in some], CELLS_SCHEMA)
        tables = [EVALUATIONS_SCHEMA.empty_table(), evaluations_of(some, instances)]
        every = pa.concat_tables(tables, promote_options="default")  # with the other columns
        texts = dict(zip(ended["cell_id"].to_pylist(), ended["cell"].to_pylist(), strict=True))
        results.write(cell_file.MERGED, cell_file.rows_of(ended, every), texts)


def row_of(cell: Cell) -> dict[str, Any]:
    """What a study would record of a cell besides its evaluations."""
    row = {"study": "digits", "kind": "training", **cell_columns(cell), "num_classes": 3}
    row |= {"status": "done", "steps": 1_000, "package_versions": "{}"}
    return row | {"total_seconds": 60.0, "finished_at": "2026-01-01T00:00:00+00:00"}


def evaluations_of(cells: Sequence[Cell], instances: str = "") -> pa.Table:
    """What training would have found: scores that grow, with noise.

    Args:
        cells: of the same evaluations and budget.
        instances: digest of the instances of the test split, on each of which cells are right or
            not at the last evaluation; empty: they are not known.
    """
    random = np.random.default_rng(int(cells[0].id, 16))
    points, budget = cells[0].evaluation_points, cells[0].budget.amount
    a_cell = len(points) * len(SPLITS)
    rows = len(cells) * a_cell
    fraction = np.tile(np.repeat(points, len(SPLITS)), len(cells))
    level = np.repeat(random.uniform(0.3, 0.9, len(cells)), a_cell)
    columns: dict[str, Any] = {
        "cell_id": np.repeat([cell.id for cell in cells], a_cell),
        "budget_fraction": fraction,
        "split": np.tile(SPLITS, rows // len(SPLITS)),
        "inference": ["soft"] * rows,
        "num_evaluated": [INSTANCES] * rows,
        "train_seconds": 60 * fraction,
        "heatmap": [*random.integers(400, size=(rows, PARTS)) / 1e4],
    }
    most = {"step": 1_000, "mosaics_seen": 64_000, "compute_flops": budget}
    columns |= {name: (last * fraction).astype(int) for name, last in most.items()}
    for name in SHARES:
        noise = random.normal(0, 0.02, rows)
        columns[name] = (level * fraction + noise).clip(0, 1).round(4)
    if instances:
        last = np.arange(a_cell - 1, rows, a_cell)
        known = {"right": columns["accuracy"], "saif": columns["saif"], "known": np.ones(rows)}
        for name, chance in known.items():
            marks = random.random((len(cells), INSTANCES)) < chance[last, None]
            columns[f"instance_{name}"] = held = np.full(rows, None)
            held[last] = [of_cell.tobytes() for of_cell in np.packbits(marks, axis=1)]
        columns["instances"] = held = np.full(rows, None)
        held[last] = instances
    return pa.table(columns)


def made_up(
    cells: Sequence[Cell], task: Task, device: Any, on_evaluation: Any, *_: Any
) -> list[Outcome]:
    """Replaces `train_pack`: reports every evaluation, makes none."""
    outcomes = []
    for cell in cells:
        rows = evaluations_of([cell]).drop_columns(["cell_id"]).to_pylist()
        for row in rows:
            if row["split"] == "validation" and on_evaluation:
                on_evaluation({cell: row})
        outcomes.append(Outcome(steps=1_000, evaluations=rows, train_seconds=60.0))
    return outcomes


def driven(results: Results, axes: Sequence[str]) -> pd.DataFrame:
    """Runs a study; what a cell costs its command, one row per cost, a column per quarter.

    Of few cells there is one column. The first cells, with which the workers start, are not
    counted.

    Raises:
        SystemExit: the command failed.
    """
    part = Path(results.url).with_name("nothing.py")
    part.write_text(NOTHING)
    words = ["study.run", "digits", "--with", str(part), "--results", results.url, "--set", *axes]
    total = len(cells_of(axes))
    parts = WHOLE if total < FEW else QUARTERS
    samples: list[dict[str, float]] = []
    with psutil.Popen([sys.executable, "-m", *words], cwd=PROJECT, stdout=DEVNULL) as command:
        for stop in np.linspace(WORKERS, total, len(parts) + 1):
            while len(results.finished()) < stop:
                if command.poll() is not None:
                    sys.exit(f"study.run ended with {command.returncode}")
                time.sleep(PAUSE)
            samples.append({"cells": len(results.finished()), **spent(command, results)})
    found = pd.DataFrame(samples).diff()[1:]
    costs = found.drop(columns="cells").div(found["cells"], axis=0).T
    return costs.set_axis([*parts], axis=1)


def spent(command: psutil.Process, results: Results) -> dict[str, float]:
    """What a command has taken by now."""
    threads = {each.id: 1e3 * (each.user_time + each.system_time) for each in command.threads()}
    database = sqlite3.connect(f"{results.url}/mlflow.db")
    with contextlib.closing(database):
        ((logged,),) = database.execute("SELECT count(*) FROM runs")
    return {
        "wall ms": 1e3 * time.perf_counter(),
        "CPU ms of the main thread": threads.pop(command.pid),
        "CPU ms of MLflow and Ray": sum(threads.values()),
        "memory, KB": command.memory_info().rss / 1e3,
        "runs in MLflow": logged,
    }


def afterwards(results: Results, axes: Sequence[str]) -> Iterator[tuple[str, str]]:
    """How long commands take that plan the cells, read and write them, and how large these are."""
    folder = Path(results.url)
    none, report = (str(folder.with_name(name)) for name in ("none", "report"))
    plan = ["study.run", "digits", "--plan", "--set", *axes, "--results"]
    track = ["study.track", results.url]
    yield "study.track, what MLflow lacks", f"{command_seconds(track):.1f} s"
    yield from sizes(results)
    read = seconds_of(lambda: Results(results.url).survey())  # by a command that has read no file
    yield "survey at a start", f"{read:.2f} s"
    for name, command in {
        "study.run --plan, nothing done": [*plan, none],
        "study.run --plan, all done": [*plan, results.url],
        "analysis.report": ["analysis.report", results.url, "--out", report],
        "study.compact": ["study.compact", results.url],
    }.items():
        yield name, f"{command_seconds(command):.1f} s"


def sizes(results: Results) -> Iterator[tuple[str, str]]:
    """How large is what is kept of the cells."""
    thousands = len(results.finished()) / 1000
    for name, pattern in KEPT.items():
        files = [path for path in Path(results.url).glob(pattern) if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        yield f"{name}, a 1,000 cells", f"{size / MB / thousands:.1f} MB"


def command_seconds(command: Sequence[str]) -> float:
    """How long a command takes."""
    words = [sys.executable, "-m", *command]
    return seconds_of(lambda: subprocess.run(words, cwd=PROJECT, check=True, stdout=DEVNULL))


def analysed(results: Results, cells: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    """Time and peak memory of the comparison of cells, as `study.compact` leaves them."""
    random = np.random.default_rng(0)
    foreground = random.integers(3_000, size=(INSTANCES, 1))
    background = 3_000 + random.integers(7_000, size=(INSTANCES, M - 1))
    held = Instances(np.hstack([foreground, background]))
    digest = instances.keep(results.storage, held)
    cells = sorted(cells, key=lambda c: (c.comparison_id, c.paradigm, c.schedule.text, c.seed))
    rows_a_cell = len(cells[0].evaluation_points) * len(SPLITS)
    record(results, cells, ROWS_A_FILE // rows_a_cell, digest)
    command = [sys.executable, "benchmarks/support/compared.py", results.url]
    found = subprocess.run(command, cwd=PROJECT, check=True, stdout=PIPE, text=True)
    for what, line in zip(("compared", "with heat maps"), found.stdout.splitlines(), strict=True):
        yield what, *line.split()


def requests(evaluations: int) -> Iterator[tuple[str, ...]]:
    """One cell's requests to an S3 server on this machine, a row a part of its way."""
    import boto3
    from moto.server import ThreadedMotoServer

    seen: Counter[str] = Counter()

    def count(request: logging.LogRecord) -> bool:
        seen[next(name for name in METHODS if name in request.getMessage())] += 1
        return False

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    log = logging.getLogger("werkzeug")
    log.setLevel(logging.INFO)
    log.addFilter(count)
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "benchmark", "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }  # fmt: skip
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="benchmark")
    results = Results("s3://benchmark/results")
    results.prepare()
    work = Work(
        study="digits", results=results.url, code_version="benchmark", origin=results.origin(),
        gpu=False,
    )  # fmt: skip
    first, cell, *_ = cells_of([*FEW_OPTIONS, f"evaluations={evaluations - 1}"])

    def train(cell: Cell) -> None:
        with patch("study.train.run_training.train_pack", made_up):
            run_job(Job(((cell,),)), work)

    train(first)
    parts: dict[str, Callable[[], object]] = {
        "worker: a cell from start to record": lambda: train(cell),
        "driver: MLflow's thread, of a cell": lambda: results.tables([cell.id]),
        "driver: survey at a start, of two cells": lambda: Results(results.url).survey(),
        "driver: merging the files of two cells": lambda: merge(results, [first.id, cell.id]),
    }
    for name, part in parts.items():
        seen.clear()
        part()
        yield name, *(str(seen[method]) for method in METHODS), str(seen.total())
    server.stop()


if __name__ == "__main__":
    main()
