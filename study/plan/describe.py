"""A plan as text: what `--plan` prints."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from study import terminal
from study.cell import AnyCell
from study.kinds import KINDS
from study.plan.jobs import MOST_TRIALS
from study.plan.plan import Plan, ToCome
from study.tasks.base import UNKNOWN_DIGEST
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
    return terminal.fitted("\n".join(_lines(plan, about, price_per_hour)))


def num_settings(cells: Iterable[AnyCell]) -> int:
    """How many settings the cells have; a report has tables and figures for each."""
    return len({cell.setting for cell in cells})


def _lines(plan: Plan, about: str, price_per_hour: float | None) -> Iterator[str]:
    yield f"study {plan.study}, preset {plan.preset}: {about}"
    if plan.search:
        yield plan.search
        yield "below: one example a paradigm and seed, in the middle of its ranges"
    else:
        done, left = len(plan.finished), len(plan.to_run) + plan.num_to_come
        yield f"{counted(done + left, 'cell')}: {done} done already, {left} to run"
    yield from _stages(plan)
    if plan.grid:
        yield "in this grid, as --set takes it:"
        yield from (f" {line}" for line in plan.grid)
    if plan.shown[0].data_digest == UNKNOWN_DIGEST:
        encoder = plan.shown[0].options.get("encoder")
        what = f"data, or the weights of {encoder}, are" if encoder else "data"
        yield f"{what} not at hand: cells that are done already are not recognised"
    yield from _settings(plan)
    for skip in plan.skipped:
        yield f"skipped: {skip.what}: {skip.reason}"
    yield ""
    if plan.to_run or plan.to_come:
        total = sum(plan.seconds[cell.id] for cell in plan.to_run) + plan.seconds_to_come
        yield _time(plan, total / plan.concurrent)
        yield f"trials at a time: {plan.concurrent}, CPU threads each: {plan.threads}"
        yield from _cost(plan, total, price_per_hour)
        if KINDS[plan.kind].trains:
            yield _packing(plan)
            yield _sharing(plan)
        yield _jobs(plan)
        for note in plan.notes:
            yield f"note: {note}"


def _stages(plan: Plan) -> Iterator[str]:
    """A line each stage of a study that has two: how many cells, and how long they take."""
    if not plan.confirm:
        return
    tuning = [cell for cell in plan.cells if cell.seed not in plan.confirm]
    groups = [each for each in plan.to_come if each.group]
    if tuning:
        options = {cell.hash_without("seed") for cell in tuning}
        seeds = {cell.seed for cell in tuning}
        what = f"{counted(len(options), 'option')} on {counted(len(seeds), 'seed')}"
        yield f"1. tune: {what}, {_part(plan, tuning)}"
    number, which = (2, "chosen") if tuning or plan.search else (1, "only")
    what = counted(len({cell.group for cell in plan.confirming}) + len(groups), "group")
    yield (
        f"{number}. confirm: the {which} option of {what} on "
        f"{counted(len(plan.confirm), 'fresh seed')}, {_part(plan, plan.confirming, groups)}"
    )
    if which == "only":
        yield "nothing is tuned, so the axis seed is not used (confirm=none uses it)"


def _chosen(plan: Plan, cells: Sequence[Any]) -> Iterator[str]:
    """The options that are chosen already among cells of a setting."""
    options = {cell.group: cell.schedule.text for cell in plan.confirming}
    tuned = {cell.group for cell in cells if cell.seed not in plan.confirm} if options else ()
    if chosen := [text for group, text in options.items() if group in tuned]:
        yield f"chosen: {', '.join(chosen)}"


def _part(plan: Plan, cells: Sequence[AnyCell], to_come: Sequence[ToCome] = ()) -> str:
    """``36 cells, 12 done already, 2 min``."""
    left = [cell for cell in cells if cell.id not in plan.finished]
    seconds = sum(plan.seconds[cell.id] for cell in left)
    seconds += sum(plan.seconds_of(each.examples) * each.count for each in to_come)
    count = len(cells) + sum(each.count for each in to_come)
    done = f", {len(cells) - len(left)} done already" if len(left) < len(cells) else ""
    return f"{counted(count, 'cell')}{done}, {duration(seconds / plan.concurrent)}"


def _time(plan: Plan, seconds: float) -> str:
    """Estimated time from the plan to the report, and its parts; `seconds` are the cells'."""
    what = "training" if KINDS[plan.kind].trains else "cells"
    overhead = plan.overhead
    report = overhead.report * num_settings(plan.shown)
    if not (overhead.start or report):  # a shard begins at once and reports nothing
        return f"estimated time on {plan.where}: {duration(seconds)}"
    source = "as in the last study here" if overhead.measured else "assumed: none trained here yet"
    return (
        f"estimated time on {plan.where}: {duration(overhead.start + seconds + report)} "
        f"(start {duration(overhead.start)}, {what} {duration(seconds)}, report "
        f"{duration(report)}; start and report {source})"
    )


def _cost(plan: Plan, seconds: float, price_per_hour: float | None) -> Iterator[str]:
    """Hours that are paid for: of GPUs if trials use any, else of cores if there is a price."""
    gpus = plan.gpus_per_trial
    if gpus is None:
        gpus = min(1, torch.cuda.device_count())
    if not gpus and price_per_hour is None:
        return
    hours = seconds / 3600 * (gpus or plan.threads)
    unit = "GPU" if gpus else "core"
    line = f"estimated {unit} hours: {hours:.3g}"
    if price_per_hour is not None:
        line += f", which cost {_money(hours * price_per_hour)} at {price_per_hour:g} each"
    yield f"{line} (training and evaluation; nodes that start, wait or idle come on top)"


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.2g}"


def _packing(plan: Plan) -> str:
    reason = plan.packing.reason
    if plan.packing.choice == "none":
        return f"packs: none ({reason})"
    largest = max((len(pack) for job in plan.jobs for pack in job.packs), default=1)
    return (
        f"packs: cells that differ in {plan.packing.choice.replace(',', ' and ')} only train "
        f"together, up to {largest} ({reason})"
    )


def _sharing(plan: Plan) -> str:
    """How much training shared prefixes save."""
    if not plan.share:
        return f"shared prefixes: none ({plan.no_share_reason})"
    if not plan.forks:
        return "shared prefixes: none (no two cells of a trial begin alike)"
    total = sum(timeline(c, plan.flops[c.id])[-1].compute_flops for c in plan.to_run)
    stops = ([s for s in timeline(c, plan.flops[c.id]) if s.phase == 0] for c in plan.forks)
    saved = sum(of_cell[-1].compute_flops for of_cell in stops)
    return (
        f"shared prefixes: {len(plan.forks)} of the cells start from the steps of another one, "
        f"which saves {saved:.3g} of {total:.3g} training FLOPs ({saved / total:.0%}); --no-share "
        "runs all"
    )


def _jobs(plan: Plan) -> str:
    """Which cells are a job together, a trial of Ray Tune or a shard's next work, and why."""
    jobs = plan.jobs
    if not jobs:
        return "jobs: an option each, with its seeds side by side"
    reasons = []
    if any(job.watched for job in jobs):
        reasons.append("the seeds of an option side by side")
    if plan.packing.choice != "none":
        reasons.append("a pack each")
    if plan.forks:
        reasons.append("cells that share a prefix in turn, unless workers would idle at the end")
    if len(plan.to_run) > MOST_TRIALS and any(len(job.packs) > 1 for job in jobs):
        reasons.append("short cells in batches")
    return f"jobs: {len(jobs):,} ({'; '.join(reasons) or 'a cell each'})"


def _settings(plan: Plan) -> Iterator[str]:
    """The lines of all settings; notes on data that several of them share are in the first."""
    settings: dict[Hashable, list[AnyCell]] = {}
    for cell in plan.shown:
        settings.setdefault(cell.setting, []).append(cell)
    told: set[str] = set()
    for cells in settings.values():
        facts = plan.facts[cells[0].task, cells[0].options]
        if facts.digest in told:
            facts = replace(facts, notes=())
        told.add(facts.digest)
        yield ""
        yield from KINDS[plan.kind].describe(cells, facts, plan.flops, plan.seconds)
        yield from _chosen(plan, cells)
