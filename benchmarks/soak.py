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
from benchmarks.support.soak_faults import fill, flip, free, jumping_clock, small_disk
from benchmarks.support.soak_verdict import ends, faults, runs
from study.results import Results, ResultsError
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

SHORT = {"cells": 1_000, "kills": 20, "disks": 2, "bytes": 4}

KILLED = {"worker": 0.77, "driver": 0.1, "driver at its start": 0.03, "server": 0.1}
"""What is killed, and how likely; a new driver takes 20 s."""

FLIPPED = ("byte of cells", "byte of checkpoints")

LAST = 0.97
"""The share of the cells at which the last fault comes at the latest."""

START_SECONDS = 15.0
"""A driver that is killed at its start is so within this time."""

PATIENCE = 900.0
"""Seconds without another cell after which a study has got stuck, and the soak ends."""


def main() -> int:
    """Prints what was hit and found; the exit status is 0 if nothing was wrong, else 1."""
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # with all that it has started
    command = [
        sys.executable, "-m", "study.run", "digits", "--checkpoint-every", "0.1",
        "--max-retries", "10", "--set", *GRID, f"seed=0-{args.cells // CELLS_A_SEED - 1}",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        reference = args.reference or folder / "reference"
        if len(Results(reference).finished()) < args.cells:
            say("the uninterrupted study runs")
            run([*command, "--tracking", "none", "--results", str(reference)])
        stack.enter_context(small_disk(disk := folder / "disk"))
        if args.keep:
            stack.callback(shutil.copytree, folder, args.keep, dirs_exist_ok=True)
        (folder / "mlflow").mkdir()
        database = f"sqlite:///{folder / 'mlflow' / 'mlflow.db'}"
        environment = jumping_clock(args.seed)
        server = stack.enter_context(
            serving(tracking_server(folder / "mlflow", database, environment))
        )
        log = stack.enter_context((folder / "log").open("ab"))
        results = disk / "results"
        command += ["--tracking", server.uri, "--results", str(results)]

        def begin() -> subprocess.Popen[bytes]:
            return subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)

        soak = Soak(begin, disk, results, server, random.Random(args.seed))
        stack.callback(soak.kill)
        started = time.monotonic()
        soak.run(args)
        seconds = time.monotonic() - started
        say("MLflow is given what it lacks")
        server.wait()
        run([sys.executable, "-m", "study.track", str(results), "--tracking", server.uri])
        say("compared with the uninterrupted study")
        shown = (folder / "log").read_text()
        found = {
            **faults(reference, results, soak.recorded, soak.flipped),
            "full disks that ended otherwise": soak.otherwise,
            "tracebacks shown": shown.count("Traceback (most recent call last)"),
            **runs(database, Results(reference).finished()),
        }
        cells = Results(results).cells(columns=["shared_prefix"])
        records = Results(results).records()
        counts = {
            **soak.hit,
            "files set aside": len([*results.glob("damaged/*/*")]),
            "cells": len(cells),
            "- forked": int(cells["shared_prefix"].sum()),
            "equal copies of a cell in two files": int(records["cell_id"].duplicated().sum()),
            **found,
        }
    print(f"seed {args.seed}, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores\n")
    table(("what", "count"), ((name, f"{count:,}") for name, count in counts.items()))
    print(f"\nThe command ended by itself: {dict(soak.ends)} (exit status: times).")
    print(f"It took {seconds:,.0f} s with {soak.starts} starts of the command.")
    return int(any(found.values()))


class Soak:
    """A study that faults hit, and whose command is started again whenever it has ended.

    Args:
        command: starts it.
        disk: which fills up; the results are there.
        results: of the study.
        server: that it logs to.
        rng: draws moments and what is hit.

    Attributes:
        recorded: cell id -> when it was recorded, as it was first seen.
        flipped: cells of whose results a byte was flipped.
        hit: what was hit -> how often.
        otherwise: how often the command did not end with one line on a full disk.
        ends: exit status -> how often the command ended with it by itself.
        starts: of the command.
    """

    _process: subprocess.Popen[bytes]

    def __init__(
        self, command: Callable[[], subprocess.Popen[bytes]], disk: Path, results: Path,
        server: MLflowServer, rng: random.Random,
    ) -> None:  # fmt: skip
        self._command, self._disk, self._results = command, disk, results
        self._server, self._rng = server, rng
        self._finished = Results(results).finished  # which looks into each file once
        self.recorded: dict[str, str] = {}
        self.flipped: set[str] = set()
        self.hit: Counter[str] = Counter()
        self.ends: Counter[int] = Counter()
        self.otherwise = self.starts = 0
        self._count, self._deadline = -1, math.inf

    def run(self, args: argparse.Namespace) -> None:
        """Hits the study at random moments, then lets it run to its end."""
        hits = self._rng.choices([*KILLED], [*KILLED.values()], k=args.kills)
        hits += self._rng.choices(FLIPPED, k=args.bytes) + ["full disk"] * args.disks
        self._rng.shuffle(hits)
        moments = sorted(self._rng.uniform(0, LAST * args.cells) for _ in hits)
        self._start()
        for moment, what in zip(moments, hits, strict=True):
            if self._trains_until(lambda least=moment: len(self._finished()) >= least):
                say(f"{len(self._finished())} cells, fault {self.hit.total() + 1}: {what}")
                self.hit[what] += self._hit(what)
        say("no more faults")
        # A flipped byte may be there that no start has found yet.
        while self._trains_until(lambda: False) or Results(self._results).survey().damaged:
            self._start()
        self.ends[DONE] += 1

    def kill(self) -> None:
        """Kills the driver, with which its workers end."""
        self._process.kill()
        self._process.wait()

    def _hit(self, what: str) -> bool:
        """Whether there was anything to hit before the study was done."""
        if what in FLIPPED:
            return self._trains_until(lambda: self._flip(what.split()[-1]))
        if what == "server":
            self._server.kill()
            self._server.start()
            return True
        if not self._trains_until(self._workers):
            return False
        time.sleep(self._rng.uniform(0, 0.5))
        if what == "worker":
            with contextlib.suppress(ProcessLookupError, IndexError):  # ended with its driver
                os.kill(self._rng.choice(self._workers()), signal.SIGKILL)
            return True
        if what == "full disk":
            fill(self._disk)
            self._until(lambda: False)
            self.otherwise += self._process.returncode != UNUSABLE
            free(self._disk)
        elif what == "driver at its start":
            self._process.terminate()
            self._until(lambda: False)
            self._start()
            time.sleep(self._rng.uniform(0, START_SECONDS))
        self.kill()
        self._start()
        return True

    def _workers(self) -> list[int]:
        return training(self._process.pid)

    def _flip(self, folder: str) -> bool:
        """Flips a byte of a file of a folder, if there is any."""
        files = [path for path in self._results.glob(f"{folder}/*") if path.suffix != ".part"]
        cell_ids = flip(sorted(files), self._rng)
        self.flipped |= cell_ids or set()
        return cell_ids is not None

    def _start(self) -> None:
        """Starts the command, after a look at what it has recorded."""
        with contextlib.suppress(ResultsError):  # none, or a flipped byte that is not found yet
            self.recorded = ends(self._results) | self.recorded
        self.starts += 1
        self._process = self._command()

    def _trains_until(self, holds: Callable[[], object]) -> bool:
        """Lets the study go on until something holds; False: it was done before."""
        while not self._until(holds):
            if self._process.returncode == DONE:
                return False
            self.ends[self._process.returncode] += 1
            self._start()
        return True

    def _until(self, holds: Callable[[], object]) -> bool:
        """Waits until something holds; False: the command ended before."""
        while self._process.poll() is None:
            if holds():
                return True
            count = len(self._finished())
            if count > self._count:
                self._count, self._deadline = count, time.monotonic() + PATIENCE
            elif time.monotonic() > self._deadline:
                sys.exit(f"no cell was recorded for {PATIENCE} s; --keep DIR keeps what is there")
            time.sleep(0.1)
        return False


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def run(command: list[str]) -> None:
    """Runs a command to its end, which has to be a good one."""
    subprocess.run(command, cwd=PROJECT, stdout=subprocess.DEVNULL, check=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--short", action="store_true", help="a tenth of all, but for four bytes")
    add("--cells", type=int, default=10_000, help=f"a multiple of {CELLS_A_SEED} (10,000)")
    add("--kills", type=int, default=200, help="-9 of driver, workers and server (200)")
    add("--disks", type=int, default=20, help="times that the disk is full (20)")
    add("--bytes", type=int, default=20, help="that flip (20)")
    add("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="of the moments")
    add("--reference", type=Path, metavar="DIR", help="of the uninterrupted study: made, or used")
    add("--keep", type=Path, metavar="DIR", help="copies results and logs here at the end")
    if parser.parse_args().short:
        parser.set_defaults(**SHORT)
    args = parser.parse_args()
    if args.cells < 1 or args.cells % CELLS_A_SEED:
        parser.error(f"--cells must be a multiple of {CELLS_A_SEED}, got {args.cells}")
    return args


if __name__ == "__main__":
    sys.exit(main())
