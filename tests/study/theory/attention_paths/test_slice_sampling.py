"""Slice sampling of U: its coordinates against plain normal matrices, its steps against truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.sampling import gaussian_process
from study.theory.attention_paths.sampling.chains import estimate
from study.theory.attention_paths.sampling.gaussian_process import GaussianProcess
from study.theory.attention_paths.sampling.nested_factors import NestedFactors
from study.theory.attention_paths.sampling.posterior import Posterior, posterior_of
from study.theory.attention_paths.sampling.slice_sampling import SliceSampler
from tests.made_up.attention_paths import problem

UNEQUAL = ((2, 3), (3, 14, 2), (1.5, 0.6, 1.2))
"""Heads, widths and variances that all differ; U_1 and U_2 have more columns than ranks."""


def network(
    heads: tuple[int, ...] = (2, 2),
    width: float | tuple[float, ...] = 6,
    temperature: float = 0.3,
    variance: float | tuple[float, ...] = 1.0,
    samples: int = 20,
    size: int = 12,
) -> Posterior:
    features, labels = problem(samples, heads, size)
    return posterior_of(features, labels, heads, width, temperature, variance)


def nested(posterior: Posterior, normals: list[Floats]) -> tuple[Floats, float]:
    """U and U_a of standard normal matrices of N_a, N_L, ..., N_1 rows: the plain form."""
    order_parameter = np.ones((1, 1))
    heads = (1, *posterior.heads[::-1])
    readout = 0.0
    for count, matrix, variance in zip(heads, normals, posterior.variances[::-1], strict=True):
        values, vectors = np.linalg.eigh(order_parameter)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        rows = matrix @ np.kron(np.eye(count), root)
        order_parameter = variance * rows.T @ rows / len(matrix)
        readout = readout or float(order_parameter[0, 0])
    return order_parameter, readout


def prior_normals(posterior: Posterior, random: np.random.Generator) -> list[Floats]:
    columns = np.cumprod((1, *posterior.heads[::-1]))
    shapes = zip(posterior.widths[::-1], columns, strict=True)
    return [random.standard_normal(shape) for shape in shapes]


def prior_point(
    factors: NestedFactors, posterior: Posterior, random: np.random.Generator
) -> Floats:
    """Coordinates of a draw from the prior, by Bartlett's decomposition."""
    parts, rows = [], 1
    for heads, width in zip((1, *posterior.heads[::-1]), posterior.widths[::-1], strict=True):
        columns = heads * rows
        rows = min(width, columns)
        above = len(np.triu_indices(rows, 1, columns)[0])
        parts += [np.log(random.chisquare(width - np.arange(rows))) / 2]
        parts += [random.standard_normal(above)]
    point = np.concatenate(parts)
    assert len(point) == factors.dimension
    return point


def test_coordinates_have_the_law_of_plain_normal_matrices() -> None:
    """Every entry of U, and U_a: Kolmogorov-Smirnov at 4,000 draws each, none below p = 1e-4."""
    heads, widths, variances = UNEQUAL
    posterior = network(heads, widths, variance=variances)
    factors, random = NestedFactors(posterior), np.random.default_rng(0)
    pairs = np.triu_indices(math.prod(heads))

    def entries(found: tuple[Floats, float]) -> Floats:
        return np.append(found[0][pairs], found[1])

    compact = [
        entries(factors.order_parameters(prior_point(factors, posterior, random)))
        for _ in range(4000)
    ]
    plain = [entries(nested(posterior, prior_normals(posterior, random))) for _ in range(4000)]
    for one, other in zip(np.transpose(compact), np.transpose(plain), strict=True):
        assert ks_2samp(one, other).pvalue > 1e-4


def test_the_prior_density_has_the_stated_moments() -> None:
    """Coordinates are independent: along each, the others fixed, the density is its own."""
    factors = NestedFactors(network(width=(3, 14, 5)))
    axis = np.linspace(-25, 9, 4001)
    for number in range(factors.dimension):
        points = np.tile(factors.prior_mean, (len(axis), 1))
        points[:, number] = axis
        logs = np.array([factors.log_prior(point) for point in points])
        weights = np.exp(logs - logs.max())
        mean = weights @ axis / weights.sum()
        deviation = math.sqrt(weights @ (axis - mean) ** 2 / weights.sum())
        assert mean == pytest.approx(factors.prior_mean[number], abs=1e-4)
        assert deviation == pytest.approx(factors.prior_deviation[number], rel=1e-4)


def test_the_coordinates_do_not_grow_with_the_width() -> None:
    assert NestedFactors(network(width=1000)).dimension == 1 + 3 + 10


@pytest.mark.parametrize("most", [gaussian_process.MOST_ENTRIES, 0])
def test_evidence_and_predictor_equal_the_textbook(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kernels multiplied out and without."""
    monkeypatch.setattr(gaussian_process, "MOST_ENTRIES", most)
    posterior = network()
    at = problem(7, (2, 2), 12, seed=1)[0]
    random = np.random.default_rng(2)
    root = random.normal(size=(4, 4))
    order_parameter = root.T @ root
    process = GaussianProcess(posterior, at)

    def kernel(left: Floats, right: Floats) -> Floats:
        return np.einsum("paf,ab,qbf->pq", left, order_parameter, right)

    phi, y = posterior.features, posterior.labels
    regular = kernel(phi, phi) + posterior.temperature * np.eye(len(y))
    evidence = -(np.linalg.slogdet(regular)[1] + y @ np.linalg.solve(regular, y)) / 2
    assert process.log_evidence(order_parameter) == pytest.approx(evidence, rel=1e-12)
    mean, variance = process.predict(order_parameter)
    across = kernel(at, phi)
    np.testing.assert_allclose(mean, across @ np.linalg.solve(regular, y), rtol=1e-10)
    expected = kernel(at, at) - across @ np.linalg.solve(regular, across.T)
    np.testing.assert_allclose(variance, np.diag(expected), rtol=1e-10)


def test_a_kernel_that_float64_cannot_invert_has_no_evidence() -> None:
    process = GaussianProcess(network(temperature=1e-12), network().features)
    singular = 1e10 * np.ones((4, 4))
    assert process.log_evidence(singular) == -math.inf
    with pytest.raises(np.linalg.LinAlgError, match="temperature"):
        process.predict(singular)


def test_a_point_stays_where_rounding_denies_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a low temperature rounding is many units of log density: the slice may be empty."""
    posterior = network()
    sampler = SliceSampler(posterior, posterior.features)
    falling = itertools.count(0.0, -1e6)
    monkeypatch.setattr(sampler, "log_posterior", lambda point: next(falling))
    draws = sampler.chain(np.random.default_rng(0), warmup=1, thin=1)
    np.testing.assert_array_equal(next(draws).order_parameter, next(draws).order_parameter)


def plain_chain(posterior: Posterior, random: np.random.Generator, steps: int) -> Floats:
    """Elliptical slice sampling of the normal matrices themselves: (steps, D^2 + 1), U and U_a."""
    phi, y = posterior.features, posterior.labels
    kernels = np.einsum("paf,qbf->abpq", phi, phi)
    noise = posterior.temperature * np.eye(len(y))

    def log_evidence(normals: list[Floats]) -> float:
        regular = np.tensordot(nested(posterior, normals)[0], kernels) + noise
        return float(-(np.linalg.slogdet(regular)[1] + y @ np.linalg.solve(regular, y)) / 2)

    state = prior_normals(posterior, random)
    value, found = log_evidence(state), []
    for _ in range(steps):
        axes = prior_normals(posterior, random)
        level, angle = value - random.exponential(), random.uniform(0, 2 * math.pi)
        low, high = angle - 2 * math.pi, angle
        while True:
            pairs = zip(state, axes, strict=True)
            moved = [math.cos(angle) * one + math.sin(angle) * other for one, other in pairs]
            value = log_evidence(moved)
            if value > level:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = random.uniform(low, high)
        state = moved
        order_parameter, readout = nested(posterior, state)
        found.append(np.append(order_parameter.ravel(), readout))
    return np.array(found)


def test_it_agrees_with_slice_sampling_of_the_plain_matrices() -> None:
    """Means of U, its squares and U_a, within 4 of their Monte Carlo errors.

    The plain form shares no code, coordinates or ellipses with the compact one.
    """
    posterior = network((2, 1), (3, 1, 5), samples=10, variance=(1.5, 0.6, 1.2))
    streams = np.random.default_rng(3).spawn(8)
    plain = np.array([plain_chain(posterior, random, 800)[100:] for random in streams[:4]])
    sampler, compact = SliceSampler(posterior, posterior.features[:1]), []
    for random in streams[4:]:
        walk = sampler.chain(random, warmup=300, thin=2)
        draws = [next(walk) for _ in range(400)]
        compact.append([np.append(d.order_parameter.ravel(), d.readout) for d in draws])
    for power in (1, 2):
        one, other = estimate(plain**power), estimate(np.array(compact) ** power)
        error = np.hypot(one.error, other.error)
        assert (np.abs(one.mean - other.mean) < 4 * error).all()
