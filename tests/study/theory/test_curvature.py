"""Gradient and Hessian in the plane of Theorem 2, against automatic differentiation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from study.errors import RequestError
from study.theory import linear_orthogonal as lo
from study.theory.linear_orthogonal import curvature
from tests.study.theory.test_linear_orthogonal import (
    NAMES,
    directions,
    population_loss,
    random_states,
)


def plane(paradigm: str, m: int, num_classes: int):
    """(p, q) -> the population loss of the network at that point of the plane."""
    d, s = directions(num_classes)
    value = population_loss(paradigm, m, num_classes)

    def loss(point: Tensor) -> Tensor:
        return value(
            point[0] * d / math.sqrt(num_classes - 1), point[1] * s / math.sqrt(num_classes)
        )

    return loss


@pytest.mark.parametrize(("m", "num_classes"), [(2, 2), (5, 3), (20, 20)])
@pytest.mark.parametrize("paradigm", NAMES)
def test_gradient_and_hessian_equal_automatic_differentiation(
    paradigm: str, m: int, num_classes: int
) -> None:
    states = [(0.0, 0.0), *random_states(4)]
    mu, nu = map(np.array, zip(*states, strict=True))
    loss = plane(paradigm, m, num_classes)
    table = curvature.at(paradigm, m, num_classes, mu, nu)
    gradients = curvature.gradient(paradigm, m, num_classes, mu, nu)
    hessians = curvature.hessian(paradigm, m, num_classes, mu, nu)
    for i, state in enumerate(states):
        point = torch.tensor(state, dtype=torch.float64) * torch.tensor(
            [math.sqrt(num_classes - 1), math.sqrt(num_classes)], dtype=torch.float64
        )
        gradient = torch.func.grad(loss)(point).numpy()
        hessian = torch.autograd.functional.hessian(loss, point).numpy()
        np.testing.assert_allclose(gradients[i], gradient, atol=1e-12)
        np.testing.assert_allclose(hessians[i], hessian, atol=1e-12)
        row, (low, high) = table.iloc[i], np.linalg.eigvalsh(hessian)
        assert row["eigenvalue_min"] == pytest.approx(low, abs=1e-12)
        assert row["eigenvalue_max"] == pytest.approx(high, abs=1e-12)
        assert row["loss"] == pytest.approx(loss(point).item(), abs=1e-12)
        assert row["gradient_norm"] == pytest.approx(np.linalg.norm(gradient), rel=1e-9)
        assert row["rate"] == pytest.approx(gradient @ gradient / row["loss"], rel=1e-9)
        sizes = sorted([abs(low), abs(high)])
        assert row["condition_number"] == pytest.approx(sizes[1] / sizes[0], rel=1e-6)


@pytest.mark.parametrize("paradigm", NAMES)
def test_hessian_is_that_of_all_weights_restricted_to_the_plane(paradigm: str) -> None:
    m, num_classes, mu, nu = 3, 3, 1.3, 0.7
    d, s = directions(num_classes)
    value = population_loss(paradigm, m, num_classes)
    weights = torch.cat([(mu * d).flatten(), nu * s])

    def loss(flat: Tensor) -> Tensor:
        return value(flat[: d.numel()].reshape(d.shape), flat[d.numel() :])

    whole = torch.autograd.functional.hessian(loss, weights)
    across = torch.zeros(len(weights), 2, dtype=torch.float64)
    across[: d.numel(), 0] = d.flatten() / d.norm()
    across[d.numel() :, 1] = s / s.norm()
    assert d.norm().item() == pytest.approx(math.sqrt(num_classes - 1))
    restricted = curvature.hessian(paradigm, m, num_classes, [mu], [nu])[0]
    torch.testing.assert_close(across.T @ whole @ across, torch.from_numpy(restricted))
    # By symmetry the plane is invariant: its directions do not couple to any other one. So the
    # two eigenvalues are eigenvalues of the whole network.
    image = whole @ across
    torch.testing.assert_close(image, across @ (across.T @ image), rtol=0, atol=1e-12)


@pytest.mark.parametrize("paradigm", NAMES)
def test_rate_is_the_speed_of_the_logarithm_of_the_loss(paradigm: str) -> None:
    for m, num_classes in ((2, 2), (5, 3), (100, 1000)):
        times = np.array([40.0, 900.0, 1.1e5, 4e5])
        table = curvature.along(paradigm, m, num_classes, times)
        exact = lo.trajectory(paradigm, m, num_classes, times)
        for name in ("t", "mu", "nu", "loss"):
            np.testing.assert_array_equal(table[name], exact[name])
        h = 1e-4
        above = lo.trajectory(paradigm, m, num_classes, times * (1 + h))["loss"]
        below = lo.trajectory(paradigm, m, num_classes, times * (1 - h))["loss"]
        numeric = np.log1p((below - above) / above) / (2 * h * times)
        np.testing.assert_allclose(table["rate"], numeric, rtol=1e-5)


def test_at_the_start_the_paradigms_differ_in_curvature_alone() -> None:
    """The same loss and gradient; along the gradient soft is flattest, lvml bends downwards."""
    m, num_classes = 20, 20
    tables = [curvature.along(p, m, num_classes, [0.0]).iloc[0] for p in NAMES]
    for name in ("loss", "gradient_norm", "rate"):
        assert np.ptp([table[name] for table in tables]) < 1e-15
    alpha = 1 / m
    slowing = [curvature.hessian(p, m, num_classes, [0.0], [0.0])[0, 0, 0] for p in NAMES]
    share = 1 / num_classes
    want = [alpha**2, alpha, alpha * (2 * share - 1 + alpha * (1 - share)) / share]
    np.testing.assert_allclose(slowing, np.array(want) * share**2, rtol=1e-12)
    assert slowing[2] < 0 < slowing[0] < slowing[1]


def test_late_curvature() -> None:
    """Hard and lvml: both eigenvalues 1/t. Soft: 1/t and about 2 / (t log t). Rate 1/t for all."""
    times = np.array([1e8, 1e30, 1e100])
    for paradigm in NAMES:
        table = curvature.along(paradigm, 5, 3, times)
        np.testing.assert_allclose((table["rate"] * times).iloc[-1], 1, rtol=1e-4)
        np.testing.assert_allclose((table["eigenvalue_max"] * times).iloc[-1], 1, rtol=1e-4)
        if paradigm == "soft":
            flat = table["eigenvalue_min"] * times * np.log(times) / 2
            assert (np.diff((flat - 1).abs()) < 0).all()
            assert flat.iloc[-1] == pytest.approx(1, abs=0.05)
        else:
            assert (np.diff(table["condition_number"] - 1) < 1e-12).all()
            assert table["condition_number"].iloc[-1] == pytest.approx(1, abs=1e-12)


def test_flat_directions_have_an_infinite_condition_number() -> None:
    table = curvature.at("hard", 5, 3, [800.0], [0.0])  # the classifier has learned all it can
    assert table["condition_number"].tolist() == [math.inf]
    assert table["eigenvalue_max"].tolist() == [0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: curvature.along("hard-sampled", 5, 3, [1.0]), "unknown paradigm"),
        (lambda: curvature.along("soft", 1, 3, [1.0]), "m must be an integer >= 2"),
        (lambda: curvature.along("soft", 5, 3.0, [1.0]), "num_classes must be an integer"),
        (lambda: curvature.along("soft", 5, 3, [2.0, 1.0]), "must not decrease"),
        (lambda: curvature.at("soft", 5, 3, [math.nan], [0.0]), "mu must be finite"),
        (lambda: curvature.at("soft", 5, 3, [0.0], [math.inf]), "nu must be finite"),
        (lambda: curvature.gradient("soft", 5, 3, [0.0], [0.0, 1.0]), "equally long"),
        (lambda: curvature.hessian("soft", 5, 3, 0.0, 0.0), "one-dimensional"),
    ],
)
def test_impossible_requests_are_refused(call, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        call()
