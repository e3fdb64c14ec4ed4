"""The fast step is the plain one: in float64, in parts, in other memory formats, captured."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import Tensor, nn

from benchmarks.support.baseline import ResearchScript
from benchmarks.support.stepping import build_model, made_up_mosaics
from study import paradigms
from study.cell import PARADIGMS
from study.models.model import Model
from study.paradigms.paradigm import Sampling
from study.tasks.mosaics.mosaics import Mosaics
from study.train.steps.step import SGD, train_step
from tests.made_up.gpu import waits

BATCH, M, LR, MOMENTUM = 8, 3, 0.02, 0.9


def take_steps(
    model: Model, paradigm: str, mosaics: Mosaics, *, micro_batch: int = BATCH, steps: int = 10
) -> Tensor:
    """Trains the model by the study's step; the loss of the last one."""
    optimiser = SGD(model.parameters(), LR, MOMENTUM)
    sampling = Sampling(torch.Generator().manual_seed(0))
    for rows in batches()[:steps]:
        loss = train_step(
            rows, model, paradigms.get(paradigm), optimiser, mosaics, sampling, micro_batch
        )
    return loss


def batches() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randperm(60, generator=generator)[:BATCH] for _ in range(10)]


def some_mosaics() -> Mosaics:
    """Of few images: making up thousands takes longer than a step."""
    return made_up_mosaics(60, M, torch.device("cpu"), images=200)


def weights(*networks: nn.Module) -> Tensor:
    return torch.cat([p.detach().double().flatten() for n in networks for p in n.parameters()])


@functools.cache
def after_the_research_script(paradigm: str) -> tuple[Tensor, Tensor]:
    """The weights before and after its steps."""
    model = build_model("scripts")
    start = weights(model.focus, model.classifier)
    mosaics = some_mosaics()
    script = ResearchScript(
        paradigm, model.focus.double(), model.classifier.double(), LR, MOMENTUM
    )
    for rows in batches():
        batch = mosaics.batch(rows)
        script.step(batch.segments.double().contiguous(), batch.labels)
    return start, weights(script.focus, script.classifier)


@pytest.mark.parametrize("micro_batch", [100, 5])
@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml"])
def test_ten_fast_steps_equal_the_research_script_in_float64(paradigm, micro_batch):
    """Other memory format, order of pooling, formula, optimiser and precision: equal weights."""
    start, reference = after_the_research_script(paradigm)
    fast = build_model("scripts")
    take_steps(fast, paradigm, some_mosaics(), micro_batch=micro_batch)
    distance = (weights(fast.focus, fast.classifier) - reference).norm()
    moved = (reference - start).norm()
    assert moved > 0.1 * start.norm() * LR
    assert distance < 1e-5 * reference.norm()
    assert distance < 1e-3 * moved


def test_bfloat16_rounds_products_and_keeps_weights_in_float32():
    images = some_mosaics().segments(torch.arange(40))
    exact, rounded = (build_model("scripts", precision=p) for p in ("float32", "bfloat16"))
    assert torch.equal(weights(exact), weights(rounded))
    for name in ("focus", "classifier"):
        a, b = getattr(exact, name)(images), getattr(rounded, name)(images)
        assert b.dtype == torch.float32
        assert not torch.equal(a, b)
        assert (a - b).norm() < 2e-2 * a.norm()
    take_steps(rounded, "soft", some_mosaics(), steps=1)
    assert {p.dtype for p in rounded.parameters()} == {torch.float32}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_a_step_waits_for_nothing(paradigm, precision):
    """Of posts: tests/chapters/texts/test_text_models.py."""
    model, mosaics = build_model("small", precision=precision), some_mosaics()
    with waits() as found:
        loss = take_steps(model, paradigm, mosaics, micro_batch=5, steps=1)
    assert not found
    assert loss.isfinite()


@pytest.mark.parametrize(
    "wait",
    [
        bool, Tensor.nonzero, lambda x: x.cpu(), lambda x: torch.tensor(1.0),
        lambda x: x.requires_grad_()[x > 0].sum().backward(),
    ],
)  # fmt: skip
def test_waits_are_found(wait):
    """Whatever brings a value of a tensor to the host, or from it, would make a GPU wait."""
    one = torch.ones(1)
    with waits() as found:
        one + one[torch.zeros_like(one, dtype=torch.int64)]
        assert not found
        wait(one)
    assert found
