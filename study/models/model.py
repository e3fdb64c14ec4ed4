"""A model: an encoder, a focus and a classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from study.hardware import in_precision
from study.models.flops import Length, ModelFlops, counted, forward_flops
from study.paradigms.held import held_attention
from study.paradigms.paradigm import NO_SAMPLING, Paradigm, Sampling
from study.tasks.task import Batch


class Network(nn.Sequential):
    """Layers in sequence, computed in a precision; weights and outputs are float32.

    Args:
        layers: in order.
        precision: one of `study.cell.PRECISIONS`. With bfloat16, convolutions and linear layers
            multiply in bfloat16 (`torch.autocast`). All that a paradigm computes from the outputs,
            the loss and the update of the weights stay in float32. (tf32 is a setting of the
            process, see `study.hardware.products`.)
    """

    def __init__(self, *layers: nn.Module, precision: str = "float32") -> None:
        super().__init__(*layers)
        self.precision = precision

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, ...) -> (N, ...) float32."""
        if self.precision != "bfloat16":
            return super().forward(inputs)
        with in_precision(self.precision, inputs.device):
            return super().forward(inputs).float()


class Model(nn.Module):
    """A Focus-Classify Attention Model (section 2.3).

    Args:
        focus: f, segments (N, ...) -> scores (N,).
        classifier: g, segments (N, ...) -> logits (N, C).
        encoder: (inputs (B, m, ...), mask (B, m) or None) -> segments (B, m, ...); None: inputs
            are segments.
        segment_shape: of a segment that the encoder makes.

    Attributes:
        draws: whether `loss` draws from the random stream whatever the paradigm.
    """

    draws = False

    def __init__(
        self,
        focus: nn.Module,
        classifier: nn.Module,
        encoder: nn.Module | None = None,
        segment_shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.focus = focus
        self.classifier = classifier
        self.encoder = encoder
        self.segment_shape = segment_shape
        # On a CPU, convolutions are faster with this layout of their weights.
        self.to(memory_format=torch.channels_last)

    def encode(self, inputs: Tensor, mask: Tensor | None = None) -> Tensor:
        """Inputs (B, m, ...) -> segments (B, m, ...): the identity for images."""
        return inputs if self.encoder is None else self.encoder(inputs, mask)

    def loss(
        self,
        paradigm: Paradigm,
        batch: Batch,
        sampling: Sampling = NO_SAMPLING,
        alpha: float | None = None,
        teacher_forcing: float = 1.0,
    ) -> Tensor:
        """The mean training loss of a batch, in nats.

        Args:
            paradigm: gives the loss.
            batch: of the model's task.
            sampling: of paradigms that sample.
            alpha: attention held on the foreground; None: the focus attends.
            teacher_forcing: of captions, the share of words that follow a true one.

        Returns:
            Scalar tensor with gradient.
        """
        segments = self.encode(batch.segments, batch.mask)
        attention = None if alpha is None else held_attention(alpha, batch.foreground)
        heads = self.focus, self.classifier
        return paradigm.loss(*heads, segments, batch.labels, batch.mask, attention, *sampling)

    def flops(
        self,
        input_shape: tuple[int, ...],
        lengths: Mapping[int, int] | None = None,
        m: int | None = None,
    ) -> ModelFlops:
        """Forward FLOPs of its parts.

        Args:
            input_shape: of one segment, for a model without an encoder.
            lengths: number of segments -> training inputs of that length, for one with an encoder.
            m: segments to which longer inputs are cut.
        """
        shape = self.segment_shape or input_shape
        cut: dict[int, int] = {}
        for length, count in (lengths or {}).items():
            kept = length if m is None else min(length, m)
            cut[kept] = cut.get(kept, 0) + count

        def encoding(length: int) -> int:
            words = torch.zeros(1, length, dtype=torch.int64)
            return counted(self, lambda: self.encode(words))

        return ModelFlops(
            forward_flops(self.focus, shape),
            forward_flops(self.classifier, shape),
            tuple(Length(n, count, encoding(n)) for n, count in sorted(cut.items())),
        )

    def projections(self, flow_time: float, held: bool) -> dict[str, float]:
        """Columns with a theory's projections of the weights; empty for most models.

        Args:
            flow_time: of the gradient flow: the sum of lr / (1 - momentum) over all steps so far.
            held: whether attention is held, so that the focus does not train.
        """
        return {}


Builder = Callable[..., Model]
"""(input_shape, num_classes, width, seed, precision, `further_of` a cell) -> Model."""


def scaled(size: int, width: float) -> int:
    """A hidden size times the axis `width`, at least 1."""
    return max(1, round(size * width))


def initialise(module: nn.Module, seed: int) -> None:
    """Xavier-normal weights and zero biases, as the scripts do; standard normal embeddings."""
    generator = torch.Generator().manual_seed(seed)
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_normal_(layer.weight, generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.Embedding):
            nn.init.normal_(layer.weight, generator=generator)
