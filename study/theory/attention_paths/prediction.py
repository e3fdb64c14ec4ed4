"""The predictor that an order parameter gives, and the kernel behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from study.theory.attention_paths import checks
from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.regression import Regression

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
    """

    features: Floats
    labels: Floats
    temperature: float
    order_parameter: Floats

    @cached_property
    def kernel(self) -> Floats:
        """K (P, P), of the training samples, without T."""
        return kernel(self.features, self.order_parameter)

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
        new = checks.finite("features", features, "QDF")
        if new.shape[1:] != self.features.shape[1:]:
            raise ValueError(
                f"features must be (Q, {', '.join(map(str, self.features.shape[1:]))}), "
                f"as in training, got {new.shape}."
            )
        parts = [self._predict(new[row : row + _ROWS]) for row in range(0, len(new), _ROWS)]
        means, variances = zip(*parts, strict=True)
        return np.concatenate(means), np.concatenate(variances)

    def _predict(self, new: Floats) -> tuple[Floats, Floats]:
        weighted = self.order_parameter @ new
        across = weighted.reshape(len(new), -1) @ self.features.reshape(len(self.labels), -1).T
        own = np.einsum("qdf,qdf->q", weighted, new)
        return self._regression.predict(across, own)

    @cached_property
    def _regression(self) -> Regression:
        return Regression(self.kernel.copy(), self.labels, self.temperature)


def kernel(features: ArrayLike, order_parameter: ArrayLike) -> Floats:
    """K = sum U^{pi pi'} C_{pi pi'}, without the kernels of single pairs.

    Args:
        features: (P, D, F).
        order_parameter: U (D, D).

    Returns:
        (P, P).

    Raises:
        ValueError: the shapes do not fit each other.
    """
    paths = checks.finite("features", features, "PDF")
    weights = checks.finite("order_parameter", order_parameter, "DD")
    if weights.shape != (paths.shape[1],) * 2:
        raise ValueError(f"{paths.shape[1]} paths need a square U, got {weights.shape}.")
    return (weights @ paths).reshape(len(paths), -1) @ paths.reshape(len(paths), -1).T


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
    matrix = checks.finite("kernel", kernel, "PP")
    targets = checks.labels(labels, len(matrix))
    if not targets.any():
        raise ValueError("labels must not all be 0.")
    _, components = np.linalg.eigh(matrix)
    return np.abs(components[:, ::-1].T @ targets) / np.linalg.norm(targets)


def gp_limit(
    features: ArrayLike, labels: ArrayLike, temperature: float, scale: float = 1.0
) -> Predictor:
    """The predictor of infinite width: cross-path kernels vanish, paths weigh equally.

    Args:
        features: (P, D, F).
        labels: (P,).
        temperature: T, > 0.
        scale: the product sigma_1^2 ... sigma_L^2 sigma_a^2, of the variances that `solve` takes;
            U is this times the identity.

    Raises:
        ValueError: an argument is not as above.
    """
    phi = checks.finite("features", features, "PDF")
    return Predictor(
        phi,
        checks.labels(labels, len(phi)),
        checks.positive("temperature", temperature),
        checks.positive("scale", scale) * np.eye(phi.shape[1]),
    )


def without_interplay(predictor: Predictor) -> Predictor:
    """The predictor with U's off-diagonal dropped: paths weigh unequally, but do not interact."""
    return Predictor(
        predictor.features,
        predictor.labels,
        predictor.temperature,
        np.diag(predictor.order_parameter.diagonal()),
    )
