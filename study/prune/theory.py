"""The theory's score of a brought network: what it is solved on, and at which temperature."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from study.cell.networks import MOST_PATHS
from study.heads.temperatures import TEMPERATURES
from study.posterior import cost
from study.posterior.cell import THEORY
from study.posterior.methods import Split, at_best_temperature
from study.prune.checks import parts, rows
from study.prune.network import Network
from study.terminal.working import duration
from study.theory.attention_paths import (
    Solution,
    checks,
    head_scores,
    memory,
    path_features,
)
from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.features import Readout

_LONG = 60.0
"""Estimated seconds of the theory that are worth a word before."""


class Impossible(Exception):
    """The theory cannot be had; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Theory:
    """What the theory found.

    Attributes:
        scores: (sum of H_l,), see `study.theory.attention_paths.head_scores`.
        width: N.
        temperature: T.
        chosen: whether the held-out samples chose it.
        residual: of the saddle point.
        accuracy: on the held-out samples, a fraction.
        paths: D.
        solved_on: samples on which it is solved.
        held_out: samples.
    """

    scores: Floats
    width: int
    temperature: float
    chosen: bool
    residual: float
    accuracy: float
    paths: int
    solved_on: int
    held_out: int


def theory(network: Network, width: int, temperature: float | None, readout: Readout) -> Theory:
    """Solves the theory on the samples that are not held out; says so if that takes long.

    Args:
        network: with inputs and labels.
        width: N.
        temperature: T; None: the one of `TEMPERATURES` with the best accuracy on the held-out
            samples, of equal ones the one with the least loss.
        readout: of the network.

    Raises:
        Impossible: too many paths, too few samples, one class, too little memory, or no saddle
            point.
    """
    assert network.labels is not None
    held_out = network.held_out
    _require_classes(network.labels[~held_out], "the samples that it learns from")
    if temperature is None:
        _require_classes(network.labels[held_out], "the held-out samples")
    try:
        features = _features(network, readout)
        temperatures = TEMPERATURES if temperature is None else (temperature,)
        samples, paths, size = features.shape
        learning = int((~held_out).sum())
        _announce(cost.Sizes(paths, learning, samples, size), len(temperatures))
        best = at_best_temperature(
            Split(features[~held_out], network.labels[~held_out]),
            Split(features[held_out], network.labels[held_out]),
            network.heads,
            width,
            temperatures,
        )
    except LinAlgError as error:
        raise Impossible(
            f"{error}: try a higher --temperature or another --width, or scale the inputs to a "
            "mean square of 1"
        ) from error
    except (ValueError, MemoryError) as error:
        raise Impossible(str(error).rstrip(".")) from error
    solution = best.predictor
    assert isinstance(solution, Solution)
    return Theory(
        scores=np.concatenate(head_scores(solution.order_parameter, network.heads)),
        width=width,
        temperature=solution.temperature,
        chosen=temperature is None,
        residual=solution.residual,
        accuracy=best.accuracy,
        paths=paths,
        solved_on=learning,
        held_out=int(held_out.sum()),
    )


def _require_classes(labels: Floats, of: str) -> None:
    if len(labels) < 2:
        raise Impossible(f"{of} are {len(labels)}, at least 2 are needed: bring more samples")
    if (labels == labels[0]).all():
        raise Impossible(
            f"{of} are all of class {labels[0]:+.0f}: shuffle the samples, or mark others in "
            "held_out"
        )


def _features(network: Network, readout: Readout) -> Floats:
    """Phi (P, D, F) of all samples."""
    assert network.inputs is not None
    heads, samples, tokens = network.heads, network.samples, network.tokens
    paths, size = math.prod(heads), network.inputs.values.shape[-1]
    if paths > MOST_PATHS:
        of_layers = " x ".join(map(str, heads))
        raise Impossible(
            f"{of_layers} heads make {paths:,} paths, at most {MOST_PATHS:,} are solved: bring "
            "fewer layers"
        )
    learning = int((~network.held_out).sum())
    needed = 2 * 8 * samples * paths * size + memory(learning, paths, size)
    checks.fits(needed, f"solving for {samples} samples of {paths:,} paths")
    features = np.empty((samples, paths, size))
    for part in parts(samples, sum(heads) * tokens**2):
        maps = [rows(layer, part).transpose(1, 0, 3, 2) for layer in network.attention]
        tokens_in_columns = network.inputs.values[part].astype(np.float64).transpose(0, 2, 1)
        features[part] = path_features(tokens_in_columns, maps, readout)
    return features


def _announce(sizes: cost.Sizes, temperatures: int) -> None:
    """Says about how long the theory takes, if that is long."""
    flops = temperatures * cost.nominal_flops(THEORY, sizes)
    with threadpool_limits(1):  # on a busy machine, threads would make the measurement useless
        seconds = flops / cost.flops_a_second(sizes.samples)
    if seconds > _LONG:
        paths = f"theory of {sizes.paths:,} paths at {temperatures} temperatures"
        print(f"{paths}: about {duration(seconds)}", file=sys.stderr)
