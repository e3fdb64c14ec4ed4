"""Made-up attention, features and labels for the theory of attention paths."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Floats = NDArray[np.float64]


def maps(heads: Sequence[int], samples: int, tokens: int, seed: int = 0) -> list[Floats]:
    """Random attention, one (H_l, P, T, T) a layer."""
    random = np.random.default_rng(seed)
    return [softmax(random.normal(size=(h, samples, tokens, tokens)), axis=2) for h in heads]


def problem(samples: int, heads: Sequence[int], size: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Features (P, D, F) whose paths resemble each other, and labels (P,) of one direction."""
    random = np.random.default_rng(seed)
    paths = math.prod(heads)
    common = random.normal(size=(samples, 1, size))
    own = random.normal(size=(samples, paths, size))
    labels = np.where(common[:, 0, : size // 2].sum(axis=1) > 0, 1.0, -1.0)
    return (common + own) / math.sqrt(size * paths), labels
