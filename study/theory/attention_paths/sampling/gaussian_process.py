"""The network given U: a Gaussian process with the kernel K = sum U^{pi pi'} C_{pi pi'}.

The samplers evaluate it at many U, so the path-path kernels C are multiplied out once where they
fit into memory.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError

from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.features import pair_kernels
from study.theory.attention_paths.regression import Regression
from study.theory.attention_paths.sampling.posterior import Posterior

MOST_ENTRIES = 2**26
"""Of precomputed kernels: half a gibibyte."""


class PathKernels:
    """The path-path kernels between two sets of inputs, to be weighted by U.

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
            self._kernels = np.empty((len(self._pairs[0]), entries))
            for kept, kernel in zip(self._kernels, pair_kernels(left, right), strict=True):
                kept[:] = kernel.ravel()
            self.setup_flops = 2 * entries * paths**2 * size
            self.flops = 2 * entries * len(self._pairs[0])

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
        try:
            return -self._regression(order_parameter).action / 2
        except LinAlgError:
            return -math.inf

    def predict(self, order_parameter: Floats) -> tuple[Floats, Floats]:
        """k*' (K + T)^-1 Y and k** - k*' (K + T)^-1 k*, each (Q,).

        Raises:
            LinAlgError: K + T is not positive definite in float64.
        """
        prior = np.tensordot(self._own, order_parameter)
        if math.isinf(self._temperature):
            return np.zeros_like(prior), prior
        return self._regression(order_parameter).predict(
            self._across.weighted(order_parameter), prior
        )

    def _regression(self, order_parameter: Floats) -> Regression:
        kernel = self._within.weighted(order_parameter)
        return Regression(kernel, self._labels, self._temperature)
