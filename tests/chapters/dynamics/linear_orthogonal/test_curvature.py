"""Gradient and Hessian in the plane of Theorem 2, against automatic differentiation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd.functional import vhp

from chapters.dynamics.linear_orthogonal import curvature
from chapters.dynamics.linear_orthogonal.paradigms import paradigm_of
from chapters.dynamics.linear_orthogonal.state import State, attention_of
from tests.chapters.dynamics.linear_orthogonal.test_linear_orthogonal import (
    directions,
    of_each,
    population_loss,
    random_states,
)


@pytest.mark.parametrize(("m", "num_classes"), [(2, 2), (5, 3), (20, 20)])
@of_each
def test_gradient_and_hessian_are_those_of_all_weights(paradigm, m, num_classes):
    """The plane is invariant, too: its directions, of unit length, couple to no other one."""
    d, s = directions(num_classes)
    value = population_loss(paradigm, m, num_classes)
    plane = torch.zeros(2, d.numel() + len(s), dtype=torch.float64)
    plane[0, : d.numel()] = d.flatten() / d.norm()
    plane[1, d.numel() :] = s / s.norm()

    def loss(weights: Tensor) -> Tensor:
        return value(weights[: d.numel()].reshape(d.shape), weights[d.numel() :])

    table = curvature.along(paradigm, m, num_classes, m * num_classes * np.arange(4.0))
    states = np.concatenate([table[["mu", "nu"]], random_states(4)])
    mu, nu = states.T
    state = State(mu, *attention_of(nu, m), num_classes)
    gradients, hessians = curvature.derivatives(paradigm_of(paradigm), state)
    losses = []
    for (mu, nu), slopes, curves in zip(states, gradients, hessians, strict=True):
        weights = torch.cat([(mu * d).flatten(), nu * s])
        losses.append(loss(weights).item())
        by_weights = torch.func.grad(loss)(weights)
        np.testing.assert_allclose(by_weights, slopes @ plane.numpy(), atol=1e-12)
        curved = torch.stack([vhp(loss, weights, each)[1] for each in plane])
        np.testing.assert_allclose(curved, curves @ plane.numpy(), atol=1e-12)

    found, ends = np.sort(curvature.eigenvalues(hessians), axis=0).T, np.linalg.eigvalsh(hessians)
    np.testing.assert_allclose(found, ends, atol=1e-12)
    np.testing.assert_allclose(table[["eigenvalue_min", "eigenvalue_max"]], ends[:4], atol=1e-12)
    least, most = np.sort(np.abs(ends[:4])).T
    np.testing.assert_allclose(table["condition_number"], most / least, rtol=1e-6)
    np.testing.assert_allclose(table["loss"], losses[:4], atol=1e-12)
    norms = np.linalg.norm(gradients[:4], axis=1)
    np.testing.assert_allclose(table["gradient_norm"], norms, rtol=1e-9)
    np.testing.assert_allclose(table["rate"], norms**2 / losses[:4], rtol=1e-9)
