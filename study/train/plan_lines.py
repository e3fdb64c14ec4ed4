"""What the plan shows of a setting of cells that train."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

import pandas as pd

from study import tasks, terminal
from study.cell import Cell
from study.tasks.task import Facts
from study.train.budget import cost
from study.train.budget.timeline import Stop, timeline

_SAID = {
    "task", "m", "n", "architecture", "batch_size", "seed", "alpha",
    "train_metrics_size", "validation_size", "test_size",
}  # fmt: skip
"""Axes that the heading tells, or that are of no weight; of others what is unusual."""


def heading(rows: pd.DataFrame, facts: Facts) -> Iterator[str]:
    """Data, network and budget of a setting; see `study.kind.Kind.describe`."""
    first: Cell = rows["cell"].iloc[0]
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
        alphas = sorted({cell.alpha for cell in rows["cell"]})
        yield f"attention held on the foreground at {', '.join(f'{a:g}' for a in alphas)}"
    yield _budget(first, _soft(rows), _ends(rows))


def measured(rows: pd.DataFrame) -> dict[str, str]:
    """What a paradigm of a setting costs; see `study.kind.Kind.measured`."""
    first: Cell = rows["cell"].iloc[0]
    rates = {tuple(phase.lr for phase in cell.schedule.phases) for cell in rows["cell"]}
    switches = {cell.switch_point for cell in rows["cell"]} - {None}
    ends = _ends(rows)
    costs = [end.compute_flops / end.steps_done / first.batch_size for end in ends]
    mean = sum(costs) / len(costs)
    least, most = (end(each.steps_done for each in ends) for end in (min, max))
    return {
        "rates": f"{len(rates)}",
        "switch": f"{len(switches) or '-'}",
        "FLOPs/input": f"{mean:.3g}",
        "x soft": f"{mean / _soft(rows):.2f}",
        "steps": f"{least:,}" if least == most else f"{least:,}-{most:,}",
    }


def _ends(rows: pd.DataFrame) -> list[Stop]:
    """The last stop of each cell."""
    first = rows.drop_duplicates("option")
    options = zip(first["option"], first["cell"], first["flops"], strict=True)
    ends = {option: timeline(cell, flops)[-1] for option, cell, flops in options}
    return [ends[option] for option in rows["option"]]


def _soft(rows: pd.DataFrame) -> float:
    """Training FLOPs of soft on one input of a setting."""
    first = rows.iloc[0]
    return float(cost.training_flops("soft", first["flops"], first["cell"].m))


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
