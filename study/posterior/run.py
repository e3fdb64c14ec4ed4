"""Runs cells that solve or sample."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from study.cell.events import Ended, Report
from study.cell.work import Work
from study.errors import RequestError
from study.posterior import hidden_markov
from study.posterior.cell import SAMPLED, SAMPLING, PosteriorCell
from study.posterior.network import parse, path_names, reduced
from study.tasks.base import SPLITS
from study.theory.attention_paths import (
    Predictor,
    gp_limit,
    overlaps,
    sample,
    solve,
    without_interplay,
)
from study.theory.attention_paths.checks import Floats

_NOTHING: Mapping[str, Any] = {
    "status_reason": None, "steps": 0, "total_evaluate_seconds": 0.0, "shared_prefix": False,
    "path_names": None, "order_parameter": None, "order_parameter_error": None, "overlaps": None,
    "residual": None, "r_hat": None, "effective_sample_size": None,
}  # fmt: skip
"""The columns of a cell that found nothing."""


class Split(NamedTuple):
    """A split as the theory takes it: features (n, D, N_0) of its paths, labels (n,), +-1."""

    features: Floats
    labels: Floats


class Prediction(NamedTuple):
    """Of the network's output on a split, (n,) each.

    Attributes:
        mean, variance: of the output.
        error: Monte Carlo standard error of the mean; None if not sampled, as the next.
        accuracy_error: that of the accuracy.
    """

    mean: Floats
    variance: Floats
    error: Floats | None = None
    accuracy_error: float | None = None


class Found(NamedTuple):
    """What a method found.

    Attributes:
        order_parameter: U (D, D).
        predictions: of each split.
        steps: iterations or draws of a chain.
        flops: spent.
        columns: further columns of `study.results.CELLS_SCHEMA`.
    """

    order_parameter: Floats
    predictions: Mapping[str, Prediction]
    steps: int
    flops: int
    columns: Mapping[str, Any]


def run(work: Work, report: Report | None = None) -> list[Ended]:
    """Runs cells one after the other; see `study.kinds.Kind.run`."""
    for cell in work.cells:
        if cell.data_digest != hidden_markov.DIGEST:
            raise RequestError(
                f"cell {cell.id} was planned on data {cell.data_digest}, but this version makes "
                f"{hidden_markov.DIGEST}. Run the command again to plan it anew."
            )
    with threadpool_limits(work.threads):
        return [_run(cell, report) for cell in work.cells]


def _run(cell: PosteriorCell, report: Report | None) -> Ended:
    splits = _splits(
        cell.seed, cell.heads, cell.paths, cell.tokens, cell.sigma_perp,
        (cell.n, cell.validation_size, cell.test_size),
    )  # fmt: skip
    started = time.perf_counter()
    method = _sampled if cell.method in SAMPLED else _predicted
    try:
        found = method(cell, splits)
        seconds = time.perf_counter() - started
        whole = Predictor(*splits["train"], cell.temperature, found.order_parameter)
        diagonal = without_interplay(whole)
        rows = [_row(cell, splits[split], found, diagonal, split, seconds) for split in SPLITS]
    except LinAlgError as error:  # at a low temperature K + T has no factor in float64
        return _diverged(str(error), time.perf_counter() - started)
    if report is not None:
        report(
            {
                "event": "evaluation",
                "cell_id": cell.id,
                "comparison_id": cell.comparison_id,
                "budget_fraction": 1.0,
                "accuracy": rows[SPLITS.index("validation")]["accuracy"],
            }
        )
    columns = {
        **_NOTHING,
        "status": "done",
        "steps": found.steps,
        "total_train_seconds": seconds,
        "total_evaluate_seconds": time.perf_counter() - started - seconds,
        "path_names": path_names(cell.network),
        "order_parameter": found.order_parameter.ravel().tolist(),
        "overlaps": overlaps(whole.kernel, whole.labels).tolist(),
        **found.columns,
    }
    return Ended(columns["status"], columns, rows)


def _diverged(reason: str, seconds: float) -> Ended:
    """The end of a cell whose method found no numbers."""
    columns = {**_NOTHING, "status": "diverged", "status_reason": reason}
    return Ended("diverged", columns | {"total_train_seconds": seconds}, [])


@functools.lru_cache(maxsize=2)
def _splits(
    seed: int, heads: str, paths: str, tokens: int, sigma_perp: float, sizes: tuple[int, ...]
) -> dict[str, Split]:
    """The splits; the last ones stay in memory for further cells of this process."""
    network = reduced(parse(heads), paths)
    splits = {}
    for split, size in zip(SPLITS, sizes, strict=True):
        data = hidden_markov.sample(seed, size, tokens, sigma_perp, split)
        splits[split] = Split(hidden_markov.features(data.inputs, network, seed), data.labels)
    return splits


def _predicted(cell: PosteriorCell, splits: Mapping[str, Split]) -> Found:
    """By theory at finite width, or in its limit."""
    training = splits["train"]
    columns: dict[str, Any] = {}
    steps = flops = 0
    predictor: Predictor
    if cell.width is None:
        predictor = gp_limit(*training, cell.temperature)
    else:
        heads = [len(layer) for layer in cell.network]
        predictor = solution = solve(*training, heads, cell.width, cell.temperature)
        columns["residual"] = solution.residual
        steps, flops = solution.iterations, solution.flops
        if not solution.converged:
            reason = f"the saddle point was not found: residual {solution.residual:.2g}"
            columns |= {"status": "diverged", "status_reason": reason}
    samples, paths, size = training.features.shape
    flops += 2 * samples**2 * paths * size + samples**3  # the kernel and its factor, once more
    return Found(
        order_parameter=predictor.order_parameter,
        predictions={
            split: Prediction(*predictor.predict(each.features)) for split, each in splits.items()
        },
        steps=steps,
        flops=flops,
        columns=columns,
    )


def _sampled(cell: PosteriorCell, splits: Mapping[str, Split]) -> Found:
    """By chains; those that do not agree are recorded with their R-hat."""
    others = SPLITS[1:]
    sampling: dict[str, Any] = {name: getattr(cell, name) for name in SAMPLING}
    sampling |= {"method": cell.method, "width": cell.width}
    samples = sample(
        *splits["train"],
        [len(layer) for layer in cell.network],
        temperature=cell.temperature,
        seed=cell.seed,
        at=np.concatenate([splits[split].features for split in others]),
        **sampling,
    )
    estimates = {"train": (samples.training_mean, samples.training_variance)}
    start = 0
    for split in others:
        part = slice(start, start + len(splits[split].labels))
        estimates[split] = samples.mean.part(part), samples.variance.part(part)
        start = part.stop
    return Found(
        order_parameter=samples.order_parameter.mean,
        predictions={
            split: Prediction(
                mean.mean,
                variance.mean,
                mean.error,
                _accuracy_error(mean.by_chain, splits[split].labels),
            )
            for split, (mean, variance) in estimates.items()
        },
        steps=sampling["draws"],
        flops=samples.flops,
        columns={
            "order_parameter_error": samples.order_parameter.error.ravel().tolist(),
            "r_hat": samples.r_hat,
            "effective_sample_size": samples.effective_sample_size,
        },
    )


def _row(
    cell: PosteriorCell, data: Split, found: Found, diagonal: Predictor, split: str, seconds: float
) -> dict[str, Any]:
    """The evaluation of a split; `diagonal` predicts without the interplay of paths."""
    features, labels = data
    mean, variance, error, accuracy_error = found.predictions[split]
    return {
        "step": found.steps,
        "budget_fraction": 1.0,
        "compute_flops": found.flops,
        "train_seconds": seconds,
        "split": split,
        "num_evaluated": len(labels),
        "loss": _nats(labels, mean, variance + cell.temperature),
        "accuracy": _accuracy(mean, labels),
        "accuracy_error": accuracy_error,
        "accuracy_diagonal": _accuracy(diagonal.predict(features)[0], labels),
        "predictor_mean": mean.tolist(),
        "predictor_variance": variance.tolist(),
        "predictor_mean_error": None if error is None else error.tolist(),
    }


def _accuracy(mean: Floats, labels: Floats) -> float:
    """The share of inputs whose label the sign of the mean predictor gives."""
    return float((np.sign(mean) == labels).mean())


def _accuracy_error(by_chain: Floats, labels: Floats) -> float:
    """Standard error of the accuracy, from the accuracies of the chains (chains, n)."""
    accuracies = (np.sign(by_chain) == labels).mean(axis=1)
    return float(accuracies.std(ddof=1) / math.sqrt(len(accuracies)))


def _nats(labels: Floats, mean: Floats, variance: Floats) -> float:
    """Mean negative log density of the labels under a Gaussian predictive distribution."""
    return float(np.mean(np.log(2 * np.pi * variance) + (labels - mean) ** 2 / variance) / 2)
