"""A plan as text: what `--plan` prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

import pandas as pd

from study import terminal
from study.hardware import gpu_count
from study.kernels import text_of
from study.kinds import KINDS
from study.plan.jobs import MOST_TRIALS
from study.plan.plan import Plan
from study.terminal import counted
from study.terminal.working import duration
from study.train.budget.timeline import timeline


def describe(plan: Plan, about: str, price_per_hour: float | None = None) -> str:
    """The plan as lines: cells, cost of each paradigm, skipped parts, estimated time.

    Args:
        plan: to describe.
        about: the preset's one line.
        price_per_hour: of a GPU; of a CPU core if trials use no GPU.
    """
    lines = [f"study {plan.study}, preset {plan.preset}: {about}", *_cells(plan), *_settings(plan)]
    lines += [f"skipped: {text}" for text in plan.skipped]
    if not (plan.left.empty and plan.to_come.empty):
        lines += ["", *_time(plan, price_per_hour), *_trials(plan)]
        lines += [f"note: {note}" for note in plan.how.notes]
    return terminal.fitted("\n".join(lines))


def _cells(plan: Plan) -> Iterator[str]:
    """How many cells there are, and by what they differ."""
    if plan.search:
        yield plan.search
    if plan.search and plan.known.empty:
        yield "below: one example a paradigm and seed, in the middle of its ranges"
    else:
        every, done = len(plan.runnable), plan.runnable["done"].sum()
        yield f"{counted(every, 'cell')}: {done} done already, {every - done} to run"
    if plan.confirm:
        yield from _stages(plan)
    if plan.grid:
        place = "within the ends of these ranges" if plan.search else "in this grid"
        yield f"{place}, as --set takes it:"
        yield from (f" {line}" for line in plan.grid)


def _stages(plan: Plan) -> Iterator[str]:
    """A line each stage of a study that has two: how many cells."""

    def part(rows: pd.DataFrame) -> str:
        """``36 cells, 12 done already``."""
        done = rows["done"].sum()
        said = f", {done} done already" if done else ""
        return f"{counted(len(rows), 'cell')}{said}"

    tuning, confirming = plan.tuning(plan.runnable), plan.confirming(plan.runnable)
    if not tuning.empty:
        options = "what is suggested"
        if tuning["known"].all():
            options = counted(tuning["option"].nunique(), "option")
        seeds = counted(tuning["seed"].nunique(), "seed")
        yield f"1. tune: {options} on {seeds}, {part(tuning)}"
    only = tuning.empty and not plan.search and confirming["known"].all()
    number, which = (1, "only") if only else (2, "chosen")
    groups = counted(confirming["group"].nunique(), "group")
    seeds = counted(len(plan.confirm), "fresh seed")
    yield f"{number}. confirm: the {which} option of {groups} on {seeds}, {part(confirming)}"
    if only:
        yield "nothing is tuned, so the axis seed is not used (confirm=none uses it)"


def _settings(plan: Plan) -> Iterator[str]:
    """The lines of all settings; notes on data that several of them share are in the first."""
    told: set[str] = set()
    parts = (plan.known, plan.tuning(plan.to_come), plan.to_come)
    rows = next((rows for rows in parts if not rows.empty), plan.known).drop_duplicates("id")
    for _, mine in rows.groupby(rows["cell"].map(attrgetter("setting")), sort=False):
        first = mine["cell"].iloc[0]
        facts = plan.facts[first.task, first.options]
        if facts.digest in told:
            facts = replace(facts, notes=())
        told.add(facts.digest)
        yield ""
        yield from KINDS[plan.kind].describe(mine, facts)
        confirming = plan.confirming(mine)
        tuned = confirming["group"].isin(plan.tuning(mine)["group"])
        chosen = confirming[tuned].drop_duplicates("group")["cell"]
        if not chosen.empty:
            yield f"chosen: {', '.join(cell.schedule.text for cell in chosen)}"


def _time(plan: Plan, price_per_hour: float | None) -> Iterator[str]:
    """Estimated time of what is left, and what that costs."""
    how, seconds = plan.how, plan.seconds.sum() + plan.to_come["alone"].sum()
    what = "training and evaluation" if KINDS[plan.kind].trains else "its cells"
    yield f"estimated time on {how.where}: {duration(seconds / how.concurrent)} for {what}"
    yield f"trials at a time: {how.concurrent}, CPU threads each: {how.threads}"
    if price_per_hour is not None:
        gpus = how.gpus_per_trial
        if gpus is None:
            gpus = min(1, gpu_count())
        hours = seconds / 3600 * (gpus or how.threads)
        money = hours * price_per_hour
        yield (
            f"estimated {'GPU' if gpus else 'core'} hours: {hours:.3g}, which cost "
            f"{money:{',.2f' if money >= 1 else '.2g'}} at {price_per_hour:g} each (nodes that "
            "start, wait or idle come on top)"
        )


def _trials(plan: Plan) -> Iterator[str]:
    """Which cells are a job together, a trial of Ray Tune or a shard's next work, and why."""
    jobs, packing = plan.jobs, plan.how.packing
    if KINDS[plan.kind].trains:
        if packing.choice == "none":
            yield f"packs: none ({packing.reason})"
        else:
            largest = max((len(pack) for job in jobs for pack in job.packs), default=1)
            yield (
                f"packs: cells that differ only in {packing.choice.replace(',', ' and ')} train "
                f"together, up to {largest} ({packing.reason})"
            )
        yield f"shared prefixes: {_shared(plan)}"
        if plan.how.kernels_reason:
            yield f"kernels: {text_of(plan.how.kernels)} ({plan.how.kernels_reason})"
    if not jobs:
        if plan.searches:
            yield "jobs: an option each, with its seeds side by side"
        return
    reasons = {
        "the seeds of an option side by side": any(job.watched for job in jobs),
        "a pack each": packing.choice != "none",
        "cells that share a prefix in turn, unless workers would idle at the end": plan.forks,
        "short cells in batches": len(plan.left) > MOST_TRIALS
        and any(len(job.packs) > 1 for job in jobs),
    }
    given = "; ".join(reason for reason, holds in reasons.items() if holds)
    yield f"jobs: {len(jobs):,} ({given or 'a cell each'})"


def _shared(plan: Plan) -> str:
    """How much training shared prefixes save."""
    if not plan.how.share:
        return f"none ({plan.how.no_share_reason})"
    if not plan.forks:
        return "none (no two cells of a trial begin alike)"
    left = plan.left
    stops = [timeline(*each) for each in zip(left["cell"], left["flops"], strict=True)]
    total = sum(of_cell[-1].compute_flops for of_cell in stops)
    forked = left["id"].isin([cell.id for cell in plan.forks])
    saved = sum(
        max(stop.compute_flops for stop in of_cell if stop.phase == 0)
        for of_cell, is_fork in zip(stops, forked, strict=True)
        if is_fork
    )
    return (
        f"{len(plan.forks)} of the cells start from the steps of another one, which saves "
        f"{saved:.3g} of {total:.3g} training FLOPs ({saved / total:.0%}); --no-share runs all"
    )
