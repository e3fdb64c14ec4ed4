"""Rules that score heads without the theory: the higher the score, the more a head matters.

Heads are counted through all layers: those of the first layer come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import entr

from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.heads.pruning import Outputs


def weight_norm(weights: Floats) -> Floats:
    """The Frobenius norm of each head's weights, (L, H, ...): (L H,)."""
    return np.linalg.norm(weights.reshape(-1, weights[0, 0].size), axis=1)


def focus(attention: Floats) -> Floats:
    """1 - the mean entropy of a head's attention / ln T: from 0, all alike, to 1, one token.

    Args:
        attention: (H, P, T, T), [t, s], T >= 2; rows sum to 1.

    Returns:
        (H,).
    """
    entropies = entr(attention, dtype=np.float64).sum(axis=3).mean(axis=(1, 2))
    return 1 - entropies / math.log(attention.shape[-1])


def sensitivity(outputs: Outputs) -> Floats:
    """First-order importance (Michel et al., NeurIPS 2019, equation 2), for squared loss.

    E |d loss / d xi_h| at xi = 1, where xi_h multiplies head h. Here the output is the sum of what
    each path adds, so the derivative is 2 (f - y) times the sum over the paths through h.

    Returns:
        (sum of H_l,), each layer divided by its l2 norm, as there.
    """
    by_path = outputs.by_path.reshape(-1, *outputs.heads)
    slopes = 2 * (outputs.by_path.sum(axis=1) - outputs.labels)
    axes = range(1, by_path.ndim)
    through = [by_path.sum(axis=tuple(a for a in axes if a != axis)) for axis in axes]
    return by_layer([np.abs(slopes[:, None] * each).mean(axis=0) for each in through])


def by_layer(scores: Sequence[Floats]) -> Floats:
    """Scores (H_l,) of each layer divided by the layer's l2 norm: (sum of H_l,)."""
    return np.concatenate([each / (np.linalg.norm(each) or 1.0) for each in scores])
