"""Captions of images that are only numbers, and a model of them that looks all up in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from chapters.captions.data.boxes import Boxed
from chapters.captions.data.captions import Captions
from chapters.captions.data.mscoco import Captioned
from chapters.captions.data.vocabulary import END, PADDING, START
from chapters.captions.settings import DecoderSettings
from study.tasks.task import Batch

VOCABULARY = ("", "", "", "", "a", "dog", "puppy", "runs", "ball")
V = len(VOCABULARY)
A, DOG, PUPPY, RUNS, BALL = range(4, V)


class TableMemory(NamedTuple):
    """Which images the captions are of, and the words before their last ones, (B,) int64."""

    images: Tensor
    before: Tensor

    def rows(self, index: Tensor) -> TableMemory:
        return TableMemory(self.images[index], self.before[index])


@dataclass
class TableModel:
    """The next word depends on the image and on the last two words, attention on the last one.

    Attributes:
        probabilities: (images, V, V, V), of the next word by the last but one and the last; START
            stands before the first.
        attention: (images, V, m), by the last word.
        settings: how it writes.
    """

    probabilities: Tensor
    attention: Tensor
    settings: DecoderSettings

    @classmethod
    def random(cls, images: int, m: int, seed: int = 0, longest: int = 4) -> TableModel:
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(images, V, V, V, generator=generator)
        scores = 2 * torch.randn(images, V, m, generator=generator)
        return cls(logits.softmax(-1), scores.softmax(-1), DecoderSettings(longest=longest))

    def encode(self, images: Tensor) -> Tensor:
        return images

    def begin(self, regions: Tensor) -> TableMemory:
        images = regions[:, 0, 0].long()
        return TableMemory(images, torch.full_like(images, START))

    def next_word(
        self, paradigm: object, memory: TableMemory, words: Tensor
    ) -> tuple[Tensor, Tensor, TableMemory]:
        images, before = memory
        probabilities = self.probabilities[images, before, words]
        return self.attention[images, words], probabilities, TableMemory(images, words)

    def loss(self, paradigm: object, batch: Batch) -> Tensor:
        """The same for every word."""
        assert batch.mask is not None
        return batch.mask.sum(dim=1).double().mean()


def numbered_images(count: int, m: int) -> Tensor:
    """Regions (count, m, 1) that say the number of their image."""
    return torch.arange(count)[:, None, None].float().expand(-1, m, 1)


def captions_of(references: Sequence[Sequence[str]], objects: Sequence[Boxed], m: int) -> Captions:
    """A split of them, image by image."""
    numbers = [
        torch.tensor([*map(VOCABULARY.index, text.split()), END])
        for texts in references
        for text in texts
    ]
    counts = torch.tensor([*map(len, references)])
    images = torch.arange(len(references))
    return Captions(
        words=torch.nn.utils.rnn.pad_sequence(numbers, True, PADDING),
        lengths=torch.tensor([*map(len, numbers)]),
        image_of=images.repeat_interleave(counts),
        images=numbered_images(len(images), m),
        rows=images,
        captioned=[
            Captioned(f"{image}.jpg", "", texts, []) for image, texts in enumerate(references)
        ],
        vocabulary=VOCABULARY,
        objects=objects,
        thumbnail=lambda image: f"the picture {image}.jpg".encode(),
    )
