"""Accuracy of a network of attention paths when heads are removed, without training it again.

The output is a sum over paths, f = sum_pi f^pi, and a path needs all its heads. So what a network
without some heads puts out is the sum over the paths that are left, times the factor that
(H_l N)^(-1/2) becomes where a layer has fewer heads: sqrt(H_l / kept) a layer (arXiv 2405.15926,
section 4.2). All subsets of heads follow from one pass through the network.

Heads are counted through all layers: those of the first layer come first. A layer keeps its last
head, since a network without any head in a layer answers nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from study.theory.attention_paths.checks import Floats

Kept = NDArray[np.bool_]
"""(..., sum of H_l) bool: which heads are left."""

MOST_SUBSETS = 2**16
"""Of heads that are all tried; that is 16 heads."""

_AT_ONCE = 2**24
"""Outputs that are held at a time."""


def accuracy(outputs: Floats, labels: Floats) -> float:
    """The share of inputs whose label, -1 or +1, is the sign of the output; both (n,)."""
    return float((np.sign(outputs) == labels).mean())


def path_weights(kept: Kept, heads: Sequence[int]) -> Floats:
    """The factor of each path's output when only some heads are left.

    Args:
        kept: (M, sum of H_l), in each layer at least one.
        heads: (H_1, ..., H_L).

    Returns:
        (M, D), paths in C order: 0 without one of its heads.
    """
    weights = np.ones((len(kept), 1))
    start = 0
    for count in heads:
        layer = kept[:, start : start + count]
        scaled = layer * np.sqrt(count / layer.sum(axis=1, keepdims=True))
        weights = (weights[:, :, None] * scaled[:, None]).reshape(len(kept), -1)
        start += count
    return weights


def accuracies(by_path: Floats, labels: Floats, kept: Kept, heads: Sequence[int]) -> Floats:
    """The accuracy with each of M sets of heads.

    Args:
        by_path: (n, D), what each path adds to the output.
        labels: (n,), -1 or +1.
        kept: (M, sum of H_l).
        heads: (H_1, ..., H_L).

    Returns:
        (M,) fractions.
    """
    return _right(by_path, labels, kept, heads) / len(labels)


def _right(by_path: Floats, labels: Floats, kept: Kept, heads: Sequence[int]) -> NDArray[np.int64]:
    """How many inputs each set of heads gets right: (M,)."""
    step = max(1, _AT_ONCE // (len(labels) + by_path.shape[1]))
    parts = [kept[row : row + step] for row in range(0, len(kept), step)]
    outputs = (path_weights(part, heads) @ by_path.T for part in parts)
    return np.concatenate([(np.sign(each) == labels).sum(axis=1) for each in outputs])


def without_each_head(by_path: Floats, labels: Floats, heads: Sequence[int]) -> Floats:
    """The accuracy without each head alone: (sum of H_l,); 1/2 without the only one of a layer."""
    kept = ~np.eye(sum(heads), dtype=bool)
    only = np.repeat(heads, heads) == 1
    found = np.full(len(kept), 0.5)  # an output of 0 is a guess
    if not only.all():
        found[~only] = accuracies(by_path, labels, kept[~only], heads)
    return found


def removable(kept: Kept, heads: Sequence[int]) -> list[int]:
    """The heads (of one set, (sum of H_l,)) that are not the last one of their layer."""
    layers = np.repeat(np.arange(len(heads)), heads)
    left = np.bincount(layers[kept], minlength=len(heads))
    return [int(head) for head in np.flatnonzero(kept) if left[layers[head]] > 1]


def removal_order(heads: Sequence[int], next_of: Callable[[Kept, list[int]], int]) -> list[int]:
    """The order in which a rule removes heads, until each layer has one.

    Args:
        heads: (H_1, ..., H_L).
        next_of: (which are left, those that may be removed) -> the next one.

    Returns:
        sum of H_l - L heads.
    """
    kept = np.ones(sum(heads), dtype=bool)
    order: list[int] = []
    while candidates := removable(kept, heads):
        order.append(next_of(kept, candidates))
        kept[order[-1]] = False
    return order


def by_score(scores: Sequence[float], heads: Sequence[int]) -> list[int]:
    """The order from the lowest score to the highest; of equal ones the first head goes first."""
    return removal_order(heads, lambda _, candidates: min(candidates, key=lambda h: scores[h]))


def greedy(by_path: Floats, labels: Floats, heads: Sequence[int]) -> list[int]:
    """The order in which each next head is the one that leaves the highest accuracy.

    Of equal ones, the one that leaves the lowest squared error of the output.
    """

    def best(kept: Kept, candidates: list[int]) -> int:
        tried = np.repeat(kept[None], len(candidates), axis=0)
        tried[np.arange(len(candidates)), candidates] = False
        outputs = path_weights(tried, heads) @ by_path.T
        right = (np.sign(outputs) == labels).mean(axis=1)
        errors = ((outputs - labels) ** 2).mean(axis=1)
        return candidates[min(range(len(candidates)), key=lambda i: (-right[i], errors[i]))]

    return removal_order(heads, best)


def along(order: Sequence[int], count: int) -> Kept:
    """The heads left without the first k of an order, k = 0, 1, ...: (len(order) + 1, count)."""
    kept = np.ones((len(order) + 1, count), dtype=bool)
    for step, head in enumerate(order, start=1):
        kept[step:, head] = False
    return kept


def curve(by_path: Floats, labels: Floats, order: Sequence[int], heads: Sequence[int]) -> Floats:
    """The accuracy without the first k heads of an order: (len(order) + 1,)."""
    return accuracies(by_path, labels, along(order, sum(heads)), heads)


def random_curve(
    by_path: Floats, labels: Floats, heads: Sequence[int], draws: int, seed: int
) -> Floats:
    """The mean of `curve` over random orders: (sum of H_l - L + 1,)."""
    random = np.random.default_rng(seed)
    orders = [by_score(random.permutation(sum(heads)).tolist(), heads) for _ in range(draws)]
    kept = np.concatenate([along(order, sum(heads)) for order in orders])
    right = _right(by_path, labels, kept, heads).reshape(draws, -1)
    return right.sum(axis=0) / (draws * len(labels))


def best_curve(by_path: Floats, labels: Floats, heads: Sequence[int]) -> Floats:
    """The highest accuracy of all sets of heads of each size: (sum of H_l - L + 1,).

    No order can do better on these inputs.

    Raises:
        ValueError: there are more than `MOST_SUBSETS` sets.
    """
    if 2 ** sum(heads) > MOST_SUBSETS:
        raise ValueError(
            f"{sum(heads)} heads have more than {MOST_SUBSETS:,} subsets, which are all tried"
        )
    kept = np.array(list(_subsets(heads)))
    found = accuracies(by_path, labels, kept, heads)
    removed = (~kept).sum(axis=1)
    best = np.zeros(sum(heads) - len(heads) + 1)
    np.maximum.at(best, removed, found)
    return best


def _subsets(heads: Sequence[int]) -> Iterator[Kept]:
    """All sets of heads with at least one in each layer."""
    layers = [
        [part for part in itertools.product((True, False), repeat=count) if any(part)]
        for count in heads
    ]
    for parts in itertools.product(*layers):
        yield np.array(list(itertools.chain.from_iterable(parts)))
