"""The prior of the order parameters U_a, U_L, ..., U_1 = U in few coordinates.

From the readout down, with independent standard normal G_l of N_l rows,

    U_l = (sigma_l^2 / N_l) (G_l B_l)' (G_l B_l), B_l = I (x) R_{l+1}, U_{l+1} = R_{l+1}' R_{l+1},

and the same with one column for U_a = sigma_a^2 |G_a|^2 / N_a. Only G_l' G_l enters, so the
triangular factor T_l of G_l = Q T_l replaces G_l, and R_l = sigma_l T_l B_l / sqrt(N_l) is again
triangular. By Bartlett's decomposition the entries of T_l are independent: those above the
diagonal standard normal, the i-th on it (from 0) chi with N_l - i degrees of freedom. A network of
any width thus has at most 1 + sum_l D_l (D_l + 1) / 2 coordinates: these entries, in the logarithm
on the diagonal. Where N_l is less than the columns of G_l, T_l has N_l rows and U_l no full rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, polygamma

from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.sampling.posterior import Posterior


@dataclass(frozen=True, eq=False)
class _Layer:
    """Where the coordinates of T_l are, and what it is multiplied by."""

    heads: int
    rows: int
    columns: int
    scale: float  # sigma_l / sqrt(N_l)
    degrees: Floats  # (rows,) of freedom of the diagonal
    diagonal: slice
    above: slice
    at: tuple[NDArray[np.intp], NDArray[np.intp]]  # the entries above the diagonal


class NestedFactors:
    """Coordinates, their prior density and the order parameters that they stand for.

    Attributes:
        dimension: how many coordinates.
        prior_mean: (dimension,) their means under the prior.
        prior_deviation: (dimension,) their standard deviations; they are independent.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._layers: list[_Layer] = []
        self.dimension, rows = 0, 1
        downwards = zip(
            (1, *posterior.heads[::-1]),
            posterior.widths[::-1],
            posterior.variances[::-1],
            strict=True,
        )
        for heads, width, variance in downwards:
            columns = heads * rows
            rows = min(width, columns)
            above = np.triu_indices(rows, 1, columns)
            first, middle = self.dimension, self.dimension + rows
            self.dimension = middle + len(above[0])
            self._layers.append(
                _Layer(
                    heads=heads,
                    rows=rows,
                    columns=columns,
                    scale=math.sqrt(variance / width),
                    degrees=width - np.arange(rows, dtype=np.float64),
                    diagonal=slice(first, middle),
                    above=slice(middle, self.dimension),
                    at=above,
                )
            )
        self.prior_mean, self.prior_deviation = np.zeros(self.dimension), np.ones(self.dimension)
        for layer in self._layers:
            half = layer.degrees / 2
            self.prior_mean[layer.diagonal] = (digamma(half) + math.log(2)) / 2
            self.prior_deviation[layer.diagonal] = np.sqrt(polygamma(1, half)) / 2

    def log_prior(self, point: Floats) -> float:
        """The log density of coordinates (dimension,), up to a constant.

        A chi variable t with k degrees of freedom has the density t^(k-1) exp(-t^2/2), and its
        logarithm t^k exp(-t^2/2).
        """
        total = 0.0
        for layer in self._layers:
            log_diagonal, above = point[layer.diagonal], point[layer.above]
            squares = np.exp(2 * log_diagonal).sum() + above @ above
            total += float(layer.degrees @ log_diagonal - squares / 2)
        return total

    def order_parameters(self, point: Floats) -> tuple[Floats, float]:
        """U (D, D) and U_a of coordinates (dimension,)."""
        factor = np.ones((1, 1))
        readout = 0.0
        for number, layer in enumerate(self._layers):
            triangle = np.zeros((layer.rows, layer.columns))
            np.fill_diagonal(triangle, np.exp(point[layer.diagonal]))
            triangle[layer.at] = point[layer.above]
            # T (I (x) R): each head's columns of T by R.
            by_head = triangle.reshape(layer.rows, layer.heads, -1) @ factor
            factor = layer.scale * by_head.reshape(layer.rows, -1)
            if number == 0:
                readout = float(factor[0, 0] ** 2)
        return factor.T @ factor, readout
