"""The mixture of soft attention: the weighted sum of the segments, without a copy of images."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from study.paradigms.base import Attended

B, M = 4, 3


class Calls(TorchDispatchMode):
    """Records the names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((5,), None),
        ((3, 6, 7), torch.contiguous_format),
        ((3, 6, 7), torch.channels_last),
        ((1, 4, 4), torch.channels_last),
    ],
)
def test_it_is_the_weighted_sum(
    shape: tuple[int, ...], layout: torch.memory_format | None
) -> None:
    """Images stay channels-last and are not copied: convolutions would else reorder them."""
    generator = torch.Generator().manual_seed(0)
    segments = torch.randn(B * M, *shape, dtype=torch.float64, generator=generator)
    if layout:
        segments = segments.to(memory_format=layout)
    segments = segments.unflatten(0, (B, M))
    scores = torch.randn(B, M, dtype=torch.float64, requires_grad=True)
    attended = Attended(scores, torch.nn.Identity(), segments, None)
    reference = torch.einsum("bm,bm...->b...", attended.attention, segments)
    with Calls() as calls:
        mixture = attended.mixture
        (found,) = torch.autograd.grad(mixture.square().sum(), scores, retain_graph=True)
    (expected,) = torch.autograd.grad(reference.square().sum(), scores)
    torch.testing.assert_close(mixture, reference, rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    if layout is torch.channels_last:
        assert mixture.is_contiguous(memory_format=layout)
        assert "bmm" in calls.names
        assert not {"clone", "copy_", "_to_copy"} & set(calls.names)
