"""What a cell costs the driver, and what many cells leave on disk: cells that train nothing.

    uv run python benchmarks/scheduling.py
    uv run python benchmarks/scheduling.py --no-tracking --pack 10
    uv run python benchmarks/scheduling.py --cells 200 --evaluations 6 --plan-cells 10000
    uv run python benchmarks/scheduling.py --requests

The cells go the usual way from the plan through Ray Tune into the results and MLflow, in a
directory that is deleted after, but made-up evaluations replace training. It prints what the
driver spends on a cell in each quarter of the run, which shows what grows with the number of
cells; then how fast files and runs are written and read, and how large they are. `--requests`
instead counts a cell's requests to an S3 server on this machine (moto).
"""

from __future__ import annotations

import argparse
import datetime
import functools
import io
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support import measure
from benchmarks.support.measure import seconds_of
from benchmarks.support.processes import below, resident, training
from benchmarks.support.tables import markdown
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
from study.results import SPLITS, Results, cell_columns
from study.results.merging import compact, merge
from study.tasks.base import Task
from study.terminal.progress import Progress
from study.tracking.store import Store
from study.tracking.tracker import Tracker, open_tracker
from study.train.steps.pack_member import Outcome
from study.train.steps.packs import Packing

PROJECT = Path(__file__).parents[1]

OPTIONS = ("paradigm=soft,hard", "lr=0.01,0.02,0.03,0.05,0.1", "epochs=4")
OPTIONS_A_SEED = 10

GPUS = 64
"""GPUs for which it prints how short cells may be."""

QUARTERS = 4
MB = 1e6
PATIENCE = 60.0
"""Seconds without a logged run after which it stops waiting for MLflow."""

LEAST_TIMED = 100
"""Fewer runs that MLflow still has to log are not timed."""

METHODS = ("GET", "HEAD", "PUT", "DELETE", "POST")

NOTHING = f"""
import sys
sys.path.insert(0, {str(PROJECT)!r})
import study.train.run
from benchmarks.scheduling import made_up
from search_spaces.base import Preset, SearchSpace
from study.parts import register_study

register_study(SearchSpace("nothing", "digits", "", {{"quick": Preset("", {{}})}}))
study.train.run.train_pack = made_up
"""
"""A part with which workers train nothing."""

Row = tuple[str, str]
"""What was measured, and what it is."""


def main() -> int:
    """Prints the tables; the exit status is 0 done, 1 cells failed, 2 unusable request."""
    args = measure.options(
        __doc__,
        cells=2_000,
        workers=2,
        evaluations={"type": measure.positive, "default": 21, "help": "a cell, from the start"},
        pack={"type": measure.positive, "default": 1, "help": "cells a trial at most"},
        no_tracking=False,
        plan_cells=100_000,
        requests={"action": "store_true", "help": "count requests to S3 instead"},
    ).parse_args()
    print(
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {datetime.date.today()}; "
        f"cells of {args.evaluations} evaluations, packs of {args.pack}"
    )
    if args.requests:
        print("\nRequests to S3, without checkpoints\n")
        markdown(("what", *METHODS, "all"), requests(args.evaluations))
        return 0
    with tempfile.TemporaryDirectory(prefix="scheduling-") as folder:
        tempfile.tempdir = folder  # Tune's own files, too
        results = Results(Path(folder) / "results")
        results.prepare()
        plan = replace(
            plan_of(args.cells, args.evaluations),
            packing=Packing("seed" if args.pack > 1 else "none", most=args.pack),
            concurrent=args.workers,
        )
        tracker = open_tracker(results, "digits", "none" if args.no_tracking else None)
        driver = Driver(plan, results, tracker, Path(folder), args.workers * args.pack)
        if failures := driver.run():
            print(f"{len(failures)} trials failed: {failures[0]}", file=sys.stderr)
            return 1
        print(f"\nThe driver: {len(plan.jobs):,} trials on {args.workers} workers\n")
        markdown(("a cell", "1st quarter", "2nd", "3rd", "4th", "all"), driver.table())
        rows = [*driver.totals(), *mlflow_rows(results, tracker, driver)]
        rows += [*command_rows(results, len(plan.cells) // OPTIONS_A_SEED, args.evaluations)]
        rows += [*results_rows(results), writing_row(plan, Path(folder) / "alone")]
        rows.append(planning_row(args))
        print(f"\nAfter {len(plan.cells):,} cells\n")
        markdown(("what", "measured"), rows)
    return 0


def grid(seeds: int, evaluations: int) -> list[str]:
    """The axes of so many seeds, with so many evaluations a cell, the first before training."""
    return [*OPTIONS, f"seed=0-{seeds - 1}", f"evaluations={evaluations - 1}"]


def plan_of(cells: int, evaluations: int) -> Plan:
    """A plan of so many cells of the digits that ship with scikit-learn."""
    space = all_studies()["digits"]
    chosen = grid(math.ceil(cells / OPTIONS_A_SEED), evaluations)
    axes = resolve(space, "quick", chosen)
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


class Driver(Progress):
    """Launches a plan as `study.run` does, and samples itself after each quarter of the cells.

    Args:
        plan: to launch.
        results: to record in.
        tracker: as for `study.run`.
        folder: where Tune keeps its own files.
        warm_up: first cells, with which the workers start; they are not counted.

    Attributes:
        samples: recorded cells -> seconds, MB and runs that MLflow lacks by then, by the name of
            their row: wall time, and CPU time of the process and its threads.
    """

    def __init__(
        self, plan: Plan, results: Results, tracker: Tracker, folder: Path, warm_up: int
    ) -> None:
        super().__init__(plan.concurrent, stream=io.StringIO())
        self.expect(plan.cells, plan.seconds)
        self._plan, self._results, self._tracker = plan, results, tracker
        self._folder = folder
        self._place = looked_at(results.url)
        total = len(plan.cells)
        first = min(warm_up, total // 2)
        self._stops = [first + (total - first) * i // QUARTERS for i in range(QUARTERS + 1)]
        self._cells = 0
        self._merging = 0.0
        self._tune_sizes: list[int] = []
        self._threads = [t.ident for t in threading.enumerate() if t.name == "mlflow"]
        self.samples: dict[int, dict[str, float]] = {}

    def run(self) -> list[Failure]:
        """Runs the study; returns its failures."""
        watch = Watch(self, self._on_ended)
        work = Work(
            study="digits", results=self._results.url, code_version="benchmark",
            origin=self._results.origin(), parts=(PartFile("nothing.py", NOTHING),), gpu=False,
        )  # fmt: skip
        self._began = time.perf_counter()
        with ray_session(self._plan.concurrent):
            from study.launch.tune import run_trials

            run_trials(self._plan.jobs, work, watch, gpus_per_trial=0)
            self._ended_at = time.perf_counter()
        return watch.failures

    def ended(self, cell_id: str, status: str) -> None:
        super().ended(cell_id, status)
        self._cells += 1
        if self._cells in self._stops:
            self.samples[self._cells] = self._sample()
        if self._cells == self._stops[-1]:  # before Tune's folder is deleted
            self._tune_sizes = sizes_under(next(self._folder.glob("attention-study-*")))

    def _on_ended(self, cell_id: str, status: str) -> None:
        """As in `study.run`."""
        self._tracker.log_cells({cell_id: status})
        before = time.thread_time()
        self._place.merge([cell_id], sys.exit)
        self._merging += time.thread_time() - before

    def _sample(self) -> dict[str, float]:
        process, launching = time.process_time(), time.thread_time()
        clocks = [time.pthread_getcpuclockid(each) for each in self._threads if each is not None]
        tracking = sum(map(time.clock_gettime, clocks))
        mine = os.getpid()
        servers = [i for i, c in below(mine).items() if "gcs_server" in c or "raylet/raylet" in c]
        return {
            "wall ms": time.perf_counter(),
            "driver CPU ms": process,
            "- Tune and launch": launching - self._merging,
            "- merging files": self._merging,
            "- MLflow's thread": tracking,
            "- other threads, Ray's": process - launching - tracking,
            "driver, resident MB": resident([mine]),
            "GCS and raylet, MB": resident(servers),
            "workers, MB": resident(training(mine)),
            "cells that wait for MLflow": self._tracker.missing,
        }

    def a_cell(self, name: str, first: int = 0, last: int = -1) -> float:
        """What a cell adds to a number, between two of the samples."""
        cells = list(self.samples)
        begin, end = cells[first], cells[last]
        return (self.samples[end][name] - self.samples[begin][name]) / (end - begin)

    def table(self) -> Iterator[tuple[str, ...]]:
        """The costs, a row each, a column a quarter."""
        later = [*self.samples.values()][1:]
        spans = [*((i, i + 1) for i in range(len(later))), (0, -1)]
        for name in later[0]:
            ends = [sample[name] for sample in later]
            if name.endswith("MB"):
                growth = f"{1000 * self.a_cell(name):+.1f} a 1,000 cells"
                yield name, *(f"{each:.0f}" for each in ends), growth
            elif name.startswith("cells"):
                yield name, *(f"{each:.0f}" for each in (*ends, ends[-1]))
            else:
                yield name, *(f"{1000 * self.a_cell(name, *span):.2f}" for span in spans)

    def totals(self) -> Iterator[Row]:
        """Rows on the whole run."""
        walls = [sample["wall ms"] for sample in self.samples.values()]
        scheduling = self.a_cell("- Tune and launch") + self.a_cell("- merging files")
        yield "cells a second, all workers", f"{1 / self.a_cell('wall ms'):.1f}"
        yield "scheduling and merging: most cells an hour", f"{3600 / scheduling:,.0f}"
        yield f"{GPUS} GPUs wait for it where cells take less than", f"{GPUS * scheduling:.1f} s"
        yield "launch to the first cells", f"{walls[0] - self._began:.1f} s"
        yield "last cell to the end of launch", f"{self._ended_at - walls[-1]:.1f} s"
        sizes = self._tune_sizes
        tune = f"{len(sizes):,} files, {sum(sizes) / MB:.1f} MB"
        yield "Tune's own folder, deleted at the end", tune


def mlflow_rows(results: Results, tracker: Tracker, driver: Driver) -> Iterator[Row]:
    """How fast MLflow logs cells, how large it is, and how fast it finds them again."""
    if tracker.ui_command is None:
        return
    logged = (1 - driver.a_cell("cells that wait for MLflow")) / driver.a_cell("wall ms")
    waiting = tracker.missing
    began = time.perf_counter()
    if tracker.finish(None, math.inf, PATIENCE):
        sys.exit(1)
    after = waiting / (time.perf_counter() - began)
    root = Path(results.url)
    thousands = max(driver.samples) / 1000
    database = sum(file.stat().st_size for file in root.glob("mlflow.db*"))
    artifacts = sizes_under(root / "mlflow-artifacts")
    yield "MLflow, cells a second while the study runs", f"{logged:.1f}"
    if waiting >= LEAST_TIMED:
        yield f"MLflow, cells a second after it ({waiting} waited)", f"{after:.1f}"
    yield "MLflow's database, MB a 1,000 cells", f"{database / thousands / MB:.1f}"
    yield (
        "MLflow's artifacts, MB and files a 1,000 cells",
        f"{sum(artifacts) / thousands / MB:.1f} MB, {len(artifacts) / thousands:,.0f}",
    )
    store = Store(results, "digits", None)
    yield "MLflow, looking up the runs at a start", f"{seconds_of(lambda: store.sync({})):.2f} s"


def results_rows(results: Results) -> Iterator[Row]:
    """The time to read finished cells at a start, before and after `study.compact`."""

    def survey() -> object:
        return Results(results.url).survey()  # by a command that has read no file yet

    thousands = len(results.finished()) / 1000
    files = len(sizes_under(Path(results.url) / "cells"))
    yield "results, MB a 1,000 cells", f"{megabytes(results) / thousands:.1f}"
    yield "survey at a start", f"{seconds_of(survey):.2f} s, {files} files in cells/"
    yield "study.compact", f"{seconds_of(lambda: compact(results)):.2f} s"
    yield "merged results, MB a 1,000 cells", f"{megabytes(results) / thousands:.1f}"
    yield "survey of the merged files", f"{seconds_of(survey):.2f} s"


def command_rows(results: Results, seeds: int, evaluations: int) -> Iterator[Row]:
    """How long the commands take that plan the same grid, and that report it."""
    folder = Path(results.url).parent
    options = ["--set", *grid(seeds, evaluations), "confirm=none"]
    plan = ["study.run", "digits", "--plan", *options, "--results", str(folder / "none")]
    yield "study.run --plan, nothing done", f"{command_seconds(*plan):.1f} s"
    took = command_seconds("analysis.report", results.url, "--out", str(folder / "report"))
    page = (folder / "report" / "report.html").stat().st_size
    yield "analysis.report", f"{took:.1f} s, page {page / MB:.1f} MB"


def command_seconds(*arguments: str) -> float:
    """How long a command of the project takes.

    Raises:
        CalledProcessError: it failed.
    """
    run = functools.partial(subprocess.run, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
    return seconds_of(lambda: run([sys.executable, "-m", *arguments]))


def writing_row(plan: Plan, folder: Path) -> Row:
    """How fast one process records cells: a file each, synced to the disk."""
    results = Results(folder)
    results.prepare()
    source = [(cell, evaluations_of(cell)) for cell in plan.cells[:200]]

    def write() -> None:
        for cell, rows in source:
            row = {"study": "digits", "kind": "training", **cell_columns(cell)}
            row |= {"num_classes": 3, "status": "done"}
            results.write_cell(row, [{"cell_id": cell.id, **each} for each in rows])

    seconds = seconds_of(write)
    return (
        "recording, one process",
        f"{len(source) / seconds:.0f} cells/s, {megabytes(results) / seconds:.2f} MB/s",
    )


def planning_row(args: argparse.Namespace) -> Row:
    """Time and memory of planning, in a process of its own."""
    with measure.in_a_process(planner, args.plan_cells, args.evaluations) as planned:
        seconds, held = planned()
    return f"planning {args.plan_cells:,} cells", f"{seconds:.1f} s, {held:.0f} MB"


def planner(cells: int, evaluations: int) -> Callable[[], tuple[float, float]]:
    """A timed planning, after a small one that pays for the imports."""
    plan_of(OPTIONS_A_SEED, evaluations)

    def plan() -> tuple[float, float]:
        before, began = resident([os.getpid()]), time.perf_counter()
        made = plan_of(cells, evaluations)
        assert made.jobs
        return time.perf_counter() - began, resident([os.getpid()]) - before

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
        with patch("study.train.run.train_pack", made_up):
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


def megabytes(results: Results) -> float:
    """MB of all files of cells."""
    return sum(file.stat().st_size for file in Path(results.url).rglob("*.parquet")) / MB


def sizes_under(folder: Path) -> list[int]:
    """Bytes of all files of a folder."""
    return [path.stat().st_size for path in folder.rglob("*") if path.is_file()]


if __name__ == "__main__":
    sys.exit(main())
