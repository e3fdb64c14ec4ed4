"""Noise on which a step takes as long as on real data, and the networks that train on it.

It needs torch, NumPy and pyarrow alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from chapters.texts.texts import Texts
from study import models
from study.cell import Cell
from study.models.model import Model
from study.tasks.mosaics.mosaics import Mosaics
from study.tasks.task import Facts, Split

CLASSES = 3

SHAPES = {"cifar10": (3, 32, 32), "digits": (1, 8, 8), "hatexplain": (25_000,)}
"""Task -> (channels, height, width) of an image, or (words,) of the vocabulary."""

POST_WORDS = 23
"""The mean of HateXplain."""

TASKS = {
    "scripts": "cifar10", "paper": "cifar10", "small": "cifar10", "perceptron": "digits",
    "embedding": "hatexplain", "self-attention": "hatexplain",
}  # fmt: skip
"""Architecture -> the task whose networks are measured."""


class NoiseTask(NamedTuple):
    """A task (`study.tasks.task.Task`) that has noise to train on, and nothing to evaluate."""

    name: str
    facts: Facts
    train: Mosaics | Texts

    num_classes = CLASSES
    encoder_weights = None

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> dict[str, Split]:
        """Of all cells the same, on the device where it was made."""
        return {"train": self.train}


def facts_of(architecture: str, m: int) -> Facts:
    """The facts of a task of noise for an architecture."""
    task = TASKS[architecture]
    lengths = {min(m, POST_WORDS): 1} if task == "hatexplain" else {}
    return Facts("noise", SHAPES[task], lengths=lengths)


def noise_task(cell: Cell, device: torch.device) -> NoiseTask:
    """The task of a cell, with noise on a device; posts have at most as many words as usual."""
    facts = facts_of(cell.architecture, cell.m)
    if not facts.lengths:
        mosaics = made_up_mosaics(cell.n, cell.m, device, facts.input_shape)
        return NoiseTask(cell.task, facts, mosaics)
    (length,), (words,) = facts.lengths, facts.input_shape
    random = torch.Generator().manual_seed(0)
    drawn = torch.randint(2, words, (cell.n, length), dtype=torch.int32, generator=random)
    posts = Texts(
        words=drawn.to(device),
        labels=torch.randint(CLASSES, (cell.n,), generator=random).to(device),
        foreground=torch.zeros_like(drawn, dtype=torch.bool, device=device),
        lengths=torch.full((cell.n,), length),
    )
    return NoiseTask(cell.task, facts, posts)


def made_up_mosaics(
    n: int,
    m: int,
    device: torch.device,
    shape: tuple[int, ...] = SHAPES["cifar10"],
    images: int = 10_000,
) -> Mosaics:
    """Mosaics of random images."""
    random = torch.Generator().manual_seed(0)
    channels, height, width = shape
    pixels = torch.randint(
        256, (images, height, width, channels), dtype=torch.uint8, generator=random
    )
    positions = torch.randint(m, (n,), generator=random)
    return Mosaics(
        images=pixels.to(device),
        sources=torch.arange(images, device=device),
        index=torch.randint(images, (n, m), dtype=torch.int32, generator=random).to(device),
        labels=torch.randint(CLASSES, (n,), generator=random).to(device),
        foreground=torch.nn.functional.one_hot(positions, m).bool().to(device),
        max_value=255,
    )


def build_model(architecture: str, precision: str = "float32") -> Model:
    """The networks of an architecture for its task."""
    task = TASKS[architecture]
    return models.build(architecture, task, SHAPES[task], CLASSES, precision=precision)
