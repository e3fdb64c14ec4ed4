"""What can be said of mosaics with several foreground segments before any training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from study import paradigms

C = 3


@pytest.mark.parametrize("name", ["soft", "hard", "lvml"])
def test_k_of_m_are_like_one_of_m_over_k(name: str) -> None:
    """In the linear orthogonal setting: loss, and both gradients of Theorem 2."""
    mu, nu = 1.3, 0.7
    found = []
    for m, k in ((20, 4), (5, 1)):
        scales = torch.tensor([mu, nu], dtype=torch.float64, requires_grad=True)
        segments = torch.zeros(C, m, C, dtype=torch.float64)  # a mosaic of each class
        segments[range(C), :k] = torch.eye(C, dtype=torch.float64)[:, None]
        loss = paradigms.get(name).loss(
            lambda x, nu=scales[1]: nu * x.sum(dim=1),
            lambda x, mu=scales[0]: mu * (x - x.mean(dim=1, keepdim=True)),
            segments,
            torch.arange(C),
        )
        found.append(torch.stack([loss, *torch.autograd.grad(loss, scales)[0]]))
    torch.testing.assert_close(*found, rtol=1e-12, atol=0)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_focus_finds_more_than_k_of_k_plus_one(k: int) -> None:
    """Beside one distractor: the share of mosaics in which the largest of all foreground scores
    is of the label's class is at most k / (k + 1), and is that if classes score alike."""
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.3, 3.0):
        one, other = rng.normal(size=(2, 200_000, k + 1))
        # Either class is the label's in half of the mosaics; its scores are `shift` higher or not.
        right = [
            (first[:, :k] + up).max(axis=1) > first[:, k] + down
            for first, up, down in ((one, shift, 0.0), (other, 0.0, shift))
        ]
        share = np.mean(right)
        error = 4 * np.sqrt(0.25 / 400_000)
        assert share <= k / (k + 1) + error
        assert shift or share == pytest.approx(k / (k + 1), abs=error)
