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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import Child, positive
from benchmarks.support.processes import below, training
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
from study.results import SPLITS, Results
from study.results.merging import compact, merge
from study.tasks.base import Task
from study.terminal.progress import Progress
from study.tracking.store import Store
from study.tracking.tracker import Tracker, open_tracker
from study.train.steps.pack_member import Outcome
from study.train.steps.packs import Packing

OPTIONS = ("paradigm=soft,hard", "lr=0.01,0.02,0.03,0.05,0.1", "epochs=4")
OPTIONS_A_SEED = 10

GPUS = 64
"""GPUs for which it prints how short cells may be."""

QUARTERS = 4
MB = 1e6
PATIENCE = 60.0
"""Seconds without a logged run after which it stops waiting for MLflow."""

METHODS = ("GET", "HEAD", "PUT", "DELETE", "POST")

HEATMAP_CELLS = (len(HEATMAP_EDGES) - 1) ** 2

NOTHING = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
import study.train.run
from benchmarks.scheduling import made_up
from search_spaces.base import Preset, SearchSpace
from study.parts import register_study

register_study(SearchSpace("nothing", "digits", "", {{"quick": Preset("", {{}})}}))
study.train.run.train_pack = made_up
"""
"""A part with which workers train nothing."""


def main() -> int:
    """Prints the tables; the exit status is 0 done, 1 cells failed, 2 unusable request."""
    args = _parser().parse_args()
    print(
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {datetime.date.today()}; "
        f"cells of {args.evaluations} evaluations, packs of {args.pack}"
    )
    if args.requests:
        print_requests(args.evaluations)
        return 0
    with tempfile.TemporaryDirectory(prefix="scheduling-") as folder:
        tempfile.tempdir = folder  # Tune's own files, too
        results = Results(Path(folder) / "results")
        results.prepare()
        plan = replace(
            plan_of(args.cells, args.evaluations, digits_facts),
            packing=Packing("seed" if args.pack > 1 else "none", most=args.pack),
            concurrent=args.workers,
        )
        tracker = tracker_of(results, args.tracking)
        driver = Driver(plan, results, tracker, Path(folder), args.workers * args.pack)
        failures = driver.run()
        if failures:
            print(f"{len(failures)} trials failed: {failures[0]}", file=sys.stderr)
            return 1
        print(f"\nThe driver: {len(plan.jobs):,} trials on {args.workers} workers\n")
        print_table(driver.table())
        rows = [*driver.totals(), *mlflow_rows(results, tracker, driver)]
        rows += command_rows(results, len(plan.cells) // OPTIONS_A_SEED, args.evaluations)
        rows += [*results_rows(results), *writing_rows(plan, Path(folder) / "alone")]
        rows += planning_rows(args.plan_cells, args.evaluations)
        print(f"\nAfter {len(plan.cells):,} cells\n")
        print_table([("what", "measured"), *rows])
    return 0


def digits_facts(task: str, options: Any) -> Any:
    """The facts of the digits that ship with scikit-learn."""
    return tasks.load(task, options=options).facts


def plan_of(cells: int, evaluations: int, facts_of: Callable[[str, Any], Any]) -> Plan:
    """A plan of so many cells with so many evaluations each, the first before training."""
    space = all_studies()["digits"]
    seeds = math.ceil(cells / OPTIONS_A_SEED)
    chosen = (*OPTIONS, f"seed=0-{seeds - 1}", f"evaluations={evaluations - 1}")
    plan = make_plan(space, "quick", resolve(space, "quick", list(chosen)), facts_of)
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

    return [
        {
            "step": int(1_000 * fraction),
            "mosaics_seen": int(64_000 * fraction),
            "budget_fraction": fraction,
            "compute_flops": int(cell.budget.amount * fraction),
            "train_seconds": 60 * fraction,
            "split": split,
            "inference": cell.schedule.phases[-1].paradigm,
            "num_evaluated": 1_000,
            "loss": rng.random(),
            "accuracy": share(),
            "saif": share(),
            "foreground_attention_mean": rng.random(),
            **{name: share() for name in ("ftpt", "ffpt", "ftpf", "ffpf")},
            "foreground_share": 1.0,
            "heatmap": [share() / HEATMAP_CELLS for _ in range(HEATMAP_CELLS)],
        }
        for fraction in cell.evaluation_points
        for split in SPLITS
    ]


def tracker_of(results: Results, tracking: bool) -> Tracker:
    """The default tracker, with a SQLite database in the results, or none."""
    return open_tracker(results, "digits", None if tracking else "none")


@dataclass(frozen=True)
class Sample:
    """The state of the driver after a number of cells; times in seconds, sizes in MB.

    `launching` is the CPU time of the thread in which Tune runs, `merging` the part of it spent on
    merging files of cells, `tracking` that of the thread that logs, `process` that of all threads.
    """

    cells: int
    wall: float
    process: float
    launching: float
    merging: float
    tracking: float
    driver: float
    servers: float
    workers: float
    backlog: int


class Driver(Progress):
    """Launches a plan as `study.run` does, and samples itself after each quarter of the cells.

    Args:
        plan: to launch.
        results: to record in.
        tracker: as for `study.run`.
        folder: where Tune keeps its own files.
        warm_up: first cells, with which the workers start; they are not counted.
    """

    def __init__(
        self, plan: Plan, results: Results, tracker: Tracker, folder: Path, warm_up: int
    ) -> None:
        super().__init__(plan.concurrent, stream=io.StringIO())
        self.expect(plan.cells, plan.seconds)
        self._plan, self._results, self._tracker = plan, results, tracker
        self._place = looked_at(results.url)
        self._folder = folder
        total = len(plan.cells)
        first = min(warm_up, total // 2)
        self._stops = [first + (total - first) * i // QUARTERS for i in range(QUARTERS + 1)]
        self._cells = 0
        self._merging = 0.0
        self._tune_files: list[Path] = []
        self._threads = [t for t in threading.enumerate() if t.name == "mlflow"]
        self.samples: list[Sample] = []

    def run(self) -> list[Failure]:
        """Runs the study; returns its failures."""
        watch = Watch(self, self._on_ended)
        work = Work(
            study="digits",
            results=self._results.url,
            code_version="benchmark",
            origin=self._results.origin(),
            parts=(PartFile("nothing.py", NOTHING),),
            gpu=False,
        )
        self.began = time.perf_counter()
        with ray_session(self._plan.concurrent):
            from study.launch.tune import run_trials

            run_trials(self._plan.jobs, work, watch, gpus_per_trial=0)
            self.ended_at = time.perf_counter()
        return watch.failures

    def ended(self, cell_id: str, status: str) -> None:
        super().ended(cell_id, status)
        self._cells += 1
        if self._cells in self._stops:
            self.samples.append(self._sample())
        if self._cells == self._stops[-1]:  # before Tune's folder is deleted
            self._tune_files = files_under(next(self._folder.glob("attention-study-*")))
            self._tune_bytes = sum(file.stat().st_size for file in self._tune_files)

    def _on_ended(self, cell_id: str, status: str) -> None:
        """As in `study.run`."""
        self._tracker.log_cells({cell_id: status})
        before = time.thread_time()
        self._place.merge([cell_id], sys.exit)
        self._merging += time.thread_time() - before

    def _sample(self) -> Sample:
        mine = os.getpid()
        servers = [i for i, c in below(mine).items() if "gcs_server" in c or "raylet/raylet" in c]
        return Sample(
            cells=self._cells,
            wall=time.perf_counter(),
            process=time.process_time(),
            launching=time.thread_time(),
            merging=self._merging,
            tracking=sum(
                time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
                for thread in self._threads
                if thread.ident is not None
            ),
            driver=resident(mine),
            servers=sum(map(resident, servers)),
            workers=sum(map(resident, training(mine))),
            backlog=self._tracker.missing,
        )

    def table(self) -> list[tuple[str, ...]]:
        """The costs, a row each, a column a quarter."""
        spans = list(zip(self.samples, self.samples[1:], strict=False))
        spans.append((self.samples[0], self.samples[-1]))

        def milliseconds(of: Callable[[Sample], float]) -> Iterator[str]:
            for begin, end in spans:
                yield f"{1000 * (of(end) - of(begin)) / (end.cells - begin.cells):.2f}"

        def megabytes(of: Callable[[Sample], float]) -> Iterator[str]:
            for _, end in spans[:-1]:
                yield f"{of(end):.0f}"
            begin, end = spans[-1]
            growth = 1000 * (of(end) - of(begin)) / (end.cells - begin.cells)
            yield f"{growth:+.1f} a 1,000 cells"

        return [
            ("a cell", "1st quarter", "2nd", "3rd", "4th", "all"),
            ("wall ms", *milliseconds(lambda s: s.wall)),
            ("driver CPU ms", *milliseconds(lambda s: s.process)),
            ("- Tune and launch", *milliseconds(lambda s: s.launching - s.merging)),
            ("- merging files", *milliseconds(lambda s: s.merging)),
            ("- MLflow's thread", *milliseconds(lambda s: s.tracking)),
            (
                "- other threads, Ray's",
                *milliseconds(lambda s: s.process - s.launching - s.tracking),
            ),
            ("driver, resident MB", *megabytes(lambda s: s.driver)),
            ("GCS and raylet, MB", *megabytes(lambda s: s.servers)),
            ("workers, MB", *megabytes(lambda s: s.workers)),
            ("cells that wait for MLflow", *(str(end.backlog) for _, end in spans)),
        ]

    def totals(self) -> Iterator[tuple[str, str]]:
        """Rows on the whole run."""
        first, last = self.samples[0], self.samples[-1]
        cells = last.cells - first.cells
        yield "cells a second, all workers", f"{cells / (last.wall - first.wall):.1f}"
        scheduling = (last.launching - first.launching) / cells
        yield "scheduling and merging: most cells an hour", f"{3600 / scheduling:,.0f}"
        yield f"{GPUS} GPUs wait for it where cells take less than", f"{GPUS * scheduling:.1f} s"
        yield "launch to the first cells", f"{first.wall - self.began:.1f} s"
        yield "last cell to the end of launch", f"{self.ended_at - last.wall:.1f} s"
        yield (
            "Tune's own folder, deleted at the end",
            f"{len(self._tune_files):,} files, {self._tune_bytes / MB:.1f} MB",
        )


def resident(pid: int) -> float:
    """MB of memory that a process holds; 0 once it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / MB


def mlflow_rows(results: Results, tracker: Tracker, driver: Driver) -> Iterator[tuple[str, str]]:
    """How fast MLflow logs cells, how large it is, and how fast it finds them again."""
    if tracker.ui_command is None:
        return
    first, last = driver.samples[0], driver.samples[-1]
    logged = (last.cells - last.backlog) - (first.cells - first.backlog)
    beside = logged / (last.wall - first.wall)
    began, waiting = time.perf_counter(), tracker.missing
    if tracker.finish(None, math.inf, PATIENCE):
        sys.exit(1)
    after = waiting / (time.perf_counter() - began)
    root = Path(results.url)
    database = sum(file.stat().st_size for file in root.glob("mlflow.db*"))
    artifacts = files_under(root / "mlflow-artifacts")
    cells = last.cells
    yield "MLflow, cells a second while the study runs", f"{beside:.1f}"
    if waiting >= 100:  # else there is nothing to time
        yield f"MLflow, cells a second after it ({waiting} waited)", f"{after:.1f}"
    yield "MLflow's database, MB a 1,000 cells", f"{1000 * database / cells / MB:.1f}"
    yield (
        "MLflow's artifacts, MB and files a 1,000 cells",
        f"{1000 * sum(f.stat().st_size for f in artifacts) / cells / MB:.1f} MB, "
        f"{1000 * len(artifacts) / cells:,.0f}",
    )
    store = Store(results, "digits", None)
    began = time.perf_counter()
    store.sync({})
    yield "MLflow, looking up the runs at a start", f"{time.perf_counter() - began:.2f} s"


def results_rows(results: Results) -> Iterator[tuple[str, str]]:
    """The time to read finished cells at a start, before and after `study.compact`."""

    def survey() -> object:
        return Results(results.url).survey()  # by a command that has read no file yet

    cells, size = len(results.finished()), parquet_size(results)
    files = len(files_under(Path(results.url) / "cells"))
    yield "results, MB a 1,000 cells", f"{1000 * size / cells / MB:.1f}"
    yield "survey at a start", f"{seconds_of(survey):.2f} s, {files} files in cells/"
    yield "study.compact", f"{seconds_of(lambda: compact(results)):.2f} s"
    merged = parquet_size(results)
    yield "merged results, MB a 1,000 cells", f"{1000 * merged / cells / MB:.1f}"
    yield "survey of the merged files", f"{seconds_of(survey):.2f} s"


def command_rows(results: Results, seeds: int, evaluations: int) -> Iterator[tuple[str, str]]:
    """How long the commands take that plan the same grid, and that report it."""
    options = [*OPTIONS, f"seed=0-{seeds - 1}", f"evaluations={evaluations - 1}", "confirm=none"]
    folder = Path(results.url).parent
    plan = ["study.run", "digits", "--plan", "--set", *options, "--results", str(folder / "none")]
    yield "study.run --plan, nothing done", f"{seconds_of(lambda: command(*plan)):.1f} s"
    page = ["analysis.report", results.url, "--out", str(folder / "report")]
    seconds = seconds_of(lambda: command(*page))
    megabytes = (folder / "report" / "report.html").stat().st_size / MB
    yield "analysis.report", f"{seconds:.1f} s, page {megabytes:.1f} MB"


def command(*arguments: str) -> None:
    """Runs a command of the project.

    Raises:
        CalledProcessError: it failed.
    """
    project = Path(__file__).parents[1]
    subprocess.run(
        [sys.executable, "-m", *arguments], cwd=project, check=True, stdout=subprocess.DEVNULL
    )


def writing_rows(plan: Plan, folder: Path) -> Iterator[tuple[str, str]]:
    """How fast one process records cells: a file each, synced to the disk."""
    results = Results(folder)
    results.prepare()
    source = [(cell, evaluations_of(cell)) for cell in plan.cells[:200]]
    began = time.perf_counter()
    for cell, rows in source:
        results.write_cell(*recorded(cell, rows))
    seconds = time.perf_counter() - began
    yield (
        "recording, one process",
        f"{len(source) / seconds:.0f} cells/s, {parquet_size(results) / MB / seconds:.2f} MB/s",
    )


def recorded(cell: Cell, rows: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """The arguments of `Results.write_cell`."""
    from study.results import cell_columns

    row = {"study": "digits", "kind": "training", **cell_columns(cell)}
    row |= {"num_classes": 3, "status": "done"}
    return row, [{"cell_id": cell.id, **each} for each in rows]


def planning_rows(cells: int, evaluations: int) -> Iterator[tuple[str, str]]:
    """Time and memory of planning, in a process of its own."""
    with Child(planner, cells, evaluations) as child:
        seconds, megabytes = child()
    yield f"planning {cells:,} cells", f"{seconds:.1f} s, {megabytes:.0f} MB"


def planner(cells: int, evaluations: int) -> Callable[[], tuple[float, float]]:
    """A timed planning, after a small one that pays for the imports."""
    plan_of(OPTIONS_A_SEED, evaluations, digits_facts)

    def plan() -> tuple[float, float]:
        before, began = resident(os.getpid()), time.perf_counter()
        made = plan_of(cells, evaluations, digits_facts)
        assert made.jobs
        return time.perf_counter() - began, resident(os.getpid()) - before

    return plan


def print_requests(evaluations: int) -> None:
    """Prints a table of one cell's requests to an S3 server on this machine."""
    import boto3
    from moto.server import ThreadedMotoServer

    seen: Counter[str] = Counter()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen[next(name for name in METHODS if name in record.getMessage())] += 1

    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        os.environ[f"AWS_{name}"] = "benchmark"
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    log = logging.getLogger("werkzeug")
    log.setLevel(logging.INFO)
    log.handlers, log.propagate = [Listener()], False
    host, port = server.get_host_and_port()
    os.environ["AWS_ENDPOINT_URL"] = f"http://{host}:{port}"
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="benchmark")
    url = "s3://benchmark/results"
    results = Results(url)
    results.prepare()
    origin = results.origin()
    first, cell = plan_of(2, evaluations, digits_facts).cells

    def train(cell: Cell) -> None:
        known: dict[str, Any] = {"study": "digits", "results": url, "code_version": "benchmark"}
        with patch("study.train.run.train_pack", made_up):
            run_job(Job(((cell,),)), Work(**known, origin=origin, gpu=False))

    parts: dict[str, Callable[[], object]] = {
        "worker: a cell from start to record": lambda: train(cell),
        "driver: MLflow's thread, of a cell": lambda: results.tables([cell.id]),
        "driver: survey at a start, of two cells": lambda: Results(url).survey(),
        "driver: merging the files of two cells": lambda: merge(results, [first.id, cell.id]),
    }
    train(first)
    print("\nRequests to S3, without checkpoints\n")
    rows = [("what", *METHODS, "all")]
    for name, part in parts.items():
        seen.clear()
        part()
        rows.append((name, *(str(seen[method]) for method in METHODS), str(seen.total())))
    print_table(rows)
    server.stop()


def parquet_size(results: Results) -> int:
    """Bytes of all files of cells."""
    return sum(file.stat().st_size for file in Path(results.url).rglob("*.parquet"))


def files_under(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def seconds_of(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Prints a table in Markdown; the first row is its head."""
    for number, row in enumerate(rows):
        print(f"| {' | '.join(row)} |")
        if number == 0:
            print("|" + "---|" * len(row))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=positive, default=2_000)
    parser.add_argument("--workers", type=positive, default=2)
    parser.add_argument("--evaluations", type=positive, default=21, help="a cell, from the start")
    parser.add_argument("--pack", type=positive, default=1, help="cells a trial at most")
    parser.add_argument("--no-tracking", dest="tracking", action="store_false")
    parser.add_argument("--plan-cells", type=positive, default=100_000)
    parser.add_argument("--requests", action="store_true", help="count requests to S3 instead")
    return parser


if __name__ == "__main__":
    sys.exit(main())
