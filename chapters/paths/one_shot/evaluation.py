"""Evaluates a network of attention paths on episodes: loss, accuracy, accuracy without a head."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from chapters.paths.heads.pruning import Outputs
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
        Columns of `study.results.EVALUATIONS_SCHEMA`: those of `Outputs.whole`; of the last
        evaluation `accuracy_without_head`. None if an output is not finite.
    """
    attention = 4 * sum(model.heads) * model.encoder.count**2
    count = min(pass_size(split.bytes_each, split.labels.device), 1 + _MOST_BYTES // attention)
    parts = [model.by_path(split.batch(rows).segments) for rows in split.passes(count)]
    by_path = torch.cat(parts).double().cpu().numpy()
    if not np.isfinite(by_path).all():
        return None
    outputs = Outputs(by_path, signs(split.labels).double().cpu().numpy(), model.heads)
    without = {"accuracy_without_head": outputs.without_each_head().tolist()} if last else {}
    return {"saif": None, **outputs.whole, **without}
