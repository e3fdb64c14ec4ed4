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

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky

from study.theory.attention_paths.checks import Floats


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

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """(D_1, ..., D_L, 1): D_l = H_l ... H_L, the paths from layer l to the readout."""
        depth = len(self.heads)
        return tuple(math.prod(self.heads[layer:]) for layer in range(depth + 1))

    @cached_property
    def triangles(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows and columns of the entries of each C_l."""
        return [np.triu_indices(size) for size in self.sizes]

    @cached_property
    def parameters(self) -> int:
        """The length of a point."""
        return sum(size * (size + 1) // 2 for size in self.sizes)


class Nested:
    """The factors C_l and R_l at a point.

    Args:
        architecture: whose factors.
        point: (parameters,), see the module.

    Attributes:
        cores: C_1, ..., C_L, C_{L+1}.
        factors: R_1, ..., R_L, R_{L+1}; U = R_1' R_1.
    """

    def __init__(self, architecture: Architecture, point: Floats) -> None:
        self._architecture = architecture
        self._parts = _split(architecture, point)
        self.cores: list[Floats] = []
        for layer, part in enumerate(self._parts):
            core = np.zeros((architecture.sizes[layer],) * 2)
            core[architecture.triangles[layer]] = part * _step(architecture, layer)
            np.fill_diagonal(core, np.exp(core.diagonal() / math.sqrt(2)))
            self.cores.append(core * math.sqrt(architecture.variances[layer]))
        self.factors = [self.cores[-1]]
        for core in reversed(self.cores[:-1]):
            self.factors.insert(0, _times_blocks(core, self.factors[0]))

    @property
    def hidden(self) -> tuple[Floats, ...]:
        """U_1, ..., U_L, U_a, each (D_l, D_l)."""
        return tuple(factor.T @ factor for factor in self.factors)

    def prior(self) -> float:
        """sum_l N_l (Tr S_l / sigma_l^2 - ln det S_l), less its value at S_l = sigma_l^2 I.

        No large numbers cancel, whatever the width; infinite ones give the limit.
        """
        total = 0.0
        for layer, part in enumerate(self._parts):
            on = _on_diagonal(self._architecture, layer)
            step = _step(self._architecture, layer)
            total += float(part[~on] @ part[~on])
            logs = math.sqrt(2) * step * part[on]  # ln S_ii / sigma^2, were C diagonal
            if step:
                total += float(np.sum(np.expm1(logs) - logs)) / step**2
            else:
                total += float(part[on] @ part[on])
        return total

    def gradients(self, slope: Floats) -> list[Floats]:
        """Derivatives with respect to each C_l of what has the derivative `slope` to R_1."""
        found = []
        for layer, core in enumerate(self.cores[:-1]):
            below = self.factors[layer + 1]
            found.append(_times_blocks(slope, below.T))
            blocks = (self._architecture.heads[layer], len(below)) * 2
            slope = np.einsum("hihj->ij", (core.T @ slope).reshape(blocks))
        return [*found, slope]

    def gradient(self, slopes: list[Floats]) -> Floats:
        """Derivative of the action with respect to the point.

        Args:
            slopes: of the data's part, from `gradients`.
        """
        parts = []
        for layer, (part, core, slope) in enumerate(
            zip(self._parts, self.cores, slopes, strict=True)
        ):
            on = _on_diagonal(self._architecture, layer)
            step = _step(self._architecture, layer)
            change = step * math.sqrt(self._architecture.variances[layer])
            own = slope[self._architecture.triangles[layer]] * change + 2 * part
            diagonal = slope.diagonal() * core.diagonal() * step / math.sqrt(2)
            logs = math.sqrt(2) * step * part[on]
            growth = np.expm1(logs) / step if step else math.sqrt(2) * part[on]
            own[on] = diagonal + math.sqrt(2) * growth
            parts.append(own)
        return np.concatenate(parts)

    def residual(self, slopes: list[Floats]) -> float:
        """How far the equations of stationarity are from holding, relative to their terms.

        The derivative of the action with respect to C_l vanishes where
        S_l / sigma_l^2 = I - C_l' (dS_data / dC_l) / 2 N_l. This is the largest entry, of all
        layers, of the difference of both sides.
        """
        largest = 0.0
        widths, variances = self._architecture.widths, self._architecture.variances
        for core, slope, width, variance in zip(
            self.cores, slopes, widths, variances, strict=True
        ):
            difference = core.T @ (core / variance + slope / (2 * width)) - np.eye(len(core))
            largest = max(largest, float(np.abs(difference).max()))
        return largest


def point_at(architecture: Architecture, hidden: tuple[Floats, ...]) -> Floats:
    """The point whose U_1, ..., U_L, U_a are these; a layer of infinite width stays at its limit.

    Args:
        architecture: of the point.
        hidden: each (D_l, D_l), positive definite.
    """
    parts = []
    factors = [cholesky(each) for each in hidden]
    for layer, factor in enumerate(factors):
        step = _step(architecture, layer)
        core = factor / math.sqrt(architecture.variances[layer])
        if layer + 1 < len(factors):
            core = _times_blocks(core, np.linalg.inv(factors[layer + 1]))
        np.fill_diagonal(core, math.sqrt(2) * np.log(core.diagonal()))
        entries = core[architecture.triangles[layer]]
        parts.append(entries / step if step else np.zeros_like(entries))
    return np.concatenate(parts)


def _times_blocks(matrix: Floats, block: Floats) -> Floats:
    """matrix (I (x) block), without the zeros."""
    return (matrix.reshape(len(matrix), -1, len(block)) @ block).reshape(matrix.shape)


def _split(architecture: Architecture, point: Floats) -> list[Floats]:
    lengths = [len(rows) for rows, _ in architecture.triangles]
    return np.split(point, np.cumsum(lengths)[:-1])


def _on_diagonal(architecture: Architecture, layer: int) -> np.ndarray:
    rows, columns = architecture.triangles[layer]
    return rows == columns


def _step(architecture: Architecture, layer: int) -> float:
    """1 / sqrt(N_l); 0 for an infinite width."""
    return 1 / math.sqrt(architecture.widths[layer])
