"""What every paradigm promises, checked on random networks in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import paradigms
from study.check.promises import Promise, promise, require, require_equal, skip_unless
from study.errors import RequestError
from study.paradigms.paradigm import Paradigm, focus_scores

B, M, D, C = 7, 5, 4, 3

PROMISES: list[Promise] = []


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


@promise("names a paradigm that draws nothing as its exact one", to=PROMISES)
def names_its_exact(paradigm: Paradigm) -> None:
    """Evaluations take the loss of `exact`."""
    if _is_exact(paradigm):
        return
    try:
        exact = paradigms.get(paradigm.exact)
    except RequestError as error:
        require(False, f"exact = {paradigm.exact!r}: {error}")
    require(_is_exact(exact), f"its exact one, {paradigm.exact}, has another exact one itself")


@promise("has a loss in nats for each of a batch, which is a number", to=PROMISES)
def has_a_loss(paradigm: Paradigm) -> None:
    problem = Problem()
    losses = paradigm.losses(paradigm.attended(*problem.args()), problem.labels)
    require(
        losses.shape == (B,),
        f"losses() of {B} mosaics has shape {tuple(losses.shape)}, must be ({B},): one each",
    )
    loss = paradigm.loss(*problem.args(), problem.labels)
    require(loss.shape == (), f"the loss of a batch has shape {tuple(loss.shape)}, must be ()")
    require(torch.isfinite(loss), f"the loss of moderate numbers is {loss.item()}")


@promise("predicts distributions over segments and over classes", to=PROMISES)
def predicts_distributions(paradigm: Paradigm) -> None:
    for masked in (False, True):
        problem = Problem(masked=masked)
        attention, probabilities = paradigm.predict(*problem.args(), problem.mask)
        for what, each, shape in (
            ("attention", attention, (B, M)),
            ("probabilities", probabilities, (B, C)),
        ):
            require(each.shape == shape, f"{what} has shape {tuple(each.shape)}, not {shape}")
            require((each >= 0).all(), f"{what} is negative somewhere")
            require_equal(each.sum(dim=1), torch.ones(B).double(), f"the sum of {what} (1)", 1e-9)
        attended = paradigm.attend(focus_scores(problem.focus, problem.segments, problem.mask))
        require_equal(attended, attention, "attend() beside the attention that predict() returns")


@promise("keeps probabilities at most 1 at 1,000 segments in float32", to=PROMISES)
def keeps_probabilities(paradigm: Paradigm) -> None:
    """SAIF refuses scores above 1 + 1e-6."""
    segments = torch.randn(200, 1000, 1, generator=torch.Generator().manual_seed(0))
    _, probabilities = paradigm.predict(
        lambda x: x.squeeze(1), lambda x: torch.cat([x * 0 + 40, x * 0], dim=1), segments
    )
    largest = probabilities.max().item()
    require(largest <= 1 + 5e-7, f"the largest is 1 + {largest - 1:.2g}: add up in another order")


@promise("has the gradient of its loss, by finite differences", to=PROMISES)
def has_its_gradient(paradigm: Paradigm) -> None:
    _skip_if_sampled(paradigm)
    for masked, curved in ((False, False), (True, False), (False, True), (True, True)):
        problem = Problem(masked=masked, curved=curved)

        def loss(*parameters: Tensor, problem: Problem = problem) -> Tensor:
            u, b, w, c = parameters
            return paradigm.loss(
                lambda x: (x @ u.T + b).squeeze(1),
                lambda x: problem.bend(x) @ w.T + c,
                problem.segments,
                problem.labels,
                problem.mask,
            )

        _require_gradient(loss, problem.parameters(), "the weights of focus and classifier")


@promise("has a gradient for an attention that is given, exact zeros included", to=PROMISES)
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

        def loss(a: Tensor, problem: Problem = problem) -> Tensor:
            return paradigm.loss(*problem.args(), problem.labels, problem.mask, attention=a)

        _require_gradient(loss, [attention], "a given attention")


def _require_gradient(loss: Callable[..., Tensor], of: Sequence[Tensor], what: str) -> None:
    found = torch.autograd.gradcheck(loss, of, atol=1e-7, raise_exception=False)
    require(found, f"the gradient for {what} is not that of the loss: is something detached?")


@promise("takes an attention that is given in place of the focus", to=PROMISES)
def takes_an_attention(paradigm: Paradigm) -> None:
    problem = Problem()
    own, probabilities = paradigm.predict(*problem.args())

    def no_focus(_: Tensor) -> Tensor:
        require(False, "it calls the focus although an attention is given")
        raise AssertionError

    given = (no_focus, problem.classifier, problem.segments)
    draws = [torch.Generator().manual_seed(3) for _ in range(2)]
    expected = paradigm.loss(*problem.args(), problem.labels, generator=draws[0])
    loss = paradigm.loss(*given, problem.labels, attention=own, generator=draws[1])
    require_equal(loss, expected, "the loss with its own attention given")
    again, same = paradigm.predict(*given, attention=own)
    require_equal(again, own, "the attention that is given")
    require_equal(same, probabilities, "the prediction with its own attention given")


@promise("classifies the one segment that has all attention", to=PROMISES)
def classifies_the_attended(paradigm: Paradigm) -> None:
    """Where attention is certain, all paradigms are one."""
    problem = Problem(curved=True)
    index = torch.randint(M, (B,), generator=torch.Generator().manual_seed(1))
    attention = functional.one_hot(index, M).double()
    logits = problem.classifier(problem.segments[torch.arange(B), index])
    loss = paradigm.loss(*problem.args(), problem.labels, attention=attention)
    require_equal(loss, functional.cross_entropy(logits, problem.labels), "its loss", 1e-12)
    _, probabilities = paradigm.predict(*problem.args(), attention=attention)
    require_equal(probabilities, logits.softmax(dim=1), "its prediction", 1e-12)


@promise("is not changed by padding, whatever stands there", to=PROMISES)
def ignores_padding(paradigm: Paradigm) -> None:
    problem = Problem(masked=True)
    assert problem.mask is not None
    attention, probabilities = paradigm.predict(*problem.args(), problem.mask)
    require((attention[~problem.mask] == 0).all(), "attention on padding is not exactly 0")
    longer, mask = _padded(problem)
    padded_attention, padded = paradigm.predict(problem.focus, problem.classifier, longer, mask)
    loss, of_segments, *gradients = _trained(paradigm, problem, longer, mask)
    finite = all(torch.isfinite(each).all() for each in (padded, loss, *gradients))
    require(finite, "NaN in padding reaches the loss, the prediction or a gradient")
    require_equal(padded, probabilities, "a prediction with more padding")
    require_equal(padded_attention[:, :M], attention, "attention with more padding")
    require((padded_attention[~mask] == 0).all(), "attention on further padding is not exactly 0")
    require((of_segments[~mask] == 0).all(), "padding has a gradient")


@promise("has the same loss and gradients with more padding", to=PROMISES)
def trains_alike_with_padding(paradigm: Paradigm) -> None:
    _skip_if_sampled(paradigm)
    problem = Problem(masked=True)
    assert problem.mask is not None
    loss, _, *gradients = _trained(paradigm, problem, problem.segments.clone(), problem.mask)
    padded, _, *of_padded = _trained(paradigm, problem, *_padded(problem))
    require_equal(padded, loss, "the loss with more padding")
    for got, expected in zip(of_padded, gradients, strict=True):
        require_equal(got, expected, "a gradient with more padding")


def _padded(problem: Problem) -> tuple[Tensor, Tensor]:
    """Its segments and mask with three more, NaN wherever there is padding."""
    assert problem.mask is not None
    padding = torch.full((B, 3, D), torch.nan, dtype=torch.float64)
    longer = torch.cat([problem.segments, padding], dim=1)
    longer[:, :M][~problem.mask] = torch.nan
    return longer, torch.cat([problem.mask, torch.zeros(B, 3, dtype=torch.bool)], dim=1)


def _trained(paradigm: Paradigm, problem: Problem, segments: Tensor, mask: Tensor) -> list[Tensor]:
    """The loss, and its gradients for the segments and all weights."""
    segments.requires_grad_()
    loss = paradigm.loss(problem.focus, problem.classifier, segments, problem.labels, mask)
    return [loss, *torch.autograd.grad(loss, [segments, *problem.parameters()])]


@promise("has a loss of NaN where the networks give NaN", to=PROMISES)
def shows_divergence(paradigm: Paradigm) -> None:
    """A diverged model must be seen as diverged, not crash the trial."""
    problem = Problem()
    segments = torch.full_like(problem.segments, torch.nan)
    loss = paradigm.loss(problem.focus, problem.classifier, segments, problem.labels)
    require(torch.isnan(loss), f"the loss of NaN is {loss.item()}")


@promise("has the cross-entropy of a confident mistake, in float32", to=PROMISES)
def stays_finite(paradigm: Paradigm) -> None:
    """Of equal segments it does not matter which is attended to."""
    _skip_if_sampled(paradigm)
    segments = torch.full((1, 2, 1), 300.0)
    loss = paradigm.loss(
        lambda x: x.squeeze(1), lambda x: torch.cat([x, -x], dim=1), segments, torch.tensor([1])
    ).item()
    close = math.isclose(loss, 600, rel_tol=1e-6)
    require(close, f"it is {loss:g}, must be 600: compute it by log_softmax or logsumexp")


@promise("costs the calls of focus and classifier that its loss makes", to=PROMISES)
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


@promise("mixes segments if and only if it says so", to=PROMISES)
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
