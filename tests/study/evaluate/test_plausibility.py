"""Plausibility against its definitions, written out post by post, and against scikit-learn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import auc, precision_recall_curve

from study.evaluate.plausibility import IOU_THRESHOLD, TOP_TOKENS, plausibility

MEASURES = ("token_f1", "iou_f1", "auprc")
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
    return attention, rationale, mask


def f1(precision: float, recall: float) -> float:
    if precision == 0 or recall == 0:
        return 0.0
    return 2 * precision * recall / (precision + recall)


def posts(split: Split) -> list[tuple[list[float], list[bool]]]:
    """Attention and marks of the real tokens of every post that has a marked one."""
    both = [
        ([float(x) for x in a[real]], [bool(x) for x in marked[real]])
        for a, marked, real in zip(*split, strict=True)
    ]
    return [(a, marked) for a, marked in both if any(marked)]


def top(attention: list[float]) -> set[int]:
    return set(sorted(range(len(attention)), key=lambda j: attention[j])[-TOP_TOKENS:])


def runs(marked: list[bool]) -> list[set[int]]:
    found: list[set[int]] = []
    for j, mark in enumerate(marked):
        if mark and (j == 0 or not marked[j - 1]):
            found.append(set())
        if mark:
            found[-1].add(j)
    return found


def iou(one: set[int], other: set[int]) -> float:
    return len(one & other) / len(one | other)


def reference_token_f1(attention: list[float], marked: list[bool]) -> float:
    selected, true = top(attention), set(np.flatnonzero(marked))
    return f1(len(selected & true) / len(selected), len(selected & true) / len(true))


def reference_iou_f1(found: list[tuple[list[float], list[bool]]]) -> float:
    precision, recall = [], []
    for attention, marked in found:
        spans = runs(marked)
        best = [max(iou({j}, span) for span in spans) for j in top(attention)]
        matched = sum(value >= IOU_THRESHOLD for value in best)
        precision.append(matched / len(best))
        recall.append(matched / len(spans))
    return f1(float(np.mean(precision)), float(np.mean(recall)))


def reference_auprc(attention: list[float], marked: list[bool]) -> float:
    points = [(0.0, 1.0)]
    for threshold in sorted(set(attention), reverse=True):
        chosen = [mark for a, mark in zip(attention, marked, strict=True) if a >= threshold]
        points.append((sum(chosen) / sum(marked), sum(chosen) / len(chosen)))
    return sum((r1 - r0) * (p0 + p1) / 2 for (r0, p0), (r1, p1) in itertools.pairwise(points))


def one(attention: list[float], rationale: list[int]) -> dict[str, float]:
    """The measures of one post without padding."""
    return plausibility([attention], [rationale], np.ones((1, len(attention)), bool))


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_definitions(seed: int) -> None:
    split = make_split(seed)
    known = posts(split)
    expected = {
        "token_f1": np.mean([reference_token_f1(*post) for post in known]),
        "iou_f1": reference_iou_f1(known),
        "auprc": np.mean([reference_auprc(*post) for post in known]),
    }
    assert plausibility(*split) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_auprc_equals_scikit_learn(seed: int) -> None:
    split = make_split(seed)
    areas = []
    for attention, marked in posts(split):
        precision, recall, _ = precision_recall_curve(marked, attention)
        areas.append(auc(recall, precision))
    assert plausibility(*split)["auprc"] == pytest.approx(np.mean(areas), rel=1e-12)


def test_a_hand_checked_post() -> None:
    # selected: tokens 2 to 6; marked: 0 (missed), 3 and 4 (a run of two), 6 (a run of one)
    found = one([0.01, 0.02, 0.1, 0.3, 0.2, 0.15, 0.22], [1, 0, 0, 1, 1, 0, 1])
    precision, recall = 3 / 5, 3 / 4
    assert found["token_f1"] == pytest.approx(f1(precision, recall))
    # 3, 4 and 6 match; there are three marked spans
    assert found["iou_f1"] == pytest.approx(f1(3 / 5, 3 / 3))
    # in falling order: 1 1 1 0 0 0 1; the last of four at precision 4 / 7
    assert found["auprc"] == pytest.approx(3 / 4 + 1 / 4 * (3 / 6 + 4 / 7) / 2)


def test_a_run_of_two_matches_and_a_run_of_three_does_not() -> None:
    attention = [0.0, 0.3, 0.3, 0.4, 0.0, 0.0, 0.0]
    assert one(attention, [0, 1, 1, 1, 0, 0, 0])["iou_f1"] == 0
    two = one(attention, [0, 1, 1, 0, 0, 0, 0])["iou_f1"]
    assert two == pytest.approx(f1(2 / 5, 2))  # both tokens match the one span


def test_span_recall_may_exceed_one() -> None:
    assert one([0.5, 0.5], [1, 1])["iou_f1"] == pytest.approx(4 / 3)


def test_spans_average_before_their_f1_and_tokens_after() -> None:
    attention = [[0.6, 0.4, 0, 0, 0, 0], [0.9, 0.02, 0.02, 0.02, 0.02, 0.02]]
    rationale = [[1, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]]
    mask = [[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]
    found = plausibility(attention, rationale, mask)
    # the second post's equal tokens: the later four are selected, not the marked one
    assert found["token_f1"] == pytest.approx((f1(2 / 4, 2 / 2) + 0) / 2)
    assert found["iou_f1"] == pytest.approx(f1((2 / 4 + 0) / 2, (2 / 2 + 0) / 2))


def test_of_equal_tokens_the_later_are_selected() -> None:
    attention = np.full(8, 1 / 8)
    later, earlier = [0, 0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0, 0]
    assert one(attention.tolist(), later)["token_f1"] == 1
    assert one(attention.tolist(), earlier)["token_f1"] == 0
    # one threshold for all: from (0, 1) straight to (1, share of marked tokens)
    assert one(attention.tolist(), later)["auprc"] == pytest.approx((1 + 5 / 8) / 2)
    assert one(attention.tolist(), earlier)["auprc"] == pytest.approx((1 + 3 / 8) / 2)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 6, 12])
def test_a_post_that_is_marked_throughout(m: int) -> None:
    found = one(np.random.default_rng(m).dirichlet(np.ones(m)).tolist(), [1] * m)
    selected = min(m, TOP_TOKENS)
    assert found["auprc"] == pytest.approx(1)
    assert found["token_f1"] == pytest.approx(f1(1, selected / m))
    assert found["iou_f1"] == pytest.approx(f1(1, m) if m <= 2 else 0)


def test_a_short_post_is_selected_whole() -> None:
    found = one([0.2, 0.5, 0.3], [0, 0, 1])
    assert found["token_f1"] == pytest.approx(f1(1 / 3, 1))
    assert found["iou_f1"] == pytest.approx(f1(1 / 3, 1))
    # (0, 1), (0, 0), (1, 1/2), (1, 1/3)
    assert found["auprc"] == pytest.approx(1 / 4)


def test_attention_of_exactly_zero_is_still_a_token() -> None:
    found = one([1.0, 0.0, 0.0], [0, 1, 1])
    assert found["token_f1"] == pytest.approx(f1(2 / 3, 1))
    assert found["auprc"] == pytest.approx(2 / 3 / 2)  # (0, 1), (0, 0), (1, 2/3)


@pytest.mark.parametrize("garbage", [np.nan, np.inf, -np.inf, 0.0, 9.0])
@pytest.mark.parametrize("last", [1, 40], ids=["one-post", "all-posts"])
@pytest.mark.parametrize("seed", range(20))
def test_padding_changes_nothing(seed: int, last: int, garbage: float) -> None:
    """Not by a bit."""
    attention, rationale, mask = (part[-last:] for part in make_split(seed))
    size = len(mask)
    wider = (
        np.hstack([np.where(mask, attention, garbage), np.full((size, 150), garbage)]),
        np.hstack([rationale, np.ones((size, 150), bool)]),
        np.hstack([mask, np.zeros((size, 150), bool)]),
    )
    assert plausibility(*wider) == plausibility(attention, rationale, mask)


def test_posts_without_a_rationale_are_left_out() -> None:
    attention, rationale, mask = make_split(4)
    expected = plausibility(attention, rationale, mask)
    more = (
        np.vstack([attention[:3], attention]),
        np.vstack([np.zeros_like(rationale[:3]), rationale]),
        np.vstack([mask[:3], mask]),
    )
    assert plausibility(*more) == expected


@pytest.mark.parametrize("shape", [(0, 0), (0, 6), (3, 0), (3, 6)])
def test_without_any_rationale_there_is_no_measure(shape: tuple[int, int]) -> None:
    marked_padding = np.ones(shape, bool), np.zeros(shape, bool)
    unmarked = np.zeros(shape, bool), np.ones(shape, bool)
    for rationale, mask in (marked_padding, unmarked):
        found = plausibility(np.full(shape, 0.5), rationale, mask)
        assert list(found) == list(MEASURES)
        assert all(math.isnan(value) for value in found.values())


def test_the_arguments_are_left_alone() -> None:
    split = make_split(2)
    copies = [part.copy() for part in split]
    plausibility(*split)
    for part, copy in zip(split, copies, strict=True):
        np.testing.assert_array_equal(part, copy)


def test_bad_arguments() -> None:
    flags = np.ones((2, 3), bool)
    with pytest.raises(ValueError, match="of one shape"):
        plausibility(np.ones((2, 4)), flags, flags)
    with pytest.raises(ValueError, match="2-d"):
        plausibility(np.ones(3), flags[0], flags[0])
    with pytest.raises(ValueError, match="finite at real tokens, got nan"):
        plausibility(np.full((2, 3), np.nan), flags, flags)
