"""Slice sampling of U: its coordinates against plain normal matrices, its steps against truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from chapters.paths.attention_paths import Predictor, slice_sampling
from chapters.paths.attention_paths.action import Architecture
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.attention_paths.slice_sampling import Chain, GaussianProcess, NestedFactors
from tests.chapters.paths.path_networks import problem

UNEQUAL = Architecture((2, 3), (3, 14, 2), (1.5, 0.6, 1.2))
"""Heads, widths and variances all differ; U_1 and U_2 have more columns than ranks."""

EQUAL = Architecture((2, 2), (6, 6, 6), (1, 1, 1))
FEATURES, LABELS = problem(20, (2, 2), 12)


def triangle_of(matrix: Floats) -> Floats:
    """T of matrix = Q T, with a positive diagonal."""
    triangle = np.linalg.qr(matrix, mode="r")
    return triangle * np.sign(triangle.diagonal())[:, None]


def test_coordinates_are_triangular_factors_of_plain_normal_matrices():
    """U and U_a are those of the matrices; U has no full rank here."""
    random = np.random.default_rng(0)
    point, plain, root = [], [], np.ones((1, 1))
    layers = zip(
        (1, *UNEQUAL.heads[::-1]), UNEQUAL.widths[::-1], UNEQUAL.variances[::-1], strict=True
    )
    for heads, width, variance in layers:
        normal = random.standard_normal((width, heads * len(root)))
        rows = math.sqrt(variance / width) * normal @ np.kron(np.eye(heads), root)
        plain.append(rows.T @ rows)
        triangle, root = triangle_of(normal), triangle_of(rows)
        above = np.triu_indices(len(triangle), 1, triangle.shape[1])
        point += [np.log(triangle.diagonal()), triangle[above]]
    order_parameter, readout = NestedFactors(UNEQUAL).order_parameters(np.concatenate(point))
    np.testing.assert_allclose(order_parameter, plain[-1], rtol=1e-12, atol=1e-14)
    assert readout == pytest.approx(plain[0].item(), rel=1e-12)


@pytest.mark.parametrize("most", [slice_sampling.MOST_ENTRIES, 0])
def test_evidence_and_predictor_equal_the_textbook(most, monkeypatch):
    """With kernels multiplied out and without, and of the theory's predictor."""
    monkeypatch.setattr(slice_sampling, "MOST_ENTRIES", most)
    at = problem(300, (2, 2), 12, seed=1)[0]
    root = np.random.default_rng(2).normal(size=(4, 4))
    order_parameter = root.T @ root
    process = GaussianProcess(FEATURES, LABELS, 0.3, at)

    def kernel(left: Floats, right: Floats) -> Floats:
        return np.einsum("paf,ab,qbf->pq", left, order_parameter, right)

    regular, across = kernel(FEATURES, FEATURES) + 0.3 * np.eye(len(LABELS)), kernel(at, FEATURES)
    solved = np.linalg.solve(regular, LABELS)
    evidence = -(np.linalg.slogdet(regular)[1] + LABELS @ solved) / 2
    assert process.log_evidence(order_parameter) == pytest.approx(evidence, rel=1e-12)
    explained = across @ np.linalg.solve(regular, across.T)
    expected = across @ solved, np.diag(kernel(at, at) - explained)
    theory = Predictor(FEATURES, LABELS, 0.3, order_parameter)
    for found in (process.predict(order_parameter), theory.predict(at)):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_a_point_stays_where_rounding_denies_all_others(monkeypatch):
    """At a low temperature rounding is many units of log density: the slice may be empty."""
    falling = itertools.count(0.0, -1e6)
    monkeypatch.setattr(Chain, "log_posterior", lambda chain, point: next(falling))
    process = GaussianProcess(FEATURES, LABELS, 0.3, FEATURES)
    draws = Chain(NestedFactors(EQUAL), process, np.random.default_rng(0)).draws(1, 1)
    np.testing.assert_array_equal(next(draws).order_parameter, next(draws).order_parameter)
