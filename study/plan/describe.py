"""A plan as text: what `--plan` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

from study import tasks, terminal
from study.cell import Cell
from study.plan.plan import Plan
from study.plan.prefixes import saved_flops
from study.tasks.base import UNKNOWN_DIGEST
from study.terminal.progress import duration
from study.train import cost
from study.train.timeline import Stop, timeline

_HEADER = ["paradigm", "cells", "to run", "rates", "switch", "seeds"]
_HEADER += ["FLOPs/input", "x soft", "steps", "s/cell"]
_ROW = "{:<13}{:>6}{:>8}{:>7}{:>8}{:>7}{:>14}{:>8}{:>15}{:>8}"


def describe(plan: Plan, about: str, price_per_hour: float | None = None) -> str:
    """The plan as lines: cells, cost of each paradigm, skipped parts, estimated time.

    Args:
        plan: to describe.
        about: the preset's one line.
        price_per_hour: of a GPU; of a CPU core if trials use no GPU.
    """
    return terminal.fitted("\n".join(_lines(plan, about, price_per_hour)))


def num_settings(cells: Iterable[Cell]) -> int:
    """How many settings the cells have; a report has tables and figures for each."""
    return len({(cell.setting_id, cell.alpha is None) for cell in cells})


def _lines(plan: Plan, about: str, price_per_hour: float | None) -> Iterator[str]:
    yield f"study {plan.study}, preset {plan.preset}: {about}"
    if plan.search:
        yield plan.search
        yield "below: one example a paradigm and seed, in the middle of its ranges"
    else:
        done, left = len(plan.finished), len(plan.to_run)
        yield f"{len(plan.cells)} cells: {done} done already, {left} to run"
    if plan.cells[0].data_digest == UNKNOWN_DIGEST:
        yield "data not at hand: cells that are done already are not recognised"
    told: set[str] = set()
    for cells in _settings(plan):
        yield from _setting_lines(plan, cells, told)
    for skip in plan.skipped:
        yield f"skipped: {skip.what}: {skip.reason}"
    yield ""
    if plan.to_run:
        total = sum(plan.seconds[cell.id] for cell in plan.to_run)
        if plan.search:
            total *= plan.searched_cells / len(plan.to_run)
        yield _time(plan, total / plan.concurrent)
        yield f"trials at a time: {plan.concurrent}, CPU threads each: {plan.threads}"
        yield from _cost(plan, total, price_per_hour)
        yield _packing(plan)
        yield _sharing(plan)
        for note in plan.notes:
            yield f"note: {note}"


def _time(plan: Plan, training: float) -> str:
    """Estimated time from the plan to the report, and its parts."""
    overhead = plan.overhead
    report = overhead.report * num_settings(plan.cells)
    source = "as in the last study here" if overhead.measured else "assumed: none trained here yet"
    return (
        f"estimated time on {plan.where}: {duration(overhead.start + training + report)} "
        f"(start {duration(overhead.start)}, training {duration(training)}, report "
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
        return f"packs: none, each cell is a trial ({reason})"
    largest = max(len(job.cells) for job in plan.jobs)
    return (
        f"packs: cells that differ in {plan.packing.choice.replace(',', ' and ')} only train "
        f"together, {len(plan.jobs)} trials of up to {largest} ({reason})"
    )


def _sharing(plan: Plan) -> str:
    """How much training shared prefixes save."""
    if not plan.share:
        return f"shared prefixes: none ({plan.no_share_reason})"
    total = sum(timeline(c, plan.flops[c.id])[-1].compute_flops for c in plan.to_run)
    saved = saved_flops(plan.jobs, plan.flops)
    forks = sum(1 for job in plan.jobs if job.waits_for)
    if not forks:
        return "shared prefixes: none (no two cells begin alike)"
    return (
        f"shared prefixes: {forks} of the cells start from the steps of another one, which saves "
        f"{saved:.3g} of {total:.3g} training FLOPs ({saved / total:.0%}); --no-share runs all"
    )


def _settings(plan: Plan) -> list[list[Cell]]:
    """The cells by setting; cells of one setting may be compared, whatever their alpha."""
    groups: dict[tuple[str, bool], list[Cell]] = {}
    for cell in plan.cells:
        groups.setdefault((cell.setting_id, cell.alpha is None), []).append(cell)
    return list(groups.values())


def _setting_lines(plan: Plan, cells: list[Cell], told: set[str]) -> Iterator[str]:
    """The lines of one setting; notes on its data unless `told` holds their digest."""
    first = cells[0]
    flops = plan.flops[first.id]
    facts = plan.facts[first.task, first.options]
    soft = float(cost.training_flops("soft", flops, first.m))
    yield ""
    yield (
        f"{first.task} m={first.m}"
        + (f" C={first.num_classes}" if first.num_classes else "")
        + f" n={first.n:,} {first.architecture}"
        + (f" x{first.width:g}" if first.width != 1 else "")
        + f" batch {first.batch_size} {first.precision} "
        + ("" if facts.sizes else f"{first.split} bases, ")
        + f"data {first.data_digest}"
    )
    if facts.digest not in told:
        yield from facts.notes
        told.add(facts.digest)
    if first.inference is not None:
        yield f"inference: that of {first.inference}, whatever a cell trains with"
    if first.alpha is not None:
        alphas = sorted({cell.alpha for cell in cells if cell.alpha is not None})
        yield f"attention held on the foreground at {', '.join(f'{a:g}' for a in alphas)}"
    end_of = {cell.id: timeline(cell, flops)[-1] for cell in cells}
    yield _budget(first, soft, end_of.values())
    rows = []
    for paradigm in dict.fromkeys(cell.paradigm for cell in cells):
        group = [cell for cell in cells if cell.paradigm == paradigm]
        ends = [end_of[cell.id] for cell in group]
        steps = [end.steps_done for end in ends]
        costs = [end.compute_flops / end.steps_done / first.batch_size for end in ends]
        times = [plan.seconds[cell.id] for cell in group if cell.id in plan.seconds]
        rates = {tuple(phase.lr for phase in cell.schedule.phases) for cell in group}
        switches = {cell.switch_point for cell in group if cell.switch_point is not None}
        counts = (len(group), len(times), len(rates), len(switches) or "-")
        rows.append(
            [
                paradigm,
                *map(str, counts),
                str(len({cell.seed for cell in group})),
                f"{_mean(costs):.3g}",
                f"{_mean(costs) / soft:.2f}",
                _span(steps),
                f"{_mean(times):.1f}" if times else "-",
            ]
        )
    lines = [_ROW.format(*row) for row in (_HEADER, *rows)]
    yield from lines if terminal.fits(lines) else terminal.stacked(_HEADER, rows)


def _budget(cell: Cell, soft: float, ends: Iterable[Stop]) -> str:
    """The budget of a setting's cells, and what whole batches spend if it is over 1 % less.

    Args:
        cell: one cell of the setting.
        soft: training FLOPs of soft on one input.
        ends: last stops of the setting's cells.
    """
    amount = cell.budget.amount
    if cell.budget.unit == "mosaics":
        form = "{:,}".format
        text = f"{amount:,} {tasks.modality(cell.task).noun} = {amount / cell.n:g} epochs"
        spent = {end.steps_done * cell.batch_size for end in ends}
    else:
        form = "{:.3g}".format
        text = f"{amount:.3g} training FLOPs = {amount / soft / cell.n:g} epochs of soft"
        spent = {end.compute_flops for end in ends}
    if min(spent) < 0.99 * amount:
        texts = list(dict.fromkeys(map(form, sorted(spent))))
        text += f", of which whole batches spend {' to '.join(texts[:1] + texts[1:][-1:])}"
    return f"budget a cell: {text}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}-{high:,}"
