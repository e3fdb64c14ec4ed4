"""What a model is measured by on a split: a_z, s_y, heat map, SAIF, accuracy, loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from study.execution import pass_size
from study.metrics import heatmap as heatmap
from study.metrics import saif as saif
from study.models.base import Model
from study.paradigms.base import Classifier, Focus, Paradigm
from study.tasks.mosaics import Mosaics


@torch.no_grad()
def evaluate(model: Model, paradigm: Paradigm, mosaics: Mosaics) -> dict[str, Any] | None:
    """The metrics of a model on a split, by the paradigm's own loss and inference.

    Many mosaics share a base image: the focus, and the classifier where it sees single segments,
    run once a base image, and mosaics look their outputs up.

    Args:
        model: on the device of the mosaics.
        paradigm: whose loss and inference to use; one whose loss is exact.
        mosaics: the split.

    Returns:
        The metric columns of `study.results.EVALUATIONS_SCHEMA`: loss in nats, all others
        fractions, `heatmap` 25 fractions row by row; or None where any output is not finite.
    """
    device = mosaics.labels.device
    scores, logits = _tables(model, paradigm, mosaics)
    focus: Focus = scores.__getitem__
    _, places = mosaics.distinct
    parts = []
    total_loss = torch.zeros((), dtype=torch.float64, device=device)
    for rows in torch.arange(len(mosaics), device=device).split(_mosaics_a_pass(mosaics, logits)):
        labels = mosaics.labels[rows]
        if logits is None:
            segments = mosaics.batch(rows).segments
            classifier: Classifier = model.classifier
            given = scores[places[rows]].softmax(dim=1)
        else:  # a segment is its place in the tables
            segments, classifier, given = places[rows], logits.__getitem__, None
        attention, probabilities = paradigm.predict(focus, classifier, segments, attention=given)
        loss = paradigm.loss(focus, classifier, segments, labels, attention=given)
        total_loss += loss.double() * len(rows)
        foreground = mosaics.foreground(rows)
        focus_true = foreground.gather(1, attention.argmax(dim=1, keepdim=True)).squeeze(1)
        a_z = (attention * foreground).sum(dim=1)
        s_y = probabilities.gather(1, labels[:, None]).squeeze(1)
        prediction_true = probabilities.argmax(dim=1) == labels
        parts.append(torch.stack([a_z, s_y, focus_true, prediction_true]).double())
    a_z, s_y, focus_true, prediction_true = torch.cat(parts, dim=1).cpu().numpy()
    mean_loss = float(total_loss) / len(mosaics)
    if not (np.isfinite(mean_loss) and np.isfinite(a_z).all() and np.isfinite(s_y).all()):
        return None
    return {
        "loss": mean_loss,
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


def _tables(model: Model, paradigm: Paradigm, mosaics: Mosaics) -> tuple[Tensor, Tensor | None]:
    """f (U,) of every base image that occurs, and g (U, C) where it sees single segments."""
    images, _ = mosaics.distinct
    segment_bytes = mosaics.bytes_each // mosaics.index.shape[1]
    scores, logits = [], []
    for part in images.split(pass_size(segment_bytes, images.device)):
        segments = model.encode(mosaics.segments(part)[:, None])[:, 0]
        scores.append(model.focus(segments))
        if not paradigm.mixes:
            logits.append(model.classifier(segments))
    return torch.cat(scores), torch.cat(logits) if logits else None


def _mosaics_a_pass(mosaics: Mosaics, logits: Tensor | None) -> int:
    """How many mosaics at a time: as many as fit as pixels, or as rows of a table."""
    m = mosaics.index.shape[1]
    bytes_each = mosaics.bytes_each if logits is None else 4 * m * logits.shape[1]
    return pass_size(bytes_each, mosaics.labels.device)
