"""Runs cells that take trained networks apart."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from chapters.paths.attention_paths import head_scores
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.heads import pruning, scores
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
from chapters.paths.heads.heads_cost import temperatures
from chapters.paths.one_shot.model import AttentionPaths
from chapters.paths.posterior import methods
from chapters.paths.posterior.posterior_cell import THEORY
from chapters.paths.posterior.run_posterior import USUAL, diverged, tell
from study import models
from study.cell import Cell
from study.cell.events import Ended, Report
from study.cell.seeds import stream_seed
from study.cell.work import Work
from study.models import kept
from study.storage.storage import Storage
from study.tasks.task import SPLITS
from study.train.run_training import loaded

Rows = dict[str, dict[str, Any]]
"""Split -> its row of `study.results.EVALUATIONS_SCHEMA`."""

Curve = Callable[[Floats, Floats], Floats]
"""(n, D) of what paths add to the output, (n,) labels -> accuracy without 0, 1, ... heads."""

RANDOM_ORDERS = 1_000
"""Of heads, whose mean is the curve of `random`."""


def run(cells: Sequence[HeadsCell], work: Work, report: Report | None = None) -> list[Ended]:
    """Runs cells one after the other; see `study.kind.Kind.runner`."""
    with threadpool_limits(work.threads):
        return [_run(cell, work, report) for cell in cells]


def _run(cell: HeadsCell, work: Work, report: Report | None) -> Ended:
    apart = _apart(cell.network, cell.examples, work)
    started = time.perf_counter()
    try:
        columns, rows = _solved(cell, apart) if cell.method in SOLVED else _ruled(cell, apart)
    except LinAlgError as error:  # at no temperature there is a solution
        return diverged(str(error), time.perf_counter() - started)
    curves, order = _curves(cell, apart, columns.get("head_scores"))
    for split, row in rows.items():
        row |= {name: curve(*apart.outputs(split)).tolist() for name, curve in curves.items()}
    seconds = time.perf_counter() - started
    tell(report, cell, rows)
    columns = {
        **USUAL,
        "status": "done",
        "network_digest": apart.digest,
        "total_train_seconds": seconds,
        "removal_order": order,
        **columns,
    }
    return Ended(columns["status"], columns, [rows[split] for split in SPLITS])


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


def _solved(cell: HeadsCell, apart: Apart) -> tuple[dict[str, Any], Rows]:
    """Columns of the cell and rows of its splits, by theory or its limit."""
    started = time.perf_counter()
    splits, heads, tried = apart.splits, cell.heads, temperatures(cell)
    choosing = splits["test" if cell.choice == PUBLISHED else "validation"]
    best = methods.at_best_temperature(splits["train"], choosing, heads, cell.width, tried)
    found = methods.predicted_by(best.predictor, splits, best.steps, best.flops)
    rows = methods.evaluations(splits, found, time.perf_counter() - started)
    names = [",".join(str(head + 1) for head in path) for path in np.ndindex(*heads)]
    columns = methods.solution_columns(found, names)
    columns |= {"temperature": best.predictor.temperature, "temperatures": list(tried)}
    if cell.method == THEORY:  # the limit's U scores all heads alike
        by_layer = head_scores(found.predictor.order_parameter, heads)
        columns["head_scores"] = np.concatenate(by_layer).tolist()
    return columns, rows


def _ruled(cell: HeadsCell, apart: Apart) -> tuple[dict[str, Any], Rows]:
    """Scores by a rule that needs no theory, if it scores heads; the network as it was trained."""
    columns: dict[str, Any] = {}
    rules: dict[str, Callable[[], Floats]] = {
        WEIGHT_NORM: lambda: scores.weight_norm(list(apart.values)),
        ENTROPY: lambda: apart.focus,
        SENSITIVITY: lambda: scores.sensitivity(*apart.outputs("train"), cell.heads),
    }
    if rule := rules.get(cell.method):
        columns["head_scores"] = rule().tolist()
    return columns, {split: _row(split, *apart.outputs(split)) for split in SPLITS}


def _row(split: str, by_path: Floats, labels: Floats) -> dict[str, Any]:
    """The evaluation of the trained network, whole, on a split."""
    outputs = by_path.sum(axis=1)
    return {
        "step": 0,
        "budget_fraction": 1.0,
        "compute_flops": 0,
        "train_seconds": 0.0,
        "split": split,
        "num_evaluated": len(labels),
        "loss": float(np.mean((outputs - labels) ** 2)),
        "accuracy": pruning.accuracy(outputs, labels),
    }


def _curves(
    cell: HeadsCell, apart: Apart, of_heads: list[float] | None
) -> tuple[dict[str, Curve], list[int] | None]:
    """Column -> curve of the pruned network, and the order in which heads are removed, if any."""
    heads = cell.heads

    def along(order: list[int]) -> Curve:
        return functools.partial(pruning.curve, order=order, heads=heads)

    if of_heads is not None:
        order = pruning.by_score(of_heads, heads)
        reverse = pruning.by_score([-score for score in of_heads], heads)
        return {"accuracy_pruned": along(order), "accuracy_pruned_reverse": along(reverse)}, order
    if cell.method == GREEDY:
        order = pruning.greedy(*apart.outputs("validation"), heads)
        return {"accuracy_pruned": along(order)}, order
    seed = stream_seed("orders of heads", cell.seed)
    unordered: dict[str, Curve] = {
        BOUND: functools.partial(pruning.best_curve, heads=heads),
        RANDOM: functools.partial(
            pruning.random_curve, heads=heads, draws=RANDOM_ORDERS, seed=seed
        ),
    }
    found = unordered.get(cell.method)  # none of the limit
    return {"accuracy_pruned": found} if found else {}, None
