"""How much the order parameter uses each head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from study.theory.attention_paths import checks
from study.theory.attention_paths.checks import Floats


def head_scores(order_parameter: ArrayLike, heads: Sequence[int]) -> list[Floats]:
    """The sum of |U| over the pairs of paths that use a head, divided by the largest.

    A pair uses a head if one of its paths, or both, pass through it.

    Args:
        order_parameter: U (D, D), paths in C order.
        heads: (H_1, ..., H_L).

    Returns:
        One (H_l,) a layer, in [0, 1]; the largest of all layers is 1.

    Raises:
        ValueError: U is not of these heads' paths, or is 0.
    """
    size = checks.finite("order_parameter", order_parameter, "DD")
    if size.shape[0] != size.shape[1]:
        raise ValueError(f"order_parameter must be square, got {size.shape}.")
    counts = checks.heads(heads, len(size))
    size = np.abs(size)
    if not size.any():
        raise ValueError("order_parameter is 0: no head is used.")
    paths = np.indices(counts).reshape(len(counts), -1)  # (L, D): the head of each path
    scores = []
    for layer, count in enumerate(counts):
        passes = paths[layer] == np.arange(count)[:, None]  # (H_l, D)
        used = passes[:, :, None] | passes[:, None, :]
        scores.append(np.einsum("hde,de->h", used, size))
    largest = max(score.max() for score in scores)
    return [score / largest for score in scores]
