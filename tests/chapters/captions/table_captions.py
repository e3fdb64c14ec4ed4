"""Captions of images that are only numbers, and a model of them that looks all up in tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from chapters.captions.data.boxes import Boxed
from chapters.captions.data.mscoco import Captioned
from chapters.captions.data.vocabulary import END, PADDING, START
from chapters.captions.modality import CAPTIONS
from chapters.captions.settings import DecoderSettings
from study.tasks.task import Batch

VOCABULARY = ("", "", "", "", "a", "dog", "puppy", "runs", "ball")
V = len(VOCABULARY)
A, DOG, PUPPY, RUNS, BALL = range(4, V)
DECODER = DecoderSettings()


class TableMemory(NamedTuple):
    """Which images the captions are of, and the words before their last ones, (B,) int64."""

    images: Tensor
    before: Tensor

    def rows(self, index: Tensor) -> TableMemory:
        return TableMemory(self.images[index], self.before[index])


class TableModel:
    """The next word depends on the image and on the last two words, attention on the last one.

    Attributes:
        probabilities: (images, V, V, V), of the next word by the last but one and the last; START
            stands before the first.
        attention: (images, V, m), by the last word.
        settings: how it writes.
    """

    def __init__(
        self, probabilities: Tensor, attention: Tensor, settings: DecoderSettings = DECODER
    ) -> None:
        self.probabilities, self.attention, self.settings = probabilities, attention, settings

    @classmethod
    def random(cls, images: int, m: int, seed: int = 0) -> TableModel:
        generator = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(images, V, V, V, generator=generator)
        scores = 2 * torch.randn(images, V, m, generator=generator)
        return cls(logits.softmax(-1), scores.softmax(-1))

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


@dataclass(frozen=True)
class TableCaptions:
    """A split of them; see `chapters.captions.data.captions.Captions`."""

    m: int
    references: Sequence[Sequence[str]]
    objects: Sequence[Boxed] = ()
    modality = CAPTIONS
    vocabulary = VOCABULARY

    @property
    def captioned(self) -> Sequence[Captioned]:
        named = enumerate(self.references)
        return [Captioned(f"{image}.jpg", "", texts, []) for image, texts in named]

    @property
    def num_images(self) -> int:
        return len(self.references)

    @property
    def bytes_each(self) -> int:
        return 4 * self.m

    @property
    def image_of(self) -> Tensor:
        return torch.tensor([i for i, texts in enumerate(self.references) for _ in texts])

    @property
    def words(self) -> Tensor:
        numbers = [
            torch.tensor([*map(VOCABULARY.index, text.split()), END])
            for texts in self.references
            for text in texts
        ]
        return torch.nn.utils.rnn.pad_sequence(numbers, batch_first=True, padding_value=PADDING)

    @property
    def base_images(self) -> Tensor:
        return torch.tensor([one.image for one in self.objects], dtype=torch.int64)[:, None]

    def __len__(self) -> int:
        return len(self.words)

    def images_at(self, index: Tensor) -> Tensor:
        return index[:, None, None].float().expand(-1, self.m, 1)

    def batch(self, rows: Tensor) -> Batch:
        words = self.words[rows]
        images = self.images_at(self.image_of[rows])
        return Batch(images, words, words.new_empty(len(rows), 0), words != PADDING)

    def passes(self, count: int) -> Sequence[Tensor]:
        return torch.arange(len(self)).split(count)

    def thumbnail(self, image: int) -> bytes:
        return f"the picture {self.captioned[image].file}".encode()
