"""Small data of a task, made up in one of the layouts that it accepts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from study import tasks
from study.cell import NO_OPTIONS, Budget, Cell, Options, Schedule
from study.tasks.sources.places import Places
from study.tasks.task import Task
from tests.made_up import cifar

Write = Callable[[Path], object]


class Layout(NamedTuple):
    """Data of a task in a folder.

    Attributes:
        task: its name.
        write: makes the files; None: there are none.
        options: of the task.
        prepares: whether what takes long to read of them is kept in the cache.
        bounded: whether the numbers of its segments are in [-1, 1].
    """

    task: str
    write: Write | None = None
    options: Options = NO_OPTIONS
    prepares: bool = False
    bounded: bool = True

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
            task=task.name, data_digest=task.facts.digest, n=train,
            m=tasks.modality(task.name).fixed_m or 4, architecture="any",
            schedule=Schedule.single("soft", 0.1), seed=0, batch_size=5, budget=Budget(1),
            train_metrics_size=train, validation_size=validation, test_size=test,
            evaluation_points=(1.0,), options=self.options,
        )  # fmt: skip
