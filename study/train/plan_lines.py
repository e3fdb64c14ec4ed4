"""What the plan shows of a setting of cells that train."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields

from study import tasks, terminal
from study.cell import Cell
from study.kind import Column
from study.models.flops import ModelFlops
from study.tasks.task import Facts
from study.train.budget import cost
from study.train.budget.timeline import Stop, timeline

_SAID = {
    "task", "m", "n", "architecture", "batch_size", "seed", "alpha",
    "train_metrics_size", "validation_size", "test_size",
}  # fmt: skip
"""Axes that the heading tells, or that are of no weight; of others what is unusual."""


def heading(cells: Sequence[Cell], facts: Facts, flops: Mapping[str, ModelFlops]) -> Iterator[str]:
    """Data, network and budget of a setting; see `study.kind.Kind.describe`."""
    first = cells[0]
    usual = {each.name: each.default for each in fields(Cell) if "axis" in each.metadata}
    others = [name for name in usual if name not in _SAID and getattr(first, name) != usual[name]]
    parts = (first.network, first.settings)
    unusual = {name: getattr(first, name) for name in others} | dict(first.options)
    for part in filter(None, parts):
        unusual |= part.to_dict()
    yield (
        f"{first.task} m={first.m} n={first.n:,} {first.architecture} batch {first.batch_size} "
        + "".join(f"{name} {value}, " for name, value in unusual.items())
        + f"data {first.data_digest}"
    )
    yield from facts.notes
    if first.alpha is not None:
        alphas = sorted({cell.alpha for cell in cells if cell.alpha is not None})
        yield f"attention held on the foreground at {', '.join(f'{a:g}' for a in alphas)}"
    ends = [timeline(cell, flops[cell.id])[-1] for cell in cells]
    yield _budget(first, _soft(first, flops), ends)


def measured(cells: Sequence[Cell], flops: Mapping[str, ModelFlops]) -> dict[str, Column]:
    """What each paradigm of a setting costs; see `study.kind.Kind.measured`."""
    soft = _soft(cells[0], flops)
    end_of = {cell.id: timeline(cell, flops[cell.id])[-1] for cell in cells}

    def rates(some: Sequence[Cell]) -> str:
        return str(len({tuple(phase.lr for phase in cell.schedule.phases) for cell in some}))

    def switches(some: Sequence[Cell]) -> str:
        found = {cell.switch_point for cell in some if cell.switch_point is not None}
        return str(len(found) or "-")

    def mean(some: Sequence[Cell]) -> float:
        ends = [end_of[cell.id] for cell in some]
        costs = [end.compute_flops / end.steps_done / cells[0].batch_size for end in ends]
        return sum(costs) / len(costs)

    def steps(some: Sequence[Cell]) -> str:
        found = [end_of[cell.id].steps_done for cell in some]
        low, high = min(found), max(found)
        return f"{low:,}" if low == high else f"{low:,}-{high:,}"

    return {
        "rates": rates,
        "switch": switches,
        "FLOPs/input": lambda some: f"{mean(some):.3g}",
        "x soft": lambda some: f"{mean(some) / soft:.2f}",
        "steps": steps,
    }


def _soft(cell: Cell, flops: Mapping[str, ModelFlops]) -> float:
    """Training FLOPs of soft on one input of a setting."""
    return float(cost.training_flops("soft", flops[cell.id], cell.m))


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
