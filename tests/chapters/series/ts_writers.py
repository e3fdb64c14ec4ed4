"""Small data sets in the layout of the UCR/UEA archive, of noise around a level of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Labelled = tuple[str, np.ndarray]
"""The class of a series, and its values (T, D)."""

HEADER: Mapping[str, object] = {
    "problemName": "Made",
    "timeStamps": "false",
    "missing": "false",
    "univariate": "false",
    "equalLength": "false",
}


def ts_text(series: Sequence[Labelled], classes: Sequence[str]) -> str:
    """A .ts file of some series."""
    names = {**HEADER, "classLabel": f"true {' '.join(classes)}"}
    lines = ["# made up", *(f"@{name} {value}" for name, value in names.items()), "@data"]
    return "\n".join([*lines, *(line(values, label) for label, values in series), ""])


def line(values: np.ndarray, label: str) -> str:
    """A series (T, D) as a line; all digits of its values are kept."""
    dimensions = (",".join(map(repr, column.tolist())) for column in values.T)
    return ":".join([*dimensions, label])


def made_up_series(
    count: int, classes: Sequence[str], dimensions: int, lengths: Sequence[int], seed: int
) -> list[Labelled]:
    """So many series of each class, whose lengths take turns."""
    rng = np.random.default_rng(seed)
    return [
        (name, level + rng.normal(size=(lengths[k % len(lengths)], dimensions)))
        for level, name in enumerate(classes)
        for k in range(count)
    ]


def write_pair(
    folder: Path,
    train: Sequence[Labelled],
    test: Sequence[Labelled],
    classes: Sequence[str],
) -> Path:
    """Writes the two files of a data set; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, series in (("TRAIN", train), ("TEST", test)):
        (folder / f"Made_{part}.ts").write_text(ts_text(series, classes))
    return folder


def write_series(folder: Path, lengths: Sequence[int] = (7, 15, 21), count: int = 8) -> Path:
    """Writes `count` series of each of five classes for training and half as many to test."""
    train = made_up_series(count, "12345", 12, lengths, seed=0)
    test = made_up_series(count // 2, "12345", 12, lengths, seed=1)
    return write_pair(folder, train, test, "12345")
