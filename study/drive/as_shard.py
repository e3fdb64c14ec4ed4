"""Trains a share of a study in this process, beside other shards, again and again.

The cells of a plan are numbered group by group, a group being what one paradigm of a comparison
tries, and shard K of N takes every N-th of them: each group is spread evenly. The numbers follow
from the grid alone. So all shards agree on them, whenever each is started and whatever is recorded
by then.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from study import hardware
from study.cell.work import Job
from study.drive.launcher import Launch, Launcher, Trained
from study.kinds import KINDS
from study.launch.failures import Failure, say
from study.launch.here import Pace
from study.launch.watching import Watch
from study.launch.workplace import Workplace
from study.plan.describe import describe
from study.plan.divide import cores_for
from study.plan.estimate import cell_seconds, choose_kernels, choose_packing
from study.plan.plan import Plan
from study.request import Request, Shard
from study.terminal import counted
from study.terminal.command import DONE, FAILED
from study.terminal.working import aside, duration, working


class AsShard(Launcher):
    """Runs a shard's share of the cells, one trial at a time.

    Args:
        request: what was asked for.
        place: where they run, shared with the other shards.
        shard: whose share.
        began: when the command did, in seconds of `time.monotonic`.
    """

    def __init__(self, request: Request, place: Workplace, shard: Shard, began: float) -> None:
        super().__init__(request, place)
        self._shard = shard
        self._waiting, self._lacking = 0, 0
        self._end = began + 60 * request.minutes
        self._left = ""
        cores = cores_for(request.threads)
        asked = request.threads or _openmp_threads()
        self._threads = min(asked or cores, cores)
        may_use_gpu = KINDS[request.space.kind].trains and request.gpus_per_trial != 0
        self._gpu = hardware.set_up(self._threads, may_use_gpu).type == "cuda"
        self._note = ""
        if shard.of > 1 and cores > 1 and not (asked or self._gpu):
            self._note = (
                f"this shard takes all {cores} cores; if all {shard.of} run on this machine, give "
                f"each --threads {max(1, cores // shard.of)}"
            )

    def taken(self, plans: Sequence[Plan]) -> Sequence[Plan]:
        """Its share of the first plan of which anything is left to run, by whomever."""
        first = next((plan for plan in plans if not plan.left.empty), plans[-1])
        mine, last = share_of(first, self._shard), share_of(plans[-1], self._shard)
        self._waiting = 0 if first is plans[-1] else len(last.left)
        self._lacking = len(first.tuning(first.left)) - len(mine.tuning(mine.left))
        return [mine]

    def divide(self, plan: Plan) -> Plan:
        how = replace(
            plan.how,
            threads=self._threads,
            concurrent=1,
            gpus_per_trial=None if self._gpu else 0,
            notes=(self._note,) if self._note else (),
            no_share_reason="a shard trains every cell from its start",
        )
        plan, places = replace(plan, how=how), self.request.places
        with working("timing cells"):
            kernels, reason = choose_kernels(plan, places, self.request.kernels)
            how = replace(how, kernels=kernels, kernels_reason=reason)
            plan = replace(plan, how=how)
            packing = choose_packing(plan, places, self.request.pack, share=False)
            plan = replace(plan, how=replace(how, packing=packing))
            return plan.timed(cell_seconds(plan, places))

    def describe(self, plans: Sequence[Plan]) -> str:
        (plan,) = plans
        lines = [f"shard {self._shard}"]
        if not plan.runnable.empty:
            about, price = self.request.about, self.request.price_per_hour
            lines.append(describe(plan, about, price))
        return "\n".join([*lines, *self._still_to_come(plan)])

    @contextlib.contextmanager
    def launched(self, plans: Sequence[Plan], watch: Watch) -> Iterator[Launch]:
        """Gives what runs a stage, as far as there is time."""

        def launch(plan: Plan) -> bool:
            pace = Pace(functools.partial(estimate, plan), self._end)
            if waiting := self.run_here(plan, watch, pace):
                self._left = _why(waiting, watch.failures, pace)
            return not (self._left or any(each.ends_process for each in watch.failures))

        yield launch

    def close(self, trained: Trained) -> int:
        (plan,) = trained.plans
        if self._left:
            print(f"{self._left}: the same command goes on")
        say(trained.failures)
        if trained.failures:
            aside("the same command tries the failed cells again")
        for text in plan.skipped:
            print(f"skipped: {text}")
        print(f"results: {self.place.results.url}")
        if to_come := self._still_to_come(plan):
            print(*to_come, sep="\n")
        elif not (trained.failures or self._left):
            print("this share is done; once all are, the same command without --shard reports")
        return FAILED if trained.failures else DONE

    def _still_to_come(self, plan: Plan) -> list[str]:
        """Lines on the cells of a share that cannot train yet."""
        lines, to_come = [], len(plan.to_come)
        if to_come:
            confirm = counted(to_come, "cell confirms", "cells confirm")
            lines.append(f"to come: {confirm} what is not chosen yet")
        if self._waiting:
            take = counted(self._waiting, "cell takes", "cells take")
            lines.append(f"to come: {take} apart networks that train first")
        then = "Once all shards have ended, run them again"
        if self._lacking:
            them = "tuning cell" if to_come else "cell"
            are = (f"{them} of other shards is", f"{them}s of other shards are")
            then = f"{counted(self._lacking, *are)} not in this directory: once they are, run this"
            then += " again"
        return [f"{line}. {then}" for line in lines]


def share_of(plan: Plan, shard: Shard) -> Plan:
    """What a plan leaves to a shard, and what cannot run."""
    rows = plan.rows
    mine = rows["number"] % shard.of == shard.number - 1
    return replace(plan, rows=rows[mine | rows["skipped"].notna()])


def estimate(plan: Plan, job: Job) -> float:
    """Seconds of a pack; a smaller one than was measured takes as long, or as its cells alone."""
    measured = plan.how.packing.measured_of(job.cells[0])
    shares = sum(plan.seconds[cell_id] for cell_id in job.ids)
    return shares * min(measured.speedup, measured.members / len(job.cells))


def _openmp_threads() -> int | None:
    """The threads that OMP_NUM_THREADS gives to this process; None: it says nothing."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) else None


def _why(left: Sequence[Job], failures: Sequence[Failure], pace: Pace) -> str:
    """Why cells are left."""
    cells = [cell for job in left for cell in job.cells]
    if failures and failures[-1].ends_process:
        wait = counted(len(cells), "cell waits", "cells wait")
        return f"{wait} for another process, as this one cannot use its GPU any more"
    if failures:
        return f"{counted(len(cells), 'cell is', 'cells are')} left"
    shortest = duration(min(pace.seconds(Job(((cell,),))) for cell in cells))
    return (
        f"{counted(len(cells), 'cell')} would not have ended in time (the shortest takes about "
        f"{shortest})"
    )
