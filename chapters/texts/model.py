"""Word embeddings, alone or with self-attention, and the perceptrons on them (appendix A.3)."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn

from chapters.texts.layers import Part, SelfAttention
from study.cell.seeds import stream_seed
from study.hardware import in_precision
from study.models.layers import sinusoids
from study.models.model import Model, Network, initialise, scaled
from study.paradigms.padding import padded, real

EMBEDDING_SIZE = 100
HEADS = 2


class Embedding(nn.Module):
    """The encoder of HateXplain-1: each word is its vector, whatever its context.

    Args:
        num_words: of the vocabulary, padding and the unknown word included.
    """

    def __init__(self, num_words: int) -> None:
        super().__init__()
        self.words = nn.Embedding(num_words, EMBEDDING_SIZE)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, m) int64 -> (B, m, 100) float32; vectors of padding mean nothing."""
        return self.words(tokens)


class ContextualEmbedding(Embedding):
    """The encoder of HateXplain-2: a word's vector, and its contextual vector in the post.

    Vector and sinusoidal position go through one layer of self-attention with two heads of 50. A
    segment holds both parts: the classifier reads the vector itself, the focus the layer's output.
    In the published scripts both read that output plus its input, with a dropout of .1.
    """

    def __init__(self, num_words: int, precision: str) -> None:
        super().__init__(num_words)
        self.attention = SelfAttention(EMBEDDING_SIZE, HEADS)
        self._precision = precision

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, m) int64 -> (B, m, 200) float32: vectors, then contextual vectors; 0 in padding."""
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        vectors = self.words(real(tokens, mask))
        waves = sinusoids(tokens.shape[1], EMBEDDING_SIZE, tokens.device)
        positions = real(waves.expand(len(tokens), -1, -1), mask)
        with in_precision(self._precision, tokens.device):
            contextual = self.attention(vectors + positions, mask)
        return padded(torch.cat([vectors, contextual.to(vectors.dtype)], dim=1), mask)


def embedding(
    input_shape: tuple[int, ...],
    num_classes: int,
    width: float,
    seed: int,
    precision: str,
    contextual: bool = False,
) -> Model:
    """Focus 100-200-1 and classifier 100-200-C, both on the words' own vectors.

    If contextual, focus 100-50-1 on the contextual vectors, the classifier as it is.
    """
    size = EMBEDDING_SIZE
    with torch.random.fork_rng(devices=[]):  # construction draws from the global stream
        encoder = (
            ContextualEmbedding(input_shape[0], precision)
            if contextual
            else Embedding(input_shape[0])
        )
        focus = _perceptron(size, 50 if contextual else 200, 1, width)
        classifier = _perceptron(size, 200, num_classes, width)
        if contextual:
            focus = [Part(size, 2 * size), *focus]
            classifier = [Part(0, size), *classifier]
    f = Network(*focus, nn.Flatten(0), precision=precision)
    g = Network(*classifier, precision=precision)
    for name, part in (("focus", f), ("classifier", g), ("encoder", encoder)):
        initialise(part, stream_seed("init", name, seed))
    return Model(f, g, encoder, ((1 + contextual) * size,))


self_attention = functools.partial(embedding, contextual=True)


def _perceptron(inputs: int, hidden: int, outputs: int, width: float) -> list[nn.Module]:
    hidden = scaled(hidden, width)
    return [nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs)]
