"""The posterior's expectations: two samplers, closed answers, the theory; honest diagnostics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from study.theory import attention_paths as ap
from tests.made_up.attention_paths import Floats, problem


def differ(one: ap.Estimate, other: ap.Estimate) -> float:
    """The largest difference, in Monte Carlo errors of both."""
    error = np.hypot(one.error, other.error)
    return float(np.max(np.abs(one.mean - other.mean) / error))


@pytest.mark.faults  # ten seconds
def test_two_samplers_agree_at_six_neurons() -> None:
    """They share no code. Within 4.5 Monte Carlo errors, 70 numbers, and those errors are small.

    How far apart they are is a matter of the draws, which are others on another processor.
    """
    features, labels = problem(20, (2, 2), 12)
    at, _ = problem(10, (2, 2), 12, seed=1)
    given = (features, labels, (2, 2), 6, 0.3)
    one = ap.sample(*given, seed=0, at=at, draws=1000, warmup=1000)
    other = ap.sample(*given, seed=0, at=at, draws=500, method="gibbs", warmup=300, thin=10)
    assert one.converged
    assert other.r_hat < 1.02
    assert differ(one.mean, other.mean) < 4.5
    assert differ(one.training_mean, other.training_mean) < 4.5
    assert differ(one.variance, other.variance) < 4.5
    assert differ(one.training_variance, other.training_variance) < 4.5
    assert differ(one.order_parameter, other.order_parameter) < 4.5
    assert differ(one.readout, other.readout) < 4.5
    for found in (one, other):
        assert found.mean.error.max() < 0.03
        assert np.max(found.variance.error / found.variance.mean) < 0.06


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


@pytest.mark.parametrize("method", ["slice", "gibbs"])
def test_at_infinite_temperature_the_prior_remains(method: ap.Method) -> None:
    """E U = I, E f = 0, Var f = |Phi|^2, whatever the labels; within 4.5 errors."""
    features, labels = problem(5, (2, 2), 6)
    found = ap.sample(
        features, labels, (2, 2), 5, math.inf, method=method, seed=0, draws=600, warmup=500, thin=2
    )
    expected = np.square(features).sum(axis=(1, 2))
    assert differ_from(found.order_parameter, np.eye(4)) < 4.5
    assert differ_from(found.readout, np.array(1.0)) < 4.5
    assert differ_from(found.training_variance, expected) < 4.5
    if method == "slice":  # zero, without error
        assert not found.training_mean.mean.any()
    else:
        assert differ_from(found.training_mean, np.zeros(5)) < 4.5


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

    def mean(seed: int, method: ap.Method = "slice", **options: int) -> Floats:
        given = (features, labels, (2,), 5, 1.0)
        found = ap.sample(*given, seed=seed, method=method, draws=10, warmup=20, **options)
        return found.training_mean.by_chain

    for method in ("slice", "gibbs"):
        np.testing.assert_array_equal(mean(1, method), mean(1, method))
        assert (mean(1, method) != mean(2, method)).all()
    # A chain has its own stream: more chains leave the first ones as they are.
    np.testing.assert_array_equal(mean(1, chains=6)[:4], mean(1))


def test_the_flops_of_slice_sampling_do_not_grow_with_the_width() -> None:
    """They do not for the same number of evaluations; those of Gibbs grow about as N^2."""
    features, labels = problem(10, (2, 2), 6)

    def flops(method: ap.Method, width: int) -> int:
        given = (features, labels, (2, 2), width, math.inf)
        return ap.sample(*given, seed=0, method=method, draws=10, warmup=10).flops

    assert flops("slice", 200) < 2 * flops("slice", 5)
    assert flops("gibbs", 200) > 100 * flops("gibbs", 5)


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
        ({"method": "nuts"}, "method must be one of slice, gibbs"),
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
