"""The contract that every registered paradigm passes, and references of some in NumPy alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax
from torch import Tensor, nn

import analysis
from search_spaces import all_studies
from study import paradigms
from study.cell import PARADIGMS
from study.cell.work import Work
from study.errors import RequestError
from study.launch.trial import train_cells
from study.paradigms.base import Paradigm, focus_scores
from study.plan.axes import resolve
from study.plan.grid import make_plan
from study.tasks.mosaics.mosaics import MosaicTask
from tests.made_up.comparisons import make_results
from tests.made_up.gpu import padding_computed
from tests.made_up.sparsemax import Sparsemax

B, M, D, C = 7, 5, 4, 3

REFERENCES = ("soft", "hard", "lvml", "lvml-logits")
"""Of whose loss and inference there is a reference below; a paradigm need not have one."""

EVERY: dict[str, Paradigm] = {
    **{name: paradigms.get(name) for name in PARADIGMS},
    "sparsemax": Sparsemax(),  # stands for all to come: nothing below knows more of it
}
EXACT = [name for name, paradigm in EVERY.items() if paradigm.exact == name]
SAMPLED = [name for name in EVERY if name not in EXACT]
BOUNDS = ["lvml-sampled"]
"""They estimate a bound of `exact` (tests/study/paradigms/test_lvml_sampled.py)."""

Way = Callable[[], contextlib.AbstractContextManager[None]]
WAYS: list[Way] = [contextlib.nullcontext, padding_computed]
"""Padding is left out of what is computed, or it is not."""


class Problem:
    """Random f and g, segments, labels and a mask, all float64.

    Both are linear; curved: g is not, so that a mean of inputs and one of outputs differ.
    """

    def __init__(self, seed: int = 0, masked: bool = False, curved: bool = False) -> None:
        torch.manual_seed(seed)
        self.curved = curved
        self.f = nn.Linear(D, 1).double()
        self.g = nn.Linear(D, C).double()
        self.segments = torch.randn(B, M, D, dtype=torch.float64)
        self.labels = torch.randint(C, (B,))
        self.mask = None
        if masked:
            self.mask = torch.rand(B, M) < 0.6
            self.mask[:, 0] |= ~self.mask.any(dim=1)

    def focus(self, x: Tensor) -> Tensor:
        return self.f(x).squeeze(1)

    def classifier(self, x: Tensor) -> Tensor:
        return self.g(self.bend(x))

    def bend(self, x: Tensor) -> Tensor:
        return x.sin() if self.curved else x

    def args(self) -> tuple:
        return self.focus, self.classifier, self.segments

    def numpy(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Attention (B, M), log class probabilities of segments (B, M, C), and segments."""
        x = self.segments.numpy()
        u, b = self.f.weight.detach().numpy()[0], self.f.bias.item()
        scores = x @ u + b
        if self.mask is not None:
            scores = np.where(self.mask.numpy(), scores, -np.inf)
        return softmax(scores, axis=1), log_softmax(self.numpy_logits(x), axis=2), x

    def numpy_logits(self, x: np.ndarray) -> np.ndarray:
        bent = np.sin(x) if self.curved else x
        return bent @ self.g.weight.detach().numpy().T + self.g.bias.detach().numpy()

    def parameters(self) -> list[nn.Parameter]:
        return [*self.f.parameters(), *self.g.parameters()]


def reference_loss(name: str, problem: Problem) -> float:
    a, log_p, x = problem.numpy()
    rows, y = np.arange(B), problem.labels.numpy()
    log_p_y = log_p[rows, :, y]
    if name == "soft":
        logits = problem.numpy_logits(np.einsum("bm,bmd->bd", a, x))
        return float(-log_softmax(logits, axis=1)[rows, y].mean())
    if name == "lvml-logits":
        logits = np.einsum("bm,bmc->bc", a, problem.numpy_logits(x))
        return float(-log_softmax(logits, axis=1)[rows, y].mean())
    if name == "lvml":
        return float(-np.log((a * np.exp(log_p_y)).sum(axis=1)).mean())
    return float(-(a * log_p_y).sum(axis=1).mean())


def reference_prediction(name: str, problem: Problem) -> np.ndarray:
    a, log_p, x = problem.numpy()
    if name == "soft":
        return softmax(problem.numpy_logits(np.einsum("bm,bmd->bd", a, x)), axis=1)
    if name == "lvml-logits":
        return softmax(np.einsum("bm,bmc->bc", a, problem.numpy_logits(x)), axis=1)
    if name == "lvml":
        return np.einsum("bm,bmc->bc", a, np.exp(log_p))
    return np.exp(log_p)[np.arange(B), a.argmax(axis=1)]


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", REFERENCES)
def test_loss_equals_the_reference(name: str, masked: bool, curved: bool) -> None:
    problem = Problem(masked=masked, curved=curved)
    loss = EVERY[name].loss(*problem.args(), problem.labels, problem.mask)
    assert loss.item() == pytest.approx(reference_loss(name, problem), rel=1e-12)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", REFERENCES)
def test_inference_equals_the_reference(name: str, masked: bool, curved: bool) -> None:
    problem = Problem(masked=masked, curved=curved)
    attention, probabilities = EVERY[name].predict(*problem.args(), problem.mask)
    expected_attention, _, _ = problem.numpy()
    np.testing.assert_allclose(attention.detach(), expected_attention, rtol=1e-12)
    np.testing.assert_allclose(
        probabilities.detach(), reference_prediction(name, problem), rtol=1e-12
    )


@pytest.mark.parametrize("name", EVERY)
def test_it_is_what_it_declares(name: str) -> None:
    paradigm = EVERY[name]
    assert paradigm.name == name
    assert paradigm.exact in EXACT, "evaluations take the loss of `exact`, which draws nothing"


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_inference_gives_distributions(name: str, masked: bool) -> None:
    problem, paradigm = Problem(masked=masked), EVERY[name]
    attention, probabilities = paradigm.predict(*problem.args(), problem.mask)
    for each in (attention, probabilities):
        assert (each >= 0).all()
        np.testing.assert_allclose(each.detach().sum(dim=1), 1, rtol=1e-12)
    attended = paradigm.attend(focus_scores(problem.focus, problem.segments, problem.mask))
    torch.testing.assert_close(attended, attention, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("curved", [False, True])
def test_gradients_equal_finite_differences(name: str, masked: bool, curved: bool) -> None:
    problem = Problem(masked=masked, curved=curved)
    paradigm = EVERY[name]

    def loss(*parameters: Tensor) -> Tensor:
        u, b, w, c = parameters
        return paradigm.loss(
            lambda x: (x @ u.T + b).squeeze(1),
            lambda x: problem.bend(x) @ w.T + c,
            problem.segments,
            problem.labels,
            problem.mask,
        )

    assert torch.autograd.gradcheck(loss, problem.parameters(), atol=1e-7)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_loss_has_a_gradient_for_a_given_attention(name: str, masked: bool) -> None:
    """The incentive of section 3.2 is minus this derivative; an attention of exactly 0 works."""
    problem = Problem(masked=masked)
    attention = torch.rand(B, M, dtype=torch.float64)
    if problem.mask is None:
        attention[:, 0] = 0
    else:
        attention[~problem.mask] = 0
    attention /= attention.sum(dim=1, keepdim=True)
    attention.requires_grad_()
    paradigm = EVERY[name]

    def loss(a: Tensor) -> Tensor:
        return paradigm.loss(*problem.args(), problem.labels, problem.mask, attention=a)

    assert torch.autograd.gradcheck(loss, [attention], atol=1e-7)


@pytest.mark.parametrize("name", EVERY)
def test_given_attention_replaces_the_focus(name: str) -> None:
    problem = Problem()
    paradigm = EVERY[name]
    own, probabilities = paradigm.predict(*problem.args())

    def no_focus(_: Tensor) -> Tensor:
        raise AssertionError("the focus was called")

    given = (no_focus, problem.classifier, problem.segments)
    draws = [torch.Generator().manual_seed(3) for _ in range(2)]
    expected = paradigm.loss(*problem.args(), problem.labels, generator=draws[0])
    loss = paradigm.loss(*given, problem.labels, attention=own, generator=draws[1])
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    again, same = paradigm.predict(*given, attention=own)
    torch.testing.assert_close(again, own)
    torch.testing.assert_close(same, probabilities)


@pytest.mark.parametrize("name", EVERY)
def test_one_hot_attention_classifies_that_segment(name: str) -> None:
    """Where attention is certain, all paradigms are one."""
    problem, paradigm = Problem(curved=True), EVERY[name]
    index = torch.randint(M, (B,))
    attention = nn.functional.one_hot(index, M).double()
    logits = problem.classifier(problem.segments[torch.arange(B), index])
    loss = paradigm.loss(*problem.args(), problem.labels, attention=attention)
    expected = nn.functional.cross_entropy(logits, problem.labels)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    _, probabilities = paradigm.predict(*problem.args(), attention=attention)
    torch.testing.assert_close(probabilities, logits.softmax(dim=1), rtol=1e-12, atol=0)


@pytest.mark.parametrize("seed", range(20))
def test_lvml_is_at_most_hard(seed: int) -> None:
    problem = Problem(seed, masked=seed % 2 == 0)
    lvml, hard = (
        EVERY[name].loss(*problem.args(), problem.labels, problem.mask).item()
        for name in ("lvml", "hard")
    )
    assert lvml <= hard + 1e-12


@pytest.mark.parametrize("masked", [False, True])
def test_mean_logits_of_a_linear_classifier_are_soft(masked: bool) -> None:
    """sum_j a_j g(x_j) = g( sum_j a_j x_j ): equal losses, gradients and predictions."""
    problem = Problem(masked=masked)
    found = []
    for name in ("lvml-logits", "soft"):
        paradigm = EVERY[name]
        loss = paradigm.loss(*problem.args(), problem.labels, problem.mask)
        _, probabilities = paradigm.predict(*problem.args(), problem.mask)
        found.append([loss, probabilities, *torch.autograd.grad(loss, problem.parameters())])
    for logits, soft in zip(*found, strict=True):
        torch.testing.assert_close(logits, soft, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_mean_logits_are_at_most_hard(seed: int) -> None:
    """-log sigma_y is convex in the logits (Jensen)."""
    problem = Problem(seed, masked=seed % 2 == 0, curved=True)
    logits, hard = (
        EVERY[name].loss(*problem.args(), problem.labels, problem.mask).item()
        for name in ("lvml-logits", "hard")
    )
    assert logits <= hard + 1e-12


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EVERY)
def test_padding_has_no_effect(name: str, way: Way) -> None:
    """Whatever stands in padding, and however much there is of it, nothing changes."""
    problem = Problem(masked=True)
    paradigm = EVERY[name]
    attention, probabilities = paradigm.predict(*problem.args(), problem.mask)
    assert (attention[~problem.mask] == 0).all()
    padding = torch.full((B, 3, D), torch.nan, dtype=torch.float64)
    longer = torch.cat([problem.segments, padding], dim=1)
    longer[:, :M][~problem.mask] = torch.nan
    mask = torch.cat([problem.mask, torch.zeros(B, 3, dtype=torch.bool)], dim=1)
    longer.requires_grad_()
    weights = problem.parameters()
    with way():
        args = (problem.focus, problem.classifier, longer)
        padded_attention, padded = paradigm.predict(*args, mask)
        loss = paradigm.loss(*args, problem.labels, mask)
        of_segments, *gradients = torch.autograd.grad(loss, [longer, *weights])
    torch.testing.assert_close(padded, probabilities)
    torch.testing.assert_close(padded_attention[:, :M], attention)
    assert (padded_attention[~mask] == 0).all()
    assert (of_segments[~mask] == 0).all()
    assert all(torch.isfinite(each).all() for each in gradients)
    if name in EXACT:
        expected = paradigm.loss(*problem.args(), problem.labels, problem.mask)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(gradients, list(torch.autograd.grad(expected, weights)))


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
    for one, other in zip(
        *(each.predict(*problem.args()) for each in (EVERY[name], exact_paradigm)), strict=True
    ):
        assert torch.equal(one, other)
    exact = exact_paradigm.loss(*problem.args(), problem.labels)
    exact_gradient = torch.cat(
        [g.flatten() for g in torch.autograd.grad(exact, problem.parameters())]
    )
    generator = torch.Generator().manual_seed(1)
    draws, values = [], []
    copies = 500
    segments, labels = problem.segments.repeat(copies, 1, 1), problem.labels.repeat(copies)
    for _ in range(100):
        loss = EVERY[name].loss(
            problem.focus, problem.classifier, segments, labels, generator=generator
        )
        gradient = torch.autograd.grad(loss, problem.parameters())
        draws.append(torch.cat([g.flatten() for g in gradient]))
        values.append(loss.detach())
    gradients = torch.stack(draws)
    error = (gradients.mean(dim=0) - exact_gradient).abs()
    assert (error <= 5 * gradients.std(dim=0) / 10 + 1e-12).all()
    # A gradient that ignored the score term would be far outside of that interval.
    assert exact_gradient[:D].abs().max() > 20 * gradients.std(dim=0)[:D].max() / 10
    assert torch.stack(values).mean().item() == pytest.approx(exact.item(), rel=5e-3)


@pytest.mark.parametrize("name", EVERY)
def test_loss_of_nan_is_nan(name: str) -> None:
    """A diverged model must be seen as diverged, not crash the trial."""
    problem = Problem()
    segments = torch.full_like(problem.segments, torch.nan)
    loss = EVERY[name].loss(problem.focus, problem.classifier, segments, problem.labels)
    assert torch.isnan(loss)


@pytest.mark.parametrize("name", EXACT)
def test_a_confident_mistake_stays_finite(name: str) -> None:
    """And is the cross-entropy: of equal segments it does not matter which is attended to."""
    segments = torch.full((1, 2, 1), 300.0)
    loss = EVERY[name].loss(
        lambda x: x.squeeze(1), lambda x: torch.cat([x, -x], dim=1), segments, torch.tensor([1])
    )
    assert loss.item() == pytest.approx(600, rel=1e-6)


@pytest.mark.parametrize("name", EVERY)
def test_probabilities_stay_probabilities_at_large_m(name: str) -> None:
    """Confident in float32 at m = 1,000: SAIF refuses scores above 1 + 1e-6."""
    torch.manual_seed(0)
    segments = torch.randn(200, 1000, 1)
    _, probabilities = EVERY[name].predict(
        lambda x: x.squeeze(1), lambda x: torch.cat([x * 0 + 40, x * 0], dim=1), segments
    )
    assert (probabilities <= 1 + 5e-7).all()


class Counted:
    """A function of the problem that remembers the segments it was called on."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self._function = function
        self.seen: list[Tensor] = []

    def __call__(self, segments: Tensor) -> Tensor:
        self.seen.append(segments.detach())
        return self._function(segments)

    @property
    def calls(self) -> int:
        return sum(map(len, self.seen))


@pytest.mark.parametrize("name", EVERY)
def test_cost_is_that_of_the_calls(name: str) -> None:
    problem, paradigm = Problem(), EVERY[name]
    focus, classifier = Counted(problem.focus), Counted(problem.classifier)
    paradigm.loss(focus, classifier, problem.segments, problem.labels)
    called = 10 * focus.calls + 2 * classifier.calls
    assert B * paradigm.cost(focus_flops=10, classifier_flops=2, m=M) == called


@pytest.mark.parametrize("name", EVERY)
def test_it_mixes_if_the_classifier_sees_more_than_segments(name: str) -> None:
    """Else evaluations look the classifier's outputs up, segment by segment."""
    problem, paradigm = Problem(), EVERY[name]
    classifier = Counted(problem.classifier)
    paradigm.loss(problem.focus, classifier, problem.segments, problem.labels)
    paradigm.predict(problem.focus, classifier, problem.segments)
    of_problem = {tuple(each) for each in problem.segments.flatten(0, 1).tolist()}
    only_segments = {tuple(each) for each in torch.cat(classifier.seen).tolist()} <= of_problem
    assert paradigm.mixes != only_segments


@pytest.mark.parametrize(
    ("name", "expected"),
    [("soft", 52), ("hard", 60), ("lvml", 60), ("hard-sampled", 54), ("lvml-logits", 60)],
)
def test_cost_counts_the_calls(name: str, expected: int) -> None:
    """Section 2.3: m f and 1 g for soft; m g for hard and both lvml; 1 g a sample."""
    assert EVERY[name].cost(focus_flops=10, classifier_flops=2, m=5) == expected


def test_unknown_paradigm_names_the_nearest() -> None:
    with pytest.raises(RequestError, match="Did you mean 'lvml'"):
        paradigms.get("lvlm")


def test_a_new_paradigm_is_planned_trained_and_recorded(
    digits: MosaicTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file and one line, as CONTRIBUTING says: nothing else knows the paradigms by name."""
    monkeypatch.setitem(paradigms.REGISTERED, "sparsemax", "tests.made_up.sparsemax:Sparsemax")
    space = all_studies()["digits"]
    axes = resolve(
        space,
        "quick",
        ["paradigm=soft,sparsemax", "m=4", "n=120", "epochs=4", "lr=0.1", "seed=0", "test_size=50",
         "inference=own,sparsemax"],
    )  # fmt: skip
    cells = make_plan(space, "quick", axes, lambda *_: digits.facts).cells
    results = make_results(tmp_path / "results")
    work = Work(study="digits", results=results.url, code_version="test")
    for cell in cells:
        assert train_cells(replace(work, cells=(cell,))) == {cell.id: "done"}
    rows = analysis.load(results)
    assert set(zip(rows["paradigm"], rows["inference"], strict=True)) == {
        ("soft", "soft"), ("soft", "sparsemax"), ("sparsemax", "sparsemax"),
    }  # fmt: skip
    start = rows[(rows["budget_fraction"] == 0) & (rows["split"] == "test")]
    attended = start.groupby("inference")["foreground_attention_mean"].agg(set)
    assert attended.map(len).tolist() == [1, 1]
    assert attended["soft"] != attended["sparsemax"]
    end = rows[(rows["budget_fraction"] == 1) & (rows["split"] == "train")]
    assert (end["loss"] < 0.8 * start["loss"].min()).all()
