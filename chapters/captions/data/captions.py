"""Captions as tasks: segments are the regions of an image, and attention is anew for every word.

Captions differ in length, so a batch is padded to its longest caption, or to the next of a few
widths. A mask marks the real words, among them the end.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from chapters.captions.data.boxes import Boxed, Scored, boxed
from chapters.captions.data.encoded_images import ImageFiles
from chapters.captions.data.mscoco import Captioned
from chapters.captions.data.vocabulary import PADDING
from chapters.captions.modality import CAPTIONS
from study.cell import Cell
from study.cell.seeds import stream_seed
from study.tasks.sequences import Sequences
from study.tasks.task import Batch, Facts

_COPIED = 256  # images that go to the device at a time
_ENCODED = 8
"""Floats that a pixel counts for, by which passes through an encoder are sized: 160 images of 224
pixels pass a GPU at once, where the widest layers of VGG19 take 4 GB."""


@dataclass(frozen=True)
class Captions(Sequences):
    """The captions of one split, on one device, with their images.

    The captions of an image follow each other, and the images are in the order of their first
    captions.

    Attributes:
        words: (n, T) int64 numbers of words, the end of the caption after the last one, `PADDING`
            behind it; the start is not among them.
        lengths: (n,) int64 in [2, T], with the end, on the host, where widths are decided.
        image_of: (n,) int64, the number of each caption's image in this split.
        images: (N, m, D) float16 features or (N, 3, P, P) uint8 pixels, see `images_at`.
        rows: (num_images,) int64, the row in `images` of each image.
        captioned: each image, with all its captions, even those that this split leaves out.
        vocabulary: (V,) the word of each number, "" for those that are none.
        objects: that captions are held against, in the order of their images.
        thumbnail: number of an image -> the image for people: JPEG, squashed to a square.
    """

    words: Tensor
    lengths: Tensor
    image_of: Tensor
    images: Tensor
    rows: Tensor
    captioned: Sequence[Captioned]
    vocabulary: Sequence[str]
    objects: Sequence[Boxed]
    thumbnail: Callable[[int], bytes]

    modality = CAPTIONS
    distinct = None
    width_step = 4  # of MSCOCO, most batches of 32 are 16 or 20 words wide

    @property
    def num_images(self) -> int:
        return len(self.captioned)

    @property
    def labels(self) -> Tensor:
        """(n, T) int64: the words."""
        return self.words

    @property
    def foreground(self) -> Tensor:
        """(n, 0) bool: an image has several foregrounds or none, see `objects`."""
        return self.words.new_empty((len(self), 0), dtype=torch.bool)

    @property
    def base_images(self) -> Tensor:
        """The image of each of `objects`, on the host: (objects, 1) int64."""
        return torch.tensor([each.image for each in self.objects], dtype=torch.int64)[:, None]

    @property
    def bytes_each(self) -> int:
        """Size of one image's features as float32, in bytes; of pixels, that of an encoder's."""
        if self.images.is_floating_point():
            return 4 * self.images[0].numel()
        return 4 * self.images[0, 0].numel() * _ENCODED

    def images_at(self, index: Tensor) -> Tensor:
        """The images of these numbers: (B, m, D) float32 features or (B, 3, P, P) uint8 pixels.

        On a CPU they are read from a memory map. On a GPU the images of the split are held: of
        features 2 m D bytes each, so 17 GB of the 82,783 of 2014's training images with VGG19 at
        m=196; of pixels 3 P^2 bytes each, 12 GB. Then nothing waits for the device.

        Args:
            index: (B,) int64, on the device.
        """
        images = self.images[self.rows[index]]
        return images.float() if images.is_floating_point() else images

    def batch(self, rows: Tensor, width: int | None = None) -> Batch:
        """See `study.tasks.task.Split`; the width counts words, with the end."""
        words = self.words_of(rows, width)
        images = self.images_at(self.image_of[rows])
        return Batch(images, words, self.foreground[rows], words != PADDING)

    def head(self, count: int) -> Captions:
        """The first `count` captions, and the images that they are of."""
        image_of = self.image_of[:count]
        num_images = int(image_of[-1]) + 1
        return replace(
            self,
            words=self.words[:count],
            lengths=self.lengths[:count],
            image_of=image_of,
            rows=self.rows[:num_images],
            captioned=self.captioned[:num_images],
            objects=[each for each in self.objects if each.image < num_images],
        )


class Numbered(NamedTuple):
    """The captions of one split as the data set has them, those of an image together.

    Attributes:
        words: (N, T) int32 numbers of words, as of `Captions`.
        lengths: (N,) int64, with the end.
        image_of: (N,) int64, increasing from 0 without a gap.
        rows: (images,) int64, the number of each image among all of the task.
    """

    words: np.ndarray
    lengths: np.ndarray
    image_of: np.ndarray
    rows: np.ndarray


@dataclass(eq=False)
class CaptionTask:
    """Captioning of images, word by word, with attention to their regions.

    Attributes:
        parts: split -> captions.
        captioned: the images of all splits.
        scored: the categories that captions are held against.
        vocabulary: (V,) the word of each number.
        images: what is seen of `captioned`.
        facts: of the data.
    """

    parts: Mapping[str, Numbered]
    captioned: Sequence[Captioned]
    scored: Scored
    vocabulary: Sequence[str]
    images: ImageFiles
    facts: Facts

    name = "mscoco"

    def __post_init__(self) -> None:
        self._fixed = functools.lru_cache(maxsize=8)(self._drawn)
        self._held = functools.lru_cache(maxsize=4)(self._copied)

    @property
    def num_classes(self) -> int:
        """V, the words of the vocabulary and the four numbers that are no word."""
        return len(self.vocabulary)

    @property
    def encoder_weights(self) -> Mapping[str, Tensor] | None:
        """What a trained encoder starts from; None: it is drawn.

        Raises:
            RequestError: they are not at hand, or of another network.
        """
        return self.images.encoder_weights

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> dict[str, Captions]:
        """The splits of a cell: `train`, `validation`, `test`.

        A cell that takes fewer captions than a split has takes the first of a random order of its
        images: of training images by its seed, of the others by fixed seeds. Images are pixels if
        the encoder is trained, else its features.
        """
        trained = cell.schedule.phases[0].encoder_lr is not None
        images = (cell.m, trained, torch.device(device))
        return {
            "train": self._drawn("train", cell.n, *images, cell.seed),
            "validation": self._fixed("validation", cell.validation_size, *images),
            "test": self._fixed("test", cell.test_size, *images),
        }

    def _drawn(
        self, split: str, count: int, m: int, trained: bool, device: torch.device, *seed: int
    ) -> Captions:
        part = self.parts[split]
        rng = np.random.default_rng(stream_seed("captions", self.name, split, *seed))
        order = rng.permutation(len(part.rows))
        place_of = np.argsort(order)[part.image_of]
        captions = np.argsort(place_of, kind="stable")[:count]
        image_of = place_of[captions]  # of the last image there may be fewer than it has
        drawn = order[: image_of[-1] + 1]
        lengths, numbers = part.lengths[captions], part.rows[drawn]
        captioned = [self.captioned[number] for number in numbers]
        if device.type == "cpu":
            images, rows = self.images.seen(m, trained, device), numbers
        else:
            held = np.sort(numbers)
            images = self._held(m, trained, device, held.tobytes())
            rows = np.searchsorted(held, numbers)
        words = part.words[captions, : lengths.max()].astype(np.int64)
        return Captions(
            words=torch.from_numpy(words).to(device),
            lengths=torch.from_numpy(lengths),
            image_of=torch.from_numpy(image_of).to(device),
            images=images,
            rows=torch.from_numpy(rows).to(device),
            captioned=captioned,
            vocabulary=self.vocabulary,
            objects=boxed(captioned, self.scored, m, device),
            thumbnail=lambda image: self.images.thumbnail(numbers[image]),
        )

    def _copied(self, m: int, trained: bool, device: torch.device, rows: bytes) -> Tensor:
        """Images on a device that is no CPU, a few at a time, as the host may not hold them all.

        Args:
            rows: of the images, as the bytes of int64. Splits of the same images share them.
        """
        stored = self.images.seen(m, trained, device)
        index = torch.from_numpy(np.frombuffer(rows, np.int64).copy())
        images = stored.new_empty((len(index), *stored.shape[1:]), device=device)
        for part, into in zip(index.split(_COPIED), images.split(_COPIED), strict=True):
            into.copy_(stored[part])
        return images
