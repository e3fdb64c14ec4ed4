"""lvml-sampled: what it is unbiased for, and how far that lies above the marginal likelihood."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from study import paradigms
from study.paradigms import hard_sampled
from study.paradigms.lvml_sampled import LVMLSampled

M, D, C = 4, 3, 3


class Problem:
    """One input in float64, with its attention and the probability of its class by segment."""

    def __init__(self, seed: int = 0, spread: float = 1.0) -> None:
        torch.manual_seed(seed)
        self.f, self.g = nn.Linear(D, 1).double(), nn.Linear(D, C).double()
        self.segments = spread * torch.randn(1, M, D, dtype=torch.float64)
        self.label = torch.tensor([1])

    def loss(self, paradigm: paradigms.Paradigm) -> Tensor:
        return paradigm.loss(self.focus, self.g, self.segments, self.label)

    def focus(self, x: Tensor) -> Tensor:
        return self.f(x).squeeze(1)

    @property
    def attention(self) -> Tensor:
        return self.focus(self.segments[0]).softmax(0)

    @property
    def likelihoods(self) -> Tensor:
        return self.g(self.segments[0]).softmax(1)[:, 1]

    def bound(self, count: int) -> Tensor:
        """L_K by the sum over all M^K draws."""
        draws = torch.tensor(list(itertools.product(range(M), repeat=count)))
        weights = self.attention[draws].prod(dim=1)
        return -(weights * self.likelihoods[draws].mean(dim=1).log()).sum()

    def weights(self) -> list[nn.Parameter]:
        return [*self.f.parameters(), *self.g.parameters()]


class OfThree(LVMLSampled):
    draws = 3


def test_its_gradient_is_unbiased_for_that_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Summed over all draws with their probabilities, it is exact."""
    problem = Problem()
    bound = problem.bound(3)
    exact = torch.autograd.grad(bound, problem.weights())
    total, value = [torch.zeros_like(each) for each in exact], 0.0
    for draw in itertools.product(range(M), repeat=3):
        monkeypatch.setattr(hard_sampled, "_draw", lambda *_, d=draw: torch.tensor([d]))
        loss = problem.loss(OfThree())
        share = problem.attention[list(draw)].prod().item()
        value += share * loss.item()
        for sum_, each in zip(total, torch.autograd.grad(loss, problem.weights()), strict=True):
            sum_ += share * each
    assert value == pytest.approx(bound.item(), rel=1e-12)
    torch.testing.assert_close(total, list(exact), rtol=1e-10, atol=1e-14)
    # Without the score term, the focus would not learn at all.
    assert exact[0].abs().max() > 1e-3


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_falls_from_hard_to_lvml(seed: int) -> None:
    problem = Problem(seed)
    hard, lvml = (problem.loss(paradigms.get(name)).item() for name in ("hard", "lvml"))
    bounds = [problem.bound(count).item() for count in range(1, 7)]
    assert bounds[0] == pytest.approx(hard, rel=1e-12)
    assert all(one > other for one, other in itertools.pairwise([*bounds, lvml]))


@pytest.mark.parametrize("seed", range(5))
def test_its_bias_is_that_of_its_docstring(seed: int) -> None:
    """L_K - L_LV is about v / 2K: the next term is of order 1 / K^2."""
    problem, count = Problem(seed, spread=0.3), 6
    a, p = problem.attention, problem.likelihoods
    mean = (a * p).sum()
    v = ((a * p**2).sum() / mean**2 - 1).item()
    bias = problem.bound(count).item() + math.log(mean.item())
    assert bias == pytest.approx(v / (2 * count), rel=0.1)
