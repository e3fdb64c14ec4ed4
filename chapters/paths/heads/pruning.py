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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chapters.paths.attention_paths.arguments import Floats

Kept = NDArray[np.bool_]
"""(..., sum of H_l) bool: which heads are left."""

MOST_SUBSETS = 2**16
"""Of heads that are all tried; that is 16 heads."""

_AT_ONCE = 2**24
"""Outputs that are held at a time."""


def accuracy(outputs: Floats, labels: Floats) -> float:
    """The share of inputs whose label, -1 or +1, is the sign of the output; both (n,).

    An output of 0 is a guess, right in half of the cases.
    """
    return float(_right(outputs, labels) / len(labels))


def _right(outputs: Floats, labels: Floats) -> Floats:
    """How many of the (..., n) outputs have the sign of their label (n,), as in `accuracy`."""
    return (len(labels) + np.sign(outputs) @ labels) / 2


def path_weights(kept: Kept, heads: Sequence[int]) -> Floats:
    """The factor of each path's output when only some heads are left.

    Args:
        kept: (M, sum of H_l).
        heads: (H_1, ..., H_L).

    Returns:
        (M, D), paths in C order: 0 without one of its heads.
    """
    weights = np.ones((len(kept), 1))
    for layer in np.split(kept, np.cumsum(heads[:-1]), axis=1):
        left = np.maximum(layer.sum(axis=1, keepdims=True), 1)
        scaled = layer * np.sqrt(layer.shape[1] / left)
        weights = (weights[:, :, None] * scaled[:, None]).reshape(len(kept), -1)
    return weights


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


@dataclass(frozen=True, eq=False)
class Outputs:
    """What a network puts out on some inputs, path by path, with all heads and without some.

    Attributes:
        by_path: (n, D), what each path adds to the output, paths in C order.
        labels: (n,), -1 or +1.
        heads: (H_1, ..., H_L).
    """

    by_path: Floats
    labels: Floats
    heads: Sequence[int]

    @property
    def whole(self) -> dict[str, Any]:
        """Of the network with all heads: columns of `study.results.EVALUATIONS_SCHEMA`.

        `loss`, the mean squared error; `accuracy`; and `num_evaluated`.
        """
        outputs = self.by_path.sum(axis=1)
        return {
            "num_evaluated": len(self.labels),
            "loss": float(np.mean((outputs - self.labels) ** 2)),
            "accuracy": accuracy(outputs, self.labels),
        }

    def without_each_head(self) -> Floats:
        """The accuracy without each head alone: (sum of H_l,); 1/2 without all of a layer."""
        return self._right(~np.eye(sum(self.heads), dtype=bool)) / len(self.labels)

    def curve(self, order: Sequence[int]) -> Floats:
        """The accuracy without the first k heads of an order: (len(order) + 1,)."""
        return self._right(self._along(order)) / len(self.labels)

    def random_curve(self, draws: int, seed: int) -> Floats:
        """The mean of `curve` over random orders: (sum of H_l - L + 1,)."""
        random = np.random.default_rng(seed)
        scores = (random.permutation(sum(self.heads)) for _ in range(draws))
        kept = np.concatenate([self._along(by_score(each, self.heads)) for each in scores])
        right = self._right(kept).reshape(draws, -1)
        return right.sum(axis=0) / (draws * len(self.labels))

    def best_curve(self) -> Floats:
        """The highest accuracy of all sets of heads of each size: (sum of H_l - L + 1,).

        No order can do better on these inputs. A cell has at most `MOST_SUBSETS` sets.
        """
        count, starts = sum(self.heads), np.cumsum([0, *self.heads[:-1]])
        kept = (np.arange(2**count)[:, None] >> np.arange(count)) % 2 == 1
        kept = kept[np.logical_or.reduceat(kept, starts, axis=1).all(axis=1)]
        best = np.zeros(count - len(self.heads) + 1)
        np.maximum.at(best, (~kept).sum(axis=1), self._right(kept) / len(self.labels))
        return best

    def greedy(self) -> list[int]:
        """The order in which each next head is the one that leaves the highest accuracy.

        Of equal ones, the one that leaves the lowest squared error of the output.
        """
        kept, order = np.ones(sum(self.heads), dtype=bool), []
        layers = np.repeat(np.arange(len(self.heads)), self.heads)
        while (removable := kept & (np.bincount(layers, weights=kept)[layers] > 1)).any():
            tried = kept & ~np.eye(len(kept), dtype=bool)[removable]
            outputs = path_weights(tried, self.heads) @ self.by_path.T
            errors = ((outputs - self.labels) ** 2).mean(axis=1)
            best = np.lexsort((errors, -_right(outputs, self.labels)))[0]
            order.append(int(np.flatnonzero(removable)[best]))
            kept[order[-1]] = False
        return order

    def _along(self, order: Sequence[int]) -> Kept:
        """The heads left without the first k of an order, k = 0, 1, ...."""
        kept = np.ones((len(order) + 1, sum(self.heads)), dtype=bool)
        kept[:, order] = ~np.tri(len(order) + 1, len(order), -1, dtype=bool)
        return kept

    def _right(self, kept: Kept) -> Floats:
        """How many inputs the network gets right with each of M sets of heads: (M,) in [0, n]."""
        parts = range(0, len(kept), max(1, _AT_ONCE // sum(self.by_path.shape)))
        right = [
            _right(path_weights(part, self.heads) @ self.by_path.T, self.labels)
            for part in np.split(kept, parts[1:])
        ]
        return np.concatenate(right)
