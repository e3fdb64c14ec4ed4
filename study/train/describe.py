"""The cells of a setting as text: what the plan shows of cells that train."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from study import tasks, terminal
from study.cell import Cell
from study.models.flops import ModelFlops
from study.tasks.base import Facts
from study.train.budget import cost
from study.train.budget.timeline import Stop, timeline

_HEADER = ["paradigm", "cells", "to run", "rates", "switch", "seeds"]
_HEADER += ["FLOPs/input", "x soft", "steps", "s/cell"]
_ROW = "{:<15}{:>6}{:>8}{:>7}{:>8}{:>7}{:>14}{:>8}{:>15}{:>10}"


def describe(
    cells: Sequence[Cell],
    facts: Facts,
    flops: Mapping[str, ModelFlops],
    seconds: Mapping[str, float],
) -> Iterator[str]:
    """The cost of each paradigm in a setting; see `study.kinds.Kind.describe`."""
    first = cells[0]
    soft = float(cost.training_flops("soft", flops[first.id], first.m))
    yield (
        f"{first.task} m={first.m}"
        + (f" C={first.num_classes}" if first.num_classes else "")
        + f" n={first.n:,} {first.architecture}"
        + (f" x{first.width:g}" if first.width != 1 else "")
        + _of_transformer(first)
        + _of_network(first)
        + f" batch {first.batch_size} {first.precision} "
        + ("" if facts.sizes else f"{first.split} bases, ")
        + _of_mosaics(first)
        + _of_classes(first)
        + f"data {first.data_digest}"
    )
    yield from facts.notes
    if first.inference is not None:
        yield f"inference: that of {first.inference}, whatever a cell trains with"
    if first.alpha is not None:
        alphas = sorted({cell.alpha for cell in cells if cell.alpha is not None})
        yield f"attention held on the foreground at {', '.join(f'{a:g}' for a in alphas)}"
    end_of = {cell.id: timeline(cell, flops[cell.id])[-1] for cell in cells}
    yield _budget(first, soft, end_of.values())
    rows = []
    for paradigm in dict.fromkeys(cell.paradigm for cell in cells):
        group = [cell for cell in cells if cell.paradigm == paradigm]
        ends = [end_of[cell.id] for cell in group]
        steps = [end.steps_done for end in ends]
        costs = [end.compute_flops / end.steps_done / first.batch_size for end in ends]
        times = [seconds[cell.id] for cell in group if cell.id in seconds]
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


def _of_transformer(cell: Cell) -> str:
    """`` (2 layers of 4 heads, d_model 128, 16 pixels)``; empty of other networks."""
    if (sizes := cell.transformer) is None:
        return ""
    return (
        f" ({terminal.counted(sizes.layers, 'layer')} of {terminal.counted(sizes.heads, 'head')}, "
        f"d_model {sizes.d_model}, {cell.pixels} pixels)"
    )


def _of_network(cell: Cell) -> str:
    """`` (focus_width 0.25, normalisation batch)``; empty of the architecture itself."""
    if cell.network is None:
        return ""
    given = ((k, v) for k, v in dataclasses.asdict(cell.network).items() if v is not None)
    return f" ({', '.join(f'{name} {value}' for name, value in given)})"


def _of_mosaics(cell: Cell) -> str:
    """``foregrounds 2, distractors 1, ``; empty of mosaics of one foreground segment."""
    counts = ((each, getattr(cell, each)) for each in ("foregrounds", "distractors"))
    return "".join(f"{name} {count}, " for name, count in counts if count is not None)


def _of_classes(cell: Cell) -> str:
    """``foreground 1+2+3, background rest, window 7, ``; empty of the paper's classes."""
    names = ("foreground", "background", "window", *(() if cell.transformer else ("pixels",)))
    given = ((each, getattr(cell, each)) for each in names)
    return "".join(f"{name} {value}, " for name, value in given if value is not None)


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
        epochs = terminal.counted(amount / cell.n, "epoch", form="g")
        text = f"{amount:,} {tasks.modality(cell.task).noun} = {epochs}"
        spent = {end.steps_done * cell.batch_size for end in ends}
    else:
        form = "{:.3g}".format
        epochs = terminal.counted(amount / soft / cell.n, "epoch", form="g")
        text = f"{amount:.3g} training FLOPs = {epochs} of soft"
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
