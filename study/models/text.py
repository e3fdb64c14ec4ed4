"""Word embeddings, alone or with self-attention, and the perceptrons on them (appendix A.3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from study.cell.seeds import stream_seed
from study.models.base import Model, Network, in_precision, initialise, scaled

EMBEDDING_SIZE = 100
HEADS = 2

_SLOWEST_WAVE = 10_000.0


class Embedding(nn.Module):
    """The encoder of HateXplain-1: a word is its vector, whatever stands beside it.

    Args:
        num_words: numbers of words, padding and the unknown word included.
    """

    def __init__(self, num_words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(num_words, EMBEDDING_SIZE)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, m) int64 -> (B, m, 100) float32; what stands in padding means nothing."""
        return self.words(tokens)


class SelfAttention(nn.Module):
    """One layer of multi-head self-attention, without residual, normalisation or dropout.

    Only real words are projected; `torch.nn.MultiheadAttention` would project padding, too, which
    is half of a batch of posts (docs/log.md).

    Args:
        size: of the vectors in and out.
        heads: each attends with size / heads features.
    """

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values, self.out = (nn.Linear(size, size) for _ in range(4))

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(N, size) of the real words of (B, m) `mask`, row by row -> the same; float32.

        Padding is attended with exactly zero.
        """
        q, k, v = (self._by_head(layer(vectors), mask) for layer in self._projections())
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])  # (B, heads, m, m)
        attention = scores.masked_fill(~mask[:, None, None, :], -torch.inf).softmax(dim=3)
        return self.out((attention @ v).transpose(1, 2).flatten(2)[mask])

    def _projections(self) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
        return self.queries, self.keys, self.values

    def _by_head(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """(N, size) -> (B, heads, m, size / heads), zero in padding."""
        return padded(vectors, mask).unflatten(2, (self.heads, -1)).transpose(1, 2)


class ContextualEmbedding(Embedding):
    """The encoder of HateXplain-2: a word's vector, and what self-attention makes of its post.

    Vector and sinusoidal position go through one layer of self-attention with two heads of 50.
    A segment holds both parts: the classifier reads the first, the vector itself; the focus reads
    the second, the layer's output.
    """

    def __init__(self, num_words: int, precision: str) -> None:
        super().__init__(num_words)
        self.attention = SelfAttention(EMBEDDING_SIZE, HEADS)
        self._precision = precision

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, m) int64 -> (B, m, 200) float32: vectors, then contextual vectors; 0 in padding."""
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        vectors = self.words(tokens[mask])
        positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)[mask]
        waves = sinusoids(tokens.shape[1], EMBEDDING_SIZE, tokens.device)
        with in_precision(self._precision, tokens.device):
            contextual = self.attention(vectors + waves[positions], mask)
        return padded(torch.cat([vectors, contextual.to(vectors.dtype)], dim=1), mask)


def padded(real: Tensor, mask: Tensor) -> Tensor:
    """(N, ...) at the True places of (B, m) `mask`, row by row, and 0 elsewhere: (B, m, ...)."""
    out = real.new_zeros((*mask.shape, *real.shape[1:]))
    out[mask] = real
    return out


class Part(nn.Module):
    """Reads some of the features of a segment: (N, features) -> (N, stop - start)."""

    def __init__(self, start: int, stop: int) -> None:
        super().__init__()
        self.start, self.stop = start, stop

    def forward(self, segments: Tensor) -> Tensor:
        return segments[:, self.start : self.stop]


def sinusoids(length: int, size: int, device: torch.device) -> Tensor:
    """Positions as sines and cosines of falling frequency: (length, size) float32.

    Column 2i is sin(p / 10000^(2i / size)) of position p, column 2i + 1 the cosine
    ("Attention Is All You Need", section 3.5).
    """
    position = torch.arange(length, device=device, dtype=torch.float32)[:, None]
    even = torch.arange(0, size, 2, device=device, dtype=torch.float32)
    angles = position * torch.exp(even * (-math.log(_SLOWEST_WAVE) / size))
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :size]


def embedding(
    input_shape: tuple[int, ...], num_classes: int, width: float, seed: int, precision: str
) -> Model:
    """Focus 100-200-1, classifier 100-200-C."""
    with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
        encoder = Embedding(input_shape[0])
        focus = _perceptron(EMBEDDING_SIZE, 200, 1, width)
        classifier = _perceptron(EMBEDDING_SIZE, 200, num_classes, width)
    return _model(encoder, focus, classifier, EMBEDDING_SIZE, seed, precision)


def self_attention(
    input_shape: tuple[int, ...], num_classes: int, width: float, seed: int, precision: str
) -> Model:
    """Focus 100-50-1 on the contextual vectors, classifier 100-200-C on the words' own."""
    size = EMBEDDING_SIZE
    with torch.random.fork_rng(devices=[]):
        encoder = ContextualEmbedding(input_shape[0], precision)
        focus = [Part(size, 2 * size), *_perceptron(size, 50, 1, width)]
        classifier = [Part(0, size), *_perceptron(size, 200, num_classes, width)]
    return _model(encoder, focus, classifier, 2 * size, seed, precision)


def _perceptron(inputs: int, hidden: int, outputs: int, width: float) -> list[nn.Module]:
    hidden = scaled(hidden, width)
    return [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs)]


def _model(
    encoder: Embedding,
    focus: list[nn.Module],
    classifier: list[nn.Module],
    segment_size: int,
    seed: int,
    precision: str,
) -> Model:
    f = Network(*focus, nn.Flatten(0), precision=precision)
    g = Network(*classifier, precision=precision)
    initialise(f, stream_seed("init", "focus", seed))
    initialise(g, stream_seed("init", "classifier", seed))
    initialise(encoder, stream_seed("init", "encoder", seed))
    return Model(f, g, encoder, (segment_size,))
