"""What a cell costs the driver, and what many cells leave on disk: cells that train nothing.

    uv run python benchmarks/scheduling.py --cells 10000
    uv run python benchmarks/scheduling.py --cells 200 --evaluations 6 --no-tracking
    uv run python benchmarks/scheduling.py --requests
    uv run python benchmarks/scheduling.py --cells 100000 --write DIR

The cells go the usual way from the plan through Ray Tune into the results and MLflow, in a
directory that is deleted after, but made-up evaluations replace training. It prints what the
driver spends on a cell in the first and the last quarter of the run, which shows what grows with
the number of cells; then how fast files and runs are written and read, and how large they are.
`--requests` instead counts a cell's requests to an S3 server on this machine (moto), `--write`
leaves the results of so many cells in a directory, for the commands that read them.
"""

from __future__ import annotations

import datetime
import io
import itertools
import logging
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure
from benchmarks.support.measure import seconds_of
from search_spaces import all_studies
from study import tasks
from study.cell import Cell
from study.cell.work import Job, Work
from study.evaluate.saif_and_heat_map import HEATMAP_EDGES
from study.launch.cluster import ray_session
from study.launch.failures import Failure
from study.launch.run_job import run_job
from study.launch.watching import Watch
from study.launch.workplace import looked_at
from study.parts import PartFile
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.plan.jobs import Seconds
from study.plan.plan import Plan
from study.results import SPLITS, Results, cell_columns, cell_file
from study.results.columns import CELLS_SCHEMA, EVALUATIONS_SCHEMA
from study.results.merging import MOST_SMALL_FILES, compact, merge
from study.tasks.task import Task
from study.terminal.progress import Progress
from study.tracking.tracker import Tracker, open_tracker
from study.train.steps.pack_member import Outcome

PROJECT = Path(__file__).parents[1]

OPTIONS = ("paradigm=soft,hard", "lr=0.01,0.02,0.03,0.05,0.1", "epochs=4")
OPTIONS_A_SEED = 10

QUARTERS = 4
MB = 1e6
PATIENCE = 60.0
"""Seconds without a logged run after which it stops waiting for MLflow."""

METHODS = ("GET", "HEAD", "PUT", "DELETE", "POST")

NOTHING = f"""
import sys
sys.path.insert(0, {str(PROJECT)!r})
import study.train.run_training
from benchmarks.scheduling import made_up
from search_spaces.base import Preset, SearchSpace
from study.parts import register_study

register_study(SearchSpace("nothing", "digits", "", {{"quick": Preset("", {{}})}}))
study.train.run_training.train_pack = made_up
"""
"""A part with which workers train nothing."""

RESIDENT, WAITING = "driver, resident MB", "cells that wait for MLflow"

Row = tuple[str, str]
"""What was measured, and what it is."""


def main() -> int:
    """Prints the tables; the exit status is 0 done, 1 cells failed, 2 unusable request."""
    args = measure.options(
        __doc__,
        cells=2_000,
        workers=2,
        evaluations={"type": measure.positive, "default": 21, "help": "a cell, from the start"},
        no_tracking=False,
        plan_cells=100_000,
        requests={"action": "store_true", "help": "count requests to S3 instead"},
        write={"metavar": "DIR", "help": "leave made-up results there instead"},
    ).parse_args()
    if args.write:
        record_all(Results(args.write), plan_of(args.cells, args.evaluations).cells)
        return 0
    print(f"{os.cpu_count()} cores, {datetime.date.today()}, {args.evaluations} evaluations")
    if args.requests:
        print("\nRequests to S3, without checkpoints\n")
        measure.table(("what", *METHODS, "all"), requests(args.evaluations))
        return 0
    with tempfile.TemporaryDirectory(prefix="scheduling-") as folder:
        tempfile.tempdir = folder  # Tune's own files, too
        results = Results(Path(folder) / "results")
        results.prepare()
        plan = replace(plan_of(args.cells, args.evaluations), concurrent=args.workers)
        tracker = open_tracker(results, "digits", "none" if args.no_tracking else None)
        driver = Driver(plan, results, tracker)
        if failures := driver.run():
            print(f"{len(failures)} trials failed: {failures[0]}", file=sys.stderr)
            return 1
        print(f"\nThe driver: {len(plan.jobs):,} trials on {args.workers} workers\n")
        measure.table(("a cell", "1st quarter", "4th quarter", "all"), driver.table())
        print(f"\nAfter {len(plan.cells):,} cells\n")
        rows = (
            driver.totals(),
            mlflow_rows(results, tracker, driver),
            command_rows(results, grid(len(plan.cells), args.evaluations)),
            results_rows(results, plan),
            planning_rows(args.plan_cells, args.evaluations),
        )
        measure.table(("what", "measured"), itertools.chain.from_iterable(rows))
    return 0


def grid(cells: int, evaluations: int) -> list[str]:
    """The axes of at least so many cells, with evaluations each, the first before training."""
    seeds = math.ceil(cells / OPTIONS_A_SEED)
    return [*OPTIONS, f"seed=0-{seeds - 1}", f"evaluations={evaluations - 1}"]


def plan_of(cells: int, evaluations: int) -> Plan:
    """A plan of so many cells of the digits that ship with scikit-learn."""
    space = all_studies()["digits"]
    axes = resolve(space, "quick", grid(cells, evaluations))
    plan = make_plan(space, "quick", axes, lambda task, of: tasks.load(task, options=of).facts)
    costs = {cell.id: Seconds(1.0, 0.0) for cell in plan.cells[:cells]}
    return replace(plan, cells=plan.cells[:cells], costs=costs, threads=1)


def made_up(
    cells: Sequence[Cell], task: Task, device: Any, on_evaluation: Any, *_: Any
) -> list[Outcome]:
    """Replaces `train_pack`: reports every evaluation, makes none."""
    outcomes = []
    for cell in cells:
        rows = evaluations_of(cell)
        for row in rows:
            if row["split"] == "validation" and on_evaluation:
                on_evaluation({cell: row})
        outcomes.append(Outcome(steps=1_000, evaluations=rows, train_seconds=60.0))
    return outcomes


def evaluations_of(cell: Cell) -> list[dict[str, Any]]:
    """Rows as training would record them, with shares of a thousand mosaics."""
    rng = random.Random(cell.id)

    def share() -> float:
        return rng.randrange(1_000) / 1_000

    shares = ("accuracy", "saif", "ftpt", "ffpt", "ftpf", "ffpf")
    parts = (len(HEATMAP_EDGES) - 1) ** 2
    return [
        {
            "step": int(1_000 * fraction), "mosaics_seen": int(64_000 * fraction),
            "budget_fraction": fraction, "compute_flops": int(cell.budget.amount * fraction),
            "train_seconds": 60 * fraction, "split": split,
            "inference": cell.schedule.phases[-1].paradigm, "num_evaluated": 1_000,
            "loss": rng.random(), "foreground_attention_mean": rng.random(),
            **{name: share() for name in shares}, "foreground_share": 1.0,
            "heatmap": [share() / parts for _ in range(parts)],
        }
        for fraction in cell.evaluation_points
        for split in SPLITS
    ]  # fmt: skip


def row_of(cell: Cell) -> dict[str, Any]:
    """What a study would record of a cell besides its evaluations."""
    row = {"study": "digits", "kind": "training", **cell_columns(cell), "num_classes": 3}
    return row | {"status": "done", "steps": 1_000, "package_versions": "{}"}


def record_all(results: Results, cells: Sequence[Cell]) -> None:
    """Records cells as a study leaves them, merged as it goes."""
    results.prepare()
    for first in range(0, len(cells), MOST_SMALL_FILES):
        some = cells[first : first + MOST_SMALL_FILES]
        ended = [row_of(cell) for cell in some]
        measured = [{"cell_id": cell.id, **row} for cell in some for row in evaluations_of(cell)]
        rows = cell_file.rows_of(
            pa.Table.from_pylist(ended, CELLS_SCHEMA),
            pa.Table.from_pylist(measured, EVALUATIONS_SCHEMA),
        )
        results.write(cell_file.MERGED, rows, {row["cell_id"]: row["cell"] for row in ended})


class Driver(Progress):
    """Launches a plan as `study.run` does, and samples itself after each quarter of the cells.

    The first cells, with which the workers start, are not counted.

    Args:
        plan: to launch.
        results: to record in.
        tracker: as for `study.run`.

    Attributes:
        samples: recorded cells -> seconds, MB and runs that MLflow lacks by then, by the name of
            their row: wall time, and CPU time of the process and its threads.
    """

    def __init__(self, plan: Plan, results: Results, tracker: Tracker) -> None:
        super().__init__(plan.concurrent, stream=io.StringIO())
        self.expect(plan.cells, plan.seconds)
        self._plan, self._results, self._tracker = plan, results, tracker
        self._place = looked_at(results.url)
        total = len(plan.cells)
        first = min(plan.concurrent, total // 2)
        self._stops = [first + (total - first) * i // QUARTERS for i in range(QUARTERS + 1)]
        self._cells = 0
        self._merging = 0.0
        self._clocks = [
            time.pthread_getcpuclockid(thread.ident)
            for thread in threading.enumerate()
            if thread.name == "mlflow" and thread.ident
        ]
        self.samples: dict[int, dict[str, float]] = {}

    def run(self) -> list[Failure]:
        """Runs the study; returns its failures."""
        watch = Watch(self, self._on_ended, self._on_completed)
        work = Work(
            study="digits", results=self._results.url, code_version="benchmark",
            origin=self._results.origin(), parts=(PartFile("nothing.py", NOTHING),), gpu=False,
        )  # fmt: skip
        with ray_session(self._plan.concurrent):
            from study.launch.tune import run_trials

            run_trials(self._plan.jobs, work, watch, gpus_per_trial=0)
        return watch.failures

    def ended(self, cell_id: str, status: str) -> None:
        super().ended(cell_id, status)
        self._cells += 1
        if self._cells in self._stops:
            self.samples[self._cells] = self._sample()

    def _on_ended(self, cell_id: str, status: str) -> None:
        """As in `study.run`."""
        self._tracker.log_cells({cell_id: status})

    def _on_completed(self, ids: list[str]) -> None:
        before = time.thread_time()
        self._place.merge(ids, sys.exit)
        self._merging += time.thread_time() - before

    def _sample(self) -> dict[str, float]:
        process, launching = time.process_time(), time.thread_time()
        tracking = sum(map(time.clock_gettime, self._clocks))
        return {
            "wall ms": time.perf_counter(),
            "driver CPU ms": process,
            "- Tune and launch": launching - self._merging,
            "- merging files": self._merging,
            "- MLflow's thread": tracking,
            "- other threads, Ray's": process - launching - tracking,
            RESIDENT: resident(),
            WAITING: self._tracker.missing,
        }

    def a_cell(self, name: str, first: int = 0, last: int = -1) -> float:
        """What a cell adds to a number, between two of the samples."""
        cells = list(self.samples)
        begin, end = cells[first], cells[last]
        return (self.samples[end][name] - self.samples[begin][name]) / (end - begin)

    def table(self) -> Iterator[tuple[str, ...]]:
        """The costs, a row each: of a cell in the first and the last quarter, and in all."""
        _, first, *_, last = self.samples.values()
        growth = f"{1000 * self.a_cell(RESIDENT):+.1f} a 1,000 cells"
        for name in first:
            if name not in (RESIDENT, WAITING):
                spans = (0, 1), (-2, -1), (0, -1)
                yield name, *(f"{1000 * self.a_cell(name, *span):.2f}" for span in spans)
        yield RESIDENT, f"{first[RESIDENT]:.0f}", f"{last[RESIDENT]:.0f}", growth

    def totals(self) -> Iterator[Row]:
        """Rows on the whole run."""
        scheduling = self.a_cell("- Tune and launch") + self.a_cell("- merging files")
        yield "cells a second, all workers", f"{1 / self.a_cell('wall ms'):.1f}"
        yield "scheduling and merging: most cells an hour", f"{3600 / scheduling:,.0f}"


def mlflow_rows(results: Results, tracker: Tracker, driver: Driver) -> Iterator[Row]:
    """How fast MLflow logs cells, and how large it is."""
    if tracker.ui_command is None:
        return
    logged = (1 - driver.a_cell(WAITING)) / driver.a_cell("wall ms")
    if tracker.finish(None, math.inf, PATIENCE):
        sys.exit(1)
    thousands = max(driver.samples) / 1000
    root = Path(results.url)
    artifacts = sizes(root.glob("mlflow-artifacts/**/*"))
    yield "MLflow, cells a second while the study runs", f"{logged:.1f}"
    database = sum(sizes(root.glob("mlflow.db*")))
    yield "MLflow's database, MB a 1,000 cells", f"{database / thousands / MB:.1f}"
    yield (
        "MLflow's artifacts, MB and files a 1,000 cells",
        f"{sum(artifacts) / thousands / MB:.1f} MB, {len(artifacts) / thousands:,.0f}",
    )


def command_rows(results: Results, axes: Sequence[str]) -> Iterator[Row]:
    """How long the commands take that plan the same grid, and that report it."""

    def seconds(*arguments: str) -> float:
        command = [sys.executable, "-m", *arguments]
        return seconds_of(
            lambda: subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
        )

    none, report = (Path(results.url).with_name(name) for name in ("none", "report"))
    plan = ["--plan", "--set", *axes, "confirm=none", "--results", str(none)]
    yield "study.run --plan, nothing done", f"{seconds('study.run', 'digits', *plan):.1f} s"
    took = seconds("analysis.report", results.url, "--out", str(report))
    page = (report / "report.html").stat().st_size / MB
    yield "analysis.report", f"{took:.1f} s, page {page:.1f} MB"


def results_rows(results: Results, plan: Plan) -> Iterator[Row]:
    """How large results are, and how fast they are written, read at a start, and compacted."""
    files = sizes(Path(results.url).glob("cells/*"))
    yield "results, MB a 1,000 cells", f"{1000 * sum(files) / len(plan.cells) / MB:.1f}"
    read = seconds_of(lambda: Results(results.url).survey())  # by a command that has read no file
    yield "survey at a start", f"{read:.2f} s, {len(files)} files in cells/"
    yield "study.compact", f"{seconds_of(lambda: compact(results)):.2f} s"
    alone = Results(Path(results.url).with_name("alone"))
    alone.prepare()
    source = [(cell, evaluations_of(cell)) for cell in plan.cells[:200]]

    def write() -> None:
        for cell, rows in source:
            alone.write_cell(row_of(cell), [{"cell_id": cell.id, **each} for each in rows])

    yield "recording, one process", f"{len(source) / seconds_of(write):.0f} cells/s"


def planning_rows(cells: int, evaluations: int) -> Iterator[Row]:
    """Time and memory of planning, in a process of its own."""
    with measure.in_a_process(planner, cells, evaluations) as planned:
        yield f"planning {cells:,} cells", planned()


def planner(cells: int, evaluations: int) -> Callable[[], str]:
    """A timed planning, after a small one that pays for the imports."""
    plan_of(OPTIONS_A_SEED, evaluations)

    def plan() -> str:
        before = resident()
        seconds = seconds_of(lambda: plan_of(cells, evaluations).jobs)
        return f"{seconds:.1f} s, {resident() - before:.0f} MB"

    return plan


def requests(evaluations: int) -> Iterator[tuple[str, ...]]:
    """One cell's requests to an S3 server on this machine, a row a part of its way."""
    import boto3
    from moto.server import ThreadedMotoServer

    seen: Counter[str] = Counter()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen[next(name for name in METHODS if name in record.getMessage())] += 1

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    log = logging.getLogger("werkzeug")
    log.setLevel(logging.INFO)
    log.handlers, log.propagate = [Listener()], False
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
    first, cell = plan_of(2, evaluations).cells

    def train(cell: Cell) -> None:
        with patch("study.train.run_training.train_pack", made_up):
            run_job(Job(((cell,),)), work)

    parts: dict[str, Callable[[], object]] = {
        "worker: a cell from start to record": lambda: train(cell),
        "driver: MLflow's thread, of a cell": lambda: results.tables([cell.id]),
        "driver: survey at a start, of two cells": lambda: Results(results.url).survey(),
        "driver: merging the files of two cells": lambda: merge(results, [first.id, cell.id]),
    }
    train(first)
    for name, part in parts.items():
        seen.clear()
        part()
        yield name, *(str(seen[method]) for method in METHODS), str(seen.total())
    server.stop()


def resident() -> float:
    """MB of memory that this process holds."""
    return float(psutil.Process().memory_info().rss / MB)


def sizes(paths: Iterable[Path]) -> list[int]:
    """Bytes of those that are files."""
    return [path.stat().st_size for path in paths if path.is_file()]


if __name__ == "__main__":
    sys.exit(main())
