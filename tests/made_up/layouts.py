"""Small data of every task, in every layout that it accepts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from study import tasks
from study.cell import NO_OPTIONS, Budget, Cell, Options, Schedule
from study.tasks.mosaics.cifar import CIFAR10, CIFAR100
from study.tasks.mosaics.layouts import Wanted
from study.tasks.sources.places import Places
from study.tasks.task import Task
from tests.chapters.captions.coco_files import coco, write_coco
from tests.chapters.paths.omniglot_files import write_omniglot
from tests.chapters.series.ts_writers import write_series
from tests.chapters.texts import text_files as texts
from tests.chapters.texts.post_files import write_posts
from tests.made_up import cifar, images

Write = Callable[[Path], object]


class Layout(NamedTuple):
    """Data of a task in a folder.

    Attributes:
        task: its name.
        write: makes the files; None: there are none.
        options: of the task.
    """

    task: str
    write: Write | None = None
    options: Options = NO_OPTIONS

    @contextlib.contextmanager
    def places(self, folder: Path) -> Iterator[Places]:
        """Of its files and the cache in a folder, where torchvision takes them for published."""
        if self.write:
            self.write(folder / "data")
        with cifar.as_official(folder / "data"):
            yield Places(str(folder / "data") if self.write else None, str(folder / "cache"))

    def load(self, folder: Path) -> Task:
        """The task, whose files and cache are made in a folder."""
        with self.places(folder) as places:
            return tasks.load(self.task, places, self.options)

    def cell(self, task: Task, train: int, validation: int, test: int) -> Cell:
        """A cell of so many inputs."""
        return Cell(
            task=task.name, data_digest=task.facts.digest, m=m_of(task.name), n=train,
            architecture="any", schedule=Schedule.single("soft", 0.1), seed=0, batch_size=5,
            budget=Budget(1), train_metrics_size=train, validation_size=validation,
            test_size=test, evaluation_points=(1.0,), options=self.options,
        )  # fmt: skip


def m_of(task: str) -> int:
    """Segments of its inputs, at most."""
    return tasks.modality(task).fixed_m or 4


def _cifar(write: Callable[..., object], names: Wanted) -> Write:
    count = 10 * len(names.class_names)
    return lambda folder: write(folder, names, cifar.make(names, 2 * count, count))


def _both_splits(folder: Path) -> None:
    images.write_folders(folder, split="train")
    images.write_folders(folder, split="test", first=100)


def _two_posts(folder: Path) -> None:
    write_posts(folder, train_rationales=True)


def _in_one_file(folder: Path) -> None:
    splits = ((split, seed, count) for seed, (split, count) in enumerate(texts.SIZES.items()))
    rows = [
        row | {"split": split} for split, seed, n in splits for row in texts.rows(n, seed=seed)
    ]
    texts.write_jsonl(folder / "all.jsonl", rows)


_IMAGES = Options(foreground="heron+stork", pixels=8)
_DIGITS = Options(foreground="0+1", pixels=8)
_POSTS = Options(label_rule="majority", rationale_rule="majority", min_count=1)
_TEXTS = Options(min_count=1)
_SERIES = Options(foreground="1+2+3", background="rest", window=7)
_COCO = Options(min_count=1, encoder="small")

LAYOUTS: Mapping[str, Layout] = {
    "digits, bundled": Layout("digits"),
    "digits, one-shot": Layout("digits-one-shot", None, Options(pixels=8)),
    "linear orthogonal": Layout("linear-orthogonal", None, Options(num_classes=3)),
    **{
        f"{task}, {name}": Layout(task, _cifar(write, names))
        for task, names in (("cifar10", CIFAR10), ("cifar100", CIFAR100))
        for name, write in cifar.WRITERS.items()
    },
    "images, class folders": Layout("images", images.write_folders, _IMAGES),
    "images, train and test": Layout("images", _both_splits, _IMAGES),
    "images, Parquet": Layout(
        "images",
        lambda folder: images.write_own_parquet(folder / "a.parquet", ["heron", "stork", "x"] * 9),
        _IMAGES,
    ),
    "images, MNIST": Layout("images", images.write_ubyte, _DIGITS),
    "images, MNIST.gz": Layout("images", partial(images.write_ubyte, compressed=True), _DIGITS),
    "hatexplain": Layout("hatexplain", _two_posts, _POSTS),
    "hatexplain, without rationales in train": Layout("hatexplain", write_posts, _POSTS),
    "texts, a file a split": Layout("texts", texts.write_texts, _TEXTS),
    "texts, in one file": Layout("texts", _in_one_file, _TEXTS),
    "mscoco, 2017": Layout("mscoco", lambda folder: write_coco(folder, coco(12, 12)), _COCO),
    "mscoco, 2014": Layout("mscoco", partial(write_coco, content=coco(12, 12), year=2014), _COCO),
    "omniglot": Layout("omniglot", write_omniglot, Options(pixels=16)),
    "series": Layout("series", write_series, _SERIES),
    "series, of one length": Layout("series", partial(write_series, lengths=(15,)), _SERIES),
}

OF_TASK: Mapping[str, Layout] = {layout.task: layout for layout in reversed(LAYOUTS.values())}
"""Task -> the first of its layouts."""
