"""The predictor that an order parameter gives, the kernel behind it, and how it uses heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from chapters.paths.attention_paths import arguments
from chapters.paths.attention_paths.action import heads_of
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.attention_paths.regression import Regression, weighed

_ROWS = 256
"""Test samples that are predicted at once, so that memory does not grow with their number."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """The Gaussian process of the kernel K = sum U^{pi pi'} C_{pi pi'} (arXiv 2405.15926).

    Attributes:
        features: (P, D, F), of the training samples.
        labels: Y (P,).
        temperature: T, > 0.
        order_parameter: U (D, D), symmetric, positive definite.
        iterations, flops: of the search that found U; none, unless it says otherwise.
        residual, converged: of the search, likewise.
    """

    iterations = flops = 0
    residual, converged = 0.0, True

    features: Floats
    labels: Floats
    temperature: float
    order_parameter: Floats

    @cached_property
    def kernel(self) -> Floats:
        """K (P, P), of the training samples, without T."""
        return weighed(self.features, self.features, self.order_parameter)

    def predict(self, features: ArrayLike) -> tuple[Floats, Floats]:
        """Mean k*' (K + T)^-1 Y and variance k** - k*' (K + T)^-1 k* of f.

        Args:
            features: (Q, D, F).

        Returns:
            (Q,) and (Q,); the variance is that of the network's output, without T.

        Raises:
            ValueError: the features are not finite, or not of these paths and this size.
            LinAlgError: K + T is not positive definite in float64.
        """
        _, paths, size = self.features.shape
        new = arguments.finite("features", features, "QDF", D=paths, F=size)
        parts = [self._predict(new[row : row + _ROWS]) for row in range(0, len(new), _ROWS)]
        means, variances = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def _predict(self, new: Floats) -> tuple[Floats, Floats]:
        own = np.einsum("qdf,qdf->q", self.order_parameter @ new, new)
        across = weighed(new, self.features, self.order_parameter)
        return self._regression.predict(across, own)

    @cached_property
    def _regression(self) -> Regression:
        return Regression(self.kernel.copy(), self.labels, self.temperature)


def overlaps(kernel: ArrayLike, labels: ArrayLike) -> Floats:
    """|cosine| of each principal component of a kernel with the labels.

    Args:
        kernel: (P, P), symmetric.
        labels: (P,), not all 0.

    Returns:
        (P,) in [0, 1], by falling eigenvalue; the squares sum to 1.

    Raises:
        ValueError: the shapes do not fit each other, or all labels are 0.
    """
    matrix = arguments.finite("kernel", kernel, "PP")
    targets = arguments.finite("labels", labels, "P", P=len(matrix))
    if not targets.any():
        raise ValueError("labels must not all be 0.")
    _, components = np.linalg.eigh(matrix)
    return np.abs(components[:, ::-1].T @ targets) / np.linalg.norm(targets)


def gp_limit(features: ArrayLike, labels: ArrayLike, temperature: float) -> Predictor:
    """The predictor of infinite width: cross-path kernels vanish, paths weigh equally.

    U is the identity, as all variances are 1; `solve` takes others, at infinite width, too.

    Args:
        features: (P, D, F).
        labels: (P,).
        temperature: T, > 0.

    Raises:
        ValueError: an argument is not as above.
    """
    phi = arguments.finite("features", features, "PDF")
    return Predictor(
        features=phi,
        labels=arguments.finite("labels", labels, "P", P=len(phi)),
        temperature=arguments.positive("temperature", temperature),
        order_parameter=np.eye(phi.shape[1]),
    )


def without_interplay(predictor: Predictor) -> Predictor:
    """The predictor with U's off-diagonal dropped: paths weigh unequally, but do not interact."""
    diagonal = np.diag(predictor.order_parameter.diagonal())
    return Predictor(predictor.features, predictor.labels, predictor.temperature, diagonal)


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
    size = np.abs(arguments.finite("order_parameter", order_parameter, "DD"))
    counts = heads_of(heads, len(size))
    if not size.any():
        raise ValueError("order_parameter is 0: no head is used.")
    paths = np.indices(counts).reshape(len(counts), -1)  # (L, D): the head of each path
    scores = []
    for layer, count in zip(paths, counts, strict=True):
        passes = layer == np.arange(count)[:, None]  # (H_l, D)
        used = passes[:, :, None] | passes[:, None, :]
        scores.append(np.einsum("hde,de->h", used, size))
    largest = max(score.max() for score in scores)
    return [score / largest for score in scores]
