"""Divides a machine or a cluster among trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from study.errors import RequestError
from study.hardware import gpu_count
from study.launch.nodes import slots_on
from study.limits import usable_cores
from study.plan.plan import Plan
from study.terminal import counted
from study.train.steps.packs import Packing, form

Room = Callable[[int], int]
"""CPU threads a trial -> how many trials fit on a cluster at a time."""


CLUSTER_THREADS = 1
"""CPU threads of a trial on a cluster. Fixed, so that results do not depend on which nodes are
there."""


def with_packing(
    plan: Plan,
    packing: Packing,
    share: bool = False,
    no_share_reason: str = "as asked",
    room: Room | None = None,
    threads: int | None = None,
    max_concurrent: int | None = None,
) -> Plan:
    """The plan with packs or shared prefixes, and this machine divided among its trials.

    Forks and packs are not combined: packed cells share no prefix.

    Args:
        plan: whose cells to divide.
        packing: how to pack them.
        share: whether cells share prefixes.
        no_share_reason: why not, for people.
        room: of a cluster; None: this machine.
        threads: CPU threads a trial; None: the cores divided among the trials, on a cluster 1.
        max_concurrent: most trials at a time; None: no limit.

    Raises:
        RequestError: this machine lacks the GPUs or cores that a trial asks for.
    """
    asked = plan.how.gpus_per_trial
    # Divided by the whole study, so that a resumed one trains with as many threads as before.
    if room is not None:
        threads = threads or CLUSTER_THREADS
        slots = room(threads)
        concurrent = min(slots, _trials(plan, packing, slots))
    else:
        gpus, cores = gpu_count(), cores_for(threads)
        if (asked or 0) > gpus:
            raise RequestError(
                f"--gpus-per-trial {asked:g}, but this machine has {counted(gpus, 'GPU')}. Leave "
                "it out to use what is there."
            )
        each = 1 if asked is None else asked
        slots = slots_on(gpus, each) if each else 0
        trials = _trials(plan, packing, slots or cores)
        concurrent, share_of_cores = share_cores(trials, cores, slots)
        if threads:
            concurrent = min(concurrent, cores // threads)
        threads = threads or share_of_cores
    # Fewer trials at a time get no more threads, so that this option does not change results.
    concurrent = min(concurrent, max_concurrent or concurrent)
    packed = packing.choice != "none"
    how = replace(
        plan.how,
        packing=packing,
        concurrent=concurrent,
        threads=threads,
        share=share and not packed,
        no_share_reason="packed cells do not fork" if packed else no_share_reason,
    )
    return replace(plan, how=how)


def _trials(plan: Plan, packing: Packing, workers: int) -> int:
    """How many trials the cells of a plan are at most."""
    if plan.watched:  # the seeds of an option are one
        options = plan.tuning(plan.known)["option"].nunique()
        suggested = plan.tuning(plan.to_come)
        options += math.ceil(len(suggested) / max(1, suggested["seed"].nunique()))
        return options + len(plan.confirming(plan.runnable))
    return len(form(plan.cells, packing, workers)) + len(plan.to_come)


def cores_for(threads: int | None) -> int:
    """The cores that this process may use.

    Raises:
        RequestError: they are fewer than the threads that were asked for.
    """
    cores = usable_cores()
    if (threads or 0) > cores:
        raise RequestError(
            f"--threads {threads}, but this process may use {counted(cores, 'core')}."
        )
    return cores


def share_cores(trials: int, cores: int, slots: int) -> tuple[int, int]:
    """How many trials run at a time, and with how many threads each.

    As many trials as fit on the GPUs (`slots`; 0: they use none), else one a core; the other cores
    become threads.
    """
    concurrent = max(1, min(trials, cores, slots or cores))
    return concurrent, max(1, cores // concurrent)


def like(plan: Plan, divided: Plan) -> Plan:
    """A later plan of a study, divided and timed as an earlier one of the same kind.

    Each of its cells takes as long as one of its option, else as those that differ in options
    alone, or as all.
    """
    timed, rows = divided.rows[divided.rows["alone"] > 0], plan.rows
    found = {}
    for name in ("alone", "forked"):
        of = {by: timed.groupby(by, sort=False)[name].mean() for by in ("option", "label")}
        found[name] = rows["option"].map(of["option"]).fillna(rows["label"].map(of["label"]))
    seconds = pd.DataFrame(found).fillna(timed[["alone", "forked"]].mean())
    return replace(plan, how=divided.how, rows=rows.assign(**seconds))
