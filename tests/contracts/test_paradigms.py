"""The contract that every registered paradigm passes, and references of some in NumPy alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from torch import Tensor

from study import paradigms
from study.cell import PARADIGMS
from study.check.of_paradigms import PROMISES, B, M, Problem
from study.check.promises import Skipped
from study.paradigms import hard_sampled
from study.paradigms.lvml_sampled import LVMLSampled
from study.paradigms.paradigm import Paradigm
from tests.made_up.gpu import WAYS
from tests.made_up.parts import sparsemax

REFERENCES = ("soft", "hard", "lvml", "lvml-logits")
"""Of whose loss and inference there is a reference below; a paradigm need not have one."""

EVERY: dict[str, Paradigm] = {
    **{name: paradigms.get(name) for name in PARADIGMS},
    "sparsemax": sparsemax(),  # nothing below knows more of it
}
EXACT = [name for name, paradigm in EVERY.items() if paradigm.exact == name]
SAMPLED = [name for name in EVERY if name not in EXACT]
DRAWS = {"hard-sampled": 2, "hard-running": 1, "lvml-sampled": 3}
"""Segments of an input that a loss draws; lvml-sampled usually draws more."""


def numpy_logits(problem: Problem, x: np.ndarray) -> np.ndarray:
    bent = np.sin(x) if problem.curved else x
    return bent @ problem.g.weight.detach().numpy().T + problem.g.bias.detach().numpy()


def in_numpy(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attention (B, M), log class probabilities of segments (B, M, C), and segments."""
    x = problem.segments.numpy()
    u, b = problem.f.weight.detach().numpy()[0], problem.f.bias.item()
    scores = x @ u + b
    if problem.mask is not None:
        scores = np.where(problem.mask.numpy(), scores, -np.inf)
    return softmax(scores, axis=1), log_softmax(numpy_logits(problem, x), axis=2), x


def reference_prediction(name: str, problem: Problem) -> np.ndarray:
    a, log_p, x = in_numpy(problem)
    if name == "soft":
        return softmax(numpy_logits(problem, np.einsum("bm,bmd->bd", a, x)), axis=1)
    if name == "lvml-logits":
        return softmax(np.einsum("bm,bmc->bc", a, numpy_logits(problem, x)), axis=1)
    if name == "lvml":
        return np.einsum("bm,bmc->bc", a, np.exp(log_p))
    return np.exp(log_p)[np.arange(B), a.argmax(axis=1)]


def reference_loss(name: str, problem: Problem) -> float:
    """In nats: of what is predicted, but for hard, the mean over segments."""
    rows, y = np.arange(B), problem.labels.numpy()
    if name == "hard":
        a, log_p, _ = in_numpy(problem)
        return float(-(a * log_p[rows, :, y]).sum(axis=1).mean())
    return float(-np.log(reference_prediction(name, problem)[rows, y]).mean())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.check.__name__)
@pytest.mark.parametrize("name", EVERY)
def test_it_keeps_its_promises(name, promise, way):
    """Those that `python -m study.check` checks of paradigms from outside."""
    with way():
        try:
            promise.check(EVERY[name])
        except Skipped:
            assert name in SAMPLED


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", REFERENCES)
def test_loss_and_inference_equal_the_reference(name, masked, curved):
    problem = Problem(masked=masked, curved=curved)
    loss = EVERY[name].loss(*problem.args(), problem.labels, problem.mask)
    assert loss.item() == pytest.approx(reference_loss(name, problem), rel=1e-12)
    predicted = EVERY[name].predict(*problem.args(), problem.mask)
    expected = in_numpy(problem)[0], reference_prediction(name, problem)
    for ours, theirs in zip(predicted, expected, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs, rtol=1e-12)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_padding_may_be_computed(name, given):
    """As on a GPU, where leaving it out would wait; samples are the same, too."""
    problem, paradigm = Problem(masked=True, curved=True), EVERY[name]
    attention = paradigm.predict(*problem.args(), problem.mask)[0].detach() if given else None
    found = []
    for way in WAYS:
        with way():
            generator = torch.Generator().manual_seed(0)
            of_batch = (*problem.args(), problem.labels, problem.mask, attention, generator)
            loss = paradigm.loss(*of_batch)
            trained = problem.parameters() if attention is None else problem.g.parameters()
            gradients = torch.autograd.grad(loss, list(trained))
            predicted = paradigm.predict(*problem.args(), problem.mask, attention)
        found.append([loss, *predicted, *gradients])
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-14)


def bound(problem: Problem, draws: Tensor, shares: Tensor) -> Tensor:
    """What lvml-sampled says that it estimates, of one input and all of its draws."""
    likelihoods = problem.classifier(problem.segments[0]).softmax(1)[:, problem.labels[0]]
    return -(shares * likelihoods[draws].mean(dim=1).log()).sum()


@pytest.mark.parametrize("name", SAMPLED)
def test_a_sampled_gradient_is_unbiased(name, monkeypatch):
    """Over all draws with their probabilities it is that of what they estimate, of one input."""
    paradigm, problem = EVERY[name], Problem(curved=True)
    monkeypatch.setattr(LVMLSampled, "draws", 3)
    given = problem.focus, problem.classifier, problem.segments[:1], problem.labels[:1]
    draws = torch.tensor([*itertools.product(range(M), repeat=DRAWS[name])])
    shares = problem.focus(problem.segments[0]).softmax(0)[draws].prod(dim=1)
    if name == "lvml-sampled":
        expected = bound(problem, draws, shares)
    else:
        expected = EVERY[paradigm.exact].loss(*given)
    gradients = torch.autograd.grad(expected, problem.parameters())
    found = [torch.zeros(()).double(), *map(torch.zeros_like, gradients)]
    for draw, share in zip(draws, shares.detach(), strict=True):
        monkeypatch.setattr(hard_sampled, "_draw", lambda *_, drawn=draw: drawn[None])
        loss = paradigm.loss(*given)
        of_draw = [loss, *torch.autograd.grad(loss, problem.parameters())]
        found = [total + share * each.detach() for total, each in zip(found, of_draw, strict=True)]
    torch.testing.assert_close(found, [expected, *gradients], rtol=1e-10, atol=1e-14)
    # Without the score term, the focus would not learn at all.
    assert gradients[0].abs().max() > 1e-3
    predicted = (each.predict(*problem.args()) for each in (paradigm, EVERY[paradigm.exact]))
    assert all(torch.equal(*pair) for pair in zip(*predicted, strict=True))
