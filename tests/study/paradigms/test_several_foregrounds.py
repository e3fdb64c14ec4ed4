"""What can be said of mosaics with several foreground segments before any training."""

from __future__ import annotations

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
