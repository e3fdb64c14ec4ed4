"""The mixture of soft attention: the weighted sum of the segments, without a copy of images."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from study.paradigms.base import Attended, Given

B, M = 4, 3


class Calls(TorchDispatchMode):
    """Records the names of the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def segments(shape: tuple[int, ...], channels_last: bool) -> Tensor:
    values = torch.randn(
        B * M, *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    if channels_last:
        values = values.to(memory_format=torch.channels_last)
    return values.unflatten(0, (B, M))


def attended(scores: Tensor, of: Tensor, mask: Tensor | None = None) -> Attended:
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return Attended(scores, torch.nn.Identity(), of, mask)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("shape", "channels_last"),
    [((5,), False), ((3, 6, 7), False), ((3, 6, 7), True), ((1, 4, 4), True)],
)
def test_it_is_the_weighted_sum(shape: tuple[int, ...], channels_last: bool, masked: bool) -> None:
    x = segments(shape, channels_last)
    mask = torch.tensor([[True, False, True]] * B) if masked else None
    given = x.clone()
    if masked:
        given[:, 1] = torch.nan  # padding may be NaN
        x = x.clone()
        x[:, 1] = 0.0
    leaf = torch.randn(B, M, dtype=torch.float64, requires_grad=True)
    ours = attended(leaf, given, mask)
    reference = torch.einsum("bm,bm...->b...", ours.attention, x)
    mixture = ours.mixture
    torch.testing.assert_close(mixture, reference, rtol=1e-14, atol=1e-14)
    pull = torch.randn_like(reference)
    (found,) = torch.autograd.grad((mixture * pull).sum(), leaf, retain_graph=True)
    (expected,) = torch.autograd.grad((reference * pull).sum(), leaf)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)


def test_images_stay_channels_last_and_are_not_copied() -> None:
    """The classifier's convolution would otherwise reorder them."""
    x = segments((3, 6, 7), channels_last=True)
    attention = torch.rand(B, M, dtype=torch.float64, requires_grad=True)
    with Calls() as calls:
        mixture = Given(attention, torch.nn.Identity(), x, None).mixture
        torch.autograd.grad(mixture.square().sum(), attention)
    assert mixture.is_contiguous(memory_format=torch.channels_last)
    assert "bmm" in calls.names
    assert not {"clone", "copy_", "_to_copy"} & set(calls.names)
