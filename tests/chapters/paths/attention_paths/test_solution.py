"""The order parameter at finite width: a stationary point of the action, with its identities."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from chapters.paths import attention_paths as ap
from chapters.paths.attention_paths import solution as module
from chapters.paths.attention_paths.action import Architecture, Nested, point_at
from chapters.paths.attention_paths.data_term import with_features, with_kernels
from tests.chapters.paths.path_networks import Floats, problem

UNEQUAL = ((2, 3), (9.0, 14.0, 11.0), 0.05, (1.5, 0.6, 1.2))
"""Heads, widths, temperature and variances that all differ."""

GIVEN = problem(30, (2, 3), 20)


def kernel_of(features: Floats, order_parameter: Floats) -> Floats:
    """K = sum U^{pi pi'} Phi^pi . Phi^pi'."""
    return np.einsum("paf,ab,qbf->pq", features, order_parameter, features, optimize=True)


def action(features: Floats, labels: Floats, noise: float, at: Architecture,
           hidden: Sequence[Floats]) -> float:  # fmt: skip
    """The published action, term by term, from given U_1, ..., U_L, U_a."""
    regular = kernel_of(features, hidden[0]) + noise * np.eye(len(labels))
    total = np.linalg.slogdet(regular)[1] + labels @ np.linalg.solve(regular, labels)
    readout = float(hidden[-1][0, 0])
    total += at.widths[-1] * (readout / at.variances[-1] - math.log(readout))
    layers = zip(at.heads, hidden[:-1], hidden[1:], at.widths, at.variances, strict=False)
    for count, own, above, width, variance in layers:
        inner = np.einsum("hihj->ij", own.reshape((count, len(above)) * 2))
        total += width * (
            np.trace(np.linalg.solve(above, inner)) / variance
            - np.linalg.slogdet(own)[1]
            + count * np.linalg.slogdet(above)[1]
        )
    return float(total)


@pytest.mark.parametrize("form", [with_kernels, with_features])
@pytest.mark.parametrize("heads", [(2, 3), (2, 1, 2)])
def test_action_and_gradient_are_those_of_the_published_action(heads, form):
    """Less its constant, the prior's part at the limit."""
    features, labels = problem(12, heads, 9)
    depth = len(heads) + 1
    architecture = Architecture(heads, (3.0, 8.0, 21.0, 5.0)[:depth], (1.5, 0.6, 1.2, 2.0)[:depth])
    parts = zip(architecture.widths, architecture.sizes, architecture.variances, strict=True)
    constant = sum(width * size * (1 - math.log(variance)) for width, size, variance in parts)
    at = 0.4 * np.random.default_rng(0).normal(size=architecture.parameters)

    def published(point: Floats) -> float:
        hidden = Nested(architecture, point).hidden
        return action(features, labels, 0.1, architecture, hidden) - constant

    nested = Nested(architecture, at)
    value, gradient, _ = nested.action(*form(features, labels, 0.1).at(nested.factors[0]))
    assert value == pytest.approx(published(at), rel=1e-12)
    forwards, backwards = (approx_fprime(at, published, step) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(gradient, (forwards + backwards) / 2, atol=2e-7)
    np.testing.assert_allclose(point_at(architecture, nested.hidden), at, atol=1e-12)


def test_the_order_parameter_is_stationary():
    """Of the action, whose gradient is checked above; the residual says so, too."""
    features, labels = GIVEN
    solution = ap.solve(features, labels, *UNEQUAL)
    nested = Nested(solution.architecture, point_at(solution.architecture, solution.hidden))
    term = with_kernels(features, labels, solution.temperature)
    value, gradient, _ = nested.action(*term.at(nested.factors[0]))
    assert np.abs(gradient).max() < 1e-12 < abs(value)
    assert solution.converged
    assert solution.residual < 1e-12
    assert solution.iterations > 3


@pytest.mark.parametrize("infinite", [(True, True, True), (False, True, False)])
def test_infinite_layers_stay_at_their_limit_which_huge_ones_approach(
    infinite,
):
    variances = (1.5, 0.6, 1.2)
    first, *_ = found = [
        ap.solve(*GIVEN, (2, 3), np.where(infinite, width, 8.0).tolist(), 0.05, variances)
        for width in (math.inf, 1e13)
    ]
    assert all(each.converged for each in found)
    np.testing.assert_allclose(*(each.order_parameter for each in found), atol=1e-9)
    _, second, readout = first.hidden
    np.testing.assert_allclose(second, 0.6 * readout * np.eye(3), atol=1e-14)
    if all(infinite):
        np.testing.assert_allclose(first.order_parameter, 1.08 * np.eye(6), atol=1e-9)


def test_any_start_finds_the_minimum_and_a_neighbour_saves_steps():
    given = (*problem(60, (2, 2), 40), (2, 2), 10, 0.01)
    cold = ap.solve(*given)
    point = np.random.default_rng(0).normal(size=cold.architecture.parameters)
    far = replace(cold, hidden=Nested(cold.architecture, 10 * point).hidden)
    found = [ap.solve(*given, start=start) for start in (ap.solve(*given[:3], 11, 0.01), far)]
    for each in found:
        np.testing.assert_allclose(each.order_parameter, cold.order_parameter, atol=1e-9)
    assert found[0].flops < cold.flops
    with pytest.raises(ValueError, match=r"start has the heads \(2, 2\), not \(4,\)"):
        ap.solve(*given[:2], (4,), 10, 0.01, start=cold)


def test_features_of_other_paths_are_not_predicted():
    with pytest.raises(ValueError, match=r"\(Q, 6, 20\), none empty, got \(2, 3, 3\)"):
        ap.gp_limit(*GIVEN, 0.05).predict(np.zeros((2, 3, 3)))


def test_too_few_iterations_are_said_not_raised(monkeypatch):
    monkeypatch.setattr(module, "_NEWTON_STEPS", 0)
    solution = ap.solve(*GIVEN, (2, 3), 5, 0.05, iterations=2)
    assert not solution.converged
    assert solution.residual > module.TOLERANCE
    assert solution.iterations == 2


GOOD = problem(5, (2, 2), 3)
ARGUMENTS = {
    "features": GOOD[0], "labels": GOOD[1], "heads": (2, 2), "width": 10, "temperature": 0.1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 0.5}, "width must be >= 1, or infinity for the limit, got 0.5"),
        ({"width": (3, 3)}, "one number, or 3 for 2 layers and the readout, got"),
        ({"temperature": 0}, "temperature must be finite and > 0, got 0"),
        ({"heads": (2, 3)}, "make 6 paths, but the features have 4.*a head that no path uses"),
        ({"heads": (2, 2.5)}, "whole numbers >= 1"),
        ({"labels": GOOD[1][:3]}, r"labels must have .* the shape \(5\)"),
        ({"features": GOOD[0][0]}, r"features must have the axes \(P, D, F\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(changes, said):
    with pytest.raises(ValueError, match=said) as raised:
        ap.solve(**ARGUMENTS | changes)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("samples", "heads", "size", "repeated"),
    [(200, (2, 2), 60, 1), (60, (4, 4, 4), 40, 1), (60, (6, 6), 2, 8)],
)
def test_arrays_take_what_memory_says(samples, heads, size, repeated):
    """Of features that repeat, as the channels of a grey image, it is that of one of them."""
    features, labels = problem(samples, heads, size)
    promised = ap.Size(*features.shape).memory
    features = np.tile(features, repeated)
    tracemalloc.start()
    try:
        ap.solve(features, labels, heads, 10, 0.1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.7 * promised < peak < 1.02 * promised


def test_overlaps_that_a_hand_can_check():
    kernel = np.diag([1.0, 3.0, 2.0])
    np.testing.assert_allclose(ap.overlaps(kernel, [0, -3, 4]), [0.6, 0.8, 0], atol=1e-15)


def test_scores_of_heads_that_a_hand_can_check():
    """Paths (0,0), (0,1), (1,0), (1,1); only (0,0) with itself and with (1,1) has weight."""
    order_parameter = np.zeros((4, 4))
    order_parameter[0, 0] = 2
    order_parameter[0, 3] = order_parameter[3, 0] = -1
    np.testing.assert_allclose(ap.head_scores(order_parameter, (2, 2)), [[1, 0.5]] * 2)
    for scores in ap.head_scores(np.eye(12), (2, 3, 2)):  # equal paths
        np.testing.assert_allclose(scores, scores[0])
    with pytest.raises(ValueError, match="no head is used"):
        ap.head_scores(np.zeros((4, 4)), (2, 2))
