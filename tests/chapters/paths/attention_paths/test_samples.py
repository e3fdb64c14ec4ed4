"""The posterior's expectations against a plain sampler, the prior and the theory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from chapters.paths import attention_paths as ap
from chapters.paths.attention_paths.samples import estimate
from tests.chapters.paths.path_networks import Floats, problem

FIELDS = (
    "mean", "variance", "training_mean", "training_variance", "order_parameter", "readout",
)  # fmt: skip


def away(found: ap.Estimate, known: Any, error: Any = 0.0) -> float:
    """The largest difference from what is known (to an error), in Monte Carlo errors of both."""
    return float(np.max(np.abs(found.mean - known) / np.hypot(found.error, error)))


def autoregressive(memory: float, draws: int, count: int) -> Floats:
    """(4 chains, draws, count) of variance 1, stationary: x_t = memory x_(t-1) + noise."""
    noise = np.random.default_rng(0).normal(size=(4, draws, count))
    noise[:, 1:] *= math.sqrt(1 - memory**2)
    return lfilter([1.0], [1.0, -memory], noise, axis=1)


@pytest.mark.parametrize("memory", [0.9, -0.5])
def test_the_effective_size_and_error_of_an_autoregressive_chain(memory):
    """n (1 - memory) / (1 + memory), to 10 %, over 40 quantities."""
    found = estimate(autoregressive(memory, 2000, 40))
    size = 4 * 2000 * (1 - memory) / (1 + memory)
    assert found.effective_sample_size.mean() == pytest.approx(size, rel=0.1)
    assert found.error.mean() == pytest.approx(1 / math.sqrt(size), rel=0.1)
    # 40 means in units of their errors: their root mean square is 1 +- .11
    assert math.sqrt(np.mean((found.mean / found.error) ** 2)) == pytest.approx(1, abs=0.35)
    assert found.r_hat.max() < 1.02


def test_constants_are_known_exactly():
    values = autoregressive(0.3, 50, 6).reshape(4, 50, 2, 3)
    values[..., 1, 2] = 0.1
    found = estimate(values)
    np.testing.assert_allclose(found.by_chain, values.mean(axis=1))
    np.testing.assert_allclose(found.mean, values.mean(axis=(0, 1)))
    assert found.error[1, 2] == 0
    for each in (found.r_hat, found.effective_sample_size):
        assert np.isnan(each).sum() == np.isnan(each[1, 2]) == 1
    elsewhere = np.broadcast_to(np.arange(4.0)[:, None, None], (4, 100, 1))
    assert estimate(elsewhere).r_hat[0] > 1e6


AXES = ("pghf", "cnf", "cgmn", "chkm", "ck")
"""Of Phi, V^0, V^1, V^2 and a: samples, heads g and h, features, neurons n, m, k; chains."""


def gibbs(
    inputs: Floats, labels: Floats, width: int, temperature: float
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Outputs, U and U_a of four chains, after each sweep over the weights of two layers.

    The output is linear in each block of weights, which given the others is a Bayesian linear
    regression on the first of the inputs, and is drawn from its posterior.
    """
    random = np.random.default_rng(0)
    sizes = {"c": 4, "g": 2, "h": 2, "f": inputs.shape[3]} | dict.fromkeys("nmk", width)
    shapes = [[sizes[axis] for axis in axes] for axes in AXES[1:]]
    blocks = [2 * random.standard_normal(shape) for shape in shapes]  # wider than the prior
    while True:
        for number, (axes, shape) in enumerate(zip(AXES[1:], shapes, strict=True)):
            arrays = [inputs[: len(labels)], *blocks[:number], *blocks[number + 1 :]]
            others = ",".join(each for each in AXES if each != axes)
            design = np.einsum(f"{others}->cp{axes[1:]}", *arrays, optimize=True)
            design = design.reshape(4, len(labels), -1) / width**1.5
            weighed = design.swapaxes(1, 2) / temperature
            count = design.shape[2]
            precision = weighed @ design + np.eye(count)
            noise = np.linalg.cholesky(precision) @ random.standard_normal((4, count, 1))
            drawn = np.linalg.solve(precision, weighed @ labels[:, None] + noise)
            blocks[number] = drawn.reshape(shape)
        outputs = np.einsum(f"{','.join(AXES)}->cp", inputs, *blocks, optimize=True) / width**1.5
        paths = np.einsum("cgmn,chkm,ck->cghn", *blocks[1:], optimize=True) / width**1.5
        paths = paths.reshape(4, -1, width)
        yield outputs, paths @ paths.swapaxes(1, 2), np.square(blocks[3]).mean(axis=1)


@pytest.mark.faults  # ten seconds
def test_samples_are_those_of_all_weights():
    """Within 4.5 Monte Carlo errors, 70 numbers, and those errors are small.

    How far apart they are is a matter of the draws, which are others on another processor.
    """
    features, labels = problem(20, (2, 2), 12)
    at, _ = problem(10, (2, 2), 12, seed=1)
    found = ap.sample(features, labels, (2, 2), 6, 0.3, seed=0, at=at, draws=1000, warmup=1000)
    assert found.converged

    inputs = np.concatenate([features, at]).reshape(30, 2, 2, 12)
    states = itertools.islice(gibbs(inputs, labels, 6, 0.3), 300, 5300, 10)
    outputs, order_parameters, readouts = (np.stack(x, axis=1) for x in zip(*states, strict=True))
    mean = estimate(outputs)
    variance = estimate((outputs - outputs.mean(axis=(0, 1))) ** 2)
    training, asked = slice(None, 20), slice(20, None)
    others = [each.part(part) for part in (asked, training) for each in (mean, variance)]
    others += [estimate(order_parameters), estimate(readouts)]
    for name, other in zip(FIELDS, others, strict=True):
        assert other.r_hat.max() < 1.02
        assert away(getattr(found, name), other.mean, other.error) < 4.5
    for means, variances in ((found.mean, found.variance), (mean, variance)):
        assert means.error.max() < 0.03
        assert np.max(variances.error / variances.mean) < 0.06


def test_at_infinite_temperature_the_prior_remains():
    """E U = I, E f = 0, Var f = |Phi|^2, whatever the labels; within 4.5 errors.

    Of four paths and three neurons U has no full rank.
    """
    features, labels = problem(5, (2, 2), 6)
    found = ap.sample(features, labels, (2, 2), 3, math.inf, seed=0, draws=600, warmup=500, thin=2)
    assert away(found.order_parameter, np.eye(4)) < 4.5
    assert away(found.readout, 1.0) < 4.5
    assert away(found.training_variance, np.square(features).sum(axis=(1, 2))) < 4.5
    assert not found.training_mean.mean.any()  # zero, without error


@pytest.mark.faults  # ten seconds
def test_the_theory_errs_as_one_over_the_width():
    """At P / N = 2: N times the relative error of the mean stays put while N grows 8-fold.

    It is .25 to .5, of which .07 to .17 are Monte Carlo error.
    """
    for width in (5, 10, 20, 40):
        features, labels = problem(2 * width, (2, 1), 2 * width)
        at, _ = problem(40, (2, 1), 2 * width, seed=1)
        given = (features, labels, (2, 1), width, 0.05)
        exact = ap.sample(*given, seed=0, at=at, draws=250, warmup=500, thin=3).mean
        theory, _ = ap.solve(*given).predict(at)
        length = np.linalg.norm(exact.mean)
        assert 0.15 < width * np.linalg.norm(theory - exact.mean) / length < 0.75
        assert np.linalg.norm(exact.error) < 0.02 * length


def test_few_draws_from_far_starts_do_not_converge():
    features, labels = problem(20, (2, 2), 12)
    found = ap.sample(
        features, labels, (2, 2), 30, 1e-3, seed=0, at=features[:2], draws=20, warmup=1, thin=1
    )
    assert not found.converged
    assert found.r_hat > 1.05
    assert found.effective_sample_size < 80
    every = [getattr(found, name) for name in FIELDS]  # of which the worst entry speaks for all
    assert found.r_hat == max(each.r_hat.max() for each in every)
    assert found.effective_sample_size == min(e.effective_sample_size.min() for e in every)
