"""The mixture of soft attention, without a copy of images; segments that go through in parts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from study import paradigms
from study.cell import PARADIGMS
from study.check.of_paradigms import B, D, M, Problem
from study.paradigms import parts
from study.paradigms.paradigm import Attended


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
def test_a_mixture_is_the_weighted_sum(shape, layout):
    """Images stay channels-last and are not copied: convolutions would else reorder them."""
    generator = torch.Generator().manual_seed(0)
    segments = torch.randn(12, *shape, dtype=torch.float64, generator=generator)
    if layout:
        segments = segments.to(memory_format=layout)
    segments = segments.unflatten(0, (4, 3))
    scores = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    attended = Attended(scores, torch.nn.Identity(), segments, None)
    with Calls() as calls:
        mixture = attended.mixture
        mixture.square().sum().backward()
    reference = torch.einsum("bm,bm...->b...", attended.attention, segments)
    torch.testing.assert_close(mixture, reference, rtol=1e-14, atol=1e-14)
    if layout is torch.channels_last:
        assert mixture.is_contiguous(memory_format=layout)
        assert "bmm" in calls.names
        assert not {"clone", "copy_", "_to_copy"} & set(calls.names)


@pytest.mark.parametrize("name", PARADIGMS)
def test_segments_in_parts_give_the_same_step(name, monkeypatch):
    """Loss and gradients, of the segments, too; and what samples draws the same."""
    problem, found = Problem(curved=True), []
    largest: list[int] = []

    def classifier(x: Tensor) -> Tensor:
        largest.append(len(x))
        return problem.classifier(x)

    for most in (B * M, 4):
        monkeypatch.setattr(parts, "PART_BYTES", 4 * D * most)
        segments = problem.segments.clone().requires_grad_()
        largest.clear()
        loss = paradigms.get(name).loss(
            problem.focus, classifier, segments, problem.labels,
            generator=torch.Generator().manual_seed(2),
        )  # fmt: skip
        found.append([loss, *torch.autograd.grad(loss, [segments, *problem.parameters()])])
        if name in ("hard", "lvml", "lvml-logits"):
            assert max(largest) == most
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-14)
