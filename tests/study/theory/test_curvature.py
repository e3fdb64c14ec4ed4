"""Gradient and Hessian in the plane of Theorem 2, against automatic differentiation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from study.theory.linear_orthogonal import curvature
from study.theory.linear_orthogonal.base import State, attention_of
from study.theory.linear_orthogonal.paradigms import paradigm_of
from tests.study.theory.test_linear_orthogonal import (
    directions,
    of_each,
    population_loss,
    random_states,
)


@pytest.mark.parametrize(("m", "num_classes"), [(2, 2), (5, 3), (20, 20)])
@of_each
def test_gradient_and_hessian_equal_automatic_differentiation(
    paradigm: str, m: int, num_classes: int
) -> None:
    d, s = directions(num_classes)
    value = population_loss(paradigm, m, num_classes)
    lengths = torch.tensor([num_classes - 1, num_classes], dtype=torch.float64).sqrt()

    def loss(point: Tensor) -> Tensor:
        mu, nu = point / lengths
        return value(mu * d, nu * s)

    table = curvature.along(paradigm, m, num_classes, m * num_classes * np.arange(4.0))
    along = table[["mu", "nu"]].to_numpy()
    states = np.concatenate([along, random_states(4)])
    mu, nu = states.T
    state = State(mu, *attention_of(nu, m), num_classes)
    gradients, hessians = curvature.derivatives(paradigm_of(paradigm), state)
    expected = []
    for at, by, twice in zip(states, gradients, hessians, strict=True):
        point = torch.from_numpy(at) * lengths
        gradient = torch.func.grad(loss)(point).numpy()
        hessian = torch.autograd.functional.hessian(loss, point).numpy()
        np.testing.assert_allclose(by, gradient, atol=1e-12)
        np.testing.assert_allclose(twice, hessian, atol=1e-12)
        expected.append((loss(point).item(), gradient @ gradient, np.linalg.eigvalsh(hessian)))
    for row, (value, squared, ends) in zip(table.to_dict("records"), expected, strict=False):
        found = [row["eigenvalue_min"], row["eigenvalue_max"]]
        assert found == pytest.approx(ends, abs=1e-12)
        least, most = sorted(np.abs(ends))
        assert row["condition_number"] == pytest.approx(most / least, rel=1e-6)
        assert row["gradient_norm"] == pytest.approx(math.sqrt(squared), rel=1e-9)
        assert row["rate"] == pytest.approx(squared / value, rel=1e-9)
        assert row["loss"] == pytest.approx(value, abs=1e-12)


@of_each
def test_its_eigenvalues_are_those_of_all_weights(paradigm: str) -> None:
    """By symmetry the plane is invariant: its directions do not couple to any other one."""
    m, num_classes = 3, 3
    row = curvature.along(paradigm, m, num_classes, [20.0]).iloc[0]
    mu, nu = float(row["mu"]), float(row["nu"])
    d, s = directions(num_classes)
    value = population_loss(paradigm, m, num_classes)

    def loss(flat: Tensor) -> Tensor:
        return value(flat[: d.numel()].reshape(d.shape), flat[d.numel() :])

    weights = torch.cat([(mu * d).flatten(), nu * s])
    whole = torch.autograd.functional.hessian(loss, weights)
    across = torch.zeros(len(weights), 2, dtype=torch.float64)
    across[: d.numel(), 0] = d.flatten() / d.norm()
    across[d.numel() :, 1] = s / s.norm()
    within = across.T @ whole @ across
    torch.testing.assert_close(whole @ across, across @ within, rtol=0, atol=1e-12)
    low, high = torch.linalg.eigvalsh(within).tolist()
    assert (row["eigenvalue_min"], row["eigenvalue_max"]) == pytest.approx((low, high))


@of_each
def test_late_curvature(paradigm: str) -> None:
    """Hard and lvml: both eigenvalues 1/t. Soft: 1/t and about 2 / (t log t). Rate 1/t for all."""
    times = np.array([1e8, 1e30, 1e100])
    table = curvature.along(paradigm, 5, 3, times)
    for name in ("rate", "eigenvalue_max"):
        assert table[name].iloc[-1] * times[-1] == pytest.approx(1, rel=1e-4)
    if paradigm == "soft":
        flat = table["eigenvalue_min"] * times * np.log(times) / 2
        assert (np.diff((flat - 1).abs()) < 0).all()
        assert flat.iloc[-1] == pytest.approx(1, abs=0.05)
    else:
        assert table["condition_number"].iloc[-1] == pytest.approx(1, abs=1e-12)


def test_eigenvalues_that_a_hand_can_check() -> None:
    matrices = np.array([[[2.0, 1], [1, 2]], [[0, -3], [-3, 0]], [[-4, 2], [2, -1]], [[0, 0]] * 2])
    smallest, largest = curvature.eigenvalues(matrices)
    assert smallest.tolist() == pytest.approx([1, -3, 0, 0])
    assert largest.tolist() == pytest.approx([3, 3, -5, 0])
