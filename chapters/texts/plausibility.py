"""Plausibility: how well attention agrees with the tokens that people marked. On NumPy alone.

The measures are those of HateXplain (Mathew et al., "HateXplain: A Benchmark Dataset for
Explainable Hate Speech Detection", AAAI 2021, on plausibility), taken from the ERASER benchmark
(DeYoung et al., ACL 2020, section 4). The attention is the model's rationale. If a measure needs a
selection, it is the tokens of largest attention, each a span of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from study.tasks.task import Outputs

TOP_TOKENS = 5
"""How many tokens the attention selects, as in HateXplain's evaluation."""

IOU_THRESHOLD = 0.5
"""Least intersection over union at which a selected span matches a marked one."""

Flags = NDArray[np.bool_]


def token_f1(outputs: Outputs) -> float:
    """Of a model's attention, see `plausibility`."""
    return _of_a_model(outputs)["token_f1"]


def iou_f1(outputs: Outputs) -> float:
    """Of a model's attention, see `plausibility`."""
    return _of_a_model(outputs)["iou_f1"]


def auprc(outputs: Outputs) -> float:
    """Of a model's attention, see `plausibility`."""
    return _of_a_model(outputs)["auprc"]


def _of_a_model(outputs: Outputs) -> dict[str, float]:
    return plausibility(without_rounding(outputs.attention), outputs.foreground, outputs.mask)


def without_rounding(attention: NDArray[np.floating]) -> NDArray[np.float64]:
    """Attention to 20 bits, so that words that differ only by float32 rounding are a tie."""
    mantissa, exponent = np.frexp(attention.astype(np.float64))
    return np.ldexp(np.round(np.ldexp(mantissa, 20)), exponent - 20)


def plausibility(attention: ArrayLike, rationale: ArrayLike, mask: ArrayLike) -> dict[str, float]:
    """Agreement of the attention with the rationales of a split.

    Args:
        attention: (B, m) float; finite at real tokens, anything elsewhere.
        rationale: (B, m) bool, True = marked; ignored where `mask` is False. Posts without a
            marked token are left out.
        mask: (B, m) bool, True = real token; those of a post are contiguous.

    Returns:
        NaN for all three if no post has a marked token, else

        - token_f1: mean over posts of the F1 of selected against marked tokens, in [0, 1].
        - iou_f1: F1 of the mean precision and the mean recall of spans, in [0, 4/3]: as in
          ERASER, recall may exceed 1 (see `_iou_f1`).
        - auprc: mean over posts of the area under the precision-recall curve of the attention
          as a score of single tokens, in [0, 1].
    """
    real = np.asarray(mask, np.bool_)
    marked = np.asarray(rationale, np.bool_) & real
    known = marked.any(axis=1)
    if not known.any():
        return dict.fromkeys(("token_f1", "iou_f1", "auprc"), float("nan"))
    marked, scores = marked[known], np.where(real, attention, -np.inf)[known]
    # Ascending and stable, as in HateXplain's evaluation: of equal tokens, the later one counts
    # as larger.
    order = np.argsort(scores, axis=1, kind="stable")
    selected = np.zeros_like(marked)
    np.put_along_axis(selected, order[:, -TOP_TOKENS:], True, axis=1)
    selected &= real[known]
    falling = order[:, ::-1]
    return {
        "token_f1": _token_f1(selected, marked),
        "iou_f1": _iou_f1(selected, marked),
        "auprc": _auprc(
            np.take_along_axis(scores, falling, axis=1),
            np.take_along_axis(marked, falling, axis=1),
        ),
    }


def _token_f1(selected: Flags, marked: Flags) -> float:
    """Mean over posts of 2 |S & M| / (|S| + |M|), which is 2 P R / (P + R), and 0 at P = R = 0."""
    hits = (selected & marked).sum(axis=1)
    return float(np.mean(2 * hits / (selected.sum(axis=1) + marked.sum(axis=1))))


def _iou_f1(selected: Flags, marked: Flags) -> float:
    """F1 of mean precision and mean recall of spans (ERASER: macro-averaged partial match).

    Every selected token is a span of one token; the marked spans are the maximal runs of marked
    tokens. A selected span matches if its intersection over union with a marked span is at least
    `IOU_THRESHOLD`. In a run of r tokens that is 1 / r, so r is 1 or 2. Precision of a post:
    matched / selected spans; recall: matched / marked spans. Both tokens of a run of two may match
    it, so as in ERASER recall is at most 2 and the F1 at most 4/3.
    """
    starts = marked & ~np.pad(marked, ((0, 0), (1, 0)))[:, :-1]
    run = np.cumsum(starts).reshape(marked.shape)  # number of a marked token's run
    length = np.bincount(run[marked], minlength=run.max() + 1)[run]
    matched = (selected & marked & (length * IOU_THRESHOLD <= 1)).sum(axis=1)
    precision = float(np.mean(matched / selected.sum(axis=1)))
    recall = float(np.mean(matched / starts.sum(axis=1)))
    return 2 * precision * recall / (precision + recall) if matched.any() else 0.0


def _auprc(scores: NDArray[np.float64], marked: Flags) -> float:
    """Mean over posts of the trapezoidal area under the precision-recall curve.

    The curve starts at recall 0, precision 1. It has a point for each distinct score: precision
    and recall of the tokens with at least this score.

    Args:
        scores: (B, m), each row falls; -inf at padding.
        marked: (B, m), in the same order; at least one a row.
    """
    m = scores.shape[1]
    last_of_score = np.pad(scores[:, :-1] > scores[:, 1:], ((0, 0), (0, 1)), constant_values=True)
    ends = np.where(last_of_score, np.arange(m), m - 1)
    point = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]  # of each token: the last alike
    found = np.take_along_axis(marked.cumsum(axis=1), point, axis=1)
    precision, recall = found / (point + 1), found / found[:, -1:]
    before = np.pad(precision[:, :-1], ((0, 0), (1, 0)), constant_values=1)
    areas = np.diff(recall, axis=1, prepend=0) * (precision + before) / 2
    # Summed in order, so that padding at the end does not change a bit.
    return float(areas.cumsum(axis=1)[:, -1].mean())
