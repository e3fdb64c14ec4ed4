"""The focus-prediction heat map and SAIF (section 2.4, A.10), on NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from study.tasks.task import MOSAICS, Modality

HEATMAP_EDGES = MOSAICS.heatmap_edges
"""Edges of the recorded heat map on both axes; bins [lo, hi), the last closed."""

SAIF_THRESHOLD = MOSAICS.saif_threshold
MOST_CLASSES = 20
"""Whose heat maps are recorded, which else would outweigh all that a cell's file holds."""

OVERSHOOT = 1e-6
"""How far a probability may exceed 1 by rounding; more is an error."""

_SHARES = ("saif", "foreground_attention_mean", "ftpt", "ffpt", "ftpf", "ffpf")


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
        all NaN if there is no instance.

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

    Args and errors as in `heatmap`; NaN if there is no instance.
    """
    a_z, s_y = _clean(foreground_attention, true_class_score)
    return float(np.mean(in_saif(a_z, s_y, threshold))) if len(a_z) else float("nan")


def in_saif(
    a_z: NDArray[np.float64], s_y: NDArray[np.float64], threshold: float
) -> NDArray[np.bool_]:
    """Which instances count for SAIF: attention and score are both at least the threshold."""
    return (a_z >= threshold) & (s_y >= threshold)


def foreground_metrics(
    a_z: NDArray[np.float64],
    s_y: NDArray[np.float64],
    focus_true: NDArray[np.float64],
    prediction_true: NDArray[np.float64],
    modality: Modality,
) -> dict[str, Any]:
    """The metrics of instances with a known foreground, by their columns.

    Args:
        a_z: attention on the foreground, (B,), in [0, 1].
        s_y: score of the true class, (B,), in [0, 1].
        focus_true: (B,), 1 where the focus is on the foreground, else 0.
        prediction_true: (B,), 1 where the true class is predicted, else 0.
        modality: has the heat map's edges and the threshold of SAIF.

    Returns:
        Fractions of the instances, `heatmap` row by row; all None if there is no instance.
    """
    if not len(a_z):
        return dict.fromkeys((*_SHARES, "heatmap"))
    shares = (
        saif(a_z, s_y, modality.saif_threshold),
        float(a_z.mean()),
        float((focus_true * prediction_true).mean()),
        float(((1 - focus_true) * prediction_true).mean()),
        float((focus_true * (1 - prediction_true)).mean()),
        float(((1 - focus_true) * (1 - prediction_true)).mean()),
    )
    heat_map = heatmap(a_z, s_y, modality.heatmap_edges).ravel().tolist()
    return {**dict(zip(_SHARES, shares, strict=True)), "heatmap": heat_map}


def class_heatmaps(
    a_z: NDArray[np.float64],
    s_y: NDArray[np.float64],
    known: NDArray[np.bool_],
    classes: NDArray[np.str_],
    edges: Sequence[float],
) -> list[float | None] | None:
    """The heat maps of the classes, one after the other, in the alphabet's order of their names.

    Args:
        a_z, s_y: (n,), as of `foreground_metrics`.
        known: (n,) whether the foreground of each is known.
        classes: (n,) the name of the class of each.
        edges: of the heat maps.

    Returns:
        (C bins bins) fractions of the instances of a class, each row by row, and None for each of
        a class without a known foreground; None of more than `MOST_CLASSES`.
    """
    names = np.unique(classes)
    if len(names) > MOST_CLASSES:
        return None
    of_each = (known & (classes == name) for name in names)
    maps = np.ravel([heatmap(a_z[mine], s_y[mine], edges) for mine in of_each])
    return [None if np.isnan(share) else share for share in maps.tolist()]


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
