"""Many small cells, and one fault after another: is anything lost, doubled or wrong?

    uv run python benchmarks/soak.py --seed 2026               # 70 minutes on two cores
    uv run python benchmarks/soak.py --seed 2026 --short       # five minutes
    uv run python benchmarks/soak.py --cells 60 --kills 6 --disks 1 --bytes 2 --seed 7

While a study trains and logs to a server of MLflow, kill -9 hits its driver, its workers and the
server; its disk fills up; bytes of its results and checkpoints flip; and the wall clock of each
of its processes jumps (`jumping_clock`). The same command is started again whenever it has ended,
until it ends well. Then its results must equal those of an uninterrupted study, bit by bit.

Faults come at random moments, spread over the cells. One seed draws them all, but what they meet
depends on how fast the machine is. It needs the right to mount a file system.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from benchmarks.support.measure import table
from benchmarks.support.mlflow_server import MLflowServer, serving, tracking_server
from benchmarks.support.processes import training
from benchmarks.support.soak_faults import Flip, SmallDisk, flip, jumping_clock, small_disk
from benchmarks.support.soak_verdict import Recorded, faults, runs
from study.results import Results
from study.terminal.command import DONE, UNUSABLE

PROJECT = Path(__file__).parents[1]

CELLS_A_SEED = 10
"""Soft; hard and lvml at two rates; hybrids with four switch points, which fork from soft; and one
that takes ten times as long."""

GRID = [
    "m=2,8", "n=60", "epochs=4", "epochs@m:8=100", "batch_size=10", "evaluations=2",
    "paradigm=soft,hard,lvml,hybrid", "paradigm@m:8=lvml", "lr=0.1", "lr@hard,lvml=0.05,0.1",
    "lr@lvml@m:8=0.1", "switch_point=0.2,0.4,0.6,0.8", "train_metrics_size=10",
    "validation_size=10", "test_size=10", "confirm=none",
]  # fmt: skip

KILLED = {"driver": 0.1, "driver at its start": 0.03, "server": 0.1}
"""What is killed, and its share of all kills. The others are workers: a new driver takes 20 s."""

NUMBERS = {
    "cells": (10_000, 1_000, f"a multiple of {CELLS_A_SEED}"),
    "kills": (200, 20, "-9 of driver, workers and server"),
    "disks": (20, 2, "times that the disk is full"),
    "bytes": (20, 4, "that flip"),
}
"""Option -> its number, that of --short, and what it counts."""

LAST = 0.97
"""The share of the cells at which the last fault comes at the latest."""

START_SECONDS = 15.0
"""A driver that is killed at its start is so within this time."""

PATIENCE = 900.0
"""Seconds after which a study counts as hung that does not train, stop or end; it is killed."""

MOST_IN_VAIN = 3
"""Times in a row that the command may end by itself without another cell."""


def main() -> int:
    """Prints what was hit and found; the exit status is 0 if nothing was wrong, else 1."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # with all that it has started
    command = [
        "-m", "study.run", "digits", "--checkpoint-every", "0.1", "--max-retries", "10",
        "--set", *GRID, f"seed=0-{args.cells // CELLS_A_SEED - 1}",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        reference = args.reference or folder / "reference"
        if len(Results(reference).finished()) < args.cells:
            say("the uninterrupted study runs")
            run(*command, "--tracking", "none", "--results", str(reference))
        environment = jumping_clock(args.seed)
        disk = stack.enter_context(small_disk(folder / "disk"))
        if args.keep:
            stack.callback(shutil.copytree, folder, args.keep, dirs_exist_ok=True)
        (folder / "mlflow").mkdir()
        database = f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}"
        server = tracking_server(folder / "mlflow", database, environment)
        stack.enter_context(serving(server))
        results = disk.folder / "results"
        command += ["--tracking", server.uri, "--results", str(results)]
        study = Study(command, environment, folder / "log")
        stack.callback(study.kill)
        soak = Soak(study, results, disk, server, random.Random(args.seed))
        started = time.monotonic()
        soak.run(args)
        seconds = time.monotonic() - started
        say("MLflow is given what it lacks")
        server.wait()
        run("-m", "study.track", str(results), "--tracking", server.uri)
        say("compared with the uninterrupted study")
        found = {
            **faults(reference, results, soak.recorded, soak.flipped),
            "full disks that ended otherwise": soak.full.total() - soak.full[UNUSABLE],
            "hung": study.hung,
            "tracebacks shown": study.log.count("Traceback (most recent call last)"),
            **runs(database, Results(reference).finished()),
        }
        print(f"seed {args.seed}, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores\n")
        counts = {**soak.hit, **soak.told(), **found}
        table(("what", "count"), ((name, f"{count:,}") for name, count in counts.items()))
        print(f"\nThe command ended by itself: {dict(soak.ends)} (exit status: times).")
        print(f"It took {seconds:,.0f} s with {study.starts} starts of the command.")
        return int(any(found.values()))


class Study:
    """The command, started again and again with one directory.

    Attributes:
        starts: of the command.
        hung: how often it was killed since it did not train, stop or end.
    """

    _process: subprocess.Popen[bytes]

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.starts = self.hung = 0
        self._command, self._environment, self._log = command, environment, log

    def start(self) -> None:
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._command], cwd=PROJECT, env=self._environment, stdout=log,
                stderr=log,
            )  # fmt: skip

    def status(self) -> int | None:
        """The exit status of the last start; None while it runs."""
        return self._process.poll()

    def workers(self) -> list[int]:
        """Waits until workers train; empty if the command ends before."""
        self._wait_until(lambda: bool(training(self._process.pid)))
        return training(self._process.pid)

    def ended(self, by: int = 0) -> int:
        """Waits for the end of the command, after a signal to it; its exit status."""
        self._process.send_signal(by)
        self._wait_until(lambda: False)
        return self._process.wait()

    def _wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds, or for the end of the command."""
        deadline = time.monotonic() + PATIENCE
        while self.status() is None and not holds():
            if time.monotonic() > deadline:
                self.hung += 1
                self._process.kill()
                deadline = math.inf
            time.sleep(0.1)

    @property
    def log(self) -> str:
        """What it has shown."""
        return self._log.read_text()

    def kill(self) -> None:
        if self.starts:
            self.ended(signal.SIGKILL)


class Soak:
    """Faults that hit a study.

    Args:
        study: that they hit.
        results: its directory, on a disk of its own.
        disk: which fills up.
        server: that it logs to.
        rng: draws moments and what is hit.

    Attributes:
        recorded: its cells, as they were whenever it had ended.
        hit: what was hit -> how often.
        full: exit status -> how often the command ended with it on a full disk.
        ends: exit status -> how often the command ended with it by itself.
        flips: bytes that were flipped.
    """

    def __init__(
        self, study: Study, results: Path, disk: SmallDisk, server: MLflowServer,
        rng: random.Random,
    ) -> None:  # fmt: skip
        self._study, self._results, self._disk, self._server = study, results, disk, server
        self._rng = rng
        self._in_vain = self._before = 0
        self.recorded = Recorded(results)
        self.hit: Counter[str] = Counter()
        self.full: Counter[int] = Counter()
        self.ends: Counter[int] = Counter()
        self.flips: list[Flip] = []

    @property
    def flipped(self) -> set[str]:
        """Cells of whose results a byte was flipped."""
        return {cell_id for each in self.flips for cell_id in each.cell_ids}

    def run(self, args: argparse.Namespace) -> None:
        """Hits the study at random moments, then lets it run to its end."""
        due = Counter({what: round(share * args.kills) for what, share in KILLED.items()})
        due += Counter({"worker": args.kills - due.total(), "full disk": args.disks})
        due += Counter({"byte": args.bytes})
        hits = [*due.elements()]
        self._rng.shuffle(hits)
        moments = sorted(self._rng.uniform(0, LAST * args.cells) for _ in hits)
        self._study.start()
        for moment, what in zip(moments, hits, strict=True):
            while (count := self.recorded.count()) < moment:
                if (status := self._study.status()) is not None:
                    self._again(status)
                time.sleep(0.2)
            say(f"{count} cells, fault {self.hit.total() + 1}: {what}")
            self._hit(what)
            self.hit[what] += 1
        say("no more faults")
        # A flipped byte may be there that no start has found yet.
        while (status := self._study.ended()) != DONE or Results(self._results).survey().damaged:
            self._again(status)
        self.ends[status] += 1

    def _hit(self, what: str) -> None:
        if what == "byte":
            folder = self._rng.choice(("cells", "checkpoints"))
            found = flip(self._results, folder, self._rng) or flip(
                self._results, "cells", self._rng
            )
            self.flips += [found] if found else []
            return
        if what == "server":
            self._server.kill()
            self._server.begin()
            return
        study = self._study
        while not (workers := study.workers()):
            self._again(study.ended())
        time.sleep(self._rng.uniform(0, 0.5))
        if what == "worker":
            with contextlib.suppress(ProcessLookupError):  # ended with its driver
                os.kill(self._rng.choice(workers), signal.SIGKILL)
            return
        if what == "full disk":
            self._disk.fill()
            self.full[study.ended()] += 1
            self._disk.free()
        elif what == "driver":
            study.ended(signal.SIGKILL)
        else:  # at its start
            study.ended(signal.SIGTERM)
            self._again()
            time.sleep(self._rng.uniform(0, START_SECONDS))
            study.ended(signal.SIGKILL)
        self._again()

    def _again(self, status: int | None = None) -> None:
        """Starts the command again; `status` is its last one, if it ended by itself."""
        self.recorded.look(self.flipped)
        if status is not None:
            self.ends[status] += 1
            count = self.recorded.count()
            self._in_vain = self._in_vain + 1 if count == self._before else 0
            self._before = count
            if self._in_vain > MOST_IN_VAIN:
                sys.exit(
                    f"{self._study.log[-4000:]}\nthe command ends again and again, without "
                    f"another cell, after {self._study.starts} starts of the command"
                )
        self._study.start()

    def told(self) -> dict[str, int]:
        """What docs/reliability.md tells besides."""
        there = Results(self._results)
        cells, records = there.cells(columns=["shared_prefix"]), there.records()
        return {
            "cells": len(cells),
            "- forked": int(cells["shared_prefix"].sum()),
            "full disks named in one line": self.full[UNUSABLE],
            "flipped bytes in results": sum(bool(each.cell_ids) for each in self.flips),
            "flipped bytes of a file set aside": sum(
                each.set_aside(self._results) for each in self.flips
            ),
            "equal copies of a cell in two files": int(records["cell_id"].duplicated().sum()),
        }


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def run(*words: str) -> None:
    """Runs a Python command to its end, which has to be a good one."""
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--short", action="store_true", help="the same mix, a tenth of all")
    for name, (number, short, about) in NUMBERS.items():
        add(f"--{name}", type=int, help=f"{about} ({number:,}; short: {short:,})")
    add("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the moments")
    add("--reference", type=Path, metavar="DIR", help="of the uninterrupted study: made, or used")
    add("--keep", type=Path, metavar="DIR", help="copies results and logs here at the end")
    args = parser.parse_args()
    for name, numbers in NUMBERS.items():
        if getattr(args, name) is None:
            setattr(args, name, numbers[args.short])
    if args.cells < 1 or args.cells % CELLS_A_SEED:
        parser.error(f"--cells must be a multiple of {CELLS_A_SEED}, got {args.cells}")
    return args


if __name__ == "__main__":
    sys.exit(main())
