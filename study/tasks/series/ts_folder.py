"""Finds a data set of the UCR/UEA archive: a pair of files NAME_TRAIN.ts and NAME_TEST.ts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from study.errors import RequestError
from study.tasks.sources.directory import listed, nothing_in, visible

ACCEPTED = (
    "one pair of files NAME_TRAIN.ts and NAME_TEST.ts of the UCR/UEA archive, in DIR or in "
    "DIR/NAME"
)

_FILE = re.compile(r"(?P<name>[^/]+)_(?P<part>TRAIN|TEST)\.ts", re.IGNORECASE)


class Pair(NamedTuple):
    """The two files of a data set.

    Attributes:
        name: of the data set.
        train: the series to train and validate on.
        test: those to test on.
    """

    name: str
    train: Path
    test: Path


def belongs(name: str) -> bool:
    """Whether a file is part of a data set, by its name relative to the directory."""
    folder, _, file = name.rpartition("/")
    match = _FILE.fullmatch(file)
    return match is not None and folder in ("", match["name"])


def find(data_dir: Path) -> Pair:
    """The data set in a directory: the pair named as the directory, else the only one.

    Raises:
        RequestError: there is no such directory; or it has none, half of one, or several.
    """
    with listed(data_dir, "a pair of .ts files") as entries:
        halves = _halves(data_dir)
        if not halves:
            folders = [path for path in entries if path.is_dir()]
            inside = {path.name: _halves(path).get(path.name) for path in folders}
            halves = {name: half for name, half in inside.items() if half is not None}
    pairs = {
        name: Pair(name, parts["TRAIN"], parts["TEST"])
        for name, parts in halves.items()
        if len(parts) == 2
    }
    own = Path(os.path.abspath(data_dir)).name
    if own in pairs or len(pairs) == 1:
        return pairs[own] if own in pairs else next(iter(pairs.values()))
    if pairs:
        raise RequestError(
            f"{data_dir} has several data sets: {', '.join(sorted(pairs))}. Pass one: {ACCEPTED}."
        )
    if halves:
        name, parts = next(iter(sorted(halves.items())))
        there = next(iter(parts.values()))
        lacking = {"TRAIN", "TEST"} - parts.keys()
        raise RequestError(
            f"{there.parent} has {there.name}, but no {name}_{lacking.pop()}.ts. Pass both, with "
            "--data-dir."
        )
    raise nothing_in(data_dir, entries, "pair of .ts files", ACCEPTED)


def _halves(folder: Path) -> dict[str, dict[str, Path]]:
    """Name of a data set -> its files in a folder, by TRAIN or TEST."""
    found: dict[str, dict[str, Path]] = {}
    for path in visible(folder):
        if (match := _FILE.fullmatch(path.name)) and path.is_file():
            found.setdefault(match["name"], {})[match["part"].upper()] = path
    return found
