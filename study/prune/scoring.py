"""Every score that a brought network has the arrays for, and the orders of removal."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from threadpoolctl import threadpool_limits

from study.cell.network_settings import MOST_PATHS
from study.errors import RequestError
from study.heads.heads_cell import TEMPERATURES
from study.posterior import posterior_cost
from study.posterior.methods import Split, at_best_temperature
from study.posterior.posterior_cell import THEORY
from study.prune.names import PREFERRED, SCORES
from study.prune.network_file import Network
from study.terminal.working import duration
from study.theory.attention_paths import Solution, arguments, head_scores, memory, path_features
from study.theory.attention_paths.arguments import Floats
from study.theory.attention_paths.features import Readout
from study.theory.heads import pruning, scores

_TAKES = {
    "theory": ("inputs", "labels"),
    "norm": ("outputs",),
    "sensitivity": ("outputs", "gradients"),
    "entropy": (),
}
"""Score -> what it takes besides attention."""

_BYTES_AT_ONCE = 2**26
"""Of attention in float64."""

_LONG = 60.0
"""Estimated seconds of the theory that are worth a word before."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a network, and the orders of removal.

    Heads are counted through all layers from 0, those of the first layer come first.

    Attributes:
        heads: (H_1, ..., H_L).
        scores: score -> (sum of H_l,), in the order of `SCORES`.
        missing: score -> why it is not given.
        by: the score whose order comes first.
        theory: what it was solved with and how well it predicts; None if it is not given.
    """

    heads: tuple[int, ...]
    scores: Mapping[str, Floats]
    missing: Mapping[str, str]
    by: str
    theory: Mapping[str, Any] | None

    @cached_property
    def orders(self) -> dict[str, list[int]]:
        """Score -> the heads it removes, in order; sum of H_l - L of them."""
        return {name: pruning.by_score(each, self.heads) for name, each in self.scores.items()}

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Layer and head of every head, both counted from 1."""
        return [
            (layer, head)
            for layer, count in enumerate(self.heads, start=1)
            for head in range(1, count + 1)
        ]


def scored(
    network: Network, width: int, temperature: float | None, readout: Readout, by: str | None
) -> Scored:
    """Scores the heads of a network.

    Args:
        network: as it was brought.
        width: N of the theory.
        temperature: T of the theory; None: the one of `TEMPERATURES` with the best accuracy on
            the held-out samples, of equal ones the one with the least loss.
        readout: of the theory.
        by: the score whose order comes first; None: the first of `PREFERRED` that is there.

    Raises:
        RequestError: the score `by` cannot be had.
    """
    found: dict[str, Floats] = {}
    missing: dict[str, str] = {}
    solved: dict[str, Any] | None = None
    for name in sorted(SCORES, key=lambda each: each != by):  # a refusal needs no other score
        try:
            _require(network, _TAKES[name])
            if name == "theory":
                found[name], solved = _theory(network, width, temperature, readout)
            else:
                found[name] = _SIMPLE[name](network)
        except (ValueError, MemoryError) as error:
            missing[name] = str(error).rstrip(".")
            if name == by:
                raise RequestError(f"--by {by} is not possible: {missing[name]}.") from error
    return Scored(
        heads=network.heads,
        scores={name: found[name] for name in SCORES if name in found},
        missing=missing,
        by=by or next(name for name in PREFERRED if name in found),
        theory=solved,
    )


def _require(network: Network, names: Sequence[str]) -> None:
    absent = [name for name in names if getattr(network, name) is None]
    if absent:
        takes, lacks = " and ".join(names), " and no ".join(absent)
        raise ValueError(f"it needs {takes}; the file has no {lacks}")


def _norm(network: Network) -> Floats:
    """The root mean square of each head's output: (sum of H_l,)."""
    return np.concatenate(
        [
            np.sqrt(np.einsum("phx,phx->h", each, each, dtype=float) / each[:, 0].size)
            for each in _flat(network.outputs)
        ]
    )


def _sensitivity(network: Network) -> Floats:
    """E |d loss / d xi_h| at xi = 1, where xi_h multiplies the output of head h."""
    pairs = zip(_flat(network.outputs), _flat(network.gradients), strict=True)
    slopes = [np.einsum("phx,phx->ph", *pair, dtype=float) for pair in pairs]
    return scores.by_layer([np.abs(each).mean(axis=0) for each in slopes])


def _entropy(network: Network) -> Floats:
    return np.concatenate([scores.focus(layer.swapaxes(0, 1)) for layer in network.attention])


_SIMPLE = {"norm": _norm, "sensitivity": _sensitivity, "entropy": _entropy}


def _flat(layers: Sequence[Floats] | None) -> list[Floats]:
    """(P, H_l, X) of (P, H_l, ...)."""
    assert layers is not None
    return [each.reshape(*each.shape[:2], -1) for each in layers]


def _theory(
    network: Network, width: int, temperature: float | None, readout: Readout
) -> tuple[Floats, dict[str, Any]]:
    """The theory's scores, solved on the samples that are not held out, and `Scored.theory`.

    Raises:
        ValueError, MemoryError: it cannot be had; the message says why and what to do.
    """
    assert network.labels is not None
    labels, held_out = _signs(network.labels), network.held_out
    _require_classes(labels[~held_out], "the samples that it learns from")
    if temperature is None:
        _require_classes(labels[held_out], "the held-out samples")
    features = _features(network, readout)
    if not np.isfinite(np.vdot(features, features)):
        raise ValueError("its numbers overflow: scale the inputs to a mean square of 1")
    temperatures = TEMPERATURES if temperature is None else (temperature,)
    samples, paths, size = features.shape
    sizes = posterior_cost.Sizes(paths, int((~held_out).sum()), samples, size)
    _announce(sizes, len(temperatures))
    training, choosing = (Split(features[part], labels[part]) for part in (~held_out, held_out))
    try:
        # As estimated; more threads make its many small products slower.
        with threadpool_limits(1):
            best = at_best_temperature(training, choosing, network.heads, width, temperatures)
    except LinAlgError as error:
        raise ValueError(
            f"{error}: try a higher --temperature or another --width, or scale the inputs to a "
            "mean square of 1"
        ) from error
    solution = best.predictor
    assert isinstance(solution, Solution)
    return np.concatenate(head_scores(solution.order_parameter, network.heads)), {
        "width": width,
        "temperature": solution.temperature,
        "readout": readout,
        "residual": solution.residual,
        "accuracy_held_out": best.accuracy,
        "num_paths": paths,
    }


def _signs(labels: Floats) -> Floats:
    """Labels as -1 and +1."""
    classes = set(np.unique(labels).tolist())
    if classes <= {-1, 1}:
        return labels
    if classes <= {0, 1}:
        return 2 * labels - 1
    some = ", ".join(f"{label:g}" for label in sorted(classes)[:4])
    raise ValueError(
        "it needs two classes: labels must be -1 and +1, or 0 and 1, got "
        f"{some}{' and more' if len(classes) > 4 else ''}"
    )


def _require_classes(labels: Floats, of: str) -> None:
    if len(labels) < 2:
        raise ValueError(f"{of} are {len(labels)}, at least 2 are needed: use more samples")
    if (labels == labels[0]).all():
        raise ValueError(
            f"{of} are all of class {labels[0]:+.0f}: shuffle the samples, or mark others in "
            "held_out"
        )


def _features(network: Network, readout: Readout) -> Floats:
    """Phi (P, D, F) of all samples."""
    assert network.inputs is not None
    samples, tokens, size = network.inputs.shape
    paths = math.prod(network.heads)
    if paths > MOST_PATHS:
        raise ValueError(
            f"{' x '.join(map(str, network.heads))} heads make {paths:,} paths, at most "
            f"{MOST_PATHS:,} can be solved: use fewer layers"
        )
    learning = int((~network.held_out).sum())
    needed = 2 * 8 * samples * paths * size + memory(learning, paths, size)
    arguments.fits(needed, f"solving for {samples} samples of {paths:,} paths")
    features = np.empty((samples, paths, size))
    at_once = max(1, _BYTES_AT_ONCE // (8 * sum(network.heads) * tokens**2))
    for start in range(0, samples, at_once):
        part = slice(start, start + at_once)
        maps = [layer[part].transpose(1, 0, 3, 2) for layer in network.attention]
        features[part] = path_features(network.inputs[part].swapaxes(1, 2), maps, readout)
    return features


def _announce(sizes: posterior_cost.Sizes, temperatures: int) -> None:
    """Says about how long the theory takes, if that is long."""
    flops = temperatures * posterior_cost.flops(THEORY, sizes)
    with threadpool_limits(1):  # on a busy machine, threads would make the measurement useless
        seconds = flops / posterior_cost.flops_a_second(sizes.samples)
    if seconds > _LONG:
        paths = f"theory of {sizes.paths:,} paths at {temperatures} temperatures"
        print(f"{paths}: about {duration(seconds)}", file=sys.stderr)
