"""The action's part from the data, ln det(K + T) + Y' (K + T)^-1 Y, and its derivative.

Its derivative with respect to U^{pi pi'} is G = Tr[M C] - alpha' C alpha, where M = (K + T)^-1 and
alpha = M Y (arXiv 2405.15926); with respect to a factor R of U = R' R it is 2 R G.

There are two forms. `with_kernels` keeps the kernels of all pairs of paths, each as the upper
triangle of a symmetric matrix: K and G are then one product of a matrix with a vector each, of
about D^2 P^2 / 4 multiply-adds. `with_features` forms K = Z Z' from Z = R Phi, and 2 R G from
(M - alpha alpha') Z; it keeps P D F numbers and takes 2 P D F (P + D) multiply-adds. A solution of
few paths with long features takes a half to a seventh of the time with kernels; one of many paths
would mostly wait for memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from study.theory.attention_paths.arguments import Floats
from study.theory.attention_paths.features import pair_kernels
from study.theory.attention_paths.regression import Regression

KERNEL_BYTES = 2**30
"""Up to here kernels may be kept."""

KERNEL_SHARE = 8
"""Kernels of so many paths as F / 8 (were P infinite) take as long as factors do, in a solution of
40 evaluations: measured on one core, F from 8 to 231, D from 4 to 256."""


class DataTerm(NamedTuple):
    """The data's part of the action, with what it costs.

    Attributes:
        at: factor R (D, D) -> the value at U = R' R, and its derivative (D, D) with respect to R.
        setup_flops: to prepare; a multiply-add is 2.
        flops: of an evaluation.
    """

    at: Callable[[Floats], tuple[float, Floats]]
    setup_flops: int
    flops: int


def data_term(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """The form that suits the size.

    Args:
        features: (P, D, F).
        labels: (P,).
        temperature: > 0.
    """
    form = with_kernels if keeps_kernels(*features.shape) else with_features
    return form(features, labels, temperature)


def keeps_kernels(samples: int, paths: int, size: int) -> bool:
    """Whether kernels of P samples, D paths and F features are small, and the faster form."""
    faster = KERNEL_SHARE * samples * paths <= size * (samples + paths)
    return faster and kernel_bytes(samples, paths) <= KERNEL_BYTES


def kernel_bytes(samples: int, paths: int) -> int:
    """What the kernels of all pairs take."""
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


def with_kernels(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """Keeps the kernels of all pairs of paths; see the module."""
    samples, paths, size = features.shape
    entries, pairs = np.triu_indices(samples), np.triu_indices(paths)
    kernels = pair_kernels(features, features, entries)

    def at(factor: Floats) -> tuple[float, Floats]:
        kernel = np.empty((samples, samples))
        kernel[entries] = (factor.T @ factor)[pairs] @ kernels
        regression = Regression(kernel, labels, temperature)
        weights = regression.slope()
        weights *= 2 - np.eye(samples)  # an entry off the diagonal stands for two
        slope = np.zeros((paths, paths))
        slope[pairs] = kernels @ weights[entries] / 2
        return regression.action, 2 * factor @ (slope + slope.T)

    setup_flops = 2 * len(kernels) * samples**2 * size
    return DataTerm(at, setup_flops, 4 * kernels.size + _matrix_flops(samples) + 4 * paths**3)


def with_features(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """Keeps the features; see the module."""
    samples, paths, size = features.shape
    by_path = np.ascontiguousarray(features.transpose(1, 0, 2))
    flat = by_path.reshape(paths, -1)

    def at(factor: Floats) -> tuple[float, Floats]:
        combined = (factor @ flat).reshape(by_path.shape)  # Z
        kernel = np.zeros((samples, samples))
        for each in combined:
            kernel += each @ each.T
        regression = Regression(kernel, labels, temperature)
        weights = regression.slope()
        weights += np.triu(weights, 1).T
        weights *= 2  # here, and not on the product, which is larger
        return regression.action, np.matmul(weights, combined).reshape(paths, -1) @ flat.T

    products = 4 * samples * paths**2 * size + 4 * samples**2 * paths * size
    return DataTerm(at, 0, products + _matrix_flops(samples))


def _matrix_flops(samples: int) -> int:
    """Cholesky factor, inverse and two solves, to leading order."""
    return 2 * samples**3 + 4 * samples**2
