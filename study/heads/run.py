"""Runs cells that take trained networks apart."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from study import models
from study.cell import Cell
from study.cell.events import Ended, Report
from study.cell.seeds import stream_seed
from study.cell.work import Work
from study.heads.apart import Apart, take_apart
from study.heads.cell import (
    BOUND,
    ENTROPY,
    GREEDY,
    RANDOM,
    SOLVED,
    WEIGHT_NORM,
    HeadsCell,
)
from study.heads.cost import temperatures
from study.heads.temperatures import PUBLISHED
from study.models import kept
from study.models.attention_paths import AttentionPaths
from study.posterior import methods
from study.posterior.cell import LIMIT
from study.posterior.run import USUAL, diverged, tell
from study.storage.storage import Storage
from study.tasks.base import SPLITS
from study.theory.attention_paths import head_scores
from study.theory.attention_paths.checks import Floats
from study.theory.heads import pruning, scores
from study.train.run import loaded

RANDOM_ORDERS = 1_000
"""Of heads, whose mean is the curve of `random`."""


def run(cells: Sequence[HeadsCell], work: Work, report: Report | None = None) -> list[Ended]:
    """Runs cells one after the other; see `study.kind.Kind.runner`."""
    with threadpool_limits(work.threads):
        return [_run(cell, work, report) for cell in cells]


def _run(cell: HeadsCell, work: Work, report: Report | None) -> Ended:
    apart = _apart(cell.network, cell.examples, work)
    started = time.perf_counter()
    if cell.method in SOLVED:
        try:
            columns, rows = _solved(cell, apart)
        except LinAlgError as error:  # at no temperature there is a solution
            return diverged(str(error), time.perf_counter() - started)
    else:
        columns, rows = _ruled(cell, apart)
    if (of_heads := columns.get("head_scores")) is not None:
        columns["removal_order"] = order = pruning.by_score(of_heads, cell.heads)
        reverse = pruning.by_score([-score for score in of_heads], cell.heads)
        _add_curve(rows, "accuracy_pruned", order, apart, cell)
        _add_curve(rows, "accuracy_pruned_reverse", reverse, apart, cell)
    seconds = time.perf_counter() - started
    tell(report, cell, rows)
    columns = {
        **USUAL,
        "status": "done",
        "network_digest": apart.digest,
        "total_train_seconds": seconds,
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


def _solved(cell: HeadsCell, apart: Apart) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Columns of the cell and rows of its splits, by theory or its limit."""
    started = time.perf_counter()
    splits, heads, tried = apart.splits, cell.heads, temperatures(cell)
    choosing = splits["test" if cell.choice == PUBLISHED else "validation"]
    best = methods.at_best_temperature(splits["train"], choosing, heads, cell.width, tried)
    found = methods.predicted_by(best.predictor, splits, best.steps, best.flops)
    rows = methods.evaluations(splits, found, time.perf_counter() - started)
    names = [",".join(str(head + 1) for head in path) for path in np.ndindex(*heads)]
    of_heads = None
    if cell.method != LIMIT:  # whose U scores all heads alike
        by_layer = head_scores(found.predictor.order_parameter, heads)
        of_heads = np.concatenate(by_layer).tolist()
    own = {
        "temperature": best.predictor.temperature,
        "temperatures": list(tried),
        "head_scores": of_heads,
    }
    return {**methods.solution_columns(found, names), **own}, rows


def _ruled(cell: HeadsCell, apart: Apart) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Columns of the cell and rows of its splits, by a rule that needs no theory."""
    rows: dict[str, dict[str, Any]] = {split: _row(split, cell, apart) for split in SPLITS}
    columns: dict[str, Any] = {}
    if cell.method in (RANDOM, BOUND):
        for split, row in rows.items():
            inputs = apart.by_path[split], apart.splits[split].labels, cell.heads
            if cell.method == BOUND:
                found = pruning.best_curve(*inputs)
            else:
                seed = stream_seed("orders of heads", cell.seed)
                found = pruning.random_curve(*inputs, RANDOM_ORDERS, seed)
            row["accuracy_pruned"] = found.tolist()
        return columns, rows
    if cell.method == GREEDY:
        held_out = apart.by_path["validation"], apart.splits["validation"].labels
        columns["removal_order"] = order = pruning.greedy(*held_out, cell.heads)
        _add_curve(rows, "accuracy_pruned", order, apart, cell)
    else:
        columns["head_scores"] = _simple_scores(cell, apart).tolist()
    return columns, rows


def _simple_scores(cell: HeadsCell, apart: Apart) -> Floats:
    """Scores (sum of H_l,) by one of `study.heads.cell.SIMPLE`."""
    if cell.method == WEIGHT_NORM:
        return scores.weight_norm(list(apart.values))
    if cell.method == ENTROPY:
        return scores.focus(apart.entropies, apart.tokens)
    training = apart.by_path["train"], apart.splits["train"].labels
    return scores.sensitivity(*training, cell.heads)


def _row(split: str, cell: HeadsCell, apart: Apart) -> dict[str, Any]:
    """The evaluation of the trained network, whole, on a split."""
    outputs, labels = apart.by_path[split].sum(axis=1), apart.splits[split].labels
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


def _add_curve(
    rows: Mapping[str, dict[str, Any]],
    column: str,
    order: list[int],
    apart: Apart,
    cell: HeadsCell,
) -> None:
    """Adds the accuracy along an order to the row of each split."""
    for split, row in rows.items():
        inputs = apart.by_path[split], apart.splits[split].labels
        row[column] = pruning.curve(*inputs, order, cell.heads).tolist()
