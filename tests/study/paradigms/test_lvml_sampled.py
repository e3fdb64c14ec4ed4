"""lvml-sampled: what it is unbiased for."""

from __future__ import annotations

import itertools

import pytest
import torch

from study.check.of_paradigms import M, Problem
from study.paradigms import hard_sampled
from study.paradigms.lvml_sampled import LVMLSampled

DRAWS = 3


class OfThree(LVMLSampled):
    draws = DRAWS


def test_its_gradient_is_unbiased_for_that_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one input, summed over all M^K draws with their probabilities, it is exact."""
    problem = Problem()
    segments, label = problem.segments[:1], problem.labels[:1]
    attention = problem.focus(segments[0]).softmax(0)
    likelihoods = problem.g(segments[0]).softmax(1)[:, label.item()]
    draws = torch.tensor(list(itertools.product(range(M), repeat=DRAWS)))
    shares = attention[draws].prod(dim=1)
    bound = -(shares * likelihoods[draws].mean(dim=1).log()).sum()
    exact = torch.autograd.grad(bound, problem.parameters())
    total, value = [torch.zeros_like(each) for each in exact], 0.0
    for draw, share in zip(draws, shares.tolist(), strict=True):
        monkeypatch.setattr(hard_sampled, "_draw", lambda *_, d=draw: d[None])
        loss = OfThree().loss(problem.focus, problem.g, segments, label)
        value += share * loss.item()
        for sum_, each in zip(total, torch.autograd.grad(loss, problem.parameters()), strict=True):
            sum_ += share * each
    assert value == pytest.approx(bound.item(), rel=1e-12)
    torch.testing.assert_close(total, list(exact), rtol=1e-10, atol=1e-14)
    # Without the score term, the focus would not learn at all.
    assert exact[0].abs().max() > 1e-3
