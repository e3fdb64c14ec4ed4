"""The network of attention paths for one-shot images (arXiv 2405.15926, section 4 and appendix).

Two labelled images and a query become T tokens x_t of N_0 numbers. Queries and keys of all layers
see these tokens, so attention depends on no value:

    A^{lh}[t, s] = softmax over s of k_s . q_t / sqrt(G),   q = Q x / sqrt(N_0), k alike
    z^0 = V^0 x / sqrt(N_0),   z^l_t = (H N)^(-1/2) sum_h V^{lh} sum_s A^{lh}[t, s] z^{l-1}_s
    f = a . mean_t z^L_t / sqrt(N)

without residual, normalisation of layers or perceptron. All weights begin standard normal, as in
the theory's prior. f is linear in the values, so it is a sum over the D = H^L paths of heads, and
is computed as one: f = sum_pi w^pi . xi^pi. Here xi^pi is what the tokens pass on along a path,
and w^pi = a' V^{L h_L} ... V^{1 h_1} V^0, scaled, costs the same whatever the batch. That takes
a part of the time of passing tokens through the layers (docs/performance.md, One-shot images).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from chapters.paths.one_shot.modality import IMAGES
from chapters.paths.one_shot.transformer import TransformerSettings
from study.cell.seeds import stream_seed
from study.hardware import in_precision
from study.models.flops import Length, ModelFlops
from study.models.layers import sinusoids
from study.models.model import Model, scaled
from study.paradigms.paradigm import NO_SAMPLING, Paradigm, Sampling
from study.tasks.task import Batch


class Tokens(nn.Module):
    """Images as tokens: patches, each normalised, with their position and their image's label.

    Args:
        shape: of an image: (C, P, P).
        patch: height and width of a patch.
        seed: draws the vectors of the labels, which never train.

    Attributes:
        size: N_0 = C patch^2.
        count: T, of an episode.

    Raises:
        ValueError: patches do not fill the image.
    """

    labels: Tensor

    def __init__(self, shape: tuple[int, ...], patch: int, seed: int) -> None:
        super().__init__()
        channels, height, width = shape
        if height % patch or width % patch:
            raise ValueError(
                f"patch must divide the images' {height} x {width} pixels, got {patch}"
            )
        self.patch = patch
        self.size = channels * patch**2
        self.count = IMAGES * (height // patch) * (width // patch)
        generator = torch.Generator().manual_seed(stream_seed("init", "labels", seed))
        self.register_buffer("labels", torch.randn(IMAGES, self.size, generator=generator))

    def forward(self, images: Tensor, mask: Tensor | None = None) -> Tensor:
        """(B, 3, C, P, P) in [0, 1] -> (B, T, N_0); a patch's numbers are C, rows, columns."""
        patches = images.unfold(3, self.patch, self.patch).unfold(4, self.patch, self.patch)
        patches = patches.permute(0, 1, 3, 4, 2, 5, 6).flatten(4).flatten(2, 3)
        tokens = nn.functional.layer_norm(patches, (self.size,)) + self.labels[:, None]
        tokens = tokens.flatten(1, 2)
        return tokens + sinusoids(self.count, self.size, tokens.device).to(tokens.dtype)


class Attention(nn.Module):
    """The queries and keys of all layers.

    Args:
        sizes: of the network.
        size: N_0.
        seed: draws the weights.
        precision: of the products.
    """

    def __init__(self, sizes: TransformerSettings, size: int, seed: int, precision: str) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(stream_seed("init", "focus", seed))
        shape = (sizes.layers, sizes.heads, sizes.qk, size)
        self.queries, self.keys = (
            nn.Parameter(torch.randn(shape, generator=generator)) for _ in range(2)
        )
        self._precision = precision

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T, N_0) -> (L, B, H, T, T), [t, s]: what token t takes from s; rows sum to 1."""
        with in_precision(self._precision, tokens.device):
            q, k = (self._projected(tokens, weights) for weights in (self.queries, self.keys))
            scores = q @ k.transpose(3, 4) / math.sqrt(q.shape[4])
        return scores.to(tokens.dtype).softmax(dim=4)

    def _projected(self, tokens: Tensor, weights: Tensor) -> Tensor:
        """(L, B, H, T, G)."""
        flat = tokens @ weights.flatten(0, 2).T / math.sqrt(tokens.shape[2])
        return flat.unflatten(2, weights.shape[:3]).permute(2, 0, 3, 1, 4)


class Values(nn.Module):
    """The values of all layers, between the embedding of tokens and the readout.

    Args:
        sizes: of the network.
        size: N_0.
        seed: draws the weights.
    """

    def __init__(self, sizes: TransformerSettings, size: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(stream_seed("init", "classifier", seed))
        neurons = sizes.d_model

        def drawn(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(shape, generator=generator))

        self.embedding = drawn(neurons, size)
        self.values = drawn(sizes.layers, sizes.heads, neurons, neurons)
        self.readout = drawn(neurons)

    def forward(self) -> Tensor:
        """w (D, N_0) of every path, in C order, h_1 slowest."""
        neurons, size = self.embedding.shape
        weights = self.readout[None] / math.sqrt(neurons)
        for layer in reversed(self.values):
            weights = (weights @ layer).flatten(0, 1) / math.sqrt(len(layer) * neurons)
        return weights @ self.embedding / math.sqrt(size)


class AttentionPaths(Model):
    """A network of L layers with H heads each, trained by squared loss on labels -1 and +1.

    Its focus gives attention, its classifier values, its encoder tokens.

    Args:
        tokens, attention, values: its parts.
    """

    encoder: Tokens
    focus: Attention
    classifier: Values

    def __init__(self, tokens: Tokens, attention: Attention, values: Values) -> None:
        super().__init__(attention, values, tokens)

    @property
    def heads(self) -> tuple[int, ...]:
        """(H_1, ..., H_L)."""
        layers, heads, *_ = self.focus.queries.shape
        return (heads,) * layers

    def forward(self, images: Tensor) -> Tensor:
        """Images (B, 3, C, P, P) -> f (B,), whose sign is the predicted label."""
        return self.by_path(images).sum(dim=1)

    def by_path(self, images: Tensor) -> Tensor:
        """What each path adds to f: (B, D), paths in C order, h_1 slowest."""
        tokens = self.encoder(images)
        return (passed_on(self.focus(tokens)) @ tokens * self.classifier()).sum(dim=2)

    def loss(
        self,
        paradigm: Paradigm,
        batch: Batch,
        sampling: Sampling = NO_SAMPLING,
        alpha: float | None = None,
        teacher_forcing: float = 1.0,
    ) -> Tensor:
        """The mean squared error of f; see `Model.loss`.

        Raises:
            ValueError: a paradigm other than soft, or a held attention.
        """
        if paradigm.name != "soft" or alpha is not None:
            raise ValueError("a network of attention paths attends softly, by itself")
        return (self(batch.segments) - signs(batch.labels)).square().mean()

    def flops(
        self,
        input_shape: tuple[int, ...],
        lengths: Mapping[int, int] | None = None,
        m: int | None = None,
    ) -> ModelFlops:
        """See `Model.flops`: of an episode, counted layer by layer, as the network is written."""
        tokens, size = self.encoder.count, self.encoder.size
        layers, heads, keys, _ = self.focus.queries.shape
        neurons = len(self.classifier.readout)
        attention = layers * heads * (2 * tokens * size * keys + tokens**2 * keys)
        values = tokens * size * neurons + neurons
        values += layers * heads * (tokens**2 * neurons + tokens * neurons**2)
        return ModelFlops(0, 0, (Length(IMAGES, 1, 2 * (attention + values)),))


def passed_on(maps: Tensor) -> Tensor:
    """How much each token's input counts for the readout, the mean over tokens, along each path.

    Args:
        maps: (L, B, H, T, T), [t, s].

    Returns:
        (B, D, T), paths in C order, h_1 slowest; sums over tokens are 1.
    """
    along = maps[-1].mean(dim=2)
    for layer in reversed(maps[:-1]):
        along = (along[:, None] @ layer).flatten(1, 2)
    return along


def signs(labels: Tensor) -> Tensor:
    """Labels 0 and 1 as -1 and +1, float32."""
    return 2.0 * labels - 1


def attention_paths(
    input_shape: tuple[int, ...],
    num_classes: int,
    width: float,
    seed: int,
    precision: str,
    settings: TransformerSettings,
) -> AttentionPaths:
    """See `study.models.model.Builder`; the width scales d_model.

    Raises:
        ValueError: patches do not fill the images.
    """
    sizes = replace(settings, d_model=scaled(settings.d_model, width))
    tokens = Tokens(input_shape, sizes.patch, seed)
    return AttentionPaths(
        tokens,
        Attention(sizes, tokens.size, seed, precision),
        Values(sizes, tokens.size, seed),
    )
