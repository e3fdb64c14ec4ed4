"""What a model is measured by on a split: a_z, s_y, heat map, SAIF, accuracy, loss, incentive."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from study.execution import pass_size
from study.fixed_focus import held_attention, incentive
from study.metrics import heatmap as heatmap
from study.metrics import saif as saif
from study.models.base import Model
from study.paradigms.base import Classifier, Focus, Paradigm
from study.tasks.mosaics import Mosaics


@torch.no_grad()
def evaluate(
    model: Model,
    paradigm: Paradigm,
    mosaics: Mosaics,
    alpha: float | None = None,
    with_incentive: bool = False,
) -> dict[str, Any] | None:
    """The metrics of a model on a split, by the paradigm's own loss and inference.

    Many mosaics share a base image: the focus, and the classifier where it sees single segments,
    run once a base image, and mosaics look their outputs up.

    Args:
        model: on the device of the mosaics.
        paradigm: whose loss and inference to use; one whose loss is exact.
        mosaics: the split.
        alpha: attention held on the foreground; None: the focus attends.
        with_incentive: where alpha is held, also measure what a better focus would gain.

    Returns:
        The metric columns of `study.results.EVALUATIONS_SCHEMA`: loss in nats, all others
        fractions, `heatmap` 25 fractions row by row; with the incentive, also `incentive` and
        `incentive_slope` (`study.fixed_focus.Incentive`); or None where any output is not finite.
    """
    device = mosaics.labels.device
    scores, logits = _tables(model, paradigm, mosaics, focus_needed=alpha is None)
    focus: Focus = scores.__getitem__
    _, places = mosaics.distinct
    parts = []
    sums = torch.zeros(3, dtype=torch.float64, device=device)  # loss, incentive, its slope
    for rows in torch.arange(len(mosaics), device=device).split(_mosaics_a_pass(mosaics, logits)):
        labels, foreground = mosaics.labels[rows], mosaics.foreground(rows)
        if logits is None:
            segments = mosaics.batch(rows).segments
            classifier: Classifier = model.classifier
        else:  # a segment is its place in the tables
            segments, classifier = places[rows], logits.__getitem__
        given = None
        if alpha is not None:
            given = held_attention(alpha, foreground)
        elif logits is None:
            given = scores[places[rows]].softmax(dim=1)
        attention, probabilities = paradigm.predict(focus, classifier, segments, attention=given)
        loss_with = functools.partial(paradigm.loss, focus, classifier, segments, labels, None)
        if with_incentive and alpha is not None:
            found = torch.stack(incentive(loss_with, alpha, foreground))
        else:
            found = loss_with(given)[None]
        sums[: len(found)] += found.double() * len(rows)
        focus_true = foreground.gather(1, attention.argmax(dim=1, keepdim=True)).squeeze(1)
        a_z = (attention * foreground).sum(dim=1)
        s_y = probabilities.gather(1, labels[:, None]).squeeze(1)
        prediction_true = probabilities.argmax(dim=1) == labels
        parts.append(torch.stack([a_z, s_y, focus_true, prediction_true]).double())
    a_z, s_y, focus_true, prediction_true = torch.cat(parts, dim=1).cpu().numpy()
    means = (sums / len(mosaics)).cpu().numpy()
    if not (np.isfinite(means).all() and np.isfinite(a_z).all() and np.isfinite(s_y).all()):
        return None
    metrics = {
        "loss": float(means[0]),
        "accuracy": float(prediction_true.mean()),
        "saif": saif(a_z, s_y),
        "foreground_attention_mean": float(a_z.mean()),
        "ftpt": float((focus_true * prediction_true).mean()),
        "ffpt": float(((1 - focus_true) * prediction_true).mean()),
        "ftpf": float((focus_true * (1 - prediction_true)).mean()),
        "ffpf": float(((1 - focus_true) * (1 - prediction_true)).mean()),
        "heatmap": heatmap(a_z, s_y).ravel().tolist(),
        "num_evaluated": len(mosaics),
    }
    if with_incentive:
        metrics |= {"incentive": float(means[1]), "incentive_slope": float(means[2])}
    return metrics


def _tables(
    model: Model, paradigm: Paradigm, mosaics: Mosaics, focus_needed: bool
) -> tuple[Tensor, Tensor | None]:
    """f (U,) of every base image that occurs, and g (U, C) where it sees single segments.

    A focus that is not needed is not called; its scores are empty then.
    """
    images, _ = mosaics.distinct
    segment_bytes = mosaics.bytes_each // mosaics.index.shape[1]
    scores, logits = [torch.empty(0, device=images.device)], []
    for part in images.split(pass_size(segment_bytes, images.device)):
        segments = model.encode(mosaics.segments(part)[:, None])[:, 0]
        if focus_needed:
            scores.append(model.focus(segments))
        if not paradigm.mixes:
            logits.append(model.classifier(segments))
    return torch.cat(scores), torch.cat(logits) if logits else None


def _mosaics_a_pass(mosaics: Mosaics, logits: Tensor | None) -> int:
    """How many mosaics at a time: as many as fit as pixels, or as rows of a table."""
    m = mosaics.index.shape[1]
    bytes_each = mosaics.bytes_each if logits is None else 4 * m * logits.shape[1]
    return pass_size(bytes_each, mosaics.labels.device)
