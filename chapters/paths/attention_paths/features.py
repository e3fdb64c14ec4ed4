"""Features of the attention paths, and the kernels between paths.

A path pi = (h_1, ..., h_L) takes one head a layer. What a token sequence x passes on along it is
xi^pi = x A^{1 h_1} ... A^{L h_L} r, where r reads the last token or the mean of all; its feature
is Phi^pi = sigma_0 xi^pi / sqrt(N_0 D) (arXiv 2405.15926, section 2). sigma_0 = 1 here: multiply
the features by another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from chapters.paths.attention_paths import arguments
from chapters.paths.attention_paths.arguments import Floats

Readout = Literal["last", "mean"]


def path_features(
    inputs: ArrayLike, attention: Sequence[ArrayLike], readout: Readout = "last"
) -> Floats:
    """Phi of every path.

    The readout vector r goes back through the attention, from the last layer to the first. So
    each path costs T^2 multiply-adds a sample, and no T x T matrices are multiplied.

    Args:
        inputs: (P, N_0, T), tokens in columns.
        attention: one (H_l, P, T, T) a layer, [s, t]: what token t takes from token s. Columns
            sum to 1.
        readout: "last" token, or "mean" over tokens.

    Returns:
        (P, D, N_0), D = H_1 ... H_L; paths in C order, h_1 slowest.

    Raises:
        ValueError: an argument is not as above.
    """
    if readout not in ("last", "mean"):
        raise ValueError(f"readout must be 'last' or 'mean', got {readout!r}.")
    x = arguments.finite("inputs", inputs, "PNT")
    samples, size, tokens = x.shape
    layers = arguments.attention(attention, samples, tokens)
    last = layers[-1][..., -1] if readout == "last" else layers[-1].mean(axis=-1)
    weights = last.transpose(1, 2, 0)  # (P, T, paths from here to the readout)
    for layer in reversed(layers[:-1]):
        longer = layer @ weights  # (H, P, T, paths)
        weights = longer.transpose(1, 2, 0, 3).reshape(samples, tokens, -1)
    paths = weights.shape[-1]
    scale = 1 / np.sqrt(size * paths)
    return np.ascontiguousarray((scale * (x @ weights)).transpose(0, 2, 1))


def pair_kernels(left: Floats, right: Floats, entries: Any = ...) -> Floats:
    """What each entry on and above the diagonal of a symmetric U weighs, row by row.

    With C_{pi pi'} = Phi^pi . Phi^pi' that is C_{pi pi}, and C_{pi pi'} + C_{pi' pi} off the
    diagonal: K = sum U^{pi pi'} C_{pi pi'} is the sum over D (D + 1) / 2 of them, a product of
    U[np.triu_indices(D)] with this.

    Args:
        left: (A, D, F) features.
        right: (B, D, F) features.
        entries: index of those of each (A, B) kernel that are kept; all, if it is left out.

    Returns:
        (D (D + 1) / 2, entries).
    """
    pairs = np.triu_indices(left.shape[1])
    count = np.empty((len(left), len(right)), bool)[entries].size
    kept = np.empty((len(pairs[0]), count))
    for row, one, other in zip(kept, *pairs, strict=True):
        kernel = left[:, one] @ right[:, other].T
        if one != other:
            kernel += kernel.T.copy() if left is right else left[:, other] @ right[:, one].T
        row[:] = kernel[entries].ravel()
    return kept
