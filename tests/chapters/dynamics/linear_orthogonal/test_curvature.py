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
from study import paradigms
from tests.chapters.dynamics.linear_orthogonal import theory_by_hand as reference

BACKGROUND_AXES = 8


def population(m: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Every class at every position, background drawn twice with opposite signs.

    Returns:
        segments (B, m, C + 8), labels (B,). The mean of a background segment is exactly 0, and at
        the states of the theorems nothing else of it counts.
    """
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(num_classes).repeat_interleave(m)
    position = torch.arange(m).repeat(num_classes)
    size = (len(labels), m)
    axis = num_classes + torch.randint(BACKGROUND_AXES, size, generator=random)
    segments = torch.zeros(*size, num_classes + BACKGROUND_AXES, dtype=torch.float64)
    segments.scatter_(2, axis[..., None], 1.0)
    both = torch.cat([segments, -segments])
    labels, position = labels.repeat(2), position.repeat(2)
    rows = torch.arange(len(labels))
    both[rows, position] = 0.0
    both[rows, position, labels] = 1.0
    return both, labels


def directions(num_classes: int) -> tuple[Tensor, Tensor]:
    """D (C, C + 8) with rows s_k - mean, and sum_k s_k (C + 8,)."""
    eye = torch.eye(num_classes, num_classes + BACKGROUND_AXES, dtype=torch.float64)
    return eye - eye.mean(dim=0), eye.sum(dim=0)


@pytest.mark.parametrize(("m", "num_classes"), [(2, 2), (5, 3), (20, 20)])
@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml"])
def test_gradient_and_hessian_are_those_of_all_weights(paradigm, m, num_classes):
    """The plane is invariant, too: its directions, of unit length, couple to no other one.

    So the theorems as printed are the gradient of the loss by which networks train.
    """
    d, s = directions(num_classes)
    data = population(m, num_classes)
    plane = torch.zeros(2, d.numel() + len(s), dtype=torch.float64)
    plane[0, : d.numel()] = d.flatten() / d.norm()
    plane[1, d.numel() :] = s / s.norm()

    def loss(weights: Tensor) -> Tensor:
        w, u = weights[: d.numel()].reshape(d.shape), weights[d.numel() :]
        return paradigms.get(paradigm).loss(lambda x: x @ u, lambda x: x @ w.T, *data)

    table = curvature.along(paradigm, m, num_classes, m * num_classes * np.arange(4.0))
    drawn = np.random.default_rng(1).uniform((0, -2), (6, 5), size=(4, 2))
    states = np.concatenate([table[["mu", "nu"]], drawn])
    mu, nu = states.T
    state = State(mu, *attention_of(nu, m), num_classes)
    gradients, hessians = curvature.derivatives(paradigm_of(paradigm), state)
    losses, lengths = [], np.array([d.norm(), s.norm()])
    points = zip(states, state.alpha, gradients, hessians, strict=True)
    for (mu, nu), alpha, slopes, curves in points:
        printed = np.array(reference.speed(paradigm, alpha, mu, num_classes), float)
        np.testing.assert_allclose(slopes, -printed * lengths, atol=1e-9)
        weights = torch.cat([(mu * d).flatten(), nu * s])
        losses.append(loss(weights).item())
        by_weights = torch.func.grad(loss)(weights)
        np.testing.assert_allclose(by_weights, slopes @ plane.numpy(), atol=1e-12)
        curved = torch.stack([vhp(loss, weights, each)[1] for each in plane])
        np.testing.assert_allclose(curved, curves @ plane.numpy(), atol=1e-12)

    ends = np.linalg.eigvalsh(hessians[:4])
    np.testing.assert_allclose(table[["eigenvalue_min", "eigenvalue_max"]], ends, atol=1e-12)
    least, most = np.sort(np.abs(ends)).T
    np.testing.assert_allclose(table["condition_number"], most / least, rtol=1e-6)
    np.testing.assert_allclose(table["loss"], losses[:4], atol=1e-12)
    norms = np.linalg.norm(gradients[:4], axis=1)
    np.testing.assert_allclose(table["gradient_norm"], norms, rtol=1e-9)
    np.testing.assert_allclose(table["rate"], norms**2 / losses[:4], rtol=1e-9)
