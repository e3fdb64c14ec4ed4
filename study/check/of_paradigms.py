"""What every paradigm promises, checked on random networks in float64."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import paradigms
from study.check.promises import Broken, Promise, promise, require, require_equal, skip_unless
from study.errors import RequestError
from study.paradigms.paradigm import Paradigm, focus_scores

B, M, D, C = 7, 5, 4, 3

PROMISES: list[Promise] = []
promised = functools.partial(promise, to=PROMISES)


class Problem:
    """Random f and g, segments, labels and a mask, all float64.

    Both are linear; curved: g is not, so that a mean of inputs and one of outputs differ.
    """

    def __init__(self, seed: int = 0, masked: bool = False, curved: bool = False) -> None:
        generator = torch.Generator().manual_seed(seed)

        def drawn(*shape: int) -> Tensor:
            return torch.randn(*shape, dtype=torch.float64, generator=generator)

        self.curved = curved
        self.f, self.g = nn.Linear(D, 1).double(), nn.Linear(D, C).double()
        for each in self.parameters():
            each.data = drawn(*each.shape) / 2
        self.segments = drawn(B, M, D)
        self.labels = torch.randint(C, (B,), generator=generator)
        self.mask = None
        if masked:
            self.mask = torch.rand(B, M, generator=generator) < 0.6
            self.mask[:, 0] |= ~self.mask.any(dim=1)

    def focus(self, x: Tensor) -> Tensor:
        return self.f(x).squeeze(1)

    def classifier(self, x: Tensor) -> Tensor:
        return self.g(self.bend(x))

    def bend(self, x: Tensor) -> Tensor:
        return x.sin() if self.curved else x

    def args(self) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Tensor]:
        return self.focus, self.classifier, self.segments

    def parameters(self) -> list[nn.Parameter]:
        return [*self.f.parameters(), *self.g.parameters()]

    def loss(self, paradigm: Paradigm, **given: Any) -> Tensor:
        return paradigm.loss(*self.args(), self.labels, self.mask, **given)

    def prediction(self, paradigm: Paradigm, **given: Any) -> tuple[Tensor, Tensor]:
        return paradigm.predict(*self.args(), self.mask, **given)

    def padded(self) -> Problem:
        """The same problem with three more segments, NaN wherever there is padding."""
        assert self.mask is not None
        longer = copy.copy(self)
        longer.mask = functional.pad(self.mask, (0, 3))
        longer.segments = functional.pad(self.segments, (0, 0, 0, 3))
        longer.segments[~longer.mask] = torch.nan
        return longer


class Counted:
    """A function that remembers the segments it was called on."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self.seen: list[Tensor] = []

    def __call__(self, segments: Tensor) -> Tensor:
        self.seen.append(segments.detach())
        return self._function(segments)

    @property
    def calls(self) -> int:
        return sum(map(len, self.seen))


def _is_exact(paradigm: Paradigm) -> bool:
    return paradigm.exact == paradigm.name


def _skip_if_sampled(paradigm: Paradigm) -> None:
    why = f"its loss is sampled, so this is asked of {paradigm.exact} alone"
    skip_unless(_is_exact(paradigm), why)


@promised("names a paradigm that draws nothing as its exact one")
def names_its_exact(paradigm: Paradigm) -> None:
    """Evaluations take the loss of `exact`."""
    if _is_exact(paradigm):
        return
    try:
        exact = paradigms.get(paradigm.exact)
    except RequestError as error:
        require(False, f"exact = {paradigm.exact!r}: {error}")
    require(_is_exact(exact), f"its exact one, {paradigm.exact}, has another exact one itself")


@promised("has a loss in nats for each of a batch, which is a number")
def has_a_loss(paradigm: Paradigm) -> None:
    problem = Problem()
    losses = paradigm.losses(paradigm.attended(*problem.args()), problem.labels)
    require(
        losses.shape == (B,),
        f"losses() of {B} mosaics has shape {tuple(losses.shape)}, must be ({B},): one each",
    )
    loss = problem.loss(paradigm)
    require(loss.shape == (), f"the loss of a batch has shape {tuple(loss.shape)}, must be ()")
    require(torch.isfinite(loss), f"the loss of moderate numbers is {loss.item()}")


@promised("predicts distributions over segments and over classes")
def predicts_distributions(paradigm: Paradigm) -> None:
    for masked in (False, True):
        problem = Problem(masked=masked)
        attention, probabilities = problem.prediction(paradigm)
        for what, each, shape in (
            ("attention", attention, (B, M)),
            ("probabilities", probabilities, (B, C)),
        ):
            require(each.shape == shape, f"{what} has shape {tuple(each.shape)}, not {shape}")
            require((each >= 0).all(), f"{what} is negative somewhere")
            require_equal(each.sum(dim=1), torch.ones(B).double(), f"the sum of {what} (1)", 1e-9)
        attended = paradigm.attend(focus_scores(problem.focus, problem.segments, problem.mask))
        require_equal(attended, attention, "attend() beside the attention that predict() returns")


@promised("keeps probabilities at most 1 at 1,000 segments in float32")
def keeps_probabilities(paradigm: Paradigm) -> None:
    """SAIF refuses scores above 1 + 1e-6."""
    segments = torch.randn(200, 1000, 1, generator=torch.Generator().manual_seed(0))
    _, probabilities = paradigm.predict(
        lambda x: x.squeeze(1), lambda x: torch.cat([x * 0 + 40, x * 0], dim=1), segments
    )
    largest = probabilities.max().item()
    require(largest <= 1 + 5e-7, f"the largest is 1 + {largest - 1:.2g}: add up in another order")


@promised("has the gradient of its loss, by finite differences")
def has_its_gradient(paradigm: Paradigm) -> None:
    _skip_if_sampled(paradigm)
    for masked, curved in ((False, False), (True, False), (False, True), (True, True)):
        problem = Problem(masked=masked, curved=curved)
        weights = "the weights of focus and classifier"
        _require_gradient(paradigm, problem, problem.parameters(), weights)


@promised("has a gradient for an attention that is given, exact zeros included")
def has_a_gradient_for_attention(paradigm: Paradigm) -> None:
    """The incentive of section 3.2 is minus this derivative."""
    _skip_if_sampled(paradigm)
    for masked in (False, True):
        problem = Problem(masked=masked)
        attention = torch.rand(B, M, generator=torch.Generator().manual_seed(0)).double()
        if problem.mask is None:
            attention[:, 0] = 0
        else:
            attention[~problem.mask] = 0
        attention /= attention.sum(dim=1, keepdim=True)
        attention.requires_grad_()
        _require_gradient(paradigm, problem, [attention], "a given attention", attention=attention)


def _require_gradient(
    paradigm: Paradigm, problem: Problem, of: Sequence[Tensor], what: str, **given: Tensor
) -> None:
    def loss(*_: Tensor) -> Tensor:  # those that are checked, which are moved in place
        return problem.loss(paradigm, **given)

    right = torch.autograd.gradcheck(loss, of, atol=1e-7, raise_exception=False)
    require(right, f"the gradient for {what} is not that of the loss: is something detached?")


@promised("takes an attention that is given in place of the focus")
def takes_an_attention(paradigm: Paradigm) -> None:
    problem = Problem()
    own, probabilities = problem.prediction(paradigm)

    def no_focus(_: Tensor) -> Tensor:
        raise Broken("it calls the focus although an attention is given")

    given = (no_focus, problem.classifier, problem.segments)
    draws = [torch.Generator().manual_seed(3) for _ in range(2)]
    expected = problem.loss(paradigm, generator=draws[0])
    loss = paradigm.loss(*given, problem.labels, attention=own, generator=draws[1])
    require_equal(loss, expected, "the loss with its own attention given")
    again, same = paradigm.predict(*given, attention=own)
    require_equal(again, own, "the attention that is given")
    require_equal(same, probabilities, "the prediction with its own attention given")


@promised("classifies the one segment that has all attention")
def classifies_the_attended(paradigm: Paradigm) -> None:
    """Where attention is certain, all paradigms are one."""
    problem = Problem(curved=True)
    index = torch.randint(M, (B,), generator=torch.Generator().manual_seed(1))
    attention = functional.one_hot(index, M).double()
    logits = problem.classifier(problem.segments[torch.arange(B), index])
    loss = problem.loss(paradigm, attention=attention)
    require_equal(loss, functional.cross_entropy(logits, problem.labels), "its loss", 1e-12)
    _, probabilities = problem.prediction(paradigm, attention=attention)
    require_equal(probabilities, logits.softmax(dim=1), "its prediction", 1e-12)


@promised("is not changed by padding, whatever stands there")
def ignores_padding(paradigm: Paradigm) -> None:
    problem = Problem(masked=True)
    longer = problem.padded()
    padding = longer.segments.isnan().any(dim=2)
    attention, probabilities = problem.prediction(paradigm)
    require((attention[padding[:, :M]] == 0).all(), "attention on padding is not exactly 0")
    padded_attention, padded = longer.prediction(paradigm)
    loss, of_segments, *gradients = _trained(paradigm, longer)
    finite = all(torch.isfinite(each).all() for each in (padded, loss, *gradients))
    require(finite, "NaN in padding reaches the loss, the prediction or a gradient")
    require_equal(padded, probabilities, "a prediction with more padding")
    require_equal(padded_attention[:, :M], attention, "attention with more padding")
    further = padded_attention[padding]
    require((further == 0).all(), "attention on further padding is not exactly 0")
    require((of_segments[padding] == 0).all(), "padding has a gradient")


@promised("has the same loss and gradients with more padding")
def trains_alike_with_padding(paradigm: Paradigm) -> None:
    _skip_if_sampled(paradigm)
    problem = Problem(masked=True)
    padded, _, *of_padded = _trained(paradigm, problem.padded())
    loss, _, *gradients = _trained(paradigm, problem)
    require_equal(padded, loss, "the loss with more padding")
    for got, expected in zip(of_padded, gradients, strict=True):
        require_equal(got, expected, "a gradient with more padding")


def _trained(paradigm: Paradigm, problem: Problem) -> list[Tensor]:
    """The loss, and its gradients for the segments and all weights."""
    inputs = [problem.segments.requires_grad_(), *problem.parameters()]
    loss = problem.loss(paradigm)
    return [loss, *torch.autograd.grad(loss, inputs)]


@promised("has a loss of NaN where the networks give NaN")
def shows_divergence(paradigm: Paradigm) -> None:
    """A diverged model must be seen as diverged, not crash the trial."""
    problem = Problem()
    problem.segments = torch.full_like(problem.segments, torch.nan)
    loss = problem.loss(paradigm)
    require(torch.isnan(loss), f"the loss of NaN is {loss.item()}")


@promised("has the cross-entropy of a confident mistake, in float32")
def stays_finite(paradigm: Paradigm) -> None:
    """Of equal segments it does not matter which is attended to."""
    _skip_if_sampled(paradigm)
    segments = torch.full((1, 2, 1), 300.0)
    loss = paradigm.loss(
        lambda x: x.squeeze(1), lambda x: torch.cat([x, -x], dim=1), segments, torch.tensor([1])
    ).item()
    close = math.isclose(loss, 600, rel_tol=1e-6)
    require(close, f"it is {loss:g}, must be 600: compute it by log_softmax or logsumexp")


@promised("costs the calls of focus and classifier that its loss makes")
def costs_its_calls(paradigm: Paradigm) -> None:
    """Equal compute goes by the cost."""
    problem = Problem()
    focus, classifier = Counted(problem.focus), Counted(problem.classifier)
    paradigm.loss(focus, classifier, problem.segments, problem.labels)
    called = 10 * focus.calls + 2 * classifier.calls
    cost = B * paradigm.cost(focus_flops=10, classifier_flops=2, m=M)
    calls = f"{focus.calls / B:g} calls of f and {classifier.calls / B:g} of g"
    require(
        cost == called,
        f"with f of 10 and g of 2 FLOPs, cost() says {cost / B:g} for {M} segments, but the loss "
        f"makes {calls}, {called / B:g}",
    )


@promised("mixes segments if and only if it says so")
def mixes_as_declared(paradigm: Paradigm) -> None:
    """Else evaluations look the classifier's outputs up, segment by segment."""
    problem = Problem()
    classifier = Counted(problem.classifier)
    paradigm.loss(problem.focus, classifier, problem.segments, problem.labels)
    paradigm.predict(problem.focus, classifier, problem.segments)
    of_problem = {tuple(each) for each in problem.segments.flatten(0, 1).tolist()}
    only_segments = {tuple(each) for each in torch.cat(classifier.seen).tolist()} <= of_problem
    saw = "single segments only" if only_segments else "more than single segments"
    require(
        paradigm.mixes != only_segments,
        f"mixes = {paradigm.mixes}, but the classifier saw {saw}",
    )
