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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from study.errors import RequestError, unknown
from study.tasks.mosaics.classes import class_name
from study.tasks.sources.reading import why

_COMMENTS = (b"#", b"%")  # the second one is that of older files
_AGAIN = "Copy the file again, as it was published."
_CUT_OFF = f"The line is cut off or damaged. {_AGAIN}"
_LARGEST = float(np.finfo(np.float32).max)
_SHOWN = 40  # characters of a file in a message


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


class _Line(NamedTuple):
    """A line, or the value of a line of the header.

    Attributes:
        where: its file and number, for messages.
        text: without white space around it.
    """

    where: str
    text: str


class _Header(NamedTuple):
    """What the header says of all series.

    Attributes:
        classes: names of the classes.
        dimensions: of each; None: as many as the first one has.
        equal: whether all have one length.
        length: that one; None: that of the first series.
    """

    classes: tuple[str, ...]
    dimensions: int | None
    equal: bool
    length: int | None


def read_ts(path: Path) -> TsFile:
    """The series of a file.

    Raises:
        RequestError: the file cannot be read, is no .ts file or cut off; its series have
            timestamps, no classes, or missing or infinite values; or a line contradicts the header
            or the lines before it.
    """
    lines = _lines(path)
    names: dict[str, _Line] = {}
    for number, line in enumerate(lines):
        if not line.text.startswith("@"):
            raise RequestError(
                f"{line.where}: {line.text[:_SHOWN]!r} stands before @data and is neither part of "
                "a header (@name value) nor a comment (#). Pass a .ts file."
            )
        name, value = (*line.text[1:].split(maxsplit=1), "", "")[:2]
        if name.lower() == "data":
            return _read_series(path, _header(path, names), lines[number + 1 :])
        names[name.lower()] = _Line(line.where, value)
    raise RequestError(f"{path} has no @data, the line before the series. {_AGAIN}")


def require_alike(train: TsFile, test: TsFile) -> None:
    """Refuses two files that are not of one data set.

    Raises:
        RequestError: their classes or dimensions differ.
    """
    for one, other in ((train, test), (test, train)):
        if lacking := [name for name in one.classes if name not in other.classes]:
            raise RequestError(
                f"{one.path} has the class {lacking[0]!r}, {other.path.name} has not. Write the "
                "same names after @classLabel true in both."
            )
    if train.dimensions != test.dimensions:
        raise RequestError(
            f"{train.path} has {train.dimensions} dimensions, {test.path.name} "
            f"{test.dimensions}. Pass two files of one data set."
        )


def _lines(path: Path) -> list[_Line]:
    """The lines of a file that are neither empty nor comments.

    Raises:
        RequestError: it cannot be read, is empty or no text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({why(error)}).") from error
    if not content.strip():
        raise RequestError(f"{path} is empty. {_AGAIN}")
    found = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        line = line.strip()
        if line and not line.startswith(_COMMENTS):
            where = f"{path}, line {number}"
            try:
                found.append(_Line(where, line.decode()))
            except UnicodeDecodeError as error:
                raise RequestError(f"{where} is no text (UTF-8). {_AGAIN}") from error
    return found


# The header


def _header(path: Path, names: Mapping[str, _Line]) -> _Header:
    if _says(names, "timeStamps"):
        raise RequestError(
            f"{names['timestamps'].where}: series with timestamps cannot be read. Write the "
            "values alone, at equal steps of time, and @timeStamps false."
        )
    for name, of_regression in (("classLabel", False), ("targetLabel", True)):
        if _says(names, name) == of_regression:
            raise RequestError(
                f"{names[name.lower()].where}: these series have numbers to predict, no classes. "
                "Pass series with @classLabel true and the names of their classes."
            )
    if "classlabel" not in names:
        raise RequestError(
            f"{path} has no @classLabel before @data. Write @classLabel true and the names of "
            "the classes."
        )
    where, text = names["classlabel"]
    classes = tuple(map(class_name, text.split()[1:]))
    if len(set(classes)) < max(2, len(classes)):
        raise RequestError(
            f"{where}: @classLabel true must name two classes or more, each once, got "
            f"{text[:_SHOWN]!r}. Mend the line."
        )
    dimensions = _count(names, "dimensions")
    if dimensions is None and _says(names, "univariate"):
        dimensions = 1
    equal = bool(_says(names, "equalLength"))
    return _Header(classes, dimensions, equal, _count(names, "seriesLength") if equal else None)


def _says(names: Mapping[str, _Line], name: str) -> bool | None:
    """What a name of the header says; None if it is missing.

    Raises:
        RequestError: neither true nor false.
    """
    if name.lower() not in names:
        return None
    where, text = names[name.lower()]
    said = text.lower().split()[:1]
    if said not in (["true"], ["false"]):
        raise RequestError(f"{where}: @{name} must be true or false, got {text[:_SHOWN]!r}.")
    return said == ["true"]


def _count(names: Mapping[str, _Line], name: str) -> int | None:
    """The number that a name of the header says; None if it is missing.

    Raises:
        RequestError: no whole number >= 1.
    """
    if name.lower() not in names:
        return None
    where, text = names[name.lower()]
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise RequestError(f"{where}: @{name} must be a whole number >= 1, got {text[:_SHOWN]!r}.")
    return int(text)


# The series


def _read_series(path: Path, header: _Header, lines: Sequence[_Line]) -> TsFile:
    if not lines:
        raise RequestError(f"{path} has no series after @data. {_AGAIN}")
    series: list[np.ndarray] = []
    labels: list[int] = []
    for line in lines:
        *texts, label = (part.strip() for part in line.text.split(":"))
        _check_dimensions(line, len(texts), header, series)
        found = [_values(line, number, text) for number, text in enumerate(texts, start=1)]
        _check_lengths(line, [len(values) for values in found], header, series)
        label = class_name(label)
        if label not in header.classes:
            raise RequestError(
                f"{line.where}: {unknown('class', label[:_SHOWN], header.classes)} Mend the "
                "label, or name it in @classLabel."
            )
        series.append(np.array(found).T)
        labels.append(header.classes.index(label))
    _check_missing(lines, series)
    return TsFile(path, header.classes, tuple(series), np.array(labels, np.int64))


def _check_dimensions(
    line: _Line, count: int, header: _Header, before: Sequence[np.ndarray]
) -> None:
    """Refuses a series of other dimensions than the header or the first series has."""
    if count == 0:
        raise RequestError(f"{line.where} has no colon, so it has no label. {_CUT_OFF}")
    expected, source = header.dimensions, "the header says"
    if expected is None and before:
        expected, source = before[0].shape[1], "the first series has"
    if expected not in (None, count):
        raise RequestError(
            f"{line.where}: dimensions before the label: {count}, {source} {expected}. {_CUT_OFF}"
        )


def _values(line: _Line, dimension: int, text: str) -> list[float]:
    """The values of a dimension, NaN where one is missing.

    Raises:
        RequestError: one is no number, infinite, or too large for float32.
    """
    values = []
    for step, each in enumerate(text.split(","), start=1):
        try:
            # An underscore may stand in a number of Python's, in none of a .ts file.
            value = math.nan if each.strip() == "?" else float(each.replace("_", "x"))
        except ValueError:
            value = math.inf
        if abs(value) > _LARGEST:
            raise RequestError(
                f"{line.where}: {each.strip()[:_SHOWN]!r} at step {step} of dimension {dimension} "
                f"is no finite number of at most {_LARGEST:.1e}. Mend the value, or copy the file "
                "again."
            )
        values.append(value)
    return values


def _check_lengths(
    line: _Line, lengths: Sequence[int], header: _Header, before: Sequence[np.ndarray]
) -> None:
    """Refuses dimensions of several lengths, or of another length than all series should have."""
    for number, length in enumerate(lengths, start=1):
        if length != lengths[0]:
            raise RequestError(
                f"{line.where}: dimension {number} has {length} values, dimension 1 has "
                f"{lengths[0]}. {_CUT_OFF}"
            )
    expected, source = header.length, "@seriesLength says"
    if expected is None and before:
        expected, source = len(before[0]), "the first series has"
    if header.equal and expected not in (None, lengths[0]):
        raise RequestError(
            f"{line.where} has {lengths[0]} steps, {source} {expected}. Write @equalLength false "
            "if lengths differ; else the line is cut off or damaged."
        )


def _check_missing(lines: Sequence[_Line], series: Sequence[np.ndarray]) -> None:
    """Refuses missing values; names the first line that has some, and counts those of all."""
    counts = [int(np.isnan(each).sum()) for each in series]
    if total := sum(counts):
        first = next(number for number, count in enumerate(counts) if count)
        raise RequestError(
            f"{lines[first].where}: missing values (? or NaN), {counts[first]} here and {total} "
            f"in {sum(map(bool, counts))} of the {len(series)} series of the file. Fill them in "
            "first."
        )
