"""A trained network on its episodes: what each path passes on and adds to the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from chapters.paths.attention_paths import path_features
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.heads.pruning import Outputs
from chapters.paths.heads.scores import focus
from chapters.paths.one_shot.episodes import Episodes, OneShotTask
from chapters.paths.one_shot.model import AttentionPaths, signs
from chapters.paths.posterior.methods import Split
from study.cell import Cell

BYTES_AT_ONCE = 2**26
"""Of attention in float64."""


@dataclass(frozen=True, eq=False)
class Apart:
    """A network taken apart.

    Attributes:
        digest: of its weights, see `study.models.kept.digest`.
        splits: as the theory takes them; `train` are its examples.
        outputs: of the network, by split.
        focus: (sum of H_l,), of each head on the examples, see `scores.focus`.
        values: (L, H, N, N), of the heads.
    """

    digest: str
    splits: Mapping[str, Split]
    outputs: Mapping[str, Outputs]
    focus: Floats
    values: Floats


@torch.no_grad()
def take_apart(
    model: AttentionPaths, cell: Cell, task: OneShotTask, examples: int, digest: str
) -> Apart:
    """Takes a network apart, in float64 on the CPU.

    Args:
        model: trained; becomes float64.
        cell: that trained it.
        task: of the cell.
        examples: P, training episodes for the theory, in a stream of their own.
        digest: of the weights.
    """
    model = model.double().cpu()
    weights = model.classifier().numpy()
    weights = weights * np.sqrt(weights.size)
    episodes = {
        "train": task.drawn("train", examples, cell.seed, stream="theory"),
        "validation": task.drawn("validation", cell.validation_size, cell.seed),
        "test": task.drawn("test", cell.test_size, cell.seed),
    }
    splits, outputs, focused = {}, {}, {}
    for split, drawn in episodes.items():
        features, focused[split] = _read(model, drawn)
        splits[split] = Split(features, signs(drawn.labels).double().numpy())
        by_path = np.einsum("pdn,dn->pd", features, weights)
        outputs[split] = Outputs(by_path, splits[split].labels, model.heads)
    values = model.classifier.values.numpy(force=True)
    return Apart(digest, splits, outputs, focused["train"], values)


def _read(model: AttentionPaths, episodes: Episodes) -> tuple[Floats, Floats]:
    """Features (n, D, N_0) of all paths, and the focus (sum of H_l,) of heads."""
    features, focused = [], np.zeros(sum(model.heads))
    at_once = max(1, BYTES_AT_ONCE // (8 * len(focused) * model.encoder.count**2))
    for rows in episodes.passes(at_once):
        inputs = model.encoder(episodes.batch(rows).segments.double())
        maps = model.focus(inputs).transpose(1, 2).numpy()  # (L, H, B, T, T), [t, s]
        columns = list(maps.swapaxes(3, 4))
        features.append(path_features(inputs.transpose(1, 2).numpy(), columns, readout="mean"))
        focused += focus(np.concatenate(maps)) * (len(rows) / len(episodes))
    return np.concatenate(features), focused
