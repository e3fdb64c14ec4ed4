"""Reads .ts files of the UCR/UEA archive: labelled time series of one or several dimensions.

    # a comment
    @problemName JapaneseVowels
    @dimensions 12
    @classLabel true 1 2 3
    @data
    1.8,1.9,1.7:-0.2,-0.1,-0.3:...:1

A line after @data is a series: its dimensions separated by colons, the values of each by commas,
the label last. Names of the header may be written in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from study.errors import RequestError, unknown
from study.tasks.mosaics.classes import class_name
from study.tasks.sources.reading import reading

_COMMENTS = ("#", "%")
_AGAIN = "Copy the file again, as it was published."


@dataclass(frozen=True, eq=False)
class TsFile:
    """A file of labelled series.

    Attributes:
        path: for messages.
        classes: names of the C classes, in the order of the header.
        series: of each (T, D) float64, T steps of D dimensions; only T may differ.
        labels: (N,) int64 in [0, C).
    """

    path: Path
    classes: tuple[str, ...]
    series: tuple[np.ndarray, ...]
    labels: np.ndarray

    @property
    def dimensions(self) -> int:
        return int(self.series[0].shape[1])


def read_ts(path: Path) -> TsFile:
    """The series of a file.

    Raises:
        RequestError: the file cannot be read, is no .ts file or cut off, or has no classes; or
            values of a series are missing.
    """
    with reading(path, _AGAIN):
        text = path.read_text(encoding="utf-8-sig", errors="replace")  # of old comments
        lines = [line.strip() for line in text.split("\n")]
        if "@data" not in (lower := [line.lower() for line in lines]):
            raise ValueError("it has no line @data")
        start = lower.index("@data") + 1
        names = [line.split() for line in lines[:start] if line.startswith("@")]
        header = {name.lower(): values for name, *values in names}
        if "@classlabel" not in header:
            raise RequestError(f"{path} has no classes (@classLabel). Pass a file of classes.")
        classes = tuple(map(class_name, header["@classlabel"][1:]))
        if len(set(classes)) < max(2, len(classes)):
            raise ValueError("@classLabel true must name two classes or more, each once")
        series: list[np.ndarray] = []
        labels: list[int] = []
        for number, line in enumerate(lines[start:], start=start + 1):
            if line and not line.startswith(_COMMENTS):
                with reading(f"{path}, line {number}", _AGAIN):
                    values, label = _series(f"{path}, line {number}", line, classes)
                    if series and values.shape[1] != series[0].shape[1]:
                        raise ValueError(f"it has not the {series[0].shape[1]} dimensions of all")
                series.append(values)
                labels.append(label)
        if not series:
            raise ValueError("it has no series after @data")
    return TsFile(path, classes, tuple(series), np.array(labels, np.int64))


def _series(where: str, line: str, classes: tuple[str, ...]) -> tuple[np.ndarray, int]:
    """The values (T, D) and the label of a line.

    Raises:
        ValueError: one is wrong or too large, or dimensions have several lengths.
        RequestError: values are missing, as in files of the archive, too.
    """
    *dimensions, label = line.split(":")
    if (name := class_name(label)) not in classes:
        raise ValueError(unknown("class", name[:40], classes))
    texts = [each.replace("?", "nan").split(",") for each in dimensions]
    if len({len(each) for each in texts}) != 1:
        raise ValueError("it has no values, or dimensions of several lengths")
    values = np.array([[float(text) for text in each] for each in texts]).T
    if np.isnan(values).any():
        raise RequestError(f"{where} lacks values (? or NaN). Fill them in first.")
    if (np.abs(values) > np.finfo(np.float32).max).any():
        raise ValueError("a value is too large for float32")
    return values, classes.index(name)


def require_alike(train: TsFile, test: TsFile) -> None:
    """Refuses two files that are not of one data set.

    Raises:
        RequestError: their classes or dimensions differ.
    """
    if set(train.classes) != set(test.classes) or train.dimensions != test.dimensions:
        raise RequestError(
            f"{train.path} and {test.path.name} are not of one data set: they have "
            f"{train.dimensions} and {test.dimensions} dimensions, the classes "
            f"{', '.join(train.classes)} and {', '.join(test.classes)}. Pass two files that agree."
        )
