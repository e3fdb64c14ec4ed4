"""The action's part from the data, ln det(K + T) + Y' (K + T)^-1 Y, and its derivatives.

Its derivative with respect to U^{pi pi'} is G = Tr[M C] - alpha' C alpha, where M = (K + T)^-1 and
alpha = M Y (arXiv 2405.15926); with respect to a factor R of U = R' R it is 2 R G. With L L' =
K + T and the features Phi^a (P, F) of a path, let B^{ab} = (L^-1 Phi^a)' L^-1 Phi^b and
beta^a = Phi^a' alpha. Then

    G^{ab} = Tr B^{ab} - beta^a' beta^b,
    dG^{ab} / dU^{cd} = 2 beta^a' B^{bc} beta^d - Tr[B^{ad}' B^{bc}], made symmetric in a and b.

K and G have two forms. `with_kernels` keeps the kernels of all pairs of paths, each as the upper
triangle of a symmetric matrix: K and G are then one product of a matrix with a vector each, of
about D^2 P^2 / 4 multiply-adds. `with_features` forms K = Z' Z from Z = R Phi', and G from the
diagonal of B; it takes P D F (P + 2 D) multiply-adds and keeps P D F numbers. A solution of few
paths with long features takes less time with kernels; one of many paths would mostly wait for
memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chapters.paths.attention_paths import arguments
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.attention_paths.features import pair_kernels
from chapters.paths.attention_paths.regression import Regression
from chapters.paths.attention_paths.size import Size


@dataclass(eq=False)
class DataTerm:
    """The data's part of the action.

    Attributes:
        features: (D F, P), path by path.
        labels: Y (P,).
        paths: D.
        temperature: T.
        kernel: factor R (D, D) -> K (P, P) of U = R' R, of which the upper triangle is read.
        derivative: the regression on K -> G (D, D).
        flops: spent so far; a multiply-add is 2.
    """

    features: Floats
    labels: Floats
    paths: int
    temperature: float
    kernel: Callable[[Floats], Floats]
    derivative: Callable[[Regression], Floats]
    flops: int = 0

    def at(self, factor: Floats) -> tuple[float, Floats]:
        """The value at U = R' R, and its derivative (D, D) with respect to the factor R.

        Raises:
            LinAlgError: K + T is not positive definite in float64.
        """
        self.flops += self._size.evaluation_flops
        regression = self._regression(factor)
        return regression.action, 2 * factor @ self.derivative(regression)

    def near(self, factor: Floats) -> Callable[[Floats], Floats]:
        """Stands in for the derivative that `at` gives, near a factor: takes G as linear in U.

        Where dG / dU takes too long, it is that derivative itself.

        Raises:
            LinAlgError: as `at`.
        """
        if not self._size.forms_curvature:
            return lambda other: self.at(other)[1]
        self.flops += self._size.curvature_flops
        slope, change = self._curvature(self._regression(factor))
        begin = factor.T @ factor

        def derivative(other: Floats) -> Floats:
            moved = (change @ (other.T @ other - begin).ravel()).reshape(slope.shape)
            return other @ (2 * slope + moved + moved.T)

        return derivative

    @property
    def _size(self) -> Size:
        length, samples = self.features.shape
        return Size(samples, self.paths, length // self.paths)

    def _regression(self, factor: Floats) -> Regression:
        return Regression(self.kernel(factor), self.labels, self.temperature)

    def _curvature(self, regression: Regression) -> tuple[Floats, Floats]:
        """G, and dG / dU (D^2, D^2) before it is made symmetric."""
        beta = (self.features @ regression.solved).reshape(self.paths, -1)
        whitened = regression.whitened(self.features)
        products = (whitened @ whitened.T).reshape(beta.shape * 2)  # B
        slope = np.einsum("aibi->ab", products) - beta @ beta.T
        change = 2 * np.einsum("ai,bicj,dj->abcd", beta, products, beta, optimize=True)
        blocks = products.transpose(0, 2, 1, 3).reshape(self.paths**2, -1)
        change -= np.einsum("bcad->abcd", (blocks @ blocks.T).reshape(change.shape))
        return slope, change.reshape(self.paths**2, -1)


def data_term(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """The form that suits the size.

    Args:
        features: (P, D, F).
        labels: (P,).
        temperature: > 0.

    Raises:
        MemoryError: it needs more memory than there is.
    """
    shorter = shortened(features)
    size = Size(*shorter.shape)
    what = f"solving for {size.samples} samples of {size.paths} paths"
    arguments.fits(size.memory, what)
    form = with_kernels if size.keeps_kernels else with_features
    return form(shorter, labels, temperature)


def shortened(features: Floats) -> Floats:
    """Features (P, D, F' <= F) with the same kernels, in a basis of the space that they span.

    Those of a grey image in three channels become three times as short.
    """
    flat = features.reshape(-1, features.shape[-1])
    values, vectors = np.linalg.eigh(flat.T @ flat)
    return features @ vectors[:, values > np.finfo(float).eps * values[-1]]


def with_kernels(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """Keeps the kernels of all pairs of paths; see the module."""
    samples, paths, size = features.shape
    entries, pairs = np.triu_indices(samples), np.triu_indices(paths)
    kernels = pair_kernels(features, features, entries)

    def kernel(factor: Floats) -> Floats:
        kernel = np.empty((samples, samples))
        kernel[entries] = (factor.T @ factor)[pairs] @ kernels
        return kernel

    def derivative(regression: Regression) -> Floats:
        weights = regression.slope()
        weights *= 2 - np.eye(samples)  # an entry off the diagonal stands for two
        slope = np.zeros((paths, paths))
        slope[pairs] = kernels @ weights[entries] / 2
        return slope + slope.T

    flops = 2 * len(kernels) * samples**2 * size
    return DataTerm(by_path(features), labels, paths, temperature, kernel, derivative, flops)


def with_features(features: Floats, labels: Floats, temperature: float) -> DataTerm:
    """Keeps the features; see the module."""
    paths, flat = features.shape[1], by_path(features)

    def kernel(factor: Floats) -> Floats:
        combined = (factor @ flat.reshape(paths, -1)).reshape(flat.shape)  # Z
        return combined.T @ combined

    def derivative(regression: Regression) -> Floats:
        beta = (flat @ regression.solved).reshape(paths, -1)
        whitened = regression.whitened(flat).reshape(paths, -1)
        return whitened @ whitened.T - beta @ beta.T

    return DataTerm(flat, labels, paths, temperature, kernel, derivative)


def by_path(features: Floats) -> Floats:
    """(D F, P) of (P, D, F)."""
    return np.ascontiguousarray(features.transpose(1, 2, 0)).reshape(-1, len(features))
