"""Plausibility against its definitions, written out post by post; areas are scikit-learn's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import auc, precision_recall_curve

from chapters.texts.plausibility import IOU_THRESHOLD, TOP_TOKENS, plausibility

Split = tuple[np.ndarray, np.ndarray, np.ndarray]


def make_split(seed: int) -> Split:
    """Posts of 1 to m tokens, padded at either end; some without a rationale, some with ties."""
    rng = np.random.default_rng(seed)
    size, m = int(rng.integers(1, 40)), int(rng.choice([1, 2, 4, 7, 30, 200]))
    length = rng.integers(1, m + 1, (size, 1)) if seed % 3 else np.full((size, 1), m)
    first = rng.integers(0, m - length + 1)
    mask = (first <= np.arange(m)) & (np.arange(m) < first + length)
    attention = rng.dirichlet(np.ones(m), size).astype(np.float32)
    if seed % 2:  # few different values, 0 among them
        attention = np.round(attention * m) / m
    rationale = rng.random((size, m)) < rng.choice([0.02, 0.3, 0.7, 1.0], size=(size, 1))
    rationale[-1, mask[-1].argmax()] = True  # at least one token of one post
    attention[~mask] = rng.choice([np.nan, np.inf, -1.0, 7.0])
    for part in (attention, rationale, mask):
        part.flags.writeable = False
    return attention, rationale, mask


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def by_definition(split: Split) -> dict[str, float]:
    """The means over posts that have a marked token."""
    found = []
    for attention, marked in (
        (a[real].tolist(), rationale[real]) for a, rationale, real in zip(*split, strict=True)
    ):
        if not marked.any():
            continue
        selected = set(sorted(range(len(marked)), key=attention.__getitem__)[-TOP_TOKENS:])
        hits = sum(marked[j] for j in selected)
        groups = itertools.groupby(range(len(marked)), key=marked.__getitem__)
        runs = [set(places) for mark, places in groups if mark]
        matched = sum(
            any(len({j} & run) / len({j} | run) >= IOU_THRESHOLD for run in runs) for j in selected
        )
        precision, recall, _ = precision_recall_curve(marked, attention)
        found.append([
            f1(hits / len(selected), hits / marked.sum()), matched / len(selected),
            matched / len(runs), auc(recall, precision),
        ])  # fmt: skip
    token_f1, of_spans, recall_of_spans, area = np.mean(found, axis=0)
    return {"token_f1": token_f1, "iou_f1": f1(of_spans, recall_of_spans), "auprc": area}


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_definitions(seed):
    split = make_split(seed)
    assert plausibility(*split) == pytest.approx(by_definition(split), rel=1e-12)


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("shape", [(0, 0), (0, 6), (3, 0), (3, 6)])
def test_without_any_rationale_there_is_no_measure(shape, marked):
    """Marks on padding are none."""
    found = plausibility(np.full(shape, 0.5), np.full(shape, marked), np.full(shape, not marked))
    assert found.keys() == {"token_f1", "iou_f1", "auprc"}
    assert np.isnan([*found.values()]).all()
