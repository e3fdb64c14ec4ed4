"""The contract that every registered paradigm passes, and references of some in NumPy alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from torch.nn.utils import parameters_to_vector

from study import paradigms
from study.cell import PARADIGMS
from study.check.of_paradigms import PROMISES, B, D, Problem
from study.check.promises import Promise, Skipped
from study.paradigms.paradigm import Paradigm
from tests.made_up.gpu import WAYS, Way
from tests.made_up.parts import sparsemax

REFERENCES = ("soft", "hard", "lvml", "lvml-logits")
"""Of whose loss and inference there is a reference below; a paradigm need not have one."""

EVERY: dict[str, Paradigm] = {
    **{name: paradigms.get(name) for name in PARADIGMS},
    "sparsemax": sparsemax(),  # nothing below knows more of it
}
EXACT = [name for name, paradigm in EVERY.items() if paradigm.exact == name]
SAMPLED = [name for name in EVERY if name not in EXACT]
BOUNDS = ["lvml-sampled"]
"""They estimate a bound of `exact` (tests/study/paradigms/test_lvml_sampled.py)."""


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
def test_it_keeps_its_promises(name: str, promise: Promise, way: Way) -> None:
    """Those that `python -m study.check` checks of paradigms from outside."""
    with way():
        try:
            promise.check(EVERY[name])
        except Skipped:
            assert name in SAMPLED


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", REFERENCES)
def test_loss_and_inference_equal_the_reference(name: str, masked: bool, curved: bool) -> None:
    problem = Problem(masked=masked, curved=curved)
    loss = EVERY[name].loss(*problem.args(), problem.labels, problem.mask)
    assert loss.item() == pytest.approx(reference_loss(name, problem), rel=1e-12)
    predicted = EVERY[name].predict(*problem.args(), problem.mask)
    expected = in_numpy(problem)[0], reference_prediction(name, problem)
    for ours, theirs in zip(predicted, expected, strict=True):
        np.testing.assert_allclose(ours.detach(), theirs, rtol=1e-12)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_padding_may_be_computed(name: str, given: bool) -> None:
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


@pytest.mark.parametrize("name", [name for name in SAMPLED if name not in BOUNDS])
def test_sampled_gradient_is_unbiased(name: str) -> None:
    """The mean over many draws is the exact gradient, within 5 standard errors of each entry."""
    problem, exact_paradigm = Problem(), EVERY[EVERY[name].exact]
    exact = exact_paradigm.loss(*problem.args(), problem.labels)
    exact_gradient = parameters_to_vector(torch.autograd.grad(exact, problem.parameters()))
    generator, copies = torch.Generator().manual_seed(1), 500
    segments, labels = problem.segments.repeat(copies, 1, 1), problem.labels.repeat(copies)
    draws, values = [], []
    for _ in range(100):
        loss = EVERY[name].loss(
            problem.focus, problem.classifier, segments, labels, generator=generator
        )
        draws.append(parameters_to_vector(torch.autograd.grad(loss, problem.parameters())))
        values.append(loss.item())
    gradients = torch.stack(draws)
    errors = gradients.std(dim=0) / 10
    assert ((gradients.mean(dim=0) - exact_gradient).abs() <= 5 * errors + 1e-12).all()
    # A gradient that ignored the score term would be far outside of that interval.
    assert exact_gradient[:D].abs().max() > 20 * errors[:D].max()
    assert np.mean(values) == pytest.approx(exact.item(), rel=5e-3)
    predicted = (each.predict(*problem.args()) for each in (EVERY[name], exact_paradigm))
    assert all(torch.equal(*pair) for pair in zip(*predicted, strict=True))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("soft", 52), ("hard", 60), ("lvml", 60), ("hard-sampled", 54), ("lvml-logits", 60)],
)
def test_cost_counts_the_calls(name: str, expected: int) -> None:
    """Section 2.3: m f and 1 g for soft; m g for hard and both lvml; 1 g a sample."""
    assert EVERY[name].cost(focus_flops=10, classifier_flops=2, m=5) == expected
