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
   as is fastest: give `--set confirm=100-103` first, where the hour may not do for all seeds.

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
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import write
from study import tasks
from study.cell import PRECISIONS
from study.cell.version import code_version
from study.errors import RequestError
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
    "packs, m=20": "pack.py --m 20 --members 2 4 --paradigm soft lvml --rounds 3 --steps 10",
    "packs, m=5": "pack.py --m 5 --members 4 12 --paradigm soft lvml --rounds 3 --steps 10",
    "steps, m=20": "train_step.py --m 20 --paradigm soft --rounds 3",
    "steps, m=5": "train_step.py --m 5 --paradigm soft hard lvml --rounds 3",
}
"""What is measured, the most important first."""

BENCHMARK_SECONDS = 150
"""Of all benchmarks together."""

LEAST_SECONDS = 30
"""With less than that left, no tests and no benchmark begin."""

SLOW_M, FAST_ENOUGH = 20, 15e12
"""FLOP/s of float32 below which cells of this m train in a lower precision."""

CLOSING_SECONDS = 20.0
"""Kept free at the end of a slice."""

OUT_OF_TIME = "out of time"

ENDS_WITH_SLICE = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which the next program keeps
if os.getppid() == int(sys.argv[1]):  # it has not ended before
    os.execv(sys.executable, [sys.executable, "-u", *sys.argv[2:]])
"""
"""Becomes the Python that runs a step; Linux kills it when its parent has died."""

MOST_FILES, MOST_BYTES, TRAVELS_BYTES = 8, 2**24, 2**26
"""Of --out, of a file there, and of all that is brought to the machine."""


class Slice:
    """One call of the command: its time, its record and what it leaves.

    Attributes:
        out: what is brought back.
        results: where cells are recorded while they train.
        record: what every slice so far has seen and done; in `record.json`.
    """

    def __init__(self, args: argparse.Namespace, scratch: Path) -> None:
        self.args = args
        self.out = args.out
        self.results = Results(scratch / "results")
        self.cells = scratch / "results" / "cells"
        self.instances = scratch / "results" / "instances"
        self.scratch = scratch
        self._end = time.monotonic() + 60 * args.minutes - CLOSING_SECONDS
        self._published: set[str] = set()
        self.record: list[dict[str, Any]] = []

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        """The last run of every step, by name."""
        return {step["name"]: step for each in self.record for step in each["steps"]}

    def is_over(self, name: str) -> bool:
        """Whether a step need not run again: it ended by itself, or its figures are there."""
        ended = name in self.steps and self.steps[name]["status"] != OUT_OF_TIME
        return ended or compares(measured(self.out).get(name, {}))

    def begin(self) -> None:
        """Gathers what earlier slices left.

        Raises:
            RequestError: it is no directory.
        """
        if self.args.results.exists() and not self.args.results.is_dir():
            raise RequestError(f"--results {self.args.results} is no directory")
        self.results.prepare()
        self.out.mkdir(parents=True, exist_ok=True)
        for place, source in enumerate((self.args.out, self.args.results)):
            if (source / "cells").is_dir():
                shutil.copytree(source / "cells", self.cells / str(place))
            if (source / "instances").is_dir():
                shutil.copytree(source / "instances", self.instances, dirs_exist_ok=True)
            for name in ("record.json", "tests.xml", "figures.json", "log.txt"):
                if (source / name).exists() and not (self.out / name).exists():
                    write(self.out / name, (source / name).read_text())
        self.results.set_aside(self.results.survey().damaged)
        if (self.out / "record.json").exists():
            self.record = json.loads((self.out / "record.json").read_text())
        self.record.append({"environment": environment(), "steps": []})
        self.save()
        self.publish()
        if not (self.args.results / "record.json").exists():
            self.say(f"no earlier slice in {self.args.results}")
        if left := len(self.results.finished()):
            self.say(f"earlier slices left {left} cells")

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
            text=True, errors="replace",
        )  # fmt: skip
        reader = threading.Thread(target=self._hear, args=(process,), daemon=True)
        status: int | str = OUT_OF_TIME
        try:
            reader.start()
            while time.monotonic() - started < seconds:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(timeout=1)
                    break
                each()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            process.wait()
        reader.join(CLOSING_SECONDS / 2)  # longer, if a process outside the group writes on
        each()
        took = round(time.monotonic() - started, 1)
        self.record[-1]["steps"].append({"name": name, "seconds": took, "status": status})
        self.save()
        self.say(f"--- {name}: {status if status else 'done'} after {took} s")

    def _hear(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.say(line.rstrip("\n"))

    def publish(self) -> None:
        """Copies all recorded cells to --out, merged, unless they are there already."""
        done = self.results.finished()
        if done == self._published:
            return
        compact(self.results)
        there = Results(self.out).storage
        there.make("instances")
        for path in self.instances.iterdir():
            there.write(f"instances/{path.name}", path.read_bytes())
        there.make("cells")
        files = {path.name: path for path in self.cells.rglob("*.parquet")}
        for name, path in files.items():
            there.write(f"cells/{name}", path.read_bytes())
        for path in (self.out / "cells").iterdir():
            if path.name not in files:
                path.unlink()
        self._published = done


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
            this.say(travels(args))
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
    this.run("tests", f"{TESTS} --junitxml {quoted(report)}", seconds)
    if report.exists():
        write(this.out / "tests.xml", report.read_text())


def benchmarks(this: Slice) -> None:
    """The benchmarks that no slice ran; figures of those that ran out of time count, too."""
    end = time.monotonic() + min(BENCHMARK_SECONDS, this.left / 2)  # some is for cells
    for name, command in BENCHMARKS.items():
        file = this.scratch / "figures.json"
        file.unlink(missing_ok=True)
        seconds = end - time.monotonic()
        if this.is_over(name) or seconds < LEAST_SECONDS:
            continue
        options = f"--device {this.args.device} --json {quoted(file)}"
        this.run(name, f"benchmarks/{command} {options} {this.args.benchmark_options}", seconds)
        if file.exists():
            found = {**measured(this.out), name: json.loads(file.read_text())}
            write(this.out / "figures.json", json.dumps(found, indent=1))


def measured(out: Path) -> dict[str, Any]:
    """What the benchmarks found, by name."""
    file = out / "figures.json"
    return json.loads(file.read_text()) if file.exists() else {}


def compares(found: Mapping[str, Any]) -> bool:
    """Whether a benchmark got as far as to compare; its first figure is what others relate to."""
    return len(found.get("figures", ())) > 1


def precision_of(this: Slice) -> str:
    """The precision in which cells of SLOW_M train.

    It is that of the cells that there are, since precisions are not compared with each other. Else
    it is the first of `PRECISIONS` that is fast enough here, or the fastest; float32 if none was
    measured.
    """
    if this.results.finished():
        rows = this.results.cells(columns=["m", "precision"])
        for precision in rows.loc[rows["m"] == SLOW_M, "precision"]:
            return str(precision)
    reached: dict[str, float] = {}
    for each in measured(this.out).get(f"steps, m={SLOW_M}", {}).get("figures", ()):
        if str(each.get("step", "baseline")).startswith("study"):
            rate = each["flops_per_second"]
            reached[each["precision"]] = max(rate, reached.get(each["precision"], 0.0))
    enough = (name for name in PRECISIONS if reached.get(name, 0.0) >= FAST_ENOUGH)
    return next(enough, max(reached, key=reached.__getitem__, default=PRECISIONS[0]))


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
    if str(SLOW_M) in values["m"].split(","):
        values[f"precision@m:{SLOW_M}"] = precision_of(this)
    options = ["--preset", PRESET, "--data-dir", str(this.args.data), "--shard", "1/1"]
    device = ["--gpus-per-trial", "0"] if this.args.device == "cpu" else []
    return [STUDY, *options, *device, "--set", *(f"{k}={v}" for k, v in values.items())]


def progress(this: Slice) -> tuple[int, int]:
    """How many cells are done, and how many there are; of one option each, so none tunes."""
    request, held = requested(asked(this)), this.results.survey()
    plan = staged(planned(request), request.confirm, held.cells, held.statuses, lambda tuned: {})
    return len(plan.finished), len(plan.cells)


def close(this: Slice) -> int:
    """Says what there is now, and what went wrong; the exit status."""
    what = ["m", "precision", "paradigm", "status"]
    for (m, precision, paradigm, status), count in (
        this.results.cells(columns=what).value_counts(what).sort_index().items()
    ):
        this.say(f"m={m}, {precision}, {paradigm}: {count} {status}")
    done, every = progress(this)
    left = f"{done} of {every} cells done, {every - done} left"
    this.say(left if done < every else f"all {every} cells are done")
    files = [path for path in this.out.rglob("*") if path.is_file()]
    large = [str(path) for path in files if path.stat().st_size > MOST_BYTES]
    if large or len(files) > MOST_FILES:
        this.say(f"too much to bring back: {len(files)} files, too large: {large}")
    failed = [
        step["name"]
        for step in this.record[-1]["steps"]
        if step["status"] and not (step["status"] == OUT_OF_TIME and this.is_over(step["name"]))
    ]
    this.say(f"failed: {', '.join(failed)}" if failed else "all steps of this slice went well")
    return FAILED if failed or large or len(files) > MOST_FILES else DONE


def travels(args: argparse.Namespace) -> str:
    """How much was brought to the machine.

    Raises:
        RequestError: more than can be.
    """
    parts = {"tree": PROJECT, "data": args.data, "results": args.results}
    sizes = {name: sum(map(os.path.getsize, files_of(path))) for name, path in parts.items()}
    text = " + ".join(f"{name} {size / 2**20:.1f}" for name, size in sizes.items())
    total = sum(sizes.values())
    if total > TRAVELS_BYTES:
        raise RequestError(f"{text} MiB are more than {TRAVELS_BYTES >> 20} MiB can travel")
    return f"travels: {text} = {total / 2**20:.1f} of {TRAVELS_BYTES >> 20} MiB"


def files_of(folder: Path) -> Iterator[Path]:
    """The files below a folder; of the project those that git knows, or all but hidden ones."""
    if folder == PROJECT:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = ["git", "ls-files", "-z"]
            names = subprocess.run(command, cwd=PROJECT, capture_output=True, check=True)
            found = (PROJECT / name for name in names.stdout.decode().split("\0") if name)
            yield from (path for path in found if path.is_file())
            return
    for path in folder.rglob("*"):
        hidden = any(part.startswith((".", "__")) for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path


def environment() -> dict[str, Any]:
    """The machine and the versions of what runs on it."""
    packages = ("torch", "numpy", "pandas", "pyarrow", "scipy", "scikit-learn", "pytest")
    versions = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    gpu = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit"
    gpus = None
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["nvidia-smi", f"--query-gpu={gpu}", "--format=csv"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        gpus = done.stdout.splitlines()
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "gpus": gpus,
        "code": code_version(),
        "packages": versions,
    }


def quoted(path: str | Path) -> str:
    """A path as a word of a command."""
    return shlex.quote(str(path))


def assignment(text: str) -> str:
    """AXIS=V from the command line."""
    if not text.partition("=")[1]:
        raise argparse.ArgumentTypeError(f"must be AXIS=V, got {text!r}")
    return text


def words(text: str) -> str:
    """Options of another command, from the command line."""
    try:
        shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, in {text!r}") from error
    return text


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """What the command line says.

    Raises:
        RequestError: it cannot be used.
    """
    about, _, more = __doc__.partition("\n\n")
    parser = Parser("benchmarks.gpu_hour", about, more)
    add = parser.add_argument
    add("--device", choices=("cpu", "cuda"), default="cuda")
    add("--minutes", type=above_zero, default=8.0, help="of this slice (8)")
    add("--data", "--data-dir", type=Path, required=True, metavar="DIR", help="CIFAR-10")
    add("--results", type=Path, required=True, metavar="DIR", help="--out of the last slice")
    add("--out", type=Path, required=True, metavar="DIR", help="what is brought back")
    add("--set", type=assignment, nargs="+", default=[], metavar="AXIS=V",
        help="other sizes of the cells")  # fmt: skip
    add("--benchmark-options", type=words, default="", metavar="TEXT",
        help="other sizes of the benchmarks")  # fmt: skip
    args = parser.parse_args(argv)
    if args.device == "cuda" and not torch.cuda.is_available():
        raise RequestError("no CUDA device here")
    args.data, args.results, args.out = (
        each.expanduser().resolve() for each in (args.data, args.results, args.out)
    )
    return args


if __name__ == "__main__":
    sys.exit(main())
