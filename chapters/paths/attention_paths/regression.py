"""Regression of the labels on a kernel: what the Cholesky factor of K + T gives.

LAPACK is called directly: at a hundred samples SciPy's wrappers cost as much as the factorisation.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, lapack

from chapters.paths.attention_paths.arguments import Floats


class Regression:
    """The Gaussian process of a kernel, given the labels.

    Args:
        kernel: K (P, P), of which the upper triangle is read; overwritten.
        labels: Y (P,).
        temperature: T.

    Attributes:
        solved: alpha = (K + T)^-1 Y.

    Raises:
        LinAlgError: K + T is not positive definite in float64.
    """

    def __init__(self, kernel: Floats, labels: Floats, temperature: float) -> None:
        diagonal = np.einsum("pp->p", kernel)
        diagonal += temperature
        # A row-major upper triangle is LAPACK's lower one, which it factors faster than the other.
        self._triangle, failed = lapack.dpotrf(kernel.T, lower=1, clean=0, overwrite_a=1)
        if failed:
            raise LinAlgError("K + T is not positive definite in float64: raise the temperature.")
        self._labels = labels
        self.solved, _ = lapack.dpotrs(self._triangle, labels, lower=1)

    @property
    def action(self) -> float:
        """ln det(K + T) + Y' (K + T)^-1 Y: -2 ln p(Y), up to a constant."""
        logs = np.log(self._triangle.diagonal()).sum()
        return float(2 * logs + self._labels @ self.solved)

    def slope(self) -> Floats:
        """Its derivative (P, P) with respect to K, M - alpha alpha': the upper triangle."""
        weights = np.triu(lapack.dpotri(self._triangle, lower=1)[0].T)
        weights -= np.triu(np.outer(self.solved, self.solved))
        return weights

    def predict(self, across: Floats, own: Floats) -> tuple[Floats, Floats]:
        """Mean k*' (K + T)^-1 Y and variance k** - k*' (K + T)^-1 k*, (Q,) each.

        Args:
            across: k* (Q, P), of each input with the training samples.
            own: k** (Q,), of each with itself.
        """
        mean = across @ self.solved
        explained = self.whitened(across)
        # Below 0 there is rounding alone.
        return mean, np.maximum(own - np.einsum("qp,qp->q", explained, explained), 0)

    def whitened(self, rows: Floats) -> Floats:
        """L^-1 x of each row x (n, P), where L L' = K + T."""
        return lapack.dtrtrs(self._triangle, rows.T, lower=1)[0].T


def weighed(left: Floats, right: Floats, order_parameter: Floats) -> Floats:
    """K (A, B) = sum U^{pi pi'} Phi^pi . Phi^pi' of (A, D, F) and (B, D, F) features."""
    return (order_parameter @ left).reshape(len(left), -1) @ right.reshape(len(right), -1).T
