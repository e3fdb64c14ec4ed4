"""Samples the posterior of a network: expectations with errors, and whether to believe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from study.cell.checks import is_int, require
from study.cell.seeds import stream_seed
from study.theory.attention_paths import checks
from study.theory.attention_paths.sampling.chains import (
    CONVERGED,
    LEAST_DRAWS,
    Estimate,
    estimate,
)
from study.theory.attention_paths.sampling.posterior import Draw, Posterior, posterior_of
from study.theory.attention_paths.sampling.slice_sampling import SliceSampler


@dataclass(frozen=True, eq=False)
class Samples:
    """Posterior expectations, each with Monte Carlo error, R-hat and effective sample size.

    Attributes:
        mean: (Q,) of f at the inputs asked for.
        variance: (Q,) of f there, over all weights; the labels' noise T is not part of it.
        training_mean: (P,), at the training inputs.
        training_variance: (P,).
        order_parameter: (D, D), U.
        readout: (), U_a.
        flops: spent by all chains, set-up and warm-up included, to leading order; a multiply-add
            is 2.
    """

    mean: Estimate
    variance: Estimate
    training_mean: Estimate
    training_variance: Estimate
    order_parameter: Estimate
    readout: Estimate
    flops: int

    @property
    def r_hat(self) -> float:
        """The largest of all six estimates' entries, constants left out."""
        return float(np.nanmax(np.concatenate([each.r_hat.ravel() for each in self._all])))

    @property
    def effective_sample_size(self) -> float:
        """The smallest of the same entries."""
        sizes = [each.effective_sample_size.ravel() for each in self._all]
        return float(np.nanmin(np.concatenate(sizes)))

    @property
    def converged(self) -> bool:
        """Whether R-hat is below `chains.CONVERGED`."""
        return self.r_hat < CONVERGED

    @property
    def _all(self) -> tuple[Estimate, ...]:
        return (
            self.mean,
            self.variance,
            self.training_mean,
            self.training_variance,
            self.order_parameter,
            self.readout,
        )


def sample(
    features: ArrayLike,
    labels: ArrayLike,
    heads: Sequence[int],
    width: float | Sequence[float],
    temperature: float,
    *,
    seed: int,
    at: ArrayLike | None = None,
    draws: int = 500,
    warmup: int = 4000,
    thin: int = 5,
    chains: int = 4,
    variance: float | Sequence[float] = 1.0,
) -> Samples:
    """Draws from the exact posterior of a network of finite width.

    The predictions of all draws are kept, so that every one of them has its R-hat. A prediction
    costs as much as many steps, and steps that follow each other are alike: hence `thin`.

    The defaults reach R-hat < 1.01 at the published size (100 samples, 4 paths, T = .01, N = 10 to
    1000, 1000 inputs to predict at) in about 10 seconds on one core. The warm-up is long because
    few neurons need well fitted ellipses: half of it left R-hat at 1.015 for some seeds.

    Args:
        features: (P, D, F), of `path_features`.
        labels: y (P,).
        heads: (H_1, ..., H_L), whose product is D.
        width: N, a whole number >= 1, or (N_1, ..., N_L, N_a).
        temperature: T > 0; `math.inf` is the prior.
        seed: of the chains; each has a stream of its own.
        at: (Q, D, F) features of the inputs to predict at; None: none.
        draws: recorded a chain, >= `chains.LEAST_DRAWS`.
        warmup: steps a chain, thrown away, >= 1.
        thin: steps a recorded draw, >= 1.
        chains: >= 2, each from a start of its own, spread wider than the prior.
        variance: sigma^2 > 0 of the weights, or (sigma_1^2, ..., sigma_L^2, sigma_a^2).

    Raises:
        ValueError: an argument is not as above.
        MemoryError: memory does not hold the draws.
        LinAlgError: K + T is not positive definite in float64 where a chain is.
    """
    posterior = posterior_of(features, labels, heads, width, temperature, variance)
    inputs = posterior.features
    if at is not None:
        asked = checks.finite("at", at, "QDF")
        if asked.shape[1:] != inputs.shape[1:]:
            raise ValueError(
                f"at must be (Q, {', '.join(map(str, inputs.shape[1:]))}), as features, "
                f"got {asked.shape}."
            )
        inputs = np.concatenate([inputs, asked])
    require(is_int(draws) and draws >= LEAST_DRAWS, "draws", draws, f"an integer >= {LEAST_DRAWS}")
    require(is_int(warmup) and warmup >= 1, "warmup", warmup, "an integer >= 1")
    require(is_int(thin) and thin >= 1, "thin", thin, "an integer >= 1")
    require(is_int(chains) and chains >= 2, "chains", chains, "an integer >= 2")
    checks.fits(16 * chains * draws * len(inputs), f"keeping {chains * draws:,} predictions")
    sampler = SliceSampler(posterior, inputs)
    streams = [stream_seed("attention-paths", "slice", seed, chain) for chain in range(chains)]
    walks = [sampler.chain(np.random.default_rng(each), warmup, thin) for each in streams]
    record = _Record(posterior, chains, draws, len(inputs))
    record.flops = sampler.setup_flops
    for number in range(draws):
        for chain, walk in enumerate(walks):
            record.add(chain, number, next(walk))
    return record.samples()


class _Record:
    """The draws of all chains."""

    def __init__(self, posterior: Posterior, chains: int, draws: int, inputs: int) -> None:
        self._training, paths, _ = posterior.features.shape
        self._mean = np.empty((chains, draws, inputs))
        self._variance = np.empty((chains, draws, inputs))
        self._order_parameter = np.empty((chains, draws, paths, paths))
        self._readout = np.empty((chains, draws))
        self.flops = 0

    def add(self, chain: int, number: int, draw: Draw) -> None:
        self._mean[chain, number], self._variance[chain, number] = draw.mean, draw.variance
        self._order_parameter[chain, number] = draw.order_parameter
        self._readout[chain, number] = draw.readout
        self.flops += draw.flops

    def samples(self) -> Samples:
        """What they say."""
        # The total variance is E[variance given the state] + Var[mean given the state]: the
        # expectation of this, but for the error of the mean, which is of second order.
        variances = self._variance + (self._mean - self._mean.mean(axis=(0, 1))) ** 2
        mean, variance = estimate(self._mean), estimate(variances)
        training, asked = slice(None, self._training), slice(self._training, None)
        return Samples(
            mean=mean.part(asked),
            variance=variance.part(asked),
            training_mean=mean.part(training),
            training_variance=variance.part(training),
            order_parameter=estimate(self._order_parameter),
            readout=estimate(self._readout),
            flops=self.flops,
        )
