"""Every score that a brought network has the arrays for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from chapters.paths.attention_paths import arguments, head_scores, path_features
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.attention_paths.features import Readout
from chapters.paths.heads import scores
from chapters.paths.heads.heads_cell import TEMPERATURES
from chapters.paths.one_shot.transformer import MOST_PATHS
from chapters.paths.posterior.methods import Split, at_best_temperature
from chapters.paths.prune.network_file import Arrays
from chapters.paths.prune.prune_options import SCORES
from study.errors import RequestError
from study.terminal.working import working


def scored(
    arrays: Arrays, by: str | None, width: int, temperature: float | None, readout: Readout
) -> tuple[pd.DataFrame, dict[str, str], dict[str, Any] | None]:
    """Scores the heads of a network.

    Args:
        arrays: of the network.
        by: a score that must be had; None: any may be missing.
        width: N of the theory.
        temperature: T of the theory; None: the one of `TEMPERATURES` with the best accuracy on
            the held-out samples, of equal ones the one with the least loss.
        readout: of the theory.

    Returns:
        One row per head: layer, head and the scores that can be had; score -> why it is missing;
        what the theory was solved with and how well it predicts, None if it is missing.

    Raises:
        RequestError: the score `by` cannot be had.
    """
    heads = [layer.shape[1] for layer in arrays["attention"]]
    table = pd.DataFrame({"layer": np.repeat(range(1, len(heads) + 1), heads)})
    table["head"] = table.groupby("layer").cumcount() + 1
    missing = {
        name: f"it needs {' and '.join(roles)}; the file has no {' and no '.join(absent)}"
        for name, roles in SCORES.items()
        if (absent := [role for role in roles if not arrays[role]])
    }
    solved = None
    try:
        if not missing.keys() & {"theory", by}:  # it takes its time; a refusal comes before it
            table["theory"], solved = _theory(arrays, heads, width, temperature, readout)
    except (ValueError, MemoryError) as error:
        missing["theory"] = str(error).rstrip(".")
    if by in missing:
        raise RequestError(f"--by {by} is not possible: {missing[by]}.")
    for name, rule in _RULES.items():
        if name not in missing:
            table[name] = rule(arrays)
    return table, missing, solved


def _norm(arrays: Arrays) -> Floats:
    """The root mean square of each head's output."""
    squares = [np.square(each, dtype=float) for each in arrays["outputs"]]
    return np.sqrt(np.concatenate([each.mean(axis=(0, 2)) for each in squares]))


def _sensitivity(arrays: Arrays) -> Floats:
    """E |d loss / d xi_h| at xi = 1, where xi_h multiplies the output of head h."""
    pairs = zip(arrays["outputs"], arrays["gradients"], strict=True)
    slopes = [np.einsum("phx,phx->ph", *pair, dtype=float) for pair in pairs]
    return scores.by_layer([np.abs(each).mean(axis=0) for each in slopes])


def _entropy(arrays: Arrays) -> Floats:
    return np.concatenate([scores.focus(layer.swapaxes(0, 1)) for layer in arrays["attention"]])


_RULES = {"sensitivity": _sensitivity, "norm": _norm, "entropy": _entropy}


def _theory(
    arrays: Arrays, heads: list[int], width: int, temperature: float | None, readout: Readout
) -> tuple[Floats, dict[str, Any]]:
    """The theory's scores, solved on samples that are not held out, and what it was solved with.

    Raises:
        ValueError, MemoryError: it cannot be had; the message says why and what to do.
    """
    (labels,), (held_out,) = arrays["labels"], arrays["held_out"]
    classes = np.unique(labels).tolist()
    if classes not in ([-1, 1], [0, 1]):
        raise ValueError(
            f"it needs two classes: labels must be -1 and +1, or 0 and 1, got {classes[:4]}"
        )
    labels = np.where(labels > 0, 1.0, -1.0)
    parts = {"samples that it learns from": ~held_out, "held-out samples": held_out}
    for of, part in parts.items():
        if np.ptp(labels[part]) == 0 and (part is not held_out or temperature is None):
            raise ValueError(
                f"all {of} (n={part.sum()}) are of class {labels[part][0]:+.0f}: shuffle the "
                "samples, or mark others in held_out"
            )
    features = _features(arrays, heads, readout)
    training, choosing = (Split(features[part], labels[part]) for part in parts.values())
    with working("solving the theory"), threadpool_limits(1):  # more make small products slower
        temperatures = [temperature] if temperature else TEMPERATURES
        best = at_best_temperature(training, choosing, heads, width, temperatures)
    order_parameter = best.predictor.order_parameter
    return np.concatenate(head_scores(order_parameter, heads)), {
        "width": width,
        "temperature": best.predictor.temperature,
        "readout": readout,
        "residual": best.predictor.residual,
        "accuracy_held_out": best.accuracy,
        "num_paths": len(order_parameter),
    }


def _features(arrays: Arrays, heads: list[int], readout: Readout) -> Floats:
    """Phi (P, D, F) of all samples."""
    (inputs,) = arrays["inputs"]
    paths = math.prod(heads)
    if paths > MOST_PATHS:
        raise ValueError(
            f"{' x '.join(map(str, heads))} heads make {paths:,} paths, at most {MOST_PATHS:,} "
            "can be solved: use fewer layers"
        )
    samples, _, size = inputs.shape
    arguments.fits(2 * 8 * samples * paths * size, f"features of {paths:,} paths")  # and a copy
    features = np.concatenate(
        [  # one by one, since all maps in float64 may be too many
            path_features(x.T[None], [layer.swapaxes(1, 2)[:, None] for layer in maps], readout)
            for x, *maps in zip(inputs, *arrays["attention"], strict=True)
        ]
    )
    if not np.isfinite(np.vdot(features, features)):
        raise ValueError("its numbers overflow: scale the inputs to a mean square of 1")
    return features
