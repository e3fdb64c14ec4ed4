"""A trained network on its episodes: what each path passes on and adds to the output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from chapters.paths.attention_paths import path_features
from chapters.paths.attention_paths.arguments import Floats
from chapters.paths.heads.scores import focus
from chapters.paths.one_shot.episodes import Episodes, OneShotTask
from chapters.paths.one_shot.model import AttentionPaths, signs
from chapters.paths.posterior.methods import Split
from study.cell import Cell
from study.tasks.task import SPLITS

BYTES_AT_ONCE = 2**26
"""Of attention in float64."""


@dataclass(frozen=True, eq=False)
class Apart:
    """A network taken apart.

    Attributes:
        digest: of its weights, see `study.models.kept.digest`.
        splits: as the theory takes them; `train` are its examples.
        by_path: split -> (n, D), what each path adds to the output.
        focus: (sum of H_l,), of each head on the examples, see `scores.focus`.
        values: (L, H, N, N), of the heads.
    """

    digest: str
    splits: Mapping[str, Split]
    by_path: Mapping[str, Floats]
    focus: Floats
    values: Floats

    def outputs(self, split: str) -> tuple[Floats, Floats]:
        """What each path adds to the output, (n, D), and the labels, (n,)."""
        return self.by_path[split], self.splits[split].labels


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
    episodes = {
        "train": task.drawn("train", examples, cell.seed, stream="theory"),
        "validation": task.drawn("validation", cell.validation_size, cell.seed),
        "test": task.drawn("test", cell.test_size, cell.seed),
    }
    read = {split: _read(model, episodes[split]) for split in SPLITS}
    with torch.no_grad():
        values = model.classifier().numpy()
    weights = values * np.sqrt(values.size)
    labels = {split: signs(episodes[split].labels).double().numpy() for split in SPLITS}
    return Apart(
        digest=digest,
        splits={split: Split(features, labels[split]) for split, (features, _) in read.items()},
        by_path={split: np.einsum("pdn,dn->pd", f, weights) for split, (f, _) in read.items()},
        focus=read["train"][1],
        values=model.classifier.values.detach().numpy(),
    )


@torch.no_grad()
def _read(model: AttentionPaths, episodes: Episodes) -> tuple[Floats, Floats]:
    """Features (n, D, N_0) of all paths, and the focus (sum of H_l,) of heads."""
    layers, heads = model.focus.queries.shape[:2]
    features, focused = [], np.zeros(layers * heads)
    at_once = max(1, BYTES_AT_ONCE // (8 * layers * heads * model.encoder.count**2))
    for rows in episodes.passes(at_once):
        inputs = model.encoder(episodes.batch(rows).segments.double())
        maps = model.focus(inputs).transpose(1, 2).numpy()  # (L, H, B, T, T), [t, s]
        columns = list(maps.swapaxes(3, 4))
        features.append(path_features(inputs.transpose(1, 2).numpy(), columns, readout="mean"))
        focused += focus(np.concatenate(maps)) * (len(rows) / len(episodes))
    return np.concatenate(features), focused
