"""A model whose step takes fewer or other kernels on a GPU: weights as one tensor, or compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from study.kernels import COMPILED, Kernels
from study.models.model import Model
from study.train.steps.step import SGD, Adam, HasLoss, Optimiser

_ALIGNED = 64
"""Numbers to whose multiples each weight begins: the libraries take fast kernels at such
addresses alone."""


def ready(model: Model, optimiser: Optimiser, kernels: Kernels) -> tuple[HasLoss, Optimiser]:
    """What gives the loss of a model, and its optimiser, with kernels that it can use."""
    if COMPILED in kernels:
        return Compiled(model), optimiser
    if "flat" in kernels and isinstance(optimiser, SGD | Adam):
        flat = Flat(model, optimiser)
        return flat, flat
    return model, optimiser


class Compiled:
    """A model whose loss goes through `torch.compile`.

    Args:
        model: whose loss it is.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def loss(self, *how: Any) -> Tensor:
        """See `Model.loss`."""
        return _compiled()(self._model, *how)


@functools.cache
def _compiled() -> Callable[..., Tensor]:
    """One for all models, so that what is compiled for a copy does for its original."""
    # Each shape and paradigm is compiled; by default, after eight others are not, without a word.
    torch._dynamo.config.recompile_limit = 256
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    return torch.compile(lambda model, *how: model.loss(*how), dynamic=False)


class Flat:
    """The weights that train, as one tensor. It gives the model's loss, and updates all at once.

    The model's own weights become views of that tensor, with the same names and contents. In
    bfloat16 it is cast once a step; so is the tensor of their gradients.

    Args:
        model: of which they are.
        optimiser: of the weights, before its first step.

    Attributes:
        parameters: the one tensor.
    """

    def __init__(self, model: Model, optimiser: SGD | Adam) -> None:
        weights = optimiser.parameters
        half = getattr(model.focus, "precision", None) == "bfloat16"
        self._layout = _Layout(weights, torch.bfloat16 if half else torch.float32)
        whole = self._layout.joined(weights)
        for weight, view in zip(weights, self._layout.views(whole), strict=True):
            weight.data = view
        self._optimiser = optimiser.of([whole.requires_grad_()])
        self.parameters = self._optimiser.parameters
        self._loss = _Loss(model)
        names = {id(each): name for name, each in self._loss.named_parameters()}
        self._names = [names[id(each)] for each in weights]

    @property
    def state(self) -> list[Tensor]:
        """What the optimiser keeps, as it would be without this, as views."""
        (whole,) = self.parameters
        kept = []
        for each in self._optimiser.state:
            parts = self._layout.views(each) if each.shape == whole.shape else [each]
            kept += parts * (len(self._names) // len(parts))
        return kept

    def loss(self, *how: Any) -> Tensor:
        """As `Model.loss`, of which gradients flow to `parameters`."""
        views = _Views.apply(*self.parameters, self._layout)
        return functional_call(self._loss, dict(zip(self._names, views, strict=True)), how)

    def step(self, gradients: Sequence[Tensor]) -> None:
        """See `Optimiser`."""
        self._optimiser.step(gradients)


class _Loss(nn.Module):
    """The loss of a model as a call, as `functional_call` wants it."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, *how: Any) -> Tensor:
        return self.model.loss(*how)


class _Layout:
    """Where weights lie in one tensor, each in its own order of memory; and how it is computed."""

    def __init__(self, weights: Sequence[Tensor], dtype: torch.dtype) -> None:
        self._places = []
        end = 0
        for weight in weights:
            self._places.append((weight.shape, weight.stride(), end))
            end += weight.numel() + (-weight.numel() % _ALIGNED)
        self.dtype = dtype
        self._gap = torch.zeros(_ALIGNED, dtype=dtype, device=weights[0].device)

    def views(self, whole: Tensor) -> list[Tensor]:
        return [whole.as_strided(*place) for place in self._places]

    def joined(self, weights: Sequence[Tensor]) -> Tensor:
        """Copies tensors of these shapes into one, with zeros between them."""
        pieces, gap = [], self._gap.to(weights[0].dtype)
        for weight, (shape, strides, _) in zip(weights, self._places, strict=True):
            stored = weight.detach()
            if stored.stride() != strides:
                stored = weight.new_empty_strided(shape, strides).copy_(stored)
            size = stored.numel()
            pieces += [stored.as_strided((size,), (1,)), gap[: -size % _ALIGNED]]
        return torch.cat(pieces)


class _Views(torch.autograd.Function):
    """One tensor, cast -> its views; one tensor of their gradients <- these."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor, layout: _Layout) -> tuple[Tensor, ...]:
        ctx.layout = layout
        return tuple(layout.views(whole.detach().to(layout.dtype)))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.layout.joined(gradients).float(), None
