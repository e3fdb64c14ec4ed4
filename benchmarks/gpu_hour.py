"""An hour on a GPU, in slices: its tests, its benchmarks, then Table 1 as far as the time goes.

    python3 -u benchmarks/gpu_hour.py --device cuda --minutes 8 --data DIR --results DIR --out DIR

Each slice is one command, for a machine without a network, Ray or MLflow. It reads what earlier
slices left (--results, which stays as it is) and leaves all that is known by then in --out: at
most 8 files, of which `analysis.report` reads the Parquet files. In this order it

1. notes the machine, and decodes the data;
2. once, in a slice that has their time left: runs the tests that need a GPU (four minutes at
   most), then each benchmark, of steps and of packs (two and a half);
3. trains cells of Table 1 as the only shard of their study, see `study.run --minutes`. None
   begins that would not end in time, and none is recorded that has not ended. Packs are as large
   as is fastest. Where the hour may not do, give every slice `--set precision=bfloat16`, or begin
   with fewer seeds: `--set confirm=100-103`.

Each step is a process with a time limit, whose words are in `log.txt`: one that fails or hangs is
recorded as such, and the next one begins. Files are replaced as a whole, so a slice may be killed
at any moment, and its step ends with it; the next slice begins that step again.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import write
from study.cell.version import code_version
from study.errors import RequestError
from study.launch.workplace import looked_at
from study.plan.planning import planned
from study.plan.stages import staged
from study.results import Results
from study.results.merging import compact
from study.run_options import requested
from study.storage.storage import Storage
from study.terminal.command import DONE, FAILED, Parser, guarded, terminating
from study.terminal.options import above_zero

PROJECT = Path(__file__).parents[1]

STUDY = "cifar10"
TABLE_ONE = {
    "m": "5,20",
    "paradigm": "soft,lvml,hard,hybrid",
    "lr": "0.01",
    "lr@hard": "0.005",
    "hard_lr": "0.005",
    "switch_point": "0.5",
}
"""Axis -> values: the cells of the CIFAR-10 half of Table 1; all others are the preset's."""

TESTS = (
    "-m pytest -m cuda -n 6 --dist load --tb=short -p no:cacheprovider "
    "-p no:benchmark tests"  # which warns of -n, and warnings are errors
)
TEST_SECONDS = 240.0

BENCHMARKS = {
    "packs, m=20": "--m 20 --members 2 4 --paradigm soft lvml --rounds 3 --steps 10",
    "packs, m=5": "--m 5 --members 4 12 --paradigm soft lvml --rounds 3 --steps 10",
    "kernels, m=5": "--m 5 --paradigm soft hard --rounds 3 --kernels "
    "pooling aligned flat pooling,aligned,flat",
    "steps, m=20": "--m 20 --paradigm soft --rounds 3 --kernels pooling,aligned,flat",
    "steps, m=5": "--m 5 --paradigm lvml --rounds 3 --kernels pooling,aligned,flat",
    "compiled, m=5": "--m 5 --paradigm soft --precision bfloat16 --rounds 3 --kernels compiled",
}
"""What is measured, the most important first, by `benchmarks/train_step.py`."""

BENCHMARK_SECONDS = 150.0
"""Of each."""

CLOSING_SECONDS = 20.0
"""Kept free at the end of a slice."""

GPU_FACTS = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit"

ENDS_WITH_SLICE = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which the next program keeps
if os.getppid() == int(sys.argv[1]):  # it has not ended before
    os.execv(sys.executable, [sys.executable, "-u", *sys.argv[2:]])
"""
"""Becomes the Python that runs a step; Linux kills it when its parent has died."""

KEPT = ("record.json", "tests.xml", "log.txt")
"""What a slice takes over from the last one, beside its cells."""


class Slice:
    """One call of the command: its time, its record and what it leaves.

    Args:
        args: of the command.
        scratch: for files that nobody brings back.

    Attributes:
        out: what is brought back.
        results: where cells are recorded while they train.
        record: what every slice so far has seen and done; in `record.json`.
    """

    def __init__(self, args: argparse.Namespace, scratch: Path) -> None:
        self.args, self.scratch = args, scratch
        self.out: Path = args.out
        self.results = Results(scratch / "results")
        self._end = time.monotonic() + 60 * args.minutes - CLOSING_SECONDS
        self._published: set[str] = set()
        self.out.mkdir(parents=True, exist_ok=True)
        self.results.prepare()
        for source in (self.out, args.results):
            bring(source, self.results)
            for name in KEPT:
                if (source / name).exists() and not (self.out / name).exists():
                    write(self.out / name, (source / name).read_text())
        self.results.set_aside(self.results.survey().damaged)
        record = self.out / "record.json"
        self.record: list[dict[str, Any]] = (
            json.loads(record.read_text()) if record.exists() else []
        )
        self.record.append({"environment": environment(), "steps": []})
        self.save()
        self.publish()

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    def save(self) -> None:
        write(self.out / "record.json", json.dumps(self.record, indent=1))

    def say(self, text: str) -> None:
        """Prints a line, and keeps it."""
        print(text, flush=True)
        with (self.out / "log.txt").open("a") as log:
            log.write(f"{text}\n")

    def run_once(self, name: str, command: str, seconds: float, figures: Path) -> None:
        """As `run`, unless a slice has run it, or there is less time left than it may take.

        Args:
            name, command, seconds: as of `run`.
            figures: a JSON file that the step may write; kept in its record, whole or not.
        """
        ran = {step["name"] for each in self.record for step in each["steps"]}
        if name in ran or self.left < seconds:
            return
        self.run(name, command, seconds)
        if figures.exists():
            self.record[-1]["steps"][-1] |= json.loads(figures.read_bytes())
            self.save()

    def run(
        self, name: str, command: str, seconds: float, each: Callable[[], None] = lambda: None
    ) -> None:
        """Runs a step as a process of its own and records how it ended.

        Args:
            name: of the step.
            command: arguments of Python.
            seconds: after which it is killed.
            each: called every second meanwhile, and at the end.
        """
        started = time.monotonic()
        self.say(f"--- {name}: {seconds:.0f} s at most: python {command}")
        words = [sys.executable, "-c", ENDS_WITH_SLICE, str(os.getpid()), *shlex.split(command)]
        with (self.out / "log.txt").open("a") as log:
            process = subprocess.Popen(words, process_group=0, cwd=PROJECT, stdout=log, stderr=log)
        status: int | str = "out of time"
        try:
            while time.monotonic() - started < seconds:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(timeout=1)
                    break
                each()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            process.wait()
        each()
        took = round(time.monotonic() - started, 1)
        self.record[-1]["steps"].append({"name": name, "seconds": took, "status": status})
        self.save()
        self.say(f"--- {name}: {status or 'done'} after {took} s")

    def publish(self) -> None:
        """Copies all recorded cells to --out, merged, unless they are there already."""
        done = self.results.finished()
        if done == self._published:
            return
        compact(self.results)
        brought = bring(self.scratch / "results", Results(self.out))
        for path in (self.out / "cells").iterdir():
            if path.name not in brought:
                path.unlink()
        self._published = done


def bring(source: Path, target: Results) -> set[str]:
    """Copies results, each file as a whole; what cells refer to comes before them.

    A cell that is being written meanwhile is left for the next time. Where cells are merged
    meanwhile, their files are gone before they are read: then all are listed once more.
    """
    try:
        return _copied(source, target)
    except FileNotFoundError:
        return _copied(source, target)


def _copied(source: Path, target: Results) -> set[str]:
    files = Storage(source)
    cells = files.names("cells")  # first, so that what they refer to is there
    for folder, names in (("instances", files.names("instances")), ("cells", cells)):
        target.storage.make(folder)
        for name in names:
            target.storage.write(name, files.read(name))
    return {Path(name).name for name in cells}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a slice; 0 all went well, 1 a step failed, 2 it cannot begin or write."""
    stopped = "stopped; the next slice goes on from what is in --out"
    return guarded("gpu_hour", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    args = arguments(argv)
    with terminating(), tempfile.TemporaryDirectory(prefix="gpu-hour-") as scratch:
        try:
            this = Slice(args, Path(scratch))
            done, every = progress(this)  # refuses --set before anything runs
            this.say(f"earlier slices: {len(this.record) - 1}; {done} of {every} cells are done")
            steps(this)
            if done < every and this.left > CLOSING_SECONDS:
                train(this)
            return close(this)
        except OSError as error:
            raise RequestError(str(error)) from error


def steps(this: Slice) -> None:
    """The tests that need a GPU, and the benchmarks."""
    figures = this.scratch / "figures.json"
    report = f"--junitxml {shlex.quote(str(this.out / 'tests.xml'))}"
    this.run_once("tests", f"{TESTS} {report}", TEST_SECONDS, figures)
    options = ["--device", this.args.device, "--json", str(figures), *this.args.benchmark_options]
    for name, sizes in BENCHMARKS.items():
        figures.unlink(missing_ok=True)
        command = f"benchmarks/train_step.py {sizes} {shlex.join(options)}"
        this.run_once(name, command, BENCHMARK_SECONDS, figures)


def train(this: Slice) -> None:
    """Trains cells as long as there is time."""
    command = shlex.join(["-m", "study.run", *asked(this), "--results", this.results.url])
    seconds = this.left + CLOSING_SECONDS / 2
    this.run("cells", f"{command} --minutes {this.left / 60:.3f}", seconds, this.publish)


def asked(this: Slice) -> list[str]:
    """The cells, as arguments of `study.run`."""
    values = {**TABLE_ONE, **dict(each.split("=", 1) for each in this.args.set)}
    options = ["--preset", "paper", "--data-dir", str(this.args.data), "--shard", "1/1"]
    device = ["--gpus-per-trial", "0"] if this.args.device == "cpu" else []
    return [STUDY, *options, *device, "--set", *(f"{k}={v}" for k, v in values.items())]


def progress(this: Slice) -> tuple[int, int]:
    """How many cells are done, and how many there are; of one option each, so none tunes."""
    request = requested(asked(this))
    plan = staged(planned(request), looked_at(this.results.url), request.confirm)
    return int(plan.known["done"].sum()), len(plan.known)


def close(this: Slice) -> int:
    """Says what there is now, and what went wrong; the exit status."""
    done, every = progress(this)
    this.say(f"{done} of {every} cells are done")
    failed = [step["name"] for step in this.record[-1]["steps"] if step["status"]]
    this.say(f"failed: {', '.join(failed)}" if failed else "all steps of this slice went well")
    return FAILED if failed else DONE


def environment() -> dict[str, Any]:
    """The machine and the versions of what runs on it."""
    gpus = None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["nvidia-smi", f"--query-gpu={GPU_FACTS}", "--format=csv"]
        gpus = subprocess.check_output(command, text=True, timeout=20).splitlines()
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": sys.version, "cores": os.cpu_count(), "gpus": gpus, "code": code_version(),
        "packages": {each.name: each.version for each in importlib.metadata.distributions()},
    }  # fmt: skip


def absolute(text: str) -> Path:
    return Path(text).expanduser().resolve()


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says.

    Raises:
        RequestError: it cannot be used.
    """
    about, _, more = __doc__.partition("\n\n")
    parser = Parser("benchmarks.gpu_hour", about, more)
    folder: dict[str, Any] = {"type": absolute, "required": True, "metavar": "DIR"}
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cuda")
    add("--minutes", type=above_zero, default=8.0, help="of this slice (8)")
    add("--data", "--data-dir", help="CIFAR-10", **folder)
    add("--results", help="--out of the last slice; at first, a missing folder", **folder)
    add("--out", help="what is brought back", **folder)
    add("--set", nargs="+", default=[], metavar="AXIS=V", help="other values of the cells")
    others = "options of train_step.py, which take the place of ours"
    add("--benchmark-options", type=shlex.split, default=[], metavar="TEXT", help=others)
    args = parser.parse_args(argv)
    if wrong := [each for each in args.set if "=" not in each]:
        raise RequestError(f"--set must be AXIS=V, got {wrong[0]!r}")
    if args.results.exists() and not args.results.is_dir():
        raise RequestError(f"--results {args.results} is no directory")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise RequestError("no CUDA device here")
    return args


if __name__ == "__main__":
    sys.exit(main())
