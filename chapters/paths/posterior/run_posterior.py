"""Runs cells that solve or sample."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from chapters.paths.posterior import hidden_markov, methods
from chapters.paths.posterior.network import Network, path_names
from chapters.paths.posterior.posterior_cell import SAMPLING, SLICE, PosteriorCell
from study.cell import AnyCell
from study.cell.events import Ended, Report
from study.cell.work import Work
from study.errors import RequestError
from study.tasks.task import SPLITS

USUAL: Mapping[str, Any] = {
    "steps": 0, "total_evaluate_seconds": 0.0, "shared_prefix": False,
}  # fmt: skip
"""Columns of a cell that takes no training steps; those that it does not fill are missing."""


def run(cells: Sequence[PosteriorCell], work: Work, report: Report | None = None) -> list[Ended]:
    """Runs cells one after the other; see `study.kind.Kind.runner`."""
    for cell in cells:
        if cell.data_digest != hidden_markov.DIGEST:
            raise RequestError(
                f"cell {cell.id} was planned on data {cell.data_digest}, but this version makes "
                f"{hidden_markov.DIGEST}. Run the command again to plan it anew."
            )
    with threadpool_limits(work.threads):
        return [_run(cell, report) for cell in cells]


def _run(cell: PosteriorCell, report: Report | None) -> Ended:
    sizes = cell.n, cell.validation_size, cell.test_size
    splits = _splits(cell.network, cell.tokens, cell.sigma_perp, sizes, cell.seed)
    started = time.perf_counter()
    try:
        found = _found(cell, splits)
        seconds = time.perf_counter() - started
        rows = methods.evaluations(splits, found, seconds)
        columns = methods.solution_columns(found, path_names(cell.network))
    except LinAlgError as error:  # at a low temperature K + T has no factor in float64
        return diverged(str(error), time.perf_counter() - started)
    tell(report, cell, rows)
    columns = {
        **USUAL,
        "status": "done",
        "total_train_seconds": seconds,
        "total_evaluate_seconds": time.perf_counter() - started - seconds,
        **columns,
    }
    return Ended(columns["status"], columns, list(rows.values()))


def _found(cell: PosteriorCell, splits: Mapping[str, methods.Split]) -> methods.Found:
    heads = [len(layer) for layer in cell.network]
    if cell.method == SLICE:
        sampling = {name: getattr(cell, name) for name in ("width", "seed", *SAMPLING)}
        return methods.sampled(splits, heads, cell.temperature, **sampling)
    predictor = methods.theory(splits["train"], heads, cell.width, cell.temperature)
    return methods.predicted_by(predictor, splits, predictor.iterations, predictor.flops)


def tell(report: Report | None, cell: AnyCell, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Reports the one evaluation of a cell; `rows` are those of its splits."""
    if report is not None:
        accuracy = rows["validation"]["accuracy"]
        told = {"budget_fraction": 1.0, "cells": {cell.id: accuracy}}
        report({"event": "evaluation", "accuracy": accuracy, "saif": None, **told})


def diverged(reason: str, seconds: float) -> Ended:
    """The end of a cell whose method found no numbers."""
    ended = {"status": "diverged", "status_reason": reason, "total_train_seconds": seconds}
    return Ended("diverged", {**USUAL, **ended}, [])


@functools.lru_cache(maxsize=2)
def _splits(
    network: Network, tokens: int, sigma_perp: float, sizes: tuple[int, ...], seed: int
) -> dict[str, methods.Split]:
    """The splits; the last ones stay in memory for further cells of this process."""
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        data = hidden_markov.sample(seed, size, tokens, sigma_perp, split)
        features = hidden_markov.features(data.inputs, network, seed)
        splits[split] = methods.Split(features, data.labels)
    return splits
