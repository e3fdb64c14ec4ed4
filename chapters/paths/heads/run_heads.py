"""Runs cells that take trained networks apart."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from chapters.paths.attention_paths import head_scores
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.heads import scores
from chapters.paths.heads.apart import Apart, take_apart
from chapters.paths.heads.heads_cell import (
    BOUND,
    ENTROPY,
    GREEDY,
    PUBLISHED,
    RANDOM,
    SENSITIVITY,
    SOLVED,
    WEIGHT_NORM,
    HeadsCell,
)
from chapters.paths.heads.pruning import by_score
from chapters.paths.one_shot.model import AttentionPaths
from chapters.paths.posterior import methods
from chapters.paths.posterior.ended import Columns, Rows, ended
from chapters.paths.posterior.posterior_cell import THEORY
from study import models
from study.cell import Cell
from study.cell.events import Ended, Report
from study.cell.seeds import stream_seed
from study.cell.work import Work
from study.models import kept
from study.storage.storage import Storage
from study.train.run_training import loaded

RANDOM_ORDERS = 1_000
"""Of heads, whose mean is the curve of `random`."""


def run(cells: Sequence[HeadsCell], work: Work, report: Report | None = None) -> list[Ended]:
    """Runs cells one after the other; see `study.kind.Kind.runner`."""
    with threadpool_limits(work.threads):
        return [_run(cell, work, report) for cell in cells]


def _run(cell: HeadsCell, work: Work, report: Report | None) -> Ended:
    apart = _apart(cell.network, cell.examples, work)
    return ended(cell, lambda: _found(cell, apart), report)


@functools.lru_cache(maxsize=1)
def _apart(network: Cell, examples: int, work: Work) -> Apart:
    """A network taken apart; the last one stays in memory for further cells of this process."""
    task: Any = loaded(network, work)
    model = models.model_of(replace(network, precision="float32"), task)  # whatever trained it
    assert isinstance(model, AttentionPaths)
    if not work.dry_run:  # which has trained no network
        model.load_state_dict(kept.load(Storage(work.networks or work.results), network.id))
    digest = kept.digest(model.state_dict())
    return take_apart(model, network, task, examples, digest)


def _found(cell: HeadsCell, apart: Apart) -> tuple[Columns, Rows]:
    """What a method finds, and the accuracy of the network when heads are removed."""
    if cell.method in SOLVED:
        columns, rows = _solved(cell, apart)
    else:
        columns, rows = {}, {split: outputs.whole for split, outputs in apart.outputs.items()}
        rules: dict[str, Callable[[], Floats]] = {
            WEIGHT_NORM: lambda: scores.weight_norm(apart.values),
            ENTROPY: lambda: apart.focus,
            SENSITIVITY: lambda: scores.sensitivity(apart.outputs["train"]),
        }
        if rule := rules.get(cell.method):
            columns["head_scores"] = rule().tolist()
    orders = {}
    if of_heads := columns.get("head_scores"):
        orders["accuracy_pruned"] = by_score(of_heads, cell.heads)
        orders["accuracy_pruned_reverse"] = by_score(np.negative(of_heads), cell.heads)
    elif cell.method == GREEDY:
        orders["accuracy_pruned"] = apart.outputs["validation"].greedy()
    for split, outputs in apart.outputs.items():
        curves = {name: outputs.curve(order) for name, order in orders.items()}
        if cell.method == BOUND:
            curves["accuracy_pruned"] = outputs.best_curve()
        if cell.method == RANDOM:
            seed = stream_seed("orders of heads", cell.seed)
            curves["accuracy_pruned"] = outputs.random_curve(RANDOM_ORDERS, seed)
        rows[split] |= {name: curve.tolist() for name, curve in curves.items()}
    order = orders.get("accuracy_pruned")
    return {"network_digest": apart.digest, "removal_order": order, **columns}, rows


def _solved(cell: HeadsCell, apart: Apart) -> tuple[Columns, Rows]:
    """By theory or its limit."""
    splits, heads, tried = apart.splits, cell.heads, cell.temperatures
    choosing = splits["test" if cell.choice == PUBLISHED else "validation"]
    best = methods.at_best_temperature(splits["train"], choosing, heads, cell.width, tried)
    found = methods.predicted_by(best.predictor, splits, best.steps, best.flops)
    names = [",".join(str(head + 1) for head in path) for path in np.ndindex(*heads)]
    columns, rows = methods.recorded(found, splits, names)
    columns |= {"temperature": best.predictor.temperature, "temperatures": list(tried)}
    if cell.method == THEORY:  # the limit's U scores all heads alike
        by_layer = head_scores(best.predictor.order_parameter, heads)
        columns["head_scores"] = np.concatenate(by_layer).tolist()
    return columns, rows
