"""The order parameter as nested factors, and its part of the action that the prior gives.

U_1 = U, ..., U_L and U_{L+1} = U_a (a number) are written as U_l = R_l' R_l with

    R_l = C_l (I_{H_l} (x) R_{l+1}),     R_{L+2} = 1,     S_l = C_l' C_l,     C_l upper triangular.

Then Tr[U_{l+1}^-1 u_l] = Tr S_l and ln det U_l - H_l ln det U_{l+1} = ln det S_l, so that the
action of arXiv 2405.15926 without its part from the data is a sum over layers,

    sum_l N_l (Tr S_l / sigma_l^2 - ln det S_l),

whose minimum S_l = sigma_l^2 I is the Gaussian-process limit. The point of the search has, for
each layer, the entries of C_l / sigma_l - I times sqrt(N_l), above the diagonal; on the diagonal
the logarithms, times sqrt(2 N_l). In these coordinates the prior's Hessian at its minimum is
twice the identity for every width, so one scale fits all layers, and an infinite width needs no
case of its own: its point does not move C.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky

from chapters.paths.attention_paths import arguments
from chapters.paths.attention_paths.arguments import Floats


@dataclass(frozen=True)
class Architecture:
    """What determines the prior of the order parameter.

    Attributes:
        heads: (H_1, ..., H_L).
        widths: (N_1, ..., N_L, N_a), each >= 1 or infinite.
        variances: (sigma_1^2, ..., sigma_L^2, sigma_a^2).
    """

    heads: tuple[int, ...]
    widths: tuple[float, ...]
    variances: tuple[float, ...]

    @classmethod
    def of(
        cls,
        paths: int,
        heads: Sequence[int],
        width: float | Sequence[float],
        variance: float | Sequence[float],
    ) -> Architecture:
        """The architecture of D paths; width and variance of all layers, or one for each.

        Raises:
            ValueError: a value is out of range, or the heads make other paths.
        """
        counts = heads_of(heads, paths)
        widths = arguments.layered("width", width, len(counts))
        if not min(widths) >= 1 or any(map(math.isnan, widths)):
            raise ValueError(f"width must be >= 1, or infinity for the limit, got {width}.")
        variances = arguments.layered("variance", variance, len(counts))
        return cls(
            counts, widths, tuple(arguments.positive("variance", each) for each in variances)
        )

    @functools.cached_property
    def sizes(self) -> tuple[int, ...]:
        """(D_1, ..., D_L, 1): D_l = H_l ... H_L, the paths from layer l to the readout."""
        return tuple(math.prod(self.heads[layer:]) for layer in range(len(self.heads) + 1))

    @property
    def parameters(self) -> int:
        """The length of a point."""
        return sum(size * (size + 1) // 2 for size in self.sizes)

    def layers(self, point: Floats) -> Iterator[_Layer]:
        """The layers at a point (parameters,), from the first to the readout."""
        start = 0
        for size, width, variance in zip(self.sizes, self.widths, self.variances, strict=True):
            part = point[start : start + size * (size + 1) // 2]
            start += len(part)
            yield _Layer(part, size, width, variance)


def heads_of(heads: Sequence[int], paths: int) -> tuple[int, ...]:
    """(H_1, ..., H_L), which make so many paths.

    Raises:
        ValueError: they do not.
    """
    counts = tuple(np.atleast_1d(heads).tolist())
    if not counts or not all(isinstance(count, int) and count >= 1 for count in counts):
        raise ValueError(
            f"heads must be whole numbers >= 1, one per layer, such as (2, 2), got {heads}."
        )
    if math.prod(counts) != paths:
        raise ValueError(
            f"heads {counts} make {math.prod(counts)} paths, but the features have {paths}. Give "
            "every path its feature (path_features does), and leave out a head that no path uses."
        )
    return counts


@functools.lru_cache(maxsize=16)  # a search asks for the same few at every point
def _triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.triu_indices(size)


class _Layer:
    """C_l at its part of a point, and its term N_l (Tr S_l / sigma_l^2 - ln det S_l)."""

    def __init__(self, part: Floats, size: int, width: float, variance: float) -> None:
        self._part, self._width, self._variance = part, width, variance
        self._entries = _triangle(size)
        self._on = self._entries[0] == self._entries[1]
        self._step = 1 / math.sqrt(width)
        self._logs = math.sqrt(2) * self._step * part[self._on]  # ln S_ii / sigma^2, of a diagonal
        core = np.zeros((size, size))
        core[self._entries] = part * self._step
        np.fill_diagonal(core, np.exp(core.diagonal() / math.sqrt(2)))
        self.core = core * math.sqrt(variance)

    def prior(self) -> tuple[float, float]:
        """The term less its value at S = sigma^2 I: of the entries above the diagonal, and on it.

        No large numbers cancel, whatever the width; an infinite one gives the limit.
        """
        on, off = self._part[self._on], self._part[~self._on]
        if self._step:
            return off @ off, np.sum(np.expm1(self._logs) - self._logs) / self._step**2
        return off @ off, on @ on

    def gradient(self, slope: Floats) -> Floats:
        """Derivative of the action with respect to the part.

        Args:
            slope: derivative of the data's term with respect to C.
        """
        own = slope[self._entries] * (self._step * math.sqrt(self._variance)) + 2 * self._part
        moved = slope.diagonal() * self.core.diagonal() * self._step / math.sqrt(2)
        growth = np.expm1(self._logs) / self._step if self._step else self._part[self._on] * 2**0.5
        own[self._on] = moved + math.sqrt(2) * growth
        return own

    def residual(self, slope: Floats) -> float:
        """How far S / sigma^2 = I - C' slope / 2 N is from holding: there the derivative vanishes.

        The largest entry of the difference; `slope` as in `gradient`.
        """
        moved = self.core / self._variance + slope / (2 * self._width)
        return float(np.abs(self.core.T @ moved - np.eye(len(self.core))).max())


class Nested:
    """The order parameters at a point, and the derivatives there.

    Args:
        architecture: whose factors.
        point: (parameters,), see the module.

    Attributes:
        factors: R_1, ..., R_L, R_{L+1}; U = R_1' R_1.
    """

    def __init__(self, architecture: Architecture, point: Floats) -> None:
        self._heads, self._layers = architecture.heads, list(architecture.layers(point))
        self.factors = [self._layers[-1].core]
        for layer in self._layers[-2::-1]:
            self.factors.insert(0, times_blocks(layer.core, self.factors[0]))

    @property
    def hidden(self) -> tuple[Floats, ...]:
        """U_1, ..., U_L, U_a, each (D_l, D_l)."""
        return tuple(factor.T @ factor for factor in self.factors)

    def action(self, value: float, slope: Floats) -> tuple[float, Floats, float]:
        """The action, its derivative with respect to the point, and how far from 0 that is.

        Args:
            value: of the data's part.
            slope: its derivative with respect to R_1.
        """
        slopes = []
        for layer, below, heads in zip(self._layers, self.factors[1:], self._heads, strict=False):
            slopes.append(times_blocks(slope, below.T))
            blocks = (heads, len(below)) * 2
            slope = np.einsum("hihj->ij", (layer.core.T @ slope).reshape(blocks))
        pairs = list(zip(self._layers, [*slopes, slope], strict=True))
        return (
            value + float(sum(term for layer in self._layers for term in layer.prior())),
            np.concatenate([layer.gradient(each) for layer, each in pairs]),
            max(layer.residual(each) for layer, each in pairs),
        )


def point_at(architecture: Architecture, hidden: Sequence[Floats]) -> Floats:
    """The point whose U_1, ..., U_L, U_a are these; a layer of infinite width stays at its limit.

    Args:
        architecture: of the point.
        hidden: each (D_l, D_l), positive definite.
    """
    parts = []
    factors = [*map(cholesky, hidden), np.eye(1)]
    above = zip(factors, factors[1:], architecture.widths, architecture.variances, strict=False)
    for factor, below, width, variance in above:
        core = times_blocks(factor / math.sqrt(variance), np.linalg.inv(below))
        np.fill_diagonal(core, math.sqrt(2) * np.log(core.diagonal()))
        entries = core[np.triu_indices(len(core))]
        step = 1 / math.sqrt(width)
        parts.append(entries / step if step else np.zeros_like(entries))
    return np.concatenate(parts)


def times_blocks(matrix: Floats, block: Floats) -> Floats:
    """matrix (I (x) block), without the zeros."""
    return (matrix.reshape(len(matrix), -1, len(block)) @ block).reshape(len(matrix), -1)
