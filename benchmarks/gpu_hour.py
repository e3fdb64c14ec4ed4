"""An hour on a GPU, in slices: its tests, its benchmarks, then Table 1 as far as the time goes.

    python3 -u benchmarks/gpu_hour.py --device cuda --minutes 8 --data DIR --results DIR --out DIR

Each slice is one command, for a machine without a network, Ray or MLflow. It reads what earlier
slices left (--results, which stays as it is) and leaves all that is known by then in --out: at
most 8 files, of which `analysis.report` reads the Parquet files. In this order it

1. notes the machine, and decodes the data;
2. once: runs the tests that need a GPU;
3. once: measures steps and packs;
4. trains cells of Table 1 as the only shard of their study, see `study.run --minutes`. None
   begins that would not end in time, and none is recorded that has not ended. Packs are as large
   as is fastest. Where the hour may not do, give every slice `--set precision=bfloat16`, or begin
   with fewer seeds: `--set confirm=100-103`.

Each step is a process with a time limit: one that fails or hangs is recorded as such, and the next
one begins. A step that ran out of time is tried again by the next slice. Files are replaced as a
whole, so a slice may be killed at any moment, and its step ends with it.
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
from study import tasks
from study.cell.version import code_version
from study.errors import RequestError
from study.launch.workplace import looked_at
from study.plan.planning import planned
from study.plan.stages import staged
from study.results import Results
from study.results.merging import compact
from study.run_options import requested
from study.tasks.sources.places import Places
from study.terminal.command import DONE, FAILED, Parser, guarded, terminating
from study.terminal.options import above_zero

PROJECT = Path(__file__).parents[1]

STUDY, PRESET = "cifar10", "paper"
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
TEST_SECONDS = 240

BENCHMARKS = {
    "packs, m=20": "--m 20 --members 2 4 --paradigm soft lvml --rounds 3 --steps 10",
    "packs, m=5": "--m 5 --members 4 12 --paradigm soft lvml --rounds 3 --steps 10",
    "steps, m=20": "--m 20 --paradigm soft --rounds 3",
    "steps, m=5": "--m 5 --paradigm soft hard lvml --rounds 3",
}
"""What is measured, the most important first, by `benchmarks/train_step.py`."""

BENCHMARK_SECONDS = 150
"""Of all benchmarks together."""

LEAST_SECONDS = 30
"""With less than that left, no tests and no benchmark begin."""

CLOSING_SECONDS = 20.0
"""Kept free at the end of a slice."""

GPU_FACTS = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit"

OUT_OF_TIME = "out of time"

ENDS_WITH_SLICE = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which the next program keeps
if os.getppid() == int(sys.argv[1]):  # it has not ended before
    os.execv(sys.executable, [sys.executable, "-u", *sys.argv[2:]])
"""
"""Becomes the Python that runs a step; Linux kills it when its parent has died."""

MOST_FILES, MOST_BYTES = 8, 2**24
"""Of --out, and of a file there."""

KEPT = ("record.json", "tests.xml", "figures.json", "log.txt")
"""What a slice takes over from the last one, beside its cells."""


class Slice:
    """One call of the command: its time, its record and what it leaves.

    Attributes:
        out: what is brought back.
        results: where cells are recorded while they train.
        record: what every slice so far has seen and done; in `record.json`.
    """

    def __init__(self, args: argparse.Namespace, scratch: Path) -> None:
        self.args = args
        self.out: Path = args.out
        self.scratch = scratch
        self.results = Results(scratch / "results")
        self.record: list[dict[str, Any]] = []
        self._end = time.monotonic() + 60 * args.minutes - CLOSING_SECONDS
        self._published: set[str] = set()

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    @property
    def figures(self) -> dict[str, Any]:
        """What the benchmarks found, by name."""
        file = self.out / "figures.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def is_over(self, name: str) -> bool:
        """Whether a step need not run again: it ended by itself, or its figures compare.

        The first figure of a benchmark is what all others relate to.
        """
        last = {step["name"]: step["status"] for each in self.record for step in each["steps"]}
        compares = len(self.figures.get(name, {}).get("figures", ())) > 1
        return compares or last.get(name, OUT_OF_TIME) != OUT_OF_TIME

    def begin(self) -> None:
        """Gathers what earlier slices left.

        Raises:
            RequestError: it is no directory.
        """
        given: Path = self.args.results
        if given.exists() and not given.is_dir():
            raise RequestError(f"--results {given} is no directory")
        self.out.mkdir(parents=True, exist_ok=True)
        self.results.prepare()
        for source in (self.out, given):
            bring(source, self.results)
            for name in KEPT:
                if (source / name).exists() and not (self.out / name).exists():
                    write(self.out / name, (source / name).read_text())
        self.results.set_aside(self.results.survey().damaged)
        if (self.out / "record.json").exists():
            self.record = json.loads((self.out / "record.json").read_text())
        self.record.append({"environment": environment(), "steps": []})
        self.save()
        self.publish()
        earlier = len(self.results.finished())
        self.say(f"earlier slices: {len(self.record) - 1}, which left {earlier} cells")

    def save(self) -> None:
        write(self.out / "record.json", json.dumps(self.record, indent=1))

    def say(self, text: str) -> None:
        """Prints a line, and keeps it; without room for it, the slice goes on."""
        with contextlib.suppress(OSError):
            print(text, flush=True)
        with contextlib.suppress(OSError), open(self.out / "log.txt", "ab") as log:
            log.write(f"{text}\n".encode())

    def run(
        self, name: str, command: str, seconds: float, each: Callable[[], None] = lambda: None
    ) -> None:
        """Runs a step as a process of its own and records how it ended.

        Args:
            name: of the step.
            command: arguments of Python.
            seconds: after which it is killed.
            each: called every now and then meanwhile.
        """
        started = time.monotonic()
        self.say(f"--- {name}: {max(0, seconds):.0f} s at most: python {command}")
        process = subprocess.Popen(
            [sys.executable, "-c", ENDS_WITH_SLICE, str(os.getpid()), *shlex.split(command)],
            process_group=0, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        heard = subprocess.Popen(["tee", "-a", str(self.out / "log.txt")], stdin=process.stdout)
        status: int | str = OUT_OF_TIME
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
            with contextlib.suppress(subprocess.TimeoutExpired):
                heard.wait(CLOSING_SECONDS / 2)  # longer, if one outside the group writes on
            heard.kill()
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
    """Copies results, each file as a whole; what cells refer to comes before them."""
    brought = set()
    for folder in ("instances", "cells"):
        target.storage.make(folder)
        for path in (source / folder).glob("*"):
            target.storage.write(f"{folder}/{path.name}", path.read_bytes())
            brought.add(path.name)
    return brought


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a slice; 0 all went well, 1 a step failed, 2 it cannot begin or write."""
    stopped = "stopped; the next slice goes on from what is in --out"
    return guarded("gpu_hour", lambda: _run(argv), stopped)


def _run(argv: Sequence[str] | None) -> int:
    args = arguments(argv)
    with terminating(), tempfile.TemporaryDirectory(prefix="gpu-hour-") as scratch:
        this = Slice(args, Path(scratch))
        try:
            this.begin()
            tasks.load(STUDY, Places(str(args.data)))
            progress(this)  # refuses --set before anything runs
            tests(this)
            benchmarks(this)
            train(this)
            return close(this)
        except OSError as error:
            raise RequestError(str(error)) from error


def tests(this: Slice) -> None:
    """The tests that need a GPU, unless a slice ran them to their end."""
    seconds = min(TEST_SECONDS, this.left / 2)
    if this.is_over("tests") or seconds < LEAST_SECONDS:
        return
    report = this.scratch / "tests.xml"
    this.run("tests", f"{TESTS} --junitxml {shlex.quote(str(report))}", seconds)
    if report.exists():
        write(this.out / "tests.xml", report.read_text())


def benchmarks(this: Slice) -> None:
    """The benchmarks that no slice ran; figures of those that ran out of time count, too."""
    end = time.monotonic() + min(BENCHMARK_SECONDS, this.left / 2)  # some is for cells
    for name, command in BENCHMARKS.items():
        seconds = end - time.monotonic()
        if this.is_over(name) or seconds < LEAST_SECONDS:
            continue
        file = this.scratch / f"{name}.json"
        options = f"--device {this.args.device} --json {shlex.quote(str(file))}"
        command = f"benchmarks/train_step.py {command} {options} {this.args.benchmark_options}"
        this.run(name, command, seconds)
        if file.exists():
            found = {**this.figures, name: json.loads(file.read_text())}
            write(this.out / "figures.json", json.dumps(found, indent=1))


def train(this: Slice) -> None:
    """Trains cells as long as there is time."""
    done, every = progress(this)
    if done == every or this.left < CLOSING_SECONDS:
        return
    command = shlex.join(["-m", "study.run", *asked(this), "--results", this.results.url])
    seconds = this.left + CLOSING_SECONDS / 2
    this.run("cells", f"{command} --minutes {this.left / 60:.3f}", seconds, this.publish)


def asked(this: Slice) -> list[str]:
    """The cells, as arguments of `study.run`."""
    values = {**TABLE_ONE, **dict(each.split("=", 1) for each in this.args.set)}
    options = ["--preset", PRESET, "--data-dir", str(this.args.data), "--shard", "1/1"]
    device = ["--gpus-per-trial", "0"] if this.args.device == "cpu" else []
    return [STUDY, *options, *device, "--set", *(f"{k}={v}" for k, v in values.items())]


def progress(this: Slice) -> tuple[int, int]:
    """How many cells are done, and how many there are; of one option each, so none tunes."""
    request = requested(asked(this))
    plan = staged(planned(request), looked_at(this.results.url), request.confirm)
    return len(plan.finished), len(plan.cells)


def close(this: Slice) -> int:
    """Says what there is now, and what went wrong; the exit status."""
    what = ["m", "precision", "paradigm", "status"]
    this.say(str(this.results.cells(columns=what).value_counts(sort=False).to_dict()))
    done, every = progress(this)
    left = f"{done} of {every} cells done, {every - done} left"
    this.say(left if done < every else f"all {every} cells are done")
    sizes = [path.stat().st_size for path in this.out.rglob("*") if path.is_file()]
    if too_much := len(sizes) > MOST_FILES or max(sizes) > MOST_BYTES:
        this.say(f"too much to bring back: {len(sizes)} files, of up to {max(sizes)} bytes")
    failed = [
        step["name"]
        for step in this.record[-1]["steps"]
        if step["status"] and not (step["status"] == OUT_OF_TIME and this.is_over(step["name"]))
    ]
    this.say(f"failed: {', '.join(failed)}" if failed else "all steps of this slice went well")
    return FAILED if failed or too_much else DONE


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


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says.

    Raises:
        RequestError: it cannot be used.
    """
    about, _, more = __doc__.partition("\n\n")
    parser = Parser("benchmarks.gpu_hour", about, more)
    folder: dict[str, Any] = {"type": Path, "required": True, "metavar": "DIR"}
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cuda")
    add("--minutes", type=above_zero, default=8.0, help="of this slice (8)")
    add("--data", "--data-dir", help="CIFAR-10", **folder)
    add("--results", help="--out of the last slice; at first, a missing folder", **folder)
    add("--out", help="what is brought back", **folder)
    add("--set", nargs="+", default=[], metavar="AXIS=V", help="other values of the cells")
    add("--benchmark-options", default="", metavar="TEXT", help="other sizes of the benchmarks")
    args = parser.parse_args(argv)
    if wrong := [each for each in args.set if "=" not in each]:
        raise RequestError(f"--set must be AXIS=V, got {wrong[0]!r}")
    try:
        shlex.split(args.benchmark_options)
    except ValueError as error:
        raise RequestError(f"--benchmark-options {args.benchmark_options!r}: {error}") from error
    if args.device == "cuda" and not torch.cuda.is_available():
        raise RequestError("no CUDA device here")
    for name in ("data", "results", "out"):
        setattr(args, name, getattr(args, name).expanduser().resolve())
    return args


if __name__ == "__main__":
    sys.exit(main())
