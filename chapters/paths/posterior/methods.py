"""What theory, its limit and samples find of a network: U, and predictions of every split."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from chapters.paths.attention_paths import (
    Predictor,
    Solution,
    gp_limit,
    overlaps,
    sample,
    solve,
    without_interplay,
)
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.heads.pruning import accuracy
from chapters.paths.posterior.ended import Columns, Rows


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
        predictor: with the order parameter U (D, D), of sampled ones its mean.
        predictions: of each split.
        steps: iterations or draws of a chain.
        flops: spent.
        columns: further columns of `study.results.CELLS_SCHEMA`.
    """

    predictor: Predictor
    predictions: Mapping[str, Prediction]
    steps: int
    flops: int
    columns: Mapping[str, Any]


class Best(NamedTuple):
    """Theory at its best temperature.

    Attributes:
        predictor: there.
        accuracy: on the inputs that chose.
        steps: iterations of all searches.
        flops: of all searches.
    """

    predictor: Predictor
    accuracy: float
    steps: int
    flops: int


def at_best_temperature(
    training: Split,
    held_out: Split,
    heads: Sequence[int],
    width: int | None,
    temperatures: Sequence[float],
) -> Best:
    """Theory at the temperature with the best accuracy on other inputs.

    Of equal ones, the one with the least loss. Solutions that have not converged are left out.

    Args:
        training: on which it is solved.
        held_out: which choose.
        heads: (H_1, ..., H_L).
        width: N; None: the limit.
        temperatures: to try, the hottest first, as each solution begins from the one before.

    Raises:
        LinAlgError: no solution converged; the message has their residuals.
    """
    start: Solution | None = None
    best: tuple[tuple[float, float], Predictor] | None = None
    tried = []
    steps = flops = 0
    for heat in sorted(temperatures, reverse=True):
        try:
            predictor = theory(training, heads, width, heat, start)
            steps, flops = steps + predictor.iterations, flops + predictor.flops
            if not predictor.converged:
                tried.append(f"{heat:g} (residual {predictor.residual:.2g})")
                continue
            start = predictor if isinstance(predictor, Solution) else None
            mean, variance = predictor.predict(held_out.features)
        except LinAlgError:
            tried.append(f"{heat:g} (K + T has no factor in float64)")
            continue
        flops += _once(training, len(held_out.labels))
        rank = accuracy(mean, held_out.labels), -nats(held_out.labels, mean, variance + heat)
        if best is None or rank > best[0]:
            best = rank, predictor
    if best is None:
        raise LinAlgError(
            f"the saddle point was not found at temperature {', '.join(tried)}: try a higher one, "
            "another width, or inputs scaled to a mean square of 1"
        )
    return Best(best[1], best[0][0], steps, flops)


def theory(
    training: Split,
    heads: Sequence[int],
    width: int | None,
    temperature: float,
    start: Solution | None = None,
) -> Predictor:
    """Theory at finite width, see `chapters.paths.attention_paths.solve`, or its limit (None).

    Raises:
        LinAlgError: at a low temperature, K + T has no factor in float64.
    """
    if width is None:
        return gp_limit(*training, temperature)
    return solve(*training, heads, width, temperature, start=start)


def predicted_by(
    predictor: Predictor, splits: Mapping[str, Split], steps: int = 0, flops: int = 0
) -> Found:
    """What a predictor of theory says of each split.

    Args:
        predictor: a solution, or the limit.
        splits: of the network.
        steps, flops: spent to find it.
    """
    columns: dict[str, Any] = {}
    if isinstance(predictor, Solution):
        columns["residual"] = predictor.residual
        if not predictor.converged:
            reason = f"the saddle point was not found: residual {predictor.residual:.2g}"
            columns |= {"status": "diverged", "status_reason": reason}
    return Found(
        predictor=predictor,
        predictions={n: Prediction(*predictor.predict(s.features)) for n, s in splits.items()},
        steps=steps,
        flops=flops + _once(splits["train"]),
        columns=columns,
    )


def _once(training: Split, asked: int = 0) -> int:
    """FLOPs of the kernel and its factor, and of predicting so many inputs."""
    samples, paths, size = training.features.shape
    return 2 * samples * (samples + asked) * paths * size + samples**3 + 2 * asked * samples**2


def sampled(
    splits: Mapping[str, Split], heads: Sequence[int], temperature: float, **sampling: Any
) -> Found:
    """By chains; those that do not agree are recorded with their R-hat.

    Args:
        splits: of the network.
        heads: (H_1, ..., H_L).
        temperature: of the posterior.
        sampling: width, draws, warmup, thin, chains and seed, see
            `chapters.paths.attention_paths.sample`.
    """
    others = [split for split in splits if split != "train"]
    asked = np.concatenate([splits[split].features for split in others])
    training = splits["train"]
    samples = sample(*training, heads, temperature=temperature, at=asked, **sampling)
    estimates = {"train": (samples.training_mean, samples.training_variance)}
    start = 0
    for split in others:
        part = slice(start, start + len(splits[split].labels))
        estimates[split] = samples.mean.part(part), samples.variance.part(part)
        start = part.stop
    predictions = {}
    for split, (mean, variance) in estimates.items():
        by_chain = [accuracy(each, splits[split].labels) for each in mean.by_chain]
        error = float(np.std(by_chain, ddof=1) / math.sqrt(len(by_chain)))
        predictions[split] = Prediction(mean.mean, variance.mean, mean.error, error)
    return Found(
        predictor=Predictor(*training, temperature, samples.order_parameter.mean),
        predictions=predictions,
        steps=sampling["draws"],
        flops=samples.flops,
        columns={
            "order_parameter_error": samples.order_parameter.error.ravel().tolist(),
            "r_hat": samples.r_hat,
            "effective_sample_size": samples.effective_sample_size,
        },
    )


def recorded(
    found: Found, splits: Mapping[str, Split], path_names: Sequence[str]
) -> tuple[Columns, Rows]:
    """Columns of the cell, and a row a split, of what was found.

    Args:
        found: by a method.
        splits: of the network.
        path_names: of D paths, in C order.

    Raises:
        LinAlgError: as `theory`.
    """
    predictor = found.predictor
    diagonal = without_interplay(predictor)
    rows: Rows = {}
    for split, (features, labels) in splits.items():
        mean, variance, error, accuracy_error = found.predictions[split]
        rows[split] = {
            "step": found.steps,
            "compute_flops": found.flops,
            "num_evaluated": len(labels),
            "loss": nats(labels, mean, variance + predictor.temperature),
            "accuracy": accuracy(mean, labels),
            "accuracy_error": accuracy_error,
            "accuracy_diagonal": accuracy(diagonal.predict(features)[0], labels),
            "predictor_mean": mean.tolist(),
            "predictor_variance": variance.tolist(),
            "predictor_mean_error": None if error is None else error.tolist(),
        }
    columns: Columns = {
        "steps": found.steps,
        "path_names": list(path_names),
        "order_parameter": predictor.order_parameter.ravel().tolist(),
        "overlaps": overlaps(predictor.kernel, predictor.labels).tolist(),
        **found.columns,
    }
    return columns, rows


def nats(labels: Floats, mean: Floats, variance: Floats) -> float:
    """Mean negative log density of the labels under a Gaussian predictive distribution."""
    return float(np.mean(np.log(2 * np.pi * variance) + (labels - mean) ** 2 / variance) / 2)
