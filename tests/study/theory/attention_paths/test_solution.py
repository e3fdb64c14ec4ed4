"""The order parameter at finite width: a stationary point of the action, with its identities."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from study.theory import attention_paths as ap
from study.theory.attention_paths import data_term, minimisation
from study.theory.attention_paths.data_term import Factors, Kernels
from study.theory.attention_paths.order_parameter import Architecture, Nested, point_at
from study.theory.attention_paths.solution import TOLERANCE
from tests.made_up.attention_paths import Floats, problem

UNEQUAL = ((2, 3), (9.0, 14.0, 11.0), 0.05, (1.5, 0.6, 1.2))
"""Heads, widths, temperature and variances that all differ."""


def solved_unequally() -> ap.Solution:
    features, labels = problem(30, (2, 3), 20)
    return ap.solve(features, labels, *UNEQUAL)


def data_gradient(solution: ap.Predictor) -> Floats:
    """G = Tr[M C] - alpha' C alpha, from all kernels."""
    inverse = inverse_of(solution)
    alpha = inverse @ solution.labels
    kernels = path_kernels(solution.features)
    gradient = np.einsum("abpq,pq->ab", kernels, inverse - np.outer(alpha, alpha))
    return (gradient + gradient.T) / 2


def path_kernels(features: Floats) -> Floats:
    """C (D, D, P, P), of every pair of paths."""
    return np.einsum("paf,qbf->abpq", features, features)


def inverse_of(solution: ap.Predictor) -> Floats:
    """M = (K + T)^-1."""
    return np.linalg.inv(solution.kernel + solution.temperature * np.eye(len(solution.labels)))


def blocks(count: int, matrix: Floats) -> Floats:
    """I (x) matrix."""
    return np.kron(np.eye(count), matrix)


def action(solution: ap.Solution, hidden: tuple[Floats, ...]) -> float:
    """The published action, term by term, from given U_1, ..., U_L, U_a."""
    heads, widths = solution.architecture.heads, solution.architecture.widths
    variances = solution.architecture.variances
    labels = solution.labels
    kernel = ap.kernel(solution.features, hidden[0])
    regular = kernel + solution.temperature * np.eye(len(labels))
    total = np.linalg.slogdet(regular)[1] + labels @ np.linalg.solve(regular, labels)
    readout = float(hidden[-1][0, 0])
    total += widths[-1] * (readout / variances[-1] - math.log(readout))
    for layer, count in enumerate(heads):
        own, above = hidden[layer], hidden[layer + 1]
        inner = sum(
            own.reshape(count, len(above), count, len(above))[h, :, h] for h in range(count)
        )
        total += widths[layer] * (
            np.trace(np.linalg.solve(above, inner)) / variances[layer]
            - np.linalg.slogdet(own)[1]
            + count * np.linalg.slogdet(above)[1]
        )
    return float(total)


@pytest.mark.parametrize("form", [Kernels, Factors])
@pytest.mark.parametrize("heads", [(2, 3), (2, 1, 2)])
def test_gradient_equals_differences_of_the_published_action(
    heads: tuple[int, ...], form: type[Kernels] | type[Factors]
) -> None:
    features, labels = problem(12, heads, 9)
    depth = len(heads) + 1
    architecture = Architecture(heads, (3.0, 8.0, 21.0, 5.0)[:depth], (1.5, 0.6, 1.2, 2.0)[:depth])
    reference = ap.solve(features, labels, heads, architecture.widths, 0.1, architecture.variances)
    at = 0.4 * np.random.default_rng(0).normal(size=architecture.parameters)

    def published(point: Floats) -> float:
        return action(reference, Nested(architecture, point).hidden)

    nested = Nested(architecture, at)
    _, slope = form(features, labels, 0.1)(nested.factors[0])
    gradient = nested.gradient(nested.gradients(slope))
    step = 1e-5
    differences = [
        (published(at + step * one) - published(at - step * one)) / (2 * step)
        for one in np.eye(len(at))
    ]
    np.testing.assert_allclose(gradient, differences, atol=2e-7)
    np.testing.assert_allclose(point_at(architecture, nested.hidden), at, atol=1e-12)


def test_reported_action_is_the_published_one_less_its_constant() -> None:
    solution = solved_unequally()
    parts = zip(
        solution.architecture.widths,
        solution.architecture.sizes,
        solution.architecture.variances,
        strict=True,
    )
    constant = sum(width * size * (1 - math.log(variance)) for width, size, variance in parts)
    assert solution.action == pytest.approx(
        action(solution, solution.hidden) - constant, rel=1e-12
    )


def test_stationarity_in_the_published_form() -> None:
    """U_1^-1 = I (x) U_2^-1 / sigma_1^2 + G / N_1."""
    solution = solved_unequally()
    first, second, _ = solution.hidden
    expected = blocks(2, np.linalg.inv(second)) / 1.5 + data_gradient(solution) / 9
    np.testing.assert_allclose(np.linalg.inv(first), expected, atol=1e-10)
    assert solution.converged
    assert solution.residual < 1e-12
    assert solution.iterations > 3


def test_every_layer_deviates_equally_at_the_saddle() -> None:
    """N_l (Tr S_l / sigma_l^2 - D_l) is one number for all layers, which the data gives."""
    solution = solved_unequally()
    inverse, labels = inverse_of(solution), solution.labels
    data = labels @ inverse @ solution.kernel @ inverse @ labels
    data -= np.trace(inverse @ solution.kernel)
    first, second, readout = solution.hidden
    traces = (
        np.trace(first @ blocks(2, np.linalg.inv(second))),
        np.trace(second) / readout[0, 0],
        readout[0, 0],
    )
    for trace, width, size, variance in zip(
        traces, (9, 14, 11), (6, 3, 1), (1.5, 0.6, 1.2), strict=True
    ):
        assert width * (trace / variance - size) == pytest.approx(data, abs=1e-9)


def test_one_head_reduces_to_two_numbers() -> None:
    """L = H = 1: U_1 / U_a = U_a = x, where N (x - 1) is what the data gives at U = x^2."""
    features, labels = problem(20, (1,), 8)
    width, temperature = 6.0, 0.1
    values, vectors = np.linalg.eigh(features[:, 0] @ features[:, 0].T)
    along = (vectors.T @ labels) ** 2

    def excess(share: float) -> float:
        scaled = share**2 * values
        kept = scaled / (scaled + temperature)
        return width * (share - 1) - float(np.sum(along * kept / (scaled + temperature) - kept))

    low, high = 0.01, 20.0
    assert excess(low) < 0 < excess(high)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    solution = ap.solve(features, labels, (1,), width, temperature)
    assert solution.order_parameter[0, 0] == pytest.approx(low**2, rel=1e-10)
    assert solution.hidden[1][0, 0] == pytest.approx(low, rel=1e-10)


def test_the_remainder_of_the_expansion_falls_hundredfold_a_decade() -> None:
    """U = I - (1/N) sum_l I (x) tr_{h_1 .. h_{l-1}} G + O(1/N^2)."""
    features, labels = problem(30, (2, 3), 20)
    gradient = data_gradient(ap.gp_limit(features, labels, 0.05))
    inner = sum(gradient.reshape(2, 3, 2, 3)[h, :, h] for h in range(2))
    first_order = gradient + blocks(2, inner) + np.trace(gradient) * np.eye(6)
    remainders = []
    for width in (1e3, 1e4, 1e5):
        solution = ap.solve(features, labels, (2, 3), width, 0.05)
        remainder = solution.order_parameter - np.eye(6) + first_order / width
        remainders.append(np.abs(remainder).max())
    for larger, smaller in itertools.pairwise(remainders):
        assert 80 < larger / smaller < 110


def test_mixing_the_last_layers_heads_rotates_the_order_parameter() -> None:
    features, labels = problem(30, (2, 3), 20)
    rotation, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))
    mixing = blocks(2, rotation)
    plain = ap.solve(features, labels, *UNEQUAL)
    mixed = ap.solve(mixing @ features, labels, *UNEQUAL)
    np.testing.assert_allclose(
        mixed.order_parameter, mixing @ plain.order_parameter @ mixing.T, atol=1e-9
    )
    for one, other in zip(
        plain.predict(features[:5]), mixed.predict(mixing @ features[:5]), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_infinite_and_huge_widths_are_the_limit() -> None:
    features, labels = problem(30, (2, 3), 20)
    limit = ap.gp_limit(features, labels, 0.05, scale=1.5 * 0.6 * 1.2)
    for width in (1e12, math.inf):
        solution = ap.solve(features, labels, (2, 3), width, 0.05, (1.5, 0.6, 1.2))
        np.testing.assert_allclose(solution.order_parameter, limit.order_parameter, atol=1e-9)
        np.testing.assert_allclose(
            solution.predict(features)[0], limit.predict(features)[0], atol=1e-9
        )
        assert solution.converged
    kernels = path_kernels(features)
    np.testing.assert_allclose(
        limit.kernel, 1.08 * np.trace(kernels), rtol=1e-12
    )  # no cross-path kernels


def test_one_infinite_layer_stays_at_its_limit() -> None:
    features, labels = problem(30, (2, 3), 20)
    solution = ap.solve(features, labels, (2, 3), (8, math.inf, 8), 0.05)
    second, readout = solution.hidden[1:]
    np.testing.assert_allclose(second, readout * np.eye(3), atol=1e-14)
    assert solution.converged
    huge = ap.solve(features, labels, (2, 3), (8, 1e13, 8), 0.05)
    np.testing.assert_allclose(solution.order_parameter, huge.order_parameter, atol=1e-9)


def test_starts_agree_and_a_neighbour_saves_steps() -> None:
    features, labels = problem(60, (2, 2), 40)
    cold = ap.solve(features, labels, (2, 2), 10, 0.01)
    neighbour = ap.solve(features, labels, (2, 2), 11, 0.01)
    warm = ap.solve(features, labels, (2, 2), 10, 0.01, start=neighbour)
    np.testing.assert_allclose(warm.order_parameter, cold.order_parameter, atol=1e-9)
    assert warm.flops < cold.flops
    with pytest.raises(ValueError, match=r"start has the heads \(2, 2\), not \(4,\)"):
        ap.solve(features, labels, (4,), 10, 0.01, start=cold)


def test_a_start_far_away_finds_the_same_minimum() -> None:
    features, labels = problem(60, (2, 2), 40)
    near = ap.solve(features, labels, (2, 2), 10, 0.01)
    random = np.random.default_rng(0)
    for size in (1, 10):
        point = size * random.normal(size=near.architecture.parameters)
        far = replace(near, hidden=Nested(near.architecture, point).hidden)
        again = ap.solve(features, labels, (2, 2), 10, 0.01, start=far)
        np.testing.assert_allclose(again.order_parameter, near.order_parameter, atol=1e-9)


def test_both_forms_of_the_data_term_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for most in (0, 10**9):
        monkeypatch.setattr(data_term, "KERNEL_BYTES", most)
        monkeypatch.setattr(data_term, "KERNEL_SHARE", 0)
        found.append(solved_unequally())
    factors, kernels = found
    np.testing.assert_allclose(factors.order_parameter, kernels.order_parameter, atol=1e-10)
    assert factors.flops != kernels.flops


def test_256_paths() -> None:
    """Four layers of four heads, without the kernels of their pairs."""
    heads = (4, 4, 4, 4)
    features, labels = problem(8, heads, 3)
    solution = ap.solve(features, labels, heads, 10, 0.1)
    assert solution.order_parameter.shape == (256, 256)
    assert solution.converged


def test_the_predictor_is_the_gaussian_process_of_the_kernel() -> None:
    solution = solved_unequally()
    new = problem(300, (2, 3), 20, seed=1)[0]
    together = np.concatenate([solution.features, new])
    kernel = np.einsum("ab,abpq->pq", solution.order_parameter, path_kernels(together))
    inverse, across = inverse_of(solution), kernel[30:, :30]
    mean, variance = solution.predict(new)
    np.testing.assert_allclose(mean, across @ inverse @ solution.labels, atol=1e-10)
    explained = np.einsum("qp,pr,qr->q", across, inverse, across)
    np.testing.assert_allclose(variance, np.diag(kernel)[30:] - explained, atol=1e-10)


def test_without_interplay_drops_what_couples_paths() -> None:
    solution = solved_unequally()
    apart = ap.without_interplay(solution)
    np.testing.assert_array_equal(
        apart.order_parameter, np.diag(np.diag(solution.order_parameter))
    )
    assert not np.allclose(
        apart.predict(solution.features)[0], solution.predict(solution.features)[0], atol=1e-3
    )


def test_too_few_iterations_are_said_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimisation, "_NEWTON_STEPS", 0)
    features, labels = problem(30, (2, 3), 20)
    solution = ap.solve(features, labels, (2, 3), 5, 0.05, iterations=2)
    assert not solution.converged
    assert solution.residual > TOLERANCE
    assert solution.iterations == 2


GOOD = problem(5, (2, 2), 3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 0.5}, "width must be >= 1, or infinity for the limit, got 0.5"),
        ({"width": math.nan}, "width must be >= 1"),
        ({"width": (3, 3)}, "one number, or 3 for 2 layers and the readout, got 2"),
        ({"temperature": 0}, "temperature must be finite and > 0, got 0"),
        ({"temperature": math.inf}, "temperature must be finite"),
        ({"variance": (1, 0, 1)}, "variance must be finite and > 0, got 0"),
        ({"heads": (2, 3)}, "make 6 paths, but the features have 4.*a head that no path uses"),
        ({"heads": (2, 2.5)}, "whole numbers >= 1"),
        ({"heads": ()}, "one a layer"),
        ({"heads": 4}, r"one a layer, as \(2, 2\), got 4"),
        ({"width": "inf"}, "width must be a number, or one for each layer, got 'inf'"),
        ({"temperature": "low"}, "temperature must be a number, got 'low'"),
        ({"labels": GOOD[1][:3]}, "features are of 5 samples, but labels of 3"),
        ({"labels": GOOD[1] * np.nan}, "labels must be finite"),
        ({"features": GOOD[0] * np.nan}, "features must be finite"),
        ({"features": GOOD[0][0]}, r"features must have the axes \(P, D, F\)"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(changes: dict[str, object], said: str) -> None:
    arguments = {
        "features": GOOD[0],
        "labels": GOOD[1],
        "heads": (2, 2),
        "width": 10,
        "temperature": 0.1,
    }
    with pytest.raises(ValueError, match=said) as raised:
        ap.solve(**{**arguments, **changes})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("samples", "heads", "size"), [(200, (2, 2), 60), (60, (4, 4, 4), 40)])
def test_arrays_take_what_memory_says(samples: int, heads: tuple[int, ...], size: int) -> None:
    features, labels = problem(samples, heads, size)
    tracemalloc.start()
    try:
        ap.solve(features, labels, heads, 10, 0.1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    promised = ap.memory(*features.shape)
    assert 0.7 * promised < peak < 1.02 * promised


def test_too_many_samples_are_refused_with_the_bytes() -> None:
    many = np.broadcast_to(np.zeros((1, 4, 1)), (5_000_000, 4, 1))
    with pytest.raises(MemoryError, match=f"needs {ap.memory(5_000_000, 4, 1):,} bytes"):
        ap.solve(many, np.zeros(len(many)), (2, 2), 10, 0.1)


def test_test_features_of_other_paths_are_refused() -> None:
    solution = ap.gp_limit(*GOOD, 0.1)
    with pytest.raises(ValueError, match=r"must be \(Q, 4, 3\), as in training, got"):
        solution.predict(np.zeros((2, 3, 3)))
