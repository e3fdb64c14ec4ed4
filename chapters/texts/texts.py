"""Texts as tasks: segments are the words of a post, the foreground is its rationale.

Posts differ in length, so a batch is padded to its longest post, or to the next of a few widths. A
mask marks the real words.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from chapters.texts.modality import POSTS
from chapters.texts.posts import Post, Posts
from study.cell import Cell, Options
from study.cell.seeds import stream_seed
from study.tasks.sequences import Sequences, make_vocabulary
from study.tasks.task import SPLITS, Batch, Facts

PADDING, UNKNOWN = 0, 1
"""Word numbers of padding, and of every word that is not in the vocabulary."""
FIRST_WORD = 2
"""Number of the first word of the vocabulary."""

_SEGMENT_FLOATS = 100  # size of a word vector, by which passes through the networks are sized


@dataclass(frozen=True)
class Texts(Sequences):
    """The posts of one split, on one device.

    Attributes:
        words: (n, m) int32 numbers of words, `PADDING` behind the end of a post.
        labels: (n,) int64.
        foreground: (n, m) bool, True at the words of the rationale; a post may have none.
        lengths: (n,) int64 in [1, m], on the host, where the width of a batch is decided.
        tokens: the words of each post as they were written, before it is cut; empty: not kept.
        classes: the name of each label.
    """

    words: Tensor
    labels: Tensor
    foreground: Tensor
    lengths: Tensor
    tokens: Sequence[Sequence[str]] = ()
    classes: tuple[str, ...] = ()

    modality = POSTS
    distinct = None
    width_step = 8  # of HateXplain at m = 64, batches of 256 are 56 or 64 words wide

    @property
    def base_images(self) -> Tensor:
        """(n, 1) int64: every post is its own."""
        return torch.arange(len(self), device=self.labels.device)[:, None]

    @property
    def bytes_each(self) -> int:
        """Size of one post's word vectors as float32, in bytes."""
        return 4 * self.words.shape[1] * _SEGMENT_FLOATS

    def batch(self, rows: Tensor, width: int | None = None) -> Batch:
        """See `study.tasks.task.Split`."""
        words = self.words_of(rows, width)
        foreground = self.foreground[rows, : words.shape[1]]
        return Batch(words, self.labels[rows], foreground, words != PADDING)

    def head(self, count: int) -> Texts:
        """The first `count` posts."""
        cut = {name: each[:count] for name, each in vars(self).items() if name != "classes"}
        return replace(self, **cut)


def shown(split: Texts, row: int) -> dict[str, list[str]]:
    """What shows a post, see `study.tracking.looks.Example`; empty where texts are not kept."""
    if not split.tokens:
        return {}
    return {"words": list(split.tokens[row][: int(split.lengths[row])])}


class NumberedPosts(NamedTuple):
    """The posts of one split, one after another.

    Attributes:
        words: (sum of lengths,) int32 numbers of words.
        rationale: (sum of lengths,) bool.
        lengths: (N,) int64.
        labels: (N,) int64.
    """

    words: np.ndarray
    rationale: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """(N,) int64, the place of each post's first word."""
        return np.cumsum(self.lengths) - self.lengths

    @property
    def marked(self) -> np.ndarray:
        """(N,) float64, the share of each post's words that are of the rationale."""
        return np.add.reduceat(self.rationale, self.starts, dtype=np.float64) / self.lengths

    def texts(self, rows: np.ndarray, m: int, device: torch.device) -> Texts:
        """The posts of these rows, each cut at m words."""
        lengths = np.minimum(self.lengths[rows], m)
        positions = np.arange(lengths.max())
        real = positions < lengths[:, None]
        places = np.where(real, self.starts[rows, None] + positions, 0)
        words = np.where(real, self.words[places], PADDING)
        return Texts(
            words=torch.from_numpy(words).to(device),
            labels=torch.from_numpy(self.labels[rows]).to(device),
            foreground=torch.from_numpy(real & self.rationale[places]).to(device),
            lengths=torch.from_numpy(lengths),
        )


@dataclass(eq=False)  # hashable: tasks are keys of caches
class TextTask:
    """Classification of posts, some of whose words are the reason for the label.

    Attributes:
        name: of the task; part of the seeds.
        posts: split -> posts.
        facts: of the data.
        tested: the posts of the test split as they were written.
        classes: the name of each label.
        vocabulary: the known words, of which the first has the number `FIRST_WORD`.
    """

    name: str
    posts: Mapping[str, NumberedPosts]
    facts: Facts
    tested: Sequence[Post]
    classes: tuple[str, ...]
    vocabulary: Sequence[str]

    encoder_weights = None

    def __post_init__(self) -> None:
        self.num_classes = len(self.classes)
        self._fixed = functools.lru_cache(maxsize=8)(self._drawn)

    @property
    def carried(self) -> dict[str, Any]:
        """See `study.tasks.task.carried`."""
        return {"classes": self.classes, "vocabulary": self.vocabulary}

    def splits(self, cell: Cell, device: torch.device | str = "cpu") -> dict[str, Texts]:
        """The splits of a cell: `train`, `validation`, `test`, as the data set has them.

        A cell that takes fewer posts than a split has draws them without replacement: the train
        posts by its seed, the others by fixed seeds. Posts are cut at m words.
        """
        cut = cell.m, torch.device(device)
        return {
            "train": self._drawn("train", cell.n, *cut, cell.seed),
            "validation": self._fixed("validation", cell.validation_size, *cut),
            "test": self._fixed("test", cell.test_size, *cut),
        }

    def _drawn(self, split: str, count: int, m: int, device: torch.device, *seed: int) -> Texts:
        posts = self.posts[split]
        rng = np.random.default_rng(stream_seed("posts", self.name, split, *seed))
        rows = rng.permutation(len(posts.labels))[:count]
        texts = posts.texts(rows, m, device)
        if split != "test":
            return texts
        tokens = [self.tested[row].tokens for row in rows]
        return replace(texts, tokens=tokens, classes=self.classes)


def text_task(name: str, posts: Posts, options: Options) -> TextTask:
    """A data set of posts as a task.

    The vocabulary is the words that occur at least `min_count` times in the training
    split, before posts are cut. All other words are one word, the unknown.

    Raises:
        RequestError: no word occurs so often.
    """
    train = (post.tokens for post in posts.splits["train"])
    vocabulary = make_vocabulary(name, train, options["min_count"])
    number_of = {word: i for i, word in enumerate(vocabulary, start=FIRST_WORD)}
    numbered = {split: _numbered(posts.splits[split], number_of) for split in SPLITS}
    facts = Facts(
        digest=_digest(numbered, vocabulary),
        num_classes=len(posts.classes),
        input_shape=(len(vocabulary) + FIRST_WORD,),
        sizes={split: len(each.labels) for split, each in numbered.items()},
        lengths=Counter(numbered["train"].lengths.tolist()),
        notes=tuple(_notes(posts, numbered, len(vocabulary), options)),
    )
    return TextTask(name, numbered, facts, posts.splits["test"], posts.classes, vocabulary)


def _numbered(posts: Sequence[Post], number_of: Mapping[str, int]) -> NumberedPosts:
    words = [number_of.get(word, UNKNOWN) for post in posts for word in post.tokens]
    return NumberedPosts(
        words=np.array(words, np.int32),
        rationale=np.array([mark for post in posts for mark in post.rationale], bool),
        lengths=np.array([len(post.tokens) for post in posts], np.int64),
        labels=np.array([post.label for post in posts], np.int64),
    )


def _digest(numbered: Mapping[str, NumberedPosts], vocabulary: Sequence[str]) -> str:
    """16 hexadecimal digits that stand for words, labels and rationales of all splits."""
    digest = hashlib.sha256(json.dumps(vocabulary).encode())
    for array in (array for split in SPLITS for array in numbered[split]):
        digest.update(json.dumps(array.shape).encode())
        # A fixed byte order, so that the digest is the same on every machine.
        digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).data)
    return digest.hexdigest()[:16]


def _notes(
    posts: Posts, numbered: Mapping[str, NumberedPosts], words: int, options: Options
) -> Iterator[str]:
    """Sentences about the data, for people."""
    rules = ""
    if "label_rule" in options:
        rules = f"; label by {options['label_rule']}, rationale by {options['rationale_rule']}"
    sizes = {split: len(each.labels) for split, each in numbered.items()}
    yield f"posts: {_each(sizes, ',')}{rules}"
    yield from posts.notes
    least = options["min_count"]
    seldom = f" that occur at least {least} times" if least != 1 else ""
    known = {split: (each.words != UNKNOWN).mean() for split, each in numbered.items()}
    yield (
        f"vocabulary: {words:,} words of the training split{seldom}, which are "
        f"{_each(known, '.1%')} of the words"
    )
    marked = {split: each.marked for split, each in numbered.items()}
    shares = {split: (each > 0).mean() for split, each in marked.items()}
    if any(shares.values()):
        whole = (marked["test"] == 1).sum() / max(1, (marked["test"] > 0).sum())
        yield (
            f"before posts are cut at m: with a rationale {_each(shares, '.1%')}; of these, the "
            f"whole post is the rationale of {_each({'test': whole}, '.1%')}"
        )
    else:
        yield "no post has a rationale: SAIF and plausibility are unknown"
    lengths = numbered["train"].lengths
    yield (
        f"before posts are cut at m: {lengths.mean():.1f} words a training post in the mean, at "
        f"most {lengths.max()}"
    )
    if known["train"] == 1:
        yield "no training word is unknown: the vector of unknown words is never trained"
    if posts.left_out:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in posts.left_out.items())
        yield f"posts left out: {reasons}"


def _each(values: Mapping[str, float], form: str) -> str:
    """``59.4 % (train), 59.3 % (test)``, in a format of Python."""
    told = ", ".join(f"{value:{form}} ({split})" for split, value in values.items())
    return told.replace("%", " %")
