"""What a model is measured by: a_z, s_y, the focus-prediction heat map, SAIF, accuracy, loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from study.models.base import Model
from study.paradigms.base import Paradigm
from study.results import HEATMAP_EDGES
from study.tasks.mosaics import Mosaics

SAIF_THRESHOLD = 0.8
OVERSHOOT = 1e-6
"""How far above 1 a probability may lie by rounding before it is an error."""

BATCH_BYTES = {"cpu": 3 * 2**20, "cuda": 2**28}
"""Pixels of one batch, by device: on a CPU what fits into its cache is twice as fast as more."""


def heatmap(
    foreground_attention: ArrayLike,
    true_class_score: ArrayLike,
    edges: Sequence[float] = HEATMAP_EDGES,
) -> NDArray[np.float64]:
    """Focus-prediction heat map: the joint histogram of a_z and s_y (section 2.4, A.10).

    Args:
        foreground_attention: a_z, shape (B,), in [0, 1]; NaN = no known foreground, left out.
        true_class_score: s_y, shape (B,), in [0, 1].
        edges: increasing bin edges for both axes; bins are [lo, hi), the last one closed.

    Returns:
        (len(edges) - 1, len(edges) - 1) fractions of the instances, axis 0 = a_z, axis 1 = s_y;
        NaN everywhere without an instance.

    Raises:
        ValueError: a value is outside [0, 1] by more than `OVERSHOOT`, or a score is NaN.
    """
    a_z, s_y = _clean(foreground_attention, true_class_score)
    bins = np.asarray(edges, np.float64)
    counts, _, _ = np.histogram2d(a_z, s_y, bins=(bins, bins))
    return counts / len(a_z) if len(a_z) else np.full_like(counts, np.nan)


def saif(
    foreground_attention: ArrayLike,
    true_class_score: ArrayLike,
    threshold: float = SAIF_THRESHOLD,
) -> float:
    """Strongly accurate interpretable fraction: the share with a_z and s_y >= threshold.

    Args and errors as in `heatmap`; NaN without an instance.
    """
    a_z, s_y = _clean(foreground_attention, true_class_score)
    return float(np.mean((a_z >= threshold) & (s_y >= threshold))) if len(a_z) else float("nan")


def _clean(
    foreground_attention: ArrayLike, true_class_score: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a_z = np.asarray(foreground_attention, np.float64)
    s_y = np.asarray(true_class_score, np.float64)
    if a_z.shape != s_y.shape or a_z.ndim != 1:
        raise ValueError(
            f"a_z and s_y must be 1-d and equally long, got shapes {a_z.shape}, {s_y.shape}"
        )
    known = ~np.isnan(a_z)
    a_z, s_y = a_z[known], s_y[known]
    for name, values in (("foreground_attention", a_z), ("true_class_score", s_y)):
        wrong = ~((values >= 0) & (values <= 1 + OVERSHOOT))  # also true for NaN
        if wrong.any():
            raise ValueError(f"{name} must be in [0, 1], got {values[wrong][0]!r}")
    return np.minimum(a_z, 1.0), np.minimum(s_y, 1.0)


@torch.no_grad()
def evaluate(model: Model, paradigm: Paradigm, mosaics: Mosaics) -> dict[str, Any] | None:
    """The metrics of a model on a split, by the paradigm's own loss and inference.

    Args:
        model: on the device of the mosaics.
        paradigm: whose loss and inference to use; one whose loss is exact.
        mosaics: the split.

    Returns:
        The metric columns of `study.results.EVALUATIONS_SCHEMA`: loss in nats, all others
        fractions, `heatmap` 25 fractions row by row; or None where any output is not finite.
    """
    parts = []
    device = mosaics.labels.device
    total_loss = torch.zeros((), dtype=torch.float64, device=device)
    batch_size = max(1, BATCH_BYTES[device.type] // mosaics.bytes_each)
    for rows in torch.arange(len(mosaics), device=device).split(batch_size):
        inputs, labels, foreground, mask = mosaics.batch(rows)
        segments = model.encode(inputs, mask)
        attention, probabilities = paradigm.predict(model.focus, model.classifier, segments, mask)
        # Given the attention, the loss does not call the focus a second time.
        loss = paradigm.loss(
            model.focus, model.classifier, segments, labels, mask, attention=attention
        )
        total_loss += loss.double() * len(rows)
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
