"""The network for one-shot images is the plain one: layer by layer, in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from chapters.paths.attention_paths import path_features
from chapters.paths.one_shot.model import AttentionPaths, passed_on
from chapters.paths.one_shot.transformer import TransformerSettings
from study import models, paradigms
from study.tasks.task import Batch

SHAPE = (2, 6, 4)
SIZES = TransformerSettings(d_model=7, layers=3, heads=2, qk=3, patch=2)


def network(sizes: TransformerSettings = SIZES, **given: object) -> AttentionPaths:
    built = models.build("attention-paths", "omniglot", SHAPE, 2, further=(sizes,), **given)
    assert isinstance(built, AttentionPaths)
    return built


def images(count: int = 5) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(count, 3, *SHAPE, generator=generator, dtype=torch.float64)


def plain_tokens(model: AttentionPaths, episode: Tensor) -> Tensor:
    """The tokens (T, N_0) of one episode (3, C, H, W), one after the other."""
    side, rows = model.encoder.patch, []
    for number, image in enumerate(episode):
        for top in range(0, image.shape[1], side):
            for left in range(0, image.shape[2], side):
                patch = image[:, top : top + side, left : left + side].flatten()
                position, place = len(rows), torch.arange(len(patch))
                angles = position / 10_000 ** ((place - place % 2).double() / len(patch))
                wave = torch.where(place % 2 == 0, angles.sin(), angles.cos())
                normal = functional.layer_norm(patch, patch.shape)
                rows.append(normal + model.encoder.labels[number] + wave)
    return torch.stack(rows)


def plain(model: AttentionPaths, tokens: Tensor) -> Tensor:
    """The output (B,), layer by layer and head by head, from tokens (B, T, N_0)."""
    queries, keys, values = model.focus.queries, model.focus.keys, model.classifier.values
    layers, heads, size, inputs = queries.shape
    neurons = len(model.classifier.readout)
    z = tokens @ model.classifier.embedding.T / math.sqrt(inputs)
    for layer in range(layers):
        parts = []
        for head in range(heads):
            q, k = (tokens @ each[layer, head].T / math.sqrt(inputs) for each in (queries, keys))
            attention = (q @ k.mT / math.sqrt(size)).softmax(dim=2)
            parts.append(attention @ z @ values[layer, head].T)
        z = torch.stack(parts).sum(dim=0) / math.sqrt(heads * neurons)
    return z.mean(dim=1) @ model.classifier.readout / math.sqrt(neurons)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("heads", [1, 2])
def test_the_sum_over_paths_is_the_network_layer_by_layer(layers, heads):
    """Its tokens, outputs, loss and gradients."""
    sizes = TransformerSettings(d_model=7, layers=layers, heads=heads, qk=3, patch=2)
    model = network(sizes).double()
    tokens = torch.stack([plain_tokens(model, episode) for episode in images()])
    # Waves are computed in float32.
    torch.testing.assert_close(model.encoder(images()), tokens, rtol=0, atol=1e-6)
    outputs = plain(model, model.encoder(images()))
    torch.testing.assert_close(model(images()), outputs, rtol=1e-12, atol=1e-13)
    assert model.by_path(images()).shape == (5, heads**layers)
    labels = torch.tensor([0, 1, 1, 0, 1])
    batch = Batch(images(), labels, torch.zeros(5, 3, dtype=torch.bool), None)
    losses = model.loss(paradigms.get("soft"), batch), (outputs - 2.0 * labels + 1).square().mean()
    torch.testing.assert_close(*losses, rtol=1e-12, atol=0)
    gradients = (torch.autograd.grad(each, list(model.parameters())) for each in losses)
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-12)


def test_paths_are_those_of_the_theory():
    """Phi of `path_features`, in the same order, and what the values make of it."""
    model = network().double()
    with torch.no_grad():
        tokens = model.encoder(images())
        maps = model.focus(tokens)
        attention = [layer.transpose(0, 1).mT.numpy() for layer in maps]
        features = path_features(tokens.mT.numpy(), attention, readout="mean")
        ours = passed_on(maps) @ tokens / math.sqrt(tokens.shape[2] * features.shape[1])
        torch.testing.assert_close(ours, torch.from_numpy(features), rtol=1e-12, atol=1e-14)
        weights = model.classifier() * math.sqrt(model.classifier().numel())
        outputs = (torch.from_numpy(features) * weights).sum(dim=2)
    torch.testing.assert_close(model.by_path(images()), outputs, rtol=1e-11, atol=1e-13)


def test_flops_are_those_of_the_plain_network():
    """PyTorch's counter sees all products but the readout's, a matrix times a vector."""
    model = network()
    tokens = model.encoder(images(1).float())
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        plain(model, tokens)
    (length,) = model.flops(SHAPE).lengths
    assert length.encoder == counter.get_total_flops() + 2 * SIZES.d_model


@pytest.mark.parametrize(("paradigm", "alpha"), [("hard", None), ("soft", 0.5)])
def test_heads_attend_softly_by_themselves(paradigm, alpha):
    batch = Batch(images().float(), torch.zeros(5, dtype=torch.int64), torch.zeros(5, 3), None)
    with pytest.raises(ValueError, match="attends softly"):
        network().loss(paradigms.get(paradigm), batch, alpha=alpha)
