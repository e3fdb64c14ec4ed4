"""Accuracy of a network of attention paths when heads are removed, without training it again.

The output is a sum over paths, f = sum_pi f^pi, and a path needs all its heads. So what a network
without some heads puts out is the sum over the paths that are left, times the factor that
(H_l N)^(-1/2) becomes where a layer has fewer heads: sqrt(H_l / kept) a layer (arXiv 2405.15926,
section 4.2). All subsets of heads follow from one pass through the network.

Heads are counted through all layers: those of the first layer come first. A layer keeps its last
head, since a network without any head in a layer answers nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.paths.attention_paths.arguments import Floats

Kept = NDArray[np.bool_]
"""(..., sum of H_l) bool: which heads are left."""

MOST_SUBSETS = 2**16
"""Of heads that are all tried; that is 16 heads."""

_AT_ONCE = 2**24
"""Outputs that are held at a time."""


def _right(outputs: Floats, labels: Floats) -> Floats:
    """How many of the (..., n) outputs have the sign of their label (n,), -1 or +1.

    An output of 0 is a guess, right in half of the cases.
    """
    return (len(labels) + np.sign(outputs) @ labels) / 2


def accuracy(outputs: Floats, labels: Floats) -> float:
    """The share of inputs whose label, -1 or +1, is the sign of the output; both (n,).

    An output of 0 is a guess, right in half of the cases.
    """
    return float(_right(outputs, labels) / len(labels))


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


def right(by_path: Floats, labels: Floats, kept: Kept, heads: Sequence[int]) -> Floats:
    """How many inputs the network gets right with each of M sets of heads, as `accuracy` counts.

    Args:
        by_path: (n, D), what each path adds to the output.
        labels: (n,), -1 or +1.
        kept: (M, sum of H_l).
        heads: (H_1, ..., H_L).

    Returns:
        (M,) in [0, n].
    """
    step = max(1, _AT_ONCE // (len(labels) + by_path.shape[1]))
    found = np.empty(len(kept))
    for start in range(0, len(kept), step):
        part = slice(start, start + step)
        found[part] = _right(path_weights(kept[part], heads) @ by_path.T, labels)
    return found


def without_each_head(by_path: Floats, labels: Floats, heads: Sequence[int]) -> Floats:
    """The accuracy without each head alone: (sum of H_l,); 1/2 without the only one of a layer."""
    found = np.full(sum(heads), 0.5)  # an output of 0 is a guess
    kept = ~np.eye(sum(heads), dtype=bool)
    each = _removable(np.ones(sum(heads), dtype=bool), heads)
    found[each] = right(by_path, labels, kept[each], heads) / len(labels)
    return found


def _removable(kept: Kept, heads: Sequence[int]) -> NDArray[np.intp]:
    """The heads (of one set, (sum of H_l,)) that are not the last one of their layer."""
    layers = np.repeat(np.arange(len(heads)), heads)
    left = np.bincount(layers, weights=kept)
    return np.flatnonzero(kept & (left[layers] > 1))


def by_score(scores: ArrayLike, heads: Sequence[int]) -> list[int]:
    """The order from the lowest score to the highest; of equal ones the first head goes first.

    Args:
        scores: (sum of H_l,).
        heads: (H_1, ..., H_L).

    Returns:
        sum of H_l - L heads: each layer keeps the last one of its own.
    """
    order = np.argsort(scores, kind="stable")
    layers = np.repeat(np.arange(len(heads)), heads)[order]
    stays = {layer: step for step, layer in enumerate(layers.tolist())}
    return np.delete(order, list(stays.values())).tolist()


def greedy(by_path: Floats, labels: Floats, heads: Sequence[int]) -> list[int]:
    """The order in which each next head is the one that leaves the highest accuracy.

    Of equal ones, the one that leaves the lowest squared error of the output.
    """
    kept = np.ones(sum(heads), dtype=bool)
    order: list[int] = []
    while len(candidates := _removable(kept, heads)):
        tried = kept & ~np.eye(len(kept), dtype=bool)[candidates]
        outputs = path_weights(tried, heads) @ by_path.T
        errors = ((outputs - labels) ** 2).mean(axis=1)
        order.append(int(candidates[np.lexsort((errors, -_right(outputs, labels)))[0]]))
        kept[order[-1]] = False
    return order


def _along(order: Sequence[int], count: int) -> Kept:
    """The heads left without the first k of an order, k = 0, 1, ...: (len(order) + 1, count)."""
    kept = np.ones((len(order) + 1, count), dtype=bool)
    kept[:, order] = ~np.tri(len(order) + 1, len(order), -1, dtype=bool)
    return kept


def curve(by_path: Floats, labels: Floats, order: Sequence[int], heads: Sequence[int]) -> Floats:
    """The accuracy without the first k heads of an order: (len(order) + 1,)."""
    return right(by_path, labels, _along(order, sum(heads)), heads) / len(labels)


def random_curve(
    by_path: Floats, labels: Floats, heads: Sequence[int], draws: int, seed: int
) -> Floats:
    """The mean of `curve` over random orders: (sum of H_l - L + 1,)."""
    random = np.random.default_rng(seed)
    orders = [by_score(random.permutation(sum(heads)), heads) for _ in range(draws)]
    kept = np.concatenate([_along(order, sum(heads)) for order in orders])
    found = right(by_path, labels, kept, heads).reshape(draws, -1)
    return found.sum(axis=0) / (draws * len(labels))


def best_curve(by_path: Floats, labels: Floats, heads: Sequence[int]) -> Floats:
    """The highest accuracy of all sets of heads of each size: (sum of H_l - L + 1,).

    No order can do better on these inputs. A cell has at most `MOST_SUBSETS` sets.
    """
    count, starts = sum(heads), np.cumsum([0, *heads[:-1]])
    kept = (np.arange(2**count)[:, None] >> np.arange(count)) % 2 == 1
    kept = kept[np.logical_or.reduceat(kept, starts, axis=1).all(axis=1)]
    best = np.zeros(count - len(heads) + 1)
    np.maximum.at(best, (~kept).sum(axis=1), right(by_path, labels, kept, heads) / len(labels))
    return best
