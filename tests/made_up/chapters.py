"""What chapters bring to the tests that are for all: contracts, and the golden record.

A chapter that has something for them has a `tests/chapters/NAME/made_up.py`, whose `BROUGHT` is a
`Brought`. What the core brings stands in those tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from study.cell import Options
from study.results import Results
from study.tasks.task import Facts
from tests.made_up.commands import Command
from tests.made_up.layout import Layout

_FOLDER = Path(__file__).parents[1] / "chapters"

T = TypeVar("T")
ByName = Mapping[str, T]
NOTHING: ByName[Any] = {}

Publish = Callable[[Path, Path, str, pytest.MonkeyPatch], object]
"""Puts the files of a folder into an empty one, whose URL a download then asks for them."""


class Reported(NamedTuple):
    """Results of which the golden record holds the report.

    Attributes:
        write: makes them.
        kind: module of the kind of sections that shows them, whose contract they are for, too;
            empty: they are for the record alone.
    """

    write: Callable[[Results], object]
    kind: str = ""


class Brought(NamedTuple):
    """What a chapter brings; no two bring the same name.

    Attributes:
        layouts: name -> small data of a task of its own.
        published: task -> facts of its data as they are published, by its options.
        downloads: task whose data can be downloaded -> what publishes them.
        studies: name -> arguments of `study.run` that take it seconds; {} stands for data in the
            first layout of its task. Every kind of cells has a study that needs none.
        studies_of_real_data: the same; {} stands for the folder of all data at hand.
        results: name -> results of its cells.
        commands: module -> command.
        mistakes: command, with places in {} -> facts that its answer names, with commas between.
        places: place in these -> what writes it into a folder and returns its path.
    """

    layouts: ByName[Layout] = NOTHING
    published: ByName[Callable[[Options], Facts]] = NOTHING
    downloads: ByName[Publish] = NOTHING
    studies: ByName[str] = NOTHING
    studies_of_real_data: ByName[str] = NOTHING
    results: ByName[Reported] = NOTHING
    commands: ByName[Command] = NOTHING
    mistakes: ByName[str] = NOTHING
    places: ByName[Callable[[Path], Path]] = NOTHING


@functools.cache
def brought() -> Brought:
    """What all chapters bring together, in the order of their names."""
    names = sorted(path.parent.name for path in _FOLDER.glob("*/made_up.py"))
    parts = [import_module(f"tests.chapters.{name}.made_up").BROUGHT for name in names]
    return Brought(*map(_joined, zip(*parts, strict=True)))


def _joined(parts: Sequence[ByName[Any]]) -> ByName[Any]:
    joined = {name: value for part in parts for name, value in part.items()}
    assert len(joined) == sum(map(len, parts)), "two chapters bring one name"
    return joined
