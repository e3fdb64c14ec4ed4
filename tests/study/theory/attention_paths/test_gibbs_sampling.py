"""Gibbs sampling of all weights: the network, the regression of a block, the virial identity."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from study.theory.attention_paths import sample
from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.sampling.chains import estimate
from study.theory.attention_paths.sampling.gibbs_sampling import Block, GibbsSampler, Network
from study.theory.attention_paths.sampling.posterior import Posterior, posterior_of
from tests.made_up.attention_paths import problem

HEADS, WIDTHS, VARIANCES, SIZE = (2, 3), (4, 3, 5), (1.5, 0.6, 1.2), 7


def posterior(temperature: float = 0.3) -> Posterior:
    features, labels = problem(12, HEADS, SIZE)
    return posterior_of(features, labels, HEADS, WIDTHS, temperature, VARIANCES)


def state(seed: int = 0) -> Network:
    """After one sweep."""
    sampler = GibbsSampler(posterior(), posterior().features)
    return next(sampler.networks(np.random.default_rng(seed)))


def effective_weights(network: Network) -> Floats:
    """g^pi (D, N_1), one path at a time."""
    *_, readout = network.blocks
    found = []
    for first, second in itertools.product(*map(range, HEADS)):
        vector = readout.weights[0, 0]
        for block, head in zip(network.blocks[2:0:-1], (second, first), strict=True):
            vector = block.weights[head].T @ vector
        found.append(vector / math.sqrt(math.prod(WIDTHS)))
    return np.array(found)


def test_the_network_is_that_of_its_paths() -> None:
    network, phi = state(), posterior().features
    weights = effective_weights(network)
    expected = np.einsum("dn,nf,pdf->p", weights, network.blocks[0].weights[0], phi)
    np.testing.assert_allclose(network.output(phi), expected, rtol=1e-12)
    order_parameter, readout = network.overlaps()
    np.testing.assert_allclose(order_parameter, weights @ weights.T, atol=1e-14)
    assert readout == pytest.approx(np.square(network.blocks[-1].weights).mean())


@pytest.mark.parametrize("number", range(4))
def test_a_block_is_drawn_from_its_regression(number: int) -> None:
    """Mean and covariance of 4,000 draws against the closed form, within 5 errors.

    The design matrix is built by differentiation: the output at each unit weight.
    """
    network, given = state(), posterior()
    below, above = given.features, np.ones((1, 1))
    for block in network.blocks[:number]:
        below = block.forward(below)
    for block in network.blocks[:number:-1]:
        above = block.backward(above)
    block = network.blocks[number]
    count = block.weights.size
    design = np.empty((len(given.labels), count))
    for weight, unit in enumerate(np.eye(count)):
        probe = Block(unit.reshape(block.weights.shape), block.scale, block.variance)
        blocks = [*network.blocks[:number], probe, *network.blocks[number + 1 :]]
        design[:, weight] = Network(blocks).output(given.features)
    precision = design.T @ design / given.temperature + np.eye(count) / block.variance
    covariance = np.linalg.inv(precision)
    mean = covariance @ design.T @ given.labels / given.temperature

    random, draws = np.random.default_rng(1), 4000
    found = np.array(
        [
            block.drawn(below, above, given.labels, given.temperature, random).weights.ravel()
            for _ in range(draws)
        ]
    )
    deviation = np.sqrt(np.diag(covariance))
    assert (np.abs(found.mean(axis=0) - mean) < 5 * deviation / math.sqrt(draws)).all()
    error = np.sqrt((np.outer(deviation, deviation) ** 2 + covariance**2) / draws)
    assert (np.abs(np.cov(found.T) - covariance) < 5 * error).all()


def test_the_virial_identity_of_every_block() -> None:
    """E |V_l|^2 / sigma_l^2 - #weights = E[f . (y - f)] / T, within 4 Monte Carlo errors.

    It holds by scaling the block, in which f is linear, and knows nothing of the theory.
    """
    given = posterior()
    sampler, chains = GibbsSampler(given, given.features), []
    for random in np.random.default_rng(0).spawn(4):
        rows = []
        for network in itertools.islice(sampler.networks(random), 200, 1500):
            output = network.output(given.features)
            work = output @ (given.labels - output) / given.temperature
            rows.append(network.excess_norms() - work)
        chains.append(rows)
    found = estimate(np.array(chains))
    assert found.r_hat.max() < 1.02
    assert found.error.max() < 1  # of tens of weights a block
    assert (np.abs(found.mean) < 4 * found.error).all()


def test_warm_up_and_thinning_choose_among_the_sweeps() -> None:
    given = posterior()
    sampler = GibbsSampler(given, given.features)
    every = itertools.islice(sampler.networks(np.random.default_rng(5)), 13)
    outputs = [network.output(given.features) for network in every]
    draws = sampler.chain(np.random.default_rng(5), warmup=4, thin=3)
    for number in (6, 9, 12):  # the last of each three after the first four
        np.testing.assert_array_equal(next(draws).mean, outputs[number])


def test_a_regression_that_float64_does_not_solve_says_what_to_do() -> None:
    features, labels = problem(12, (1,), 1)
    with pytest.raises(np.linalg.LinAlgError, match="raise the temperature"):
        sample(features, labels, (1,), 1, 1e-300, seed=0, method="gibbs", draws=8, warmup=1)
