"""Plausibility: how well attention agrees with the tokens that people marked. On NumPy alone.

The measures are those of HateXplain (Mathew et al., "HateXplain: A Benchmark Dataset for
Explainable Hate Speech Detection", AAAI 2021, on plausibility), taken from the ERASER benchmark
(DeYoung et al., ACL 2020, section 4). The attention is the model's rationale. If a measure needs a
selection, it is the tokens of largest attention, each a span of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from study.tasks.task import Outputs

TOP_TOKENS = 5
"""How many tokens the attention selects, as in HateXplain's evaluation."""

IOU_THRESHOLD = 0.5
"""Least intersection over union at which a selected span matches a marked one."""

Flags = NDArray[np.bool_]


class _Ranked(NamedTuple):
    """Posts with a marked token, their tokens ranked by attention.

    Attributes:
        marked: (B, m) bool, the rationale.
        selected: (B, m) bool, the `TOP_TOKENS` with most attention.
        scores, falling: (B, m) the attention, -inf at padding, and its order, largest first.
    """

    marked: Flags
    selected: Flags
    scores: NDArray[np.float64]
    falling: NDArray[np.intp]


def token_f1(outputs: Outputs) -> float:
    """Of a model's attention, see `plausibility`."""
    ranked = _of_a_model(outputs)
    return _token_f1(ranked) if ranked else math.nan


def iou_f1(outputs: Outputs) -> float:
    """Of a model's attention, see `plausibility`."""
    ranked = _of_a_model(outputs)
    return _iou_f1(ranked) if ranked else math.nan


def auprc(outputs: Outputs) -> float:
    """Of a model's attention, see `plausibility`."""
    ranked = _of_a_model(outputs)
    return _auprc(ranked) if ranked else math.nan


def _of_a_model(outputs: Outputs) -> _Ranked | None:
    return _ranked(without_rounding(outputs.attention), outputs.foreground, outputs.mask)


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
    ranked = _ranked(attention, rationale, mask)
    measures = {"token_f1": _token_f1, "iou_f1": _iou_f1, "auprc": _auprc}
    return {name: of(ranked) if ranked else math.nan for name, of in measures.items()}


def _ranked(attention: ArrayLike, rationale: ArrayLike, mask: ArrayLike) -> _Ranked | None:
    """The arguments of `plausibility`, ranked; None: no post has a marked token."""
    real = np.asarray(mask, np.bool_)
    marked = np.asarray(rationale, np.bool_) & real
    known = marked.any(axis=1)
    if not known.any():
        return None
    marked, scores = marked[known], np.where(real, attention, -np.inf)[known]
    # Ascending and stable, as in HateXplain's evaluation: of equal tokens, the later one counts
    # as larger.
    order = np.argsort(scores, axis=1, kind="stable")
    selected = np.zeros_like(marked)
    np.put_along_axis(selected, order[:, -TOP_TOKENS:], True, axis=1)
    return _Ranked(marked, selected & real[known], scores, order[:, ::-1])


def _token_f1(ranked: _Ranked) -> float:
    """Mean over posts of 2 |S & M| / (|S| + |M|), which is 2 P R / (P + R), and 0 at P = R = 0."""
    marked, selected = ranked.marked, ranked.selected
    hits = (selected & marked).sum(axis=1)
    return float(np.mean(2 * hits / (selected.sum(axis=1) + marked.sum(axis=1))))


def _iou_f1(ranked: _Ranked) -> float:
    """F1 of mean precision and mean recall of spans (ERASER: macro-averaged partial match).

    Every selected token is a span of one token; the marked spans are the maximal runs of marked
    tokens. A selected span matches if its intersection over union with a marked span is at least
    `IOU_THRESHOLD`. In a run of r tokens that is 1 / r, so r is 1 or 2. Precision of a post:
    matched / selected spans; recall: matched / marked spans. Both tokens of a run of two may match
    it, so as in ERASER recall is at most 2 and the F1 at most 4/3.
    """
    marked, selected = ranked.marked, ranked.selected
    starts = marked & ~np.pad(marked, ((0, 0), (1, 0)))[:, :-1]
    run = np.cumsum(starts).reshape(marked.shape)  # number of a marked token's run
    length = np.bincount(run[marked], minlength=run.max() + 1)[run]
    matched = (selected & marked & (length * IOU_THRESHOLD <= 1)).sum(axis=1)
    precision = float(np.mean(matched / selected.sum(axis=1)))
    recall = float(np.mean(matched / starts.sum(axis=1)))
    return 2 * precision * recall / (precision + recall) if matched.any() else 0.0


def _auprc(ranked: _Ranked) -> float:
    """Mean over posts of the trapezoidal area under the precision-recall curve.

    The curve starts at recall 0, precision 1. It has a point for each distinct score: precision
    and recall of the tokens with at least this score.
    """
    scores = np.take_along_axis(ranked.scores, ranked.falling, axis=1)
    marked = np.take_along_axis(ranked.marked, ranked.falling, axis=1)
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
