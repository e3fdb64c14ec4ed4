"""Segments that go through the networks in parts give the same step as all of them at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from study import paradigms
from study.cell import PARADIGMS
from study.paradigms import parts

B, M, D, C = 3, 20, 6, 4


@pytest.mark.parametrize("name", PARADIGMS)
def test_parts_equal_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loss and gradients, of the segments, too, to 1e-6; and what samples draws the same."""
    torch.manual_seed(0)
    f, g = nn.Linear(D, 1), nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, C))
    labels = torch.randint(C, (B,))
    largest: list[int] = []

    def classifier(x: Tensor) -> Tensor:
        largest.append(len(x))
        return g(x)

    found = []
    for limit in (2**24, 4 * D * 7):  # parts of 7 segments
        monkeypatch.setattr(parts, "PART_BYTES", limit)
        segments = torch.randn(B, M, D, generator=torch.Generator().manual_seed(1))
        segments.requires_grad_()
        draws = torch.Generator().manual_seed(2)
        largest.clear()
        loss = paradigms.get(name).loss(
            lambda x: f(x).squeeze(1), classifier, segments, labels, generator=draws
        )
        weights = [*f.parameters(), *g.parameters()]
        found.append([loss, *torch.autograd.grad(loss, [segments, *weights])])
        if name in ("hard", "lvml", "lvml-logits"):
            assert max(largest) == (B * M if limit == 2**24 else 7)
    for whole, in_parts in zip(*found, strict=True):
        torch.testing.assert_close(in_parts, whole, rtol=1e-6, atol=1e-7)
