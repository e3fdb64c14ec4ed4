"""Evaluates a network of attention paths on episodes: loss, accuracy, accuracy without a head."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from chapters.paths.heads.pruning import accuracy, without_each_head
from chapters.paths.one_shot.episodes import Episodes
from chapters.paths.one_shot.model import AttentionPaths, signs
from study.hardware import pass_size
from study.paradigms.paradigm import Paradigm

_MOST_BYTES = 2**28
"""Of attention at a time."""


@torch.no_grad()
def evaluate(
    model: AttentionPaths,
    paradigm: Paradigm,
    split: Episodes,
    inference: Paradigm | None = None,
    last: bool = False,
) -> dict[str, Any] | None:
    """The metrics of a network on a split.

    Args:
        model: on the device of the split.
        paradigm, inference: soft.
        split: of episodes.
        last: whether to leave out each head, too.

    Returns:
        Columns of `study.results.EVALUATIONS_SCHEMA`: `loss`, the mean squared error; `accuracy`;
        of the last evaluation `accuracy_without_head`. None if an output is not finite.
    """
    outputs = by_path(model, split)
    if not np.isfinite(outputs).all():
        return None
    labels = signs(split.labels).double().cpu().numpy()
    errors = outputs.sum(axis=1) - labels
    metrics: dict[str, Any] = {
        "loss": float(np.mean(errors**2)),
        "accuracy": accuracy(outputs.sum(axis=1), labels),
        "num_evaluated": len(split),
        "saif": None,
    }
    if last:
        layers, heads = model.focus.queries.shape[:2]
        found = without_each_head(outputs, labels, (heads,) * layers)
        metrics["accuracy_without_head"] = found.tolist()
    return metrics


@torch.no_grad()
def by_path(model: AttentionPaths, split: Episodes) -> NDArray[np.float64]:
    """What each path adds to the output: (n, D); see `AttentionPaths.by_path`."""
    layers, heads = model.focus.queries.shape[:2]
    attention = 4 * layers * heads * model.encoder.count**2
    count = min(pass_size(split.bytes_each, split.labels.device), 1 + _MOST_BYTES // attention)
    parts = [model.by_path(split.batch(rows).segments) for rows in split.passes(count)]
    return torch.cat(parts).double().cpu().numpy()
