"""Rules that score heads without the theory: the higher the score, the more a head matters.

Heads are counted through all layers: those of the first layer come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import entr

from chapters.paths.attention_paths.arguments import Floats


def weight_norm(weights: Sequence[Floats]) -> Floats:
    """The Frobenius norm of each head's weights.

    Args:
        weights: one (H_l, ...) a layer.

    Returns:
        (sum of H_l,).
    """
    return np.concatenate([np.linalg.norm(w.reshape(len(w), -1), axis=1) for w in weights])


def focus(attention: Floats) -> Floats:
    """1 - the mean entropy of a head's attention / ln T: from 0, all alike, to 1, one token.

    Args:
        attention: (H, P, T, T), [t, s], T >= 2; rows sum to 1.

    Returns:
        (H,).
    """
    entropies = entr(attention, dtype=np.float64).sum(axis=3).mean(axis=(1, 2))
    return 1 - entropies / math.log(attention.shape[-1])


def sensitivity(by_path: Floats, labels: Floats, heads: Sequence[int]) -> Floats:
    """First-order importance (Michel et al., NeurIPS 2019, equation 2), for squared loss.

    E |d loss / d xi_h| at xi = 1, where xi_h multiplies head h. Here the output is the sum of what
    each path adds, so the derivative is 2 (f - y) times the sum over the paths through h.

    Args:
        by_path: (n, D), what each path adds to the output, paths in C order.
        labels: (n,), -1 or +1.
        heads: (H_1, ..., H_L).

    Returns:
        (sum of H_l,), each layer divided by its l2 norm, as there.
    """
    outputs = by_path.reshape(len(by_path), *heads)
    slopes = 2 * (by_path.sum(axis=1) - labels)
    axes = range(1, len(heads) + 1)
    through = [outputs.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]
    return by_layer([np.abs(slopes[:, None] * each).mean(axis=0) for each in through])


def by_layer(scores: Sequence[Floats]) -> Floats:
    """Scores (H_l,) of each layer divided by the layer's l2 norm: (sum of H_l,)."""
    return np.concatenate([each / (np.linalg.norm(each) or 1.0) for each in scores])
