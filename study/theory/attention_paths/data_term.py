"""The action's part from the data, ln det(K + T) + Y' (K + T)^-1 Y, and its derivative.

Its derivative with respect to U^{pi pi'} is G = Tr[M C] - alpha' C alpha, where M = (K + T)^-1 and
alpha = M Y (arXiv 2405.15926); with respect to a factor R of U = R' R it is 2 R G.

There are two forms. `Kernels` keeps the kernels of all pairs of paths, each as the upper triangle
of a symmetric matrix: K and G are then one product of a matrix with a vector each, of about
D^2 P^2 / 4 multiply-adds. `Factors` forms K = Z Z' from Z = R Phi, and 2 R G from
(M - alpha alpha') Z; it keeps P D F numbers and takes 2 P D F (P + D) multiply-adds. A solution of
few paths with long features takes a half to a seventh of the time with kernels; one of many paths
would mostly wait for memory.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.features import pair_kernels
from study.theory.attention_paths.regression import Regression

KERNEL_BYTES = 2**30
"""Up to here kernels may be kept."""

KERNEL_SHARE = 8
"""Kernels of so many paths as F / 8 (were P infinite) take as long as factors do, in a solution of
40 evaluations: measured on one core, F from 8 to 231, D from 4 to 256."""


class DataTerm(Protocol):
    """Value and derivative, with what they cost.

    Attributes:
        setup_flops: to prepare; a multiply-add is 2.
        flops: of an evaluation.
    """

    setup_flops: int
    flops: int

    def __call__(self, factor: Floats) -> tuple[float, Floats]:
        """The value at U = R' R, and its derivative (D, D) with respect to R (D, D)."""
        ...


def data_term(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """The form that suits the size.

    Args:
        features: (P, D, F).
        labels: (P,).
        temperature: > 0.
    """
    form = Kernels if keeps_kernels(*features.shape) else Factors
    return form(features, labels, temperature)


def keeps_kernels(samples: int, paths: int, size: int) -> bool:
    """Whether `Kernels` is the faster form, and small enough.

    Args:
        samples: P.
        paths: D.
        size: F.
    """
    faster = KERNEL_SHARE * samples * paths <= size * (samples + paths)
    return faster and kernel_bytes(samples, paths) <= KERNEL_BYTES


def kernel_bytes(samples: int, paths: int) -> int:
    """What `Kernels` keeps."""
    return 2 * samples * (samples + 1) * paths * (paths + 1)


def memory(samples: int, paths: int, size: int) -> int:
    """Bytes that `solve` takes, besides its arguments.

    Args:
        samples: P.
        paths: D.
        size: F.
    """
    kept = kernel_bytes(samples, paths)
    if not keeps_kernels(samples, paths, size):
        kept = 3 * 8 * samples * paths * size  # features, Z and M Z
    searched = 25 * 8 * paths**2  # L-BFGS's pairs of points and gradients, and the factors
    return kept + 6 * 8 * samples**2 + searched


class Kernels:
    """Keeps the kernels of all pairs of paths. See `DataTerm`."""

    def __init__(self, features: Floats, labels: Floats, temperature: float) -> None:
        samples, paths, size = features.shape
        self._labels, self._temperature = labels, temperature
        self._entries = np.triu_indices(samples)
        self._pairs = np.triu_indices(paths)
        self._kernels = np.empty((len(self._pairs[0]), len(self._entries[0])))
        for kept, kernel in zip(self._kernels, pair_kernels(features, features), strict=True):
            kept[:] = kernel[self._entries]
        self.setup_flops = 2 * len(self._pairs[0]) * samples**2 * size
        self.flops = 4 * self._kernels.size + _matrix_flops(samples) + 4 * paths**3

    def __call__(self, factor: Floats) -> tuple[float, Floats]:
        """See `DataTerm`."""
        order_parameter = factor.T @ factor
        kernel = np.empty((len(self._labels),) * 2)
        kernel[self._entries] = order_parameter[self._pairs] @ self._kernels
        regression = Regression(kernel, self._labels, self._temperature)
        weights = regression.slope()
        weights *= 2 - np.eye(len(weights))  # an entry off the diagonal stands for two
        sums = self._kernels @ weights[self._entries]
        slope = np.zeros_like(order_parameter)
        slope[self._pairs] = sums / 2
        slope += slope.T
        return regression.action, 2 * factor @ slope


class Factors:
    """Keeps the features. See `DataTerm`."""

    def __init__(self, features: Floats, labels: Floats, temperature: float) -> None:
        samples, paths, size = features.shape
        self._labels, self._temperature = labels, temperature
        self._features = np.ascontiguousarray(features.transpose(1, 0, 2))  # (D, P, F)
        self.setup_flops = 0
        products = 4 * samples * paths**2 * size + 4 * samples**2 * paths * size
        self.flops = products + _matrix_flops(samples)

    def __call__(self, factor: Floats) -> tuple[float, Floats]:
        """See `DataTerm`."""
        flat = self._features.reshape(len(factor), -1)
        combined = (factor @ flat).reshape(self._features.shape)  # Z
        kernel = np.zeros((len(self._labels),) * 2)
        for each in combined:
            kernel += each @ each.T
        regression = Regression(kernel, self._labels, self._temperature)
        weights = regression.slope()
        weights += np.triu(weights, 1).T
        weights *= 2  # here, and not on the product, which is larger
        slope = np.matmul(weights, combined).reshape(len(factor), -1) @ flat.T
        return regression.action, slope


def _matrix_flops(samples: int) -> int:
    """Cholesky factor, inverse and two solves, to leading order."""
    return 2 * samples**3 + 4 * samples**2
