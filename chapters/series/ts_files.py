"""Finds and reads the two .ts files of a data set of the UCR/UEA archive of time series.

    # a comment
    @problemName JapaneseVowels
    @classLabel true 1 2 3
    @data
    1.8,1.9,1.7:-0.2,-0.1,-0.3:...:1

A line after @data is a series: its dimensions separated by colons, the values of each by commas,
the label last. Names of the header may be written in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from study.errors import RequestError, unknown
from study.tasks.mosaics.classes import class_name, class_names
from study.tasks.sources.directory import listed, nothing_in
from study.tasks.sources.reading import reading

ACCEPTED = (
    "one pair of files NAME_TRAIN.ts and NAME_TEST.ts of the UCR/UEA archive, in DIR or in "
    "DIR/NAME"
)

_FILE = re.compile(r"((?P<folder>[^/]+)/)?(?P<name>[^/]+)_(?P<part>TRAIN|TEST)\.ts", re.IGNORECASE)
_COMMENTS = ("#", "%")
_MEND = "Fix it, or copy it again."


class TsFile(NamedTuple):
    """A file of labelled series.

    Attributes:
        name: of the data set.
        classes: names of the C classes.
        series: of each (T, D) float64, T steps of D dimensions; only T may differ.
        labels: (N,) int64 in [0, C).
    """

    name: str
    classes: tuple[str, ...]
    series: list[np.ndarray]
    labels: np.ndarray


def belongs(name: str) -> bool:
    """Whether a file is part of a data set, by its name relative to the directory."""
    match = _FILE.fullmatch(name)
    return match is not None and match["folder"] in (None, match["name"])


def read_pair(data_dir: Path) -> tuple[TsFile, TsFile]:
    """The series to train and validate on, and those to test on, of the same classes and D.

    Args:
        data_dir: holds one data set, or one of its own name, itself or in folders.

    Raises:
        RequestError: it holds none, or several; or a line of a file cannot be read, lacks values,
            or is of another class or number of dimensions.
    """
    with listed(data_dir, "a pair of .ts files", depth=1) as names:
        pairs = _pairs(data_dir, names)
    if not pairs:
        raise nothing_in(data_dir, names, "pair of .ts files", ACCEPTED)
    own = data_dir.absolute().name
    if len(pairs) > 1 and own not in pairs:
        raise RequestError(
            f"{data_dir} has several data sets: {', '.join(sorted(pairs))}. Pass one: {ACCEPTED}."
        )
    train, test = pairs.get(own) or pairs.popitem()[1]
    first = _read(train)
    return first, _read(test, like=first)


def _pairs(data_dir: Path, names: Sequence[str]) -> dict[str, list[Path]]:
    """Name of a data set -> its two files; those in folders count if none lie beside these."""
    found: dict[tuple[bool, str], dict[str, Path]] = {}
    for match in filter(None, map(_FILE.fullmatch, names)):
        if match["folder"] in (None, match["name"]):
            files = found.setdefault((match["folder"] is None, match["name"]), {})
            files[match["part"].upper()] = data_dir / match.string
    pairs = {key: [of["TRAIN"], of["TEST"]] for key, of in found.items() if len(of) == 2}
    outside = {name: pair for (is_outside, name), pair in pairs.items() if is_outside}
    return outside or {name: pair for (_, name), pair in pairs.items()}


def _read(path: Path, like: TsFile | None = None) -> TsFile:
    """The series of a file; with the classes and dimensions of another one of the data set."""
    classes = like.classes if like else ()
    series = like.series[:1] if like else []  # the first has the dimensions of all
    labels: list[int] = []
    with reading(path, _MEND), path.open(encoding="utf-8-sig", errors="replace") as file:
        numbered = ((number, line.strip()) for number, line in enumerate(file, start=1))
        lines = (each for each in numbered if each[1] and not each[1].startswith(_COMMENTS))
        for _, line in lines:
            word, *others = line.split()
            if word.lower() == "@classlabel" and not like:
                classes = class_names(others[1:], path)
            if word.lower() == "@data":
                break
        if len(classes) < 2:
            raise ValueError("it names no two classes before @data: @classLabel true A B")
        for number, line in lines:
            with reading(f"{path}, line {number}", _MEND):
                values, label = _parsed(line, classes)
                if series and values.shape[1] != series[0].shape[1]:
                    raise ValueError(
                        f"it does not have the {series[0].shape[1]} dimensions of the others"
                    )
            series.append(values)
            labels.append(label)
        if not labels:
            raise ValueError("it has no series after @data")
    name = path.stem.rpartition("_")[0]
    return TsFile(name, classes, series[-len(labels) :], np.array(labels, np.int64))


def _parsed(line: str, classes: tuple[str, ...]) -> tuple[np.ndarray, int]:
    """The values (T, D) and the label of a line after @data; of a bad one any exception."""
    dimensions, label = line.rsplit(":", 1)
    if class_name(label) not in classes:
        raise ValueError(unknown("class", label[:40], classes))
    texts = [each.split(",") for each in dimensions.replace("?", "nan").split(":")]
    values = np.array(texts, np.float64).T
    if not (np.abs(values) <= np.finfo(np.float32).max).all():
        raise ValueError("values are missing, as ? or NaN, or too large for float32: fill them in")
    return values, classes.index(class_name(label))
