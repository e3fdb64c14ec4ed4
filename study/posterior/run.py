"""Runs cells that solve or sample."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from study.cell.events import Ended, Report
from study.cell.work import Work
from study.errors import RequestError
from study.posterior import hidden_markov
from study.posterior.cell import LIMIT, SAMPLING, THEORY, PosteriorCell
from study.posterior.network import parse, path_names, reduced
from study.theory.attention_paths import Predictor, gp_limit, kernel, overlaps, sample, solve
from study.theory.attention_paths.checks import Floats

SPLITS = ("train", "validation", "test")


class Split(NamedTuple):
    """A split as the theory takes it: features (n, D, N_0) of its paths, labels (n,), +-1."""

    features: Floats
    labels: Floats


class Found(NamedTuple):
    """What a method found.

    Attributes:
        order_parameter: U (D, D).
        means, variances: of the output, split -> (n,).
        steps: iterations or draws of a chain.
        flops: spent.
        errors: split -> (n,) Monte Carlo standard errors of the means; empty if not sampled.
        accuracy_errors: split -> that of the accuracy; empty likewise.
        columns: further columns of `study.results.CELLS_SCHEMA`.
        why_not: why it is no solution; None if it is one.
    """

    order_parameter: Floats
    means: Mapping[str, Floats]
    variances: Mapping[str, Floats]
    steps: int
    flops: float
    errors: Mapping[str, Floats]
    accuracy_errors: Mapping[str, float]
    columns: Mapping[str, Any]
    why_not: str | None = None


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
    found = _predicted(cell, splits) if cell.method in (THEORY, LIMIT) else _sampled(cell, splits)
    seconds = time.perf_counter() - started
    rows = [_row(cell, splits, found, split, seconds) for split in SPLITS]
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
    training = splits["train"]
    columns = {
        "status": "diverged" if found.why_not else "done",
        "status_reason": found.why_not,
        "steps": found.steps,
        "total_train_seconds": seconds,
        "total_evaluate_seconds": time.perf_counter() - started - seconds,
        "shared_prefix": False,
        "path_names": path_names(cell.network),
        "order_parameter": found.order_parameter.ravel().tolist(),
        "overlaps": overlaps(
            kernel(training.features, found.order_parameter), training.labels
        ).tolist(),
        **{"order_parameter_error": None, "residual": None},
        **{"r_hat": None, "effective_sample_size": None},
        **found.columns,
    }
    return Ended(columns["status"], columns, rows)


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
    columns, steps, flops, why_not = {}, 0, 0.0, None
    predictor: Predictor
    if cell.method == LIMIT:
        predictor = gp_limit(*training, cell.temperature)
    else:
        heads = [len(layer) for layer in cell.network]
        width = cell.width or math.inf
        predictor = solution = solve(*training, heads, width, cell.temperature)
        columns["residual"] = solution.residual
        steps, flops = solution.iterations, solution.flops
        if not solution.converged:
            why_not = f"the saddle point was not found: residual {solution.residual:.2g}"
    predictions = {split: predictor.predict(each.features) for split, each in splits.items()}
    samples, paths, size = training.features.shape
    flops += 2 * samples**2 * paths * size + samples**3  # the kernel and its factor, once more
    return Found(
        order_parameter=predictor.order_parameter,
        means={split: mean for split, (mean, _) in predictions.items()},
        variances={split: variance for split, (_, variance) in predictions.items()},
        steps=steps,
        flops=flops,
        errors={},
        accuracy_errors={},
        columns=columns,
        why_not=why_not,
    )


def _sampled(cell: PosteriorCell, splits: Mapping[str, Split]) -> Found:
    """By chains; those that do not agree are recorded with their R-hat."""
    training = splits["train"]
    others = SPLITS[1:]
    sampling: dict[str, Any] = {name: getattr(cell, name) for name in SAMPLING}
    sampling |= {"method": cell.method, "width": cell.width}
    samples = sample(
        *training,
        [len(layer) for layer in cell.network],
        temperature=cell.temperature,
        seed=cell.seed,
        at=np.concatenate([splits[split].features for split in others]),
        **sampling,
    )
    ends = np.cumsum([len(splits[split].labels) for split in others])
    parts = [slice(end - len(splits[s].labels), end) for s, end in zip(others, ends, strict=True)]
    means = {"train": samples.training_mean}
    variances = {"train": samples.training_variance}
    for split, part in zip(others, parts, strict=True):
        means[split], variances[split] = samples.mean.part(part), samples.variance.part(part)
    return Found(
        order_parameter=samples.order_parameter.mean,
        means={split: each.mean for split, each in means.items()},
        variances={split: each.mean for split, each in variances.items()},
        steps=samples.draws,
        flops=samples.flops,
        errors={split: each.error for split, each in means.items()},
        accuracy_errors={
            split: _accuracy_error(each.by_chain, splits[split].labels)
            for split, each in means.items()
        },
        columns={
            "order_parameter_error": samples.order_parameter.error.ravel().tolist(),
            "r_hat": samples.r_hat,
            "effective_sample_size": samples.effective_sample_size,
        },
    )


def _row(
    cell: PosteriorCell, splits: Mapping[str, Split], found: Found, split: str, seconds: float
) -> dict[str, Any]:
    """The evaluation of a split."""
    features, labels = splits[split]
    mean, variance = found.means[split], found.variances[split]
    diagonal = Predictor(
        *splits["train"], cell.temperature, np.diag(found.order_parameter.diagonal())
    )
    return {
        "step": found.steps,
        "budget_fraction": 1.0,
        "compute_flops": int(found.flops),
        "train_seconds": seconds,
        "split": split,
        "num_evaluated": len(labels),
        "loss": _nats(labels, mean, variance + cell.temperature),
        "accuracy": _accuracy(mean, labels),
        "accuracy_error": found.accuracy_errors.get(split),
        "accuracy_diagonal": _accuracy(diagonal.predict(features)[0], labels),
        "predictor_mean": mean.tolist(),
        "predictor_variance": variance.tolist(),
        "predictor_mean_error": found.errors[split].tolist() if found.errors else None,
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
