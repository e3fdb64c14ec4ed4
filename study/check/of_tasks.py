"""What every task promises, checked on its data."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from study import tasks
from study.cell import NO_OPTIONS, Budget, Cell, Options, Schedule
from study.check.promises import Promise, promise, require, skip_unless
from study.tasks.sources.places import NO_PLACES, Places
from study.tasks.task import SPLITS, Batch, Split, Task, TaskInfo

N, M = 40, 4

PROMISES: list[Promise] = []


@dataclass(frozen=True)
class Loaded:
    """A task by its name, and the places of its files."""

    name: str
    places: Places = NO_PLACES

    @property
    def options(self) -> Options:
        return tasks.resolved(self.name, NO_OPTIONS)

    @cached_property
    def info(self) -> TaskInfo:
        return tasks.info(self.name, self.options)

    @cached_property
    def task(self) -> Task:
        return tasks.load(self.name, self.places, self.options)

    @property
    def cell(self) -> Cell:
        return Cell(
            task=self.name,
            data_digest=self.task.facts.digest,
            m=tasks.modality(self.name).fixed_m or M,
            n=N,
            architecture="any",
            schedule=Schedule.single("soft", 0.1),
            seed=0,
            budget=Budget(1),
            train_metrics_size=N,
            validation_size=N // 2,
            test_size=N // 2,
            options=self.options,
        )

    def splits(self, seed: int = 0) -> dict[str, Split]:
        return dict(self.task.splits(replace(self.cell, seed=seed)))


def _whole(split: Split) -> Batch:
    return split.batch(torch.arange(len(split)))


@promise("has the data that it declares, with a digest", to=PROMISES)
def has_its_data(loaded: Loaded) -> None:
    task, info = loaded.task, loaded.info
    require(task.name == loaded.name, f"the task that it loads is named {task.name!r}")
    digest = task.facts.digest
    require(
        re.fullmatch("[0-9a-f]{16}", digest),
        f"the digest of its data is {digest!r}, must be 16 hexadecimal digits that stand for it",
    )
    require(
        not info.classes or task.num_classes == info.num_classes,
        f"its data has {task.num_classes} classes, it declares {info.num_classes}",
    )
    again = tasks.load(loaded.name, loaded.places, loaded.options)
    require(again.facts == task.facts, "loaded twice, its data are not the same: draw by a seed")


@promise("gives the splits train, validation and test in the shapes of its facts", to=PROMISES)
def gives_splits(loaded: Loaded) -> None:
    splits = loaded.splits()
    require(set(splits) == set(SPLITS), f"its splits are {', '.join(splits)}")
    shape, modality = loaded.task.facts.input_shape, tasks.modality(loaded.name)
    for name, split in splits.items():
        same = split.modality == modality
        require(same, f"the modality of {name} is not the declared one: give it to both")
        batch = _whole(split)
        require(
            loaded.task.facts.lengths or batch.segments.shape[2:] == shape,
            f"segments of {name} are {tuple(batch.segments.shape[2:])}, not {shape}",
        )
        require(batch.labels.dtype == torch.int64, f"labels of {name} are {batch.labels.dtype}")
        outside = (batch.labels < 0) | (batch.labels >= loaded.task.num_classes)
        require(
            not outside.any(),
            f"labels of {name} lie outside of 0 to {loaded.task.num_classes - 1}",
        )
        if not batch.segments.dtype.is_floating_point:
            continue
        finite = torch.isfinite(batch.segments).all()
        require(finite, f"segments of {name} are not all finite")


@promise("knows the foreground, which training does not see", to=PROMISES)
def knows_its_foreground(loaded: Loaded) -> None:
    skip_unless(not loaded.task.facts.sizes, "its inputs are no mosaics: they may lack one")
    for name, split in loaded.splits().items():
        foreground = _whole(split).foreground
        require(
            foreground.dtype == torch.bool and (foreground.sum(dim=1) == 1).all(),
            f"the foreground of {name} must mark one segment of each input, as bool",
        )


@promise("has the same inputs for two cells of one seed", to=PROMISES)
def follows_its_seed(loaded: Loaded) -> None:
    one, same = loaded.splits(), loaded.splits()
    for name in SPLITS:
        first, second = _whole(one[name]), _whole(same[name])
        require(
            torch.equal(first.segments, second.segments)
            and torch.equal(first.labels, second.labels),
            f"two cells of one seed have other inputs in {name}",
        )


@promise("has validation and test inputs that do not depend on the seed", to=PROMISES)
def evaluates_alike(loaded: Loaded) -> None:
    alike = tasks.modality(loaded.name).evaluates_alike
    skip_unless(alike, "the seed decides what this task is tested on")
    one, other = loaded.splits(0), loaded.splits(1)
    for name in ("validation", "test"):
        require(
            torch.equal(_whole(one[name]).segments, _whole(other[name]).segments),
            f"{name} inputs depend on the seed: verdicts would be of other images",
        )
