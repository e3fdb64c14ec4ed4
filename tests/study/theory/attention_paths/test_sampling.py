"""The posterior's expectations against a plain sampler, closed answers and the theory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from study.theory import attention_paths as ap
from study.theory.attention_paths.sampling.chains import estimate
from tests.made_up.attention_paths import Floats, problem


def differ(one: ap.Estimate, other: ap.Estimate) -> float:
    """The largest difference, in Monte Carlo errors of both."""
    error = np.hypot(one.error, other.error)
    return float(np.max(np.abs(one.mean - other.mean) / error))


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
def test_samples_are_those_of_all_weights() -> None:
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
    for one, other in (
        (found.mean, mean.part(asked)),
        (found.training_mean, mean.part(training)),
        (found.variance, variance.part(asked)),
        (found.training_variance, variance.part(training)),
        (found.order_parameter, estimate(order_parameters)),
        (found.readout, estimate(readouts)),
    ):
        assert other.r_hat.max() < 1.02
        assert differ(one, other) < 4.5
    for means, variances in ((found.mean, found.variance), (mean, variance)):
        assert means.error.max() < 0.03
        assert np.max(variances.error / variances.mean) < 0.06


def test_a_single_path_against_quadrature() -> None:
    """L = H = 1: U = sigma_a^2 sigma_1^2 chi^2_{N_a} chi^2_{N_1} / (N_a N_1), two scalars."""
    features, labels = problem(8, (1,), 5)
    at, _ = problem(3, (1,), 5, seed=1)
    widths, variances, temperature = (4, 3), (1.3, 0.7), 0.2
    found = ap.sample(
        features, labels, (1,), widths, temperature,
        seed=0, at=at, draws=600, warmup=500, variance=variances,
    )  # fmt: skip

    grid = np.linspace(-7, 4, 300)  # log chi
    hidden, readout = np.meshgrid(grid, grid, indexing="ij")
    logs = widths[0] * hidden - np.exp(2 * hidden) / 2 + widths[1] * readout
    logs -= np.exp(2 * readout) / 2
    size = np.exp(2 * (hidden + readout)) * math.prod(variances) / math.prod(widths)

    kernel, across = (x[:, 0] @ features[:, 0].T for x in (features, at))
    values, vectors = np.linalg.eigh(kernel)  # K + T = vectors (U values + T) vectors'
    regular = size[..., None] * values + temperature
    turned = vectors.T @ labels
    logs -= (np.log(regular) + turned**2 / regular).sum(axis=-1) / 2
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()

    def expectation(quantity: Floats) -> Floats:
        return np.tensordot(weights, quantity)

    turned_across = across @ vectors
    means = (size[..., None] / regular * turned) @ turned_across.T
    explained = (size[..., None] ** 2 / regular) @ (turned_across**2).T
    own = np.square(at[:, 0]).sum(axis=1)
    mean = expectation(means)
    variance = expectation(size[..., None] * own - explained + (means - mean) ** 2)
    for got, want in (
        (found.order_parameter, expectation(size)),
        (found.readout, expectation(np.exp(2 * readout) * variances[1] / widths[1])),
        (found.mean, mean),
        (found.variance, variance),
    ):
        assert (np.abs(got.mean - want) < 4 * got.error).all()
        assert (got.error < 0.03 * np.abs(want).max()).all()


def test_at_infinite_temperature_the_prior_remains() -> None:
    """E U = I, E f = 0, Var f = |Phi|^2, whatever the labels; within 4.5 errors."""
    features, labels = problem(5, (2, 2), 6)
    found = ap.sample(features, labels, (2, 2), 5, math.inf, seed=0, draws=600, warmup=500, thin=2)
    expected = np.square(features).sum(axis=(1, 2))
    assert differ_from(found.order_parameter, np.eye(4)) < 4.5
    assert differ_from(found.readout, np.array(1.0)) < 4.5
    assert differ_from(found.training_variance, expected) < 4.5
    assert not found.training_mean.mean.any()  # zero, without error


def differ_from(found: ap.Estimate, known: Floats) -> float:
    return float(np.max(np.abs(found.mean - known) / found.error))


@pytest.mark.faults  # ten seconds
def test_the_theory_errs_as_one_over_the_width() -> None:
    """At P / N = 2: N times the relative error of the mean stays put while N grows 8-fold.

    It is .25 to .5, of which .07 to .17 are Monte Carlo error.
    """
    scaled = {}
    for width in (5, 10, 20, 40):
        features, labels = problem(2 * width, (2, 1), 2 * width)
        at, _ = problem(40, (2, 1), 2 * width, seed=1)
        given = (features, labels, (2, 1), width, 0.05)
        exact = ap.sample(*given, seed=0, at=at, draws=250, warmup=500, thin=3).mean
        theory, _ = ap.solve(*given).predict(at)
        error = np.linalg.norm(theory - exact.mean) / np.linalg.norm(exact.mean)
        scaled[width] = width * error
        assert np.linalg.norm(exact.error) < 0.02 * np.linalg.norm(exact.mean)
    assert min(scaled.values()) > 0.15
    assert max(scaled.values()) < 0.75


def test_few_draws_from_far_starts_do_not_converge() -> None:
    features, labels = problem(20, (2, 2), 12)
    found = ap.sample(features, labels, (2, 2), 30, 1e-3, seed=0, draws=20, warmup=1, thin=1)
    assert not found.converged
    assert found.r_hat > 1.05
    assert found.effective_sample_size < 80


def test_the_worst_entry_speaks_for_all() -> None:
    features, labels = problem(6, (2,), 4)
    found = ap.sample(
        features, labels, (2,), 5, 1.0, seed=0, at=features[:2], draws=50, warmup=100
    )
    every = [
        found.mean, found.variance, found.training_mean, found.training_variance,
        found.order_parameter, found.readout,
    ]  # fmt: skip
    assert found.r_hat == max(each.r_hat.max() for each in every)
    assert found.effective_sample_size == min(e.effective_sample_size.min() for e in every)


def test_equal_seeds_give_equal_numbers_and_other_seeds_others() -> None:
    features, labels = problem(6, (2,), 4)

    def mean(seed: int, **options: int) -> Floats:
        given = (features, labels, (2,), 5, 1.0)
        found = ap.sample(*given, seed=seed, draws=10, warmup=20, **options)
        return found.training_mean.by_chain

    np.testing.assert_array_equal(mean(1), mean(1))
    assert (mean(1) != mean(2)).all()
    # A chain has its own stream: more chains leave the first ones as they are.
    np.testing.assert_array_equal(mean(1, chains=6)[:4], mean(1))


def test_flops_do_not_grow_with_the_width() -> None:
    """They do not for the same number of evaluations."""
    features, labels = problem(10, (2, 2), 6)

    def flops(width: int) -> int:
        given = (features, labels, (2, 2), width, math.inf)
        return ap.sample(*given, seed=0, draws=10, warmup=10).flops

    assert flops(200) < 2 * flops(5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"width": 0}, "width must be >= 1"),
        ({"width": 4.5}, "width must be a whole number"),
        ({"width": math.inf}, "width must be a whole number"),
        ({"width": (3, 3)}, "width must be one number, or 3"),
        ({"heads": (2, 3)}, "make 6 paths"),
        ({"temperature": 0}, "temperature must be > 0"),
        ({"temperature": math.nan}, "temperature must be > 0"),
        ({"variance": -1}, "variance must be"),
        ({"labels": np.ones(4)}, "labels of 4"),
        ({"labels": np.full(6, np.nan)}, "labels must be finite"),
        ({"features": np.full((6, 4, 3), np.inf)}, "features must be finite"),
        ({"at": np.ones((2, 4, 5))}, r"at must be \(Q, 4, 3\)"),
        ({"draws": 7}, "draws must be an integer >= 8"),
        ({"warmup": 0}, "warmup must be"),
        ({"thin": 0}, "thin must be"),
        ({"chains": 1}, "chains must be"),
    ],
)
def test_bad_input_is_refused_in_one_line(change: dict[str, object], message: str) -> None:
    features, labels = problem(6, (2, 2), 3)
    given: dict[str, object] = {
        "features": features, "labels": labels, "heads": (2, 2), "width": 5,
        "temperature": 1.0, "seed": 0, "draws": 10, "warmup": 10,
    }  # fmt: skip
    with pytest.raises(ValueError, match=message) as raised:
        ap.sample(**{**given, **change})
    assert "\n" not in str(raised.value)


def test_draws_that_memory_does_not_hold_are_refused() -> None:
    features, labels = problem(6, (2, 2), 3)
    with pytest.raises(MemoryError, match="keeping 4,000,000,000,000,000 predictions needs"):
        ap.sample(features, labels, (2, 2), 5, 1.0, seed=0, draws=10**15)
