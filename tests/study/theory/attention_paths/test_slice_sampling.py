"""Slice sampling of U: its coordinates against plain normal matrices, its steps against truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import ks_2samp

from study.theory.attention_paths import slice_sampling
from study.theory.attention_paths.action import Architecture
from study.theory.attention_paths.checks import Floats
from study.theory.attention_paths.slice_sampling import Chain, GaussianProcess, NestedFactors
from tests.made_up.attention_paths import problem

UNEQUAL = Architecture((2, 3), (3, 14, 2), (1.5, 0.6, 1.2))
"""Heads, widths and variances all differ; U_1 and U_2 have more columns than ranks."""

EQUAL = Architecture((2, 2), (6, 6, 6), (1, 1, 1))
FEATURES, LABELS = problem(20, (2, 2), 12)


def nested(architecture: Architecture, normals: list[Floats]) -> Floats:
    """The entries of U, and U_a, of standard normal matrices of N_a, ..., N_1 rows: plainly."""
    order_parameter, found = np.ones((1, 1)), []
    layers = zip(
        (1, *architecture.heads[::-1]), normals, architecture.variances[::-1], strict=True
    )
    for count, matrix, variance in layers:
        values, vectors = np.linalg.eigh(order_parameter)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        rows = matrix @ np.kron(np.eye(count), root)
        order_parameter = variance * rows.T @ rows / len(matrix)
        found.append(order_parameter)
    return np.append(found[-1], found[0])


def prior_normals(architecture: Architecture, random: np.random.Generator) -> list[Floats]:
    columns = np.cumprod((1, *architecture.heads[::-1]))
    shapes = zip(architecture.widths[::-1], columns, strict=True)
    return [random.standard_normal((int(width), count)) for width, count in shapes]


def prior_point(architecture: Architecture, random: np.random.Generator) -> Floats:
    """Coordinates of a draw from the prior: the triangular factors of normal matrices."""
    parts, rows = [], 1
    for heads, width in zip(
        (1, *architecture.heads[::-1]), architecture.widths[::-1], strict=True
    ):
        columns = heads * rows
        triangle = np.linalg.qr(random.standard_normal((int(width), columns)), mode="r")
        rows = len(triangle)
        triangle *= np.sign(triangle.diagonal())[:, None]
        parts += [np.log(triangle.diagonal()), triangle[np.triu_indices(rows, 1, columns)]]
    return np.concatenate(parts)


def test_coordinates_have_the_law_of_plain_normal_matrices() -> None:
    """Every entry of U, and U_a: Kolmogorov-Smirnov at 4,000 draws each, none below p = 1e-4."""
    factors, random = NestedFactors(UNEQUAL), np.random.default_rng(0)
    points = [prior_point(UNEQUAL, random) for _ in range(4000)]
    compact = [np.append(*factors.order_parameters(point)) for point in points]
    plain = [nested(UNEQUAL, prior_normals(UNEQUAL, random)) for _ in range(4000)]
    for one, other in zip(np.transpose(compact), np.transpose(plain), strict=True):
        assert ks_2samp(one, other).pvalue > 1e-4


def test_the_prior_density_has_the_stated_moments() -> None:
    """Coordinates are independent: along each, the others fixed, the density is its own."""
    factors = NestedFactors(Architecture((2, 2), (3, 14, 5), (1, 1, 1)))
    axis = np.linspace(-25, 9, 4001)
    for number, expected in enumerate(factors.prior_mean):
        points = np.tile(factors.prior_mean, (len(axis), 1))
        points[:, number] = axis
        logs = np.array([factors.log_prior(point) for point in points])
        weights = np.exp(logs - logs.max())
        mean = weights @ axis / weights.sum()
        deviation = math.sqrt(weights @ (axis - mean) ** 2 / weights.sum())
        assert mean == pytest.approx(expected, abs=1e-4)
        assert deviation == pytest.approx(factors.prior_deviation[number], rel=1e-4)


@pytest.mark.parametrize("most", [slice_sampling.MOST_ENTRIES, 0])
def test_evidence_and_predictor_equal_the_textbook(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With kernels multiplied out and without."""
    monkeypatch.setattr(slice_sampling, "MOST_ENTRIES", most)
    at = problem(7, (2, 2), 12, seed=1)[0]
    root = np.random.default_rng(2).normal(size=(4, 4))
    order_parameter = root.T @ root
    process = GaussianProcess(FEATURES, LABELS, 0.3, at)

    def kernel(left: Floats, right: Floats) -> Floats:
        return np.einsum("paf,ab,qbf->pq", left, order_parameter, right)

    regular = kernel(FEATURES, FEATURES) + 0.3 * np.eye(len(LABELS))
    solved = np.linalg.solve(regular, LABELS)
    evidence = -(np.linalg.slogdet(regular)[1] + LABELS @ solved) / 2
    assert process.log_evidence(order_parameter) == pytest.approx(evidence, rel=1e-12)
    mean, variance = process.predict(order_parameter)
    across = kernel(at, FEATURES)
    np.testing.assert_allclose(mean, across @ solved, rtol=1e-10)
    expected = kernel(at, at) - across @ np.linalg.solve(regular, across.T)
    np.testing.assert_allclose(variance, np.diag(expected), rtol=1e-10)


def test_a_kernel_that_float64_cannot_invert_has_no_evidence() -> None:
    process = GaussianProcess(FEATURES, LABELS, 1e-12, FEATURES)
    singular = 1e10 * np.ones((4, 4))
    assert process.log_evidence(singular) == -math.inf
    with pytest.raises(np.linalg.LinAlgError, match="temperature"):
        process.predict(singular)


def test_a_point_stays_where_rounding_denies_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a low temperature rounding is many units of log density: the slice may be empty."""
    falling = itertools.count(0.0, -1e6)
    monkeypatch.setattr(Chain, "log_posterior", lambda chain, point: next(falling))
    process = GaussianProcess(FEATURES, LABELS, 0.3, FEATURES)
    draws = Chain(NestedFactors(EQUAL), process, np.random.default_rng(0)).draws(1, 1)
    np.testing.assert_array_equal(next(draws).order_parameter, next(draws).order_parameter)
