"""What is sampled: the Bayesian network of attention paths, and one draw from its posterior.

    f = sum_pi g^pi . V^0 Phi^pi,    g^pi = V^{1 h1}' ... V^{L hL}' a / sqrt(N_1 ... N_L N_a)

V^{lh} is N_{l+1} x N_l, where N_{L+1} = N_a. Prior: the entries of V^0 are N(0, 1), as sigma_0 is
part of the features Phi; those of V^{lh} are N(0, sigma_l^2), those of a N(0, sigma_a^2).
Posterior: the prior times exp(-sum (f - y)^2 / 2T). The order parameter is
U^{pi pi'} = g^pi . g^pi' (arXiv 2405.15926).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from study.theory.attention_paths import checks
from study.theory.attention_paths.checks import Floats


@dataclass(frozen=True, eq=False)
class Posterior:
    """A network, its prior and what it has seen.

    Attributes:
        features: (P, D, F), Phi of the training inputs; paths in C order, h_1 slowest.
        labels: (P,), y.
        heads: (H_1, ..., H_L), whose product is D.
        widths: (N_1, ..., N_L, N_a).
        temperature: T > 0; infinite: the prior.
        variances: (sigma_1^2, ..., sigma_L^2, sigma_a^2).
    """

    features: Floats
    labels: Floats
    heads: tuple[int, ...]
    widths: tuple[int, ...]
    temperature: float
    variances: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Draw:
    """What is recorded of one state of a chain.

    Attributes:
        order_parameter: U (D, D).
        readout: U_a = |a|^2 / N_a.
        mean: (Q,), E[f] at the inputs asked for, given the state.
        variance: (Q,), of f given the state.
        flops: spent since the draw before, those of warm-up in the first; a multiply-add is 2.
    """

    order_parameter: Floats
    readout: float
    mean: Floats
    variance: Floats
    flops: int


def posterior_of(
    features: ArrayLike,
    labels: ArrayLike,
    heads: Sequence[int],
    width: float | Sequence[float],
    temperature: float,
    variance: float | Sequence[float],
) -> Posterior:
    """The posterior of the arguments of `sample`, which are checked here.

    Raises:
        ValueError: a shape does not fit, a value is out of its range or not finite.
    """
    phi = checks.finite("features", features, "PDF")
    counts = checks.heads(heads, phi.shape[1])
    widths = checks.widths(width, len(counts))
    if not all(each.is_integer() for each in widths):  # infinity, too
        raise ValueError(f"width must be a whole number to be sampled, got {width}.")
    temperature = checks.number("temperature", temperature)
    if not temperature > 0:
        raise ValueError(f"temperature must be > 0, or infinity for the prior, got {temperature}.")
    return Posterior(
        features=phi,
        labels=checks.labels(labels, len(phi)),
        heads=counts,
        widths=tuple(int(each) for each in widths),
        temperature=temperature,
        variances=checks.variances(variance, len(counts)),
    )
