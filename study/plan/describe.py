"""A plan as text: what `--plan` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from study import terminal
from study.cell import AnyCell
from study.cell.grouped import grouped
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
    lines += [f"skipped: {skip.what}: {skip.reason}" for skip in plan.skipped]
    if plan.to_run or plan.to_come:
        lines += ["", *_time(plan, price_per_hour), *_trials(plan)]
        lines += [f"note: {note}" for note in plan.notes]
    return terminal.fitted("\n".join(lines))


def _cells(plan: Plan) -> Iterator[str]:
    """How many cells there are, and by what they differ."""
    if plan.search:
        yield plan.search
    if not plan.cells:
        yield "below: one example a paradigm and seed, in the middle of its ranges"
    else:
        done, left = len(plan.finished), len(plan.to_run) + plan.num_to_come
        yield f"{counted(done + left, 'cell')}: {done} done already, {left} to run"
    if plan.confirm:
        yield from _stages(plan)
    if plan.grid:
        place = "within the ends of these ranges" if plan.search else "in this grid"
        yield f"{place}, as --set takes it:"
        yield from (f" {line}" for line in plan.grid)


def _stages(plan: Plan) -> Iterator[str]:
    """A line each stage of a study that has two: how many cells."""

    def part(cells: Sequence[AnyCell], to_come: int = 0) -> str:
        """``36 cells, 12 done already``."""
        done = sum(cell.id in plan.finished for cell in cells)
        said = f", {done} done already" if done else ""
        return f"{counted(len(cells) + to_come, 'cell')}{said}"

    tuning, suggested = plan.tuning, plan.suggested
    if tuning or suggested:
        known = [*tuning, *(cell for each in suggested for cell in each.examples)]
        options = counted(len({cell.hash_without("seed") for cell in tuning}), "option")
        seeds = counted(len({cell.seed for cell in known}), "seed")
        number_to_come = sum(each.count for each in suggested)
        what = "what is suggested" if suggested else options
        yield f"1. tune: {what} on {seeds}, {part(tuning, number_to_come)}"
    number, which = (2, "chosen") if tuning or plan.search else (1, "only")
    to_come = [each for each in plan.to_come if each.group]
    groups = counted(len({cell.group for cell in plan.confirming}) + len(to_come), "group")
    seeds = counted(len(plan.confirm), "fresh seed")
    yield (
        f"{number}. confirm: the {which} option of {groups} on {seeds}, "
        f"{part(plan.confirming, sum(each.count for each in to_come))}"
    )
    if which == "only":
        yield "nothing is tuned, so the axis seed is not used (confirm=none uses it)"


def _settings(plan: Plan) -> Iterator[str]:
    """The lines of all settings; notes on data that several of them share are in the first."""
    told: set[str] = set()
    for cells in grouped(plan.shown, lambda cell: cell.setting).values():
        facts = plan.facts[cells[0].task, cells[0].options]
        if facts.digest in told:
            facts = replace(facts, notes=())
        told.add(facts.digest)
        yield ""
        yield from KINDS[plan.kind].describe(cells, facts, plan.flops)
        tuned = {cell.group for cell in cells if cell.seed not in plan.confirm}
        confirming = (cell for cell in cells if cell.seed in plan.confirm)
        if chosen := {c.group: c.schedule.text for c in confirming if c.group in tuned}:
            yield f"chosen: {', '.join(chosen.values())}"


def _time(plan: Plan, price_per_hour: float | None) -> Iterator[str]:
    """Estimated time of what is left, and what that costs."""
    seconds = sum(plan.seconds[cell.id] for cell in plan.to_run) + plan.seconds_to_come
    what = "training and evaluation" if KINDS[plan.kind].trains else "its cells"
    yield f"estimated time on {plan.where}: {duration(seconds / plan.concurrent)} for {what}"
    yield f"trials at a time: {plan.concurrent}, CPU threads each: {plan.threads}"
    if price_per_hour is not None:
        gpus = plan.gpus_per_trial
        if gpus is None:
            gpus = min(1, torch.cuda.device_count())
        hours = seconds / 3600 * (gpus or plan.threads)
        money = hours * price_per_hour
        yield (
            f"estimated {'GPU' if gpus else 'core'} hours: {hours:.3g}, which cost "
            f"{money:{',.2f' if money >= 1 else '.2g'}} at {price_per_hour:g} each (nodes that "
            "start, wait or idle come on top)"
        )


def _trials(plan: Plan) -> Iterator[str]:
    """Which cells are a job together, a trial of Ray Tune or a shard's next work, and why."""
    jobs, choice = plan.jobs, plan.packing.choice
    if KINDS[plan.kind].trains:
        if choice == "none":
            yield f"packs: none ({plan.packing.reason})"
        else:
            largest = max((len(pack) for job in jobs for pack in job.packs), default=1)
            yield (
                f"packs: cells that differ only in {choice.replace(',', ' and ')} train "
                f"together, up to {largest} ({plan.packing.reason})"
            )
        yield f"shared prefixes: {_shared(plan)}"
    if not jobs:
        if plan.searches:
            yield "jobs: an option each, with its seeds side by side"
        return
    reasons = {
        "the seeds of an option side by side": any(job.watched for job in jobs),
        "a pack each": choice != "none",
        "cells that share a prefix in turn, unless workers would idle at the end": plan.forks,
        "short cells in batches": len(plan.to_run) > MOST_TRIALS
        and any(len(job.packs) > 1 for job in jobs),
    }
    given = "; ".join(reason for reason, holds in reasons.items() if holds)
    yield f"jobs: {len(jobs):,} ({given or 'a cell each'})"


def _shared(plan: Plan) -> str:
    """How much training shared prefixes save."""
    if not plan.share:
        return f"none ({plan.no_share_reason})"
    if not plan.forks:
        return "none (no two cells of a trial begin alike)"
    stops = {cell.id: timeline(cell, plan.flops[cell.id]) for cell in plan.to_run}
    total = sum(of_cell[-1].compute_flops for of_cell in stops.values())
    saved = sum(
        max(stop.compute_flops for stop in stops[cell.id] if stop.phase == 0)
        for cell in plan.forks
    )
    return (
        f"{len(plan.forks)} of the cells start from the steps of another one, which saves "
        f"{saved:.3g} of {total:.3g} training FLOPs ({saved / total:.0%}); --no-share runs all"
    )
