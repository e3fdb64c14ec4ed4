"""The network given U: a Gaussian process with the kernel K = sum U^{pi pi'} C_{pi pi'}.

The samplers evaluate it at many U, so the path-path kernels C are multiplied out once where they
fit into memory.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.sampling.posterior import Posterior

MOST_ENTRIES = 2**26
"""Of precomputed kernels: half a gibibyte."""


class PathKernels:
    """The path-path kernels between two sets of inputs, to be weighted by U.

    C_{pi pi'} and C_{pi' pi} share a weight, so D (D + 1) / 2 sums of them are kept.

    Args:
        left: (A, D, F) features.
        right: (B, D, F) features.
    """

    def __init__(self, left: Floats, right: Floats) -> None:
        self._left, self._right = left, right
        paths, size = left.shape[1], left.shape[2]
        self._pairs = np.triu_indices(paths)
        self._shape = (len(left), len(right))
        entries = math.prod(self._shape)
        self._kernels: Floats | None = None
        self.setup_flops, self.flops = 0, 2 * entries * paths * size
        if entries * len(self._pairs[0]) <= MOST_ENTRIES:
            self._kernels = self._multiplied_out()
            self.setup_flops = 2 * entries * paths**2 * size
            self.flops = 2 * entries * len(self._pairs[0])

    def _multiplied_out(self) -> Floats:
        kernels = np.empty((len(self._pairs[0]), math.prod(self._shape)))
        for kernel, a, b in zip(kernels, *self._pairs, strict=True):
            kernel[:] = (self._left[:, a] @ self._right[:, b].T).ravel()
            if a != b:
                kernel += (self._left[:, b] @ self._right[:, a].T).ravel()
        return kernels

    def weighted(self, order_parameter: Floats) -> Floats:
        """(A, B) sum U C, of a symmetric (D, D) U; a new array."""
        if self._kernels is not None:
            return (order_parameter[self._pairs] @ self._kernels).reshape(self._shape)
        weighted = order_parameter @ self._right
        rows, columns = self._shape
        return self._left.reshape(rows, -1) @ weighted.reshape(columns, -1).T


class GaussianProcess:
    """Evidence and predictor of the labels, as functions of U.

    Args:
        posterior: the labels, their temperature and the training inputs.
        at: (Q, D, F) features of the inputs to predict at.
    """

    def __init__(self, posterior: Posterior, at: Floats) -> None:
        self._labels = posterior.labels
        self._temperature = posterior.temperature
        training = posterior.features
        self._within = PathKernels(training, training)
        self._across = PathKernels(at, training)
        self._own = np.einsum("qaf,qbf->qab", at, at)
        inputs, queries = len(training), len(at)
        solve = inputs**3 // 3 + 2 * inputs**2
        self.setup_flops = self._within.setup_flops + self._across.setup_flops + 2 * at.size
        self.evidence_flops = self._within.flops + solve
        self.prediction_flops = (
            self.evidence_flops + self._across.flops + queries * inputs * (inputs + 4)
        )

    def log_evidence(self, order_parameter: Floats) -> float:
        """log p(Y | U) up to a constant: -(ln det (K + T) + Y' (K + T)^-1 Y) / 2.

        Minus infinity if K + T is not positive definite in float64.
        """
        if math.isinf(self._temperature):
            return 0.0
        factor, failed = self._factor(order_parameter)
        if failed:
            return -math.inf
        weights, _ = dpotrs(factor, self._labels, lower=1)
        return float(-np.log(factor.diagonal()).sum() - self._labels @ weights / 2)

    def predict(self, order_parameter: Floats) -> tuple[Floats, Floats]:
        """k*' (K + T)^-1 Y and k** - k*' (K + T)^-1 k*, each (Q,).

        Raises:
            LinAlgError: K + T is not positive definite in float64.
        """
        prior = np.tensordot(self._own, order_parameter)
        if math.isinf(self._temperature):
            return np.zeros_like(prior), prior
        factor, failed = self._factor(order_parameter)
        if failed:
            raise LinAlgError("K + T is not positive definite in float64: raise the temperature.")
        weights, _ = dpotrs(factor, self._labels, lower=1)
        across = self._across.weighted(order_parameter)
        mean = across @ weights
        whitened, _ = dtrtrs(factor, across.T, lower=1, overwrite_b=1)
        return mean, prior - np.einsum("pq,pq->q", whitened, whitened)

    def _factor(self, order_parameter: Floats) -> tuple[Floats, int]:
        """Lower Cholesky factor of K + T, and 0 or where it failed.

        LAPACK is called directly: at P = 100 SciPy's wrappers cost as much as the factorisation.
        """
        kernel = self._within.weighted(order_parameter)
        kernel.flat[:: len(kernel) + 1] += self._temperature
        # The transpose of a symmetric matrix is itself, in the order that LAPACK overwrites.
        factor, failed = dpotrf(kernel.T, lower=1, clean=0, overwrite_a=1)
        return factor, failed
