"""What every model promises, checked on made-up inputs of a task that it takes."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from study import models, paradigms, tasks
from study.cell import NO_OPTIONS
from study.check.promises import Promise, promise, require, require_equal
from study.errors import unknown
from study.models.flops import evaluating, forward_flops
from study.models.model import Model
from study.tasks.task import Facts, FactsOf

B = 6

PROMISES: list[Promise] = []
promised = functools.partial(promise, to=PROMISES)


@dataclass(frozen=True)
class Architecture:
    """A model of a task that takes it, and what gives the facts of the task's data."""

    name: str
    task: str
    facts_of: FactsOf = field(repr=False)

    @cached_property
    def facts(self) -> Facts:
        return self.facts_of(self.task, tasks.resolved(self.task, NO_OPTIONS))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.facts.input_shape

    @property
    def num_classes(self) -> int:
        return tasks.info(self.task).num_classes or self.facts.num_classes

    def build(self, seed: int = 0) -> Model:
        return models.build(self.name, self.task, self.shape, self.num_classes, seed=seed)

    def segments(self, model: Model) -> Tensor:
        """(B, ...) noise, as focus and classifier take it."""
        shape = model.segment_shape or self.shape
        return torch.randn(B, *shape, generator=torch.Generator().manual_seed(0))


@promised("takes tasks that there are")
def takes_known_tasks(architecture: Architecture) -> None:
    for task in models.ARCHITECTURES[architecture.name]:
        require(task in tasks.TASKS, str(unknown("task", task, tasks.TASKS)))


@promised("is a model with a focus of (N,) scores and a classifier of (N, C) logits")
def has_both_heads(architecture: Architecture) -> None:
    model = architecture.build()
    require(
        isinstance(model, Model),
        f"its builder returns a {type(model).__name__}, must be a study.models.model.Model",
    )
    segments = architecture.segments(model)
    for what, head, shape in (
        ("focus", model.focus, (B,)),
        ("classifier", model.classifier, (B, architecture.num_classes)),
    ):
        out = head(segments)
        require(
            out.shape == shape,
            f"the {what} gives {tuple(out.shape)} for {B} segments, must be {shape}"
            + (": end it with nn.Flatten(0)" if what == "focus" else ""),
        )
        require(out.dtype == torch.float32, f"the {what} gives {out.dtype}, must be float32")


@promised("starts with weights that follow from its seed alone")
def follows_its_seed(architecture: Architecture) -> None:
    before = torch.random.get_rng_state()
    one, same, other = (architecture.build(seed).state_dict() for seed in (0, 0, 1))
    require(
        torch.equal(before, torch.random.get_rng_state()),
        "building it draws from PyTorch's global random stream: build it within "
        "torch.random.fork_rng(devices=[]), and draw by the seed (study.models.model.initialise)",
    )
    equal = all(torch.equal(one[name], same[name]) for name in one)
    require(equal, "two models of one seed differ: draw by the seed that the builder is given")
    for head in ("focus", "classifier"):
        weights = [name for name in one if name.startswith(head)]
        differ = any(not torch.equal(one[name], other[name]) for name in weights)
        require(differ, f"the {head} is the same for two seeds: draw it by the builder's seed")


@promised("counts its FLOPs as PyTorch's counter does")
def counts_its_flops(architecture: Architecture) -> None:
    model = architecture.build()
    segments = architecture.segments(model)[:1]
    for what, head in (("focus", model.focus), ("classifier", model.classifier)):
        counted = forward_flops(head, segments.shape[1:])
        with evaluating(head), FlopCounterMode(display=False) as counter:
            head(segments)
        require(
            counted == counter.get_total_flops(),
            f"the {what} costs {counted:,} FLOPs a segment by its layers, but "
            f"{counter.get_total_flops():,} by PyTorch: use nn.Linear and nn.Conv2d",
        )
        require(counted > 0, f"the {what} costs 0 FLOPs a segment: equal compute needs a cost")


@promised("sees each segment alone when it is evaluated")
def sees_segments_alone(architecture: Architecture) -> None:
    model = architecture.build()
    segments = architecture.segments(model)
    with evaluating(model):
        for what, head in (("focus", model.focus), ("classifier", model.classifier)):
            alone = torch.cat([head(segments[row : row + 1]) for row in range(B)])
            require_equal(head(segments), alone, f"the {what} on a batch and one by one", 1e-5)


@promised("trains all of its weights")
def trains_all_weights(architecture: Architecture) -> None:
    model = architecture.build()
    segments = architecture.segments(model).reshape(2, B // 2, -1)
    segments = segments.unflatten(2, model.segment_shape or architecture.shape)
    labels = torch.arange(2) % architecture.num_classes
    loss = paradigms.get("soft").loss(model.focus, model.classifier, segments, labels)
    loss.backward()
    heads = {"focus": model.focus, "classifier": model.classifier}
    without = [
        f"{head}.{name}"
        for head, module in heads.items()
        for name, weight in module.named_parameters()
        if weight.requires_grad and weight.grad is None
    ]
    require(not without, f"no gradient reaches {', '.join(without)}")
