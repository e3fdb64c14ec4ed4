"""Many small cells, and one fault after another: is anything lost, doubled or wrong?

    uv run python benchmarks/soak.py --seed 2026               # 50 minutes on two cores
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

from benchmarks.support.mlflow_server import MLflowServer, serving, tracking_server
from benchmarks.support.processes import training
from benchmarks.support.soak_faults import Flip, SmallDisk, flip, jumping_clock, small_disk
from benchmarks.support.soak_verdict import Recorded, faults, runs
from benchmarks.support.tables import markdown
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

SHORT = {"cells": 1_000, "kills": 20, "disks": 2, "bytes": 4}
LONG = {"cells": 10_000, "kills": 200, "disks": 20, "bytes": 20}

LAST = 0.97
"""The share of the cells at which the last fault comes at the latest."""

START_SECONDS = 15.0
"""A driver that is killed at its start is so within this time."""

PATIENCE = 900.0
"""Seconds after which a study counts as hung that does not train, stop or end; it is killed."""

MOST_IN_VAIN = 3
"""Times in a row that the command may end by itself without another cell."""

FLIPPED = {"result": "cells", "checkpoint": "checkpoints"}
"""Whose bytes flip -> the folder of such files."""


def main() -> int:
    args = arguments()
    command = [
        sys.executable, "-m", "study.run", "digits", "--checkpoint-every", "0.1",
        "--max-retries", "10", "--set", *GRID, f"seed=0-{args.cells // CELLS_A_SEED - 1}",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        reference = args.reference or folder / "reference"
        straight = uninterrupted(command, reference, args.cells)
        environment = jumping_clock(args.seed)
        disk = stack.enter_context(small_disk(folder / "disk"))
        if args.keep:
            stack.callback(shutil.copytree, folder, args.keep, dirs_exist_ok=True)
        (folder / "mlflow").mkdir()
        database = f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}"
        server = tracking_server(folder / "mlflow", database, environment)
        stack.enter_context(serving(server))
        study = Study([*command, "--tracking", server.uri], disk, server, environment)
        stack.callback(study.close)
        soak = Soak(study, args.cells, random.Random(args.seed))
        started = time.monotonic()
        soak.run(soak.drawn(args.kills, args.disks, args.bytes))
        seconds = time.monotonic() - started
        say("MLflow is given what it lacks")
        server.wait()
        run("-m", "study.track", str(study.results), "--tracking", server.uri)
        say("compared with the uninterrupted study")
        found = {
            **faults(reference, study.results, study.recorded, soak.flipped),
            "full disks that ended otherwise": soak.full.total() - soak.full[UNUSABLE],
            "hung": study.hung,
            "tracebacks shown": study.log.count("Traceback (most recent call last)"),
            **runs(database, set(Results(reference).finished())),
        }
        print(f"seed {args.seed}, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores\n")
        rows = {**soak.told(), **{name: str(count) for name, count in found.items()}}
        markdown(("", ""), rows.items())
        print(f"\nThe command ended by itself: {dict(soak.ends)} (exit status: times).")
        print(f"It took {seconds:,.0f} s with {study.starts} starts of the command.")
        if straight:
            print(f"The uninterrupted study, without MLflow, took {straight:,.0f} s.")
        return int(any(found.values()))


class Study:
    """The command, started again and again with one directory.

    Args:
        command: without its results directory.
        disk: of the results.
        server: that it logs to.
        environment: of its processes.

    Attributes:
        results: its directory.
        recorded: its cells, as they were whenever it had ended.
        starts: of the command.
        hung: how often it was killed since it did not train, stop or end.
    """

    _process: subprocess.Popen[bytes]

    def __init__(
        self,
        command: list[str],
        disk: SmallDisk,
        server: MLflowServer,
        environment: dict[str, str],
    ) -> None:
        self.disk, self.server = disk, server
        self.results = disk.folder / "results"
        self.recorded = Recorded(self.results)
        self.starts = self.hung = 0
        self._command = [*command, "--results", str(self.results)]
        self._environment = environment
        self._log = disk.folder.parent / "log"

    def start(self) -> None:
        self.starts += 1
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=PROJECT, env=self._environment, stdout=log, stderr=log
            )

    def status(self) -> int | None:
        """The exit status of the last start; None while it runs."""
        return self._process.poll()

    def workers(self) -> list[int]:
        """Waits until workers train; empty if the command ends before."""
        found: list[int] = []

        def train() -> bool:
            found[:] = training(self._process.pid)
            return bool(found)

        self.wait_until(train)
        return found

    def signal(self, number: int) -> None:
        """Sends a signal to the driver, and waits for its end."""
        self._process.send_signal(number)
        self.ended()

    def ended(self) -> int:
        """Waits for the end of the command; its exit status."""
        self.wait_until(lambda: False)
        return self._process.wait()

    def wait_until(self, holds: Callable[[], bool]) -> None:
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

    def close(self) -> None:
        if self.starts and self.status() is None:
            self._process.kill()
            self._process.wait()


class Soak:
    """Faults that hit a study.

    Args:
        study: that they hit.
        cells: of the study.
        rng: draws moments and what is hit.

    Attributes:
        hit: what was hit -> how often.
        full: exit status -> how often the command ended with it on a full disk.
        ends: exit status -> how often the command ended with it by itself.
        flips: bytes that were flipped.
    """

    def __init__(self, study: Study, cells: int, rng: random.Random) -> None:
        self._study, self._cells, self._rng = study, cells, rng
        self._to_flip: list[str] = []  # between two starts
        self._in_vain = self._recorded = 0
        self.hit: Counter[str] = Counter()
        self.full: Counter[int] = Counter()
        self.ends: Counter[int] = Counter()
        self.flips: list[Flip] = []

    @property
    def flipped(self) -> set[str]:
        """Cells of whose results a byte was flipped."""
        return {cell_id for each in self.flips for cell_id in each.cell_ids}

    def drawn(self, kills: int, disks: int, flips: int) -> list[tuple[float, str]]:
        """Moments, in recorded cells, and what is hit then."""
        hits = [what for what, share in KILLED.items() for _ in range(round(share * kills))]
        hits += ["worker"] * (kills - len(hits)) + ["disk"] * disks
        hits += ["result"] * (flips - flips // 2) + ["checkpoint"] * (flips // 2)
        self._rng.shuffle(hits)
        moments = sorted(self._rng.uniform(0, LAST * self._cells) for _ in hits)
        return list(zip(moments, hits, strict=True))

    def run(self, hits: list[tuple[float, str]]) -> None:
        """Hits the study at these moments, then lets it run to its end."""
        study = self._study
        study.start()
        for number, (moment, what) in enumerate(hits, 1):
            while (count := len(study.recorded.ids())) < moment:
                if (status := study.status()) is not None:
                    self._again(status)
                time.sleep(0.1)
            say(f"{count} cells, fault {number} of {len(hits)}: {what}")
            self._hit(what)
            self.hit[what] += 1
        say("no more faults")
        # A flipped byte may be there that no start has found yet.
        while (status := study.ended()) != DONE or self._to_flip or self._damaged():
            self._again(status)
        self.ends[status] += 1

    def _damaged(self) -> bool:
        return bool(Results(self._study.results).survey().damaged)

    def _hit(self, what: str) -> None:
        study = self._study
        if what in FLIPPED:
            if self._rng.random() < 0.5:
                self._flip(what)
            else:
                self._to_flip.append(what)
            return
        if what == "server":
            study.server.kill()
            study.server.begin()
            return
        while not study.workers():
            self._again(study.ended())
        time.sleep(self._rng.uniform(0, 0.5))
        if what == "worker":
            if pids := study.workers():
                with contextlib.suppress(ProcessLookupError):  # ended with its driver
                    os.kill(self._rng.choice(pids), signal.SIGKILL)
            return
        if what == "disk":
            study.disk.fill()
            self.full[study.ended()] += 1
            study.disk.free()
        elif what == "driver":
            study.signal(signal.SIGKILL)
        elif what == "driver at its start":
            study.signal(signal.SIGTERM)
            self._again()
            time.sleep(self._rng.uniform(0, START_SECONDS))
            study.signal(signal.SIGKILL)
        self._again()

    def _again(self, status: int | None = None) -> None:
        """Starts the command again; `status` is its last one, if it ended by itself."""
        study = self._study
        study.recorded.look(self.flipped)
        if status is not None:
            self.ends[status] += 1
            count = len(study.recorded.ids())
            self._in_vain = self._in_vain + 1 if count == self._recorded else 0
            self._recorded = count
            if self._in_vain > MOST_IN_VAIN:
                raise SystemExit(
                    f"{study.log[-4000:]}\nthe command ends again and again, without another "
                    f"cell, after {study.starts} starts of the command"
                )
        while self._to_flip:
            self._flip(self._to_flip.pop())
        study.start()

    def _flip(self, what: str) -> None:
        """Flips a byte; of a result, where there is no checkpoint."""
        for folder in (FLIPPED[what], FLIPPED["result"]):
            if found := flip(self._study.results, folder, self._rng):
                self.flips.append(found)
                return

    def told(self) -> dict[str, str]:
        """What was hit, as docs/reliability.md shows it."""
        hit, results = self.hit, self._study.results
        cells = Results(results).cells(columns=["shared_prefix"])
        set_aside = sum(each.set_aside(results) for each in self.flips)
        in_results = sum(each.name.startswith("cells/") for each in self.flips)
        counted = self._study.recorded.ids()
        drivers = hit["driver"] + hit["driver at its start"]
        return {
            "cells": f"{len(cells):,}, {int(cells['shared_prefix'].sum()):,} of them forked",
            "kills -9": f"{drivers + hit['worker'] + hit['server']}: {drivers} of the driver, "
            f"{hit['driver at its start']} of these at its start, {hit['worker']} of workers, "
            f"{hit['server']} of MLflow's server",
            "full disks": f"{hit['disk']}, {self.full[UNUSABLE]} of them named in one line",
            "flipped bytes": f"{len(self.flips)}: {in_results} in results, "
            f"{len(self.flips) - in_results} in checkpoints; {set_aside} of the files set aside, "
            "the others of no effect",
            "jumps of the clock": "all the time, in every process",
            "equal copies of a cell in two files": str(len(counted) - len(set(counted))),
        }


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def uninterrupted(command: list[str], results: Path, cells: int) -> float | None:
    """Runs the study without faults and without MLflow; None if it has run before, else seconds.

    Raises:
        SystemExit: it does not end well, or the directory holds another study.
    """
    if (there := len(Results(results).finished())) > cells:
        raise SystemExit(f"{results} holds {there} cells, and not the {cells} of this soak.")
    if there == cells:
        return None
    say("the uninterrupted study runs")
    started = time.monotonic()
    run(*command[1:], "--tracking", "none", "--results", str(results))
    return time.monotonic() - started


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
    for name, about in {
        "cells": f"a multiple of {CELLS_A_SEED}", "kills": "-9 of driver, workers and server",
        "disks": "times that the disk is full", "bytes": "that flip",
    }.items():  # fmt: skip
        add(f"--{name}", type=int, help=f"{about} ({LONG[name]:,}; short: {SHORT[name]:,})")
    add("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the moments")
    add("--reference", type=Path, metavar="DIR", help="of the uninterrupted study: made, or used")
    add("--keep", type=Path, metavar="DIR", help="copies results and logs here at the end")
    args = parser.parse_args()
    for name, value in (SHORT if args.short else LONG).items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


if __name__ == "__main__":
    sys.exit(main())
