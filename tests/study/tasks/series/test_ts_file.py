"""Reading .ts files: what is written comes back, bad files are refused in one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from study.errors import RequestError
from study.tasks.series.ts_file import read_ts, require_alike
from tests.made_up.series import Labelled, line, made_up_series, ts_text

CLASSES = ("walk", "sit")
SERIES = made_up_series(2, CLASSES, dimensions=2, lengths=(3, 5), seed=0)
TEXT = ts_text(SERIES, CLASSES)
LAST = TEXT.splitlines()[-1]


def edited(old: str, new: str) -> str:
    """The file with one mistake, at all places where `old` stands."""
    assert old in TEXT
    return TEXT.replace(old, new)


def first_value(new: str) -> str:
    """The file with another first value; the first series is line 9."""
    lines = TEXT.splitlines()
    lines[8] = re.sub(r"^[^,]+", new, lines[8])
    return "\n".join(lines)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "Made_TRAIN.ts"
    path.write_text(TEXT)
    found = read_ts(path)
    assert found.classes == CLASSES
    assert found.dimensions == 2
    assert [found.classes[label] for label in found.labels] == [name for name, _ in SERIES]
    for ours, (_, theirs) in zip(found.series, SERIES, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "content",
    [
        TEXT.replace("classLabel", "CLASSLABEL").replace("@data", "@Data").encode(),
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace("\n", "\n\n% another \xe9 comment\n # and one more\n").encode("latin-1"),
        TEXT.replace(",", " , ").replace(":", " : ").replace(" false", "\tfalse").encode(),
        TEXT.replace("@missing false", "@missing true\n@dimensions 2\n@unheard of").encode(),
        TEXT.removesuffix("\n").encode(),
        "\n".join(row for row in TEXT.split("\n") if row[:1] != "@" or row[1] in "cd").encode(),
    ],
    ids=["case", "Windows", "comments", "spaces", "header", "end", "least header"],
)
def test_other_ways_to_write_the_same(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "Made_TRAIN.ts"
    path.write_bytes(content)
    found = read_ts(path)
    assert found.labels.tolist() == [0, 0, 1, 1]
    for ours, (_, theirs) in zip(found.series, SERIES, strict=True):
        np.testing.assert_array_equal(ours, theirs)


BAD: dict[str, tuple[str | bytes, str]] = {
    # The file as a whole.
    "empty": ("", r" is empty\. Copy the file again"),
    "blank": (" \n\n", r" is empty\. Copy"),
    "no text": (b"\x89PNG\xff\xfe", r", line 1 is no text \(UTF-8\)\. Copy"),
    "another format": (
        "a,b\n1,2\n",
        r", line 1: 'a,b' stands before @data and .* Pass a \.ts file",
    ),
    "no @data": (TEXT.partition("@data")[0], r" has no @data, .* Copy the file again"),
    "no series": (TEXT.partition("@data")[0] + "@data\n", r" has no series after @data\. Copy"),
    # The header.
    "timestamps": (
        edited("@timeStamps false", "@timeStamps true"),
        r", line 3: series with timestamps cannot be read\. Write the values alone",
    ),
    "regression": (
        edited("classLabel true walk sit", "classLabel false"),
        r", line 7: these series have numbers to predict, no classes\. Pass .*@classLabel true",
    ),
    "targets": (
        edited("classLabel true walk sit", "targetLabel true"),
        r", line 7: these series have numbers to predict, no classes",
    ),
    "no classes": (edited("@classLabel true walk sit\n", ""), r" has no @classLabel before @data"),
    "one class": (
        edited("true walk sit", "true walk"),
        r", line 7: @classLabel true must name two classes or more, each once, got 'true walk'",
    ),
    "a class twice": (edited("true walk sit", "true sit sit"), r", line 7: .* each once, got"),
    "neither true nor false": (
        edited("@equalLength false", "@equalLength no"),
        r", line 6: @equalLength must be true or false, got 'no'",
    ),
    "dimensions": (
        edited("@missing false", "@dimensions two"),
        r", line 4: @dimensions must be a whole number >= 1, got 'two'",
    ),
    # The series.
    "fewer dimensions than the header": (
        edited("@missing false", "@dimensions 3"),
        r", line 9: dimensions before the label: 2, the header says 3\. The line is cut off",
    ),
    "more than one": (
        edited("@univariate false", "@univariate true"),
        r", line 9: dimensions before the label: 2, the header says 1\.",
    ),
    "cut off in the last dimension": (
        TEXT[: -len(LAST) // 2],
        r", line 12: dimensions before the label: 1, the first series has 2\. The line is cut off "
        r"or damaged\. Copy the file again",
    ),
    "cut off in the first dimension": (
        TEXT.removesuffix(LAST + "\n") + "1.5,2",
        r", line 12 has no colon, so it has no label\. The line is cut off",
    ),
    "a shorter dimension": (
        TEXT + "1,2,3:4,5:sit\n",
        r", line 13: dimension 2 has 2 values, dimension 1 has 3\. The line is cut off",
    ),
    "other lengths": (
        edited("@equalLength false", "@equalLength true"),
        r", line 10 has 5 steps, the first series has 3\. Write @equalLength false",
    ),
    "another length": (
        edited("@equalLength false", "@equalLength true\n@seriesLength 4"),
        r", line 10 has 3 steps, @seriesLength says 4\.",
    ),
    "an unknown label": (
        TEXT + line(SERIES[0][1], "walks") + "\n",
        r", line 13: unknown class 'walks'\. Did you mean 'walk'\? .*name it in @classLabel",
    ),
    "no number": (
        first_value("1.2.3"),
        r", line 9: '1\.2\.3' at step 1 of dimension 1 is no finite number .*Mend the value",
    ),
    "no number, but of Python": (first_value("1_000"), r", line 9: '1_000' at step 1"),
    "no value": (first_value(""), r", line 9: '' at step 1 of dimension 1 is no finite number"),
    "infinite": (first_value("-inf"), r", line 9: '-inf' at step 1 of dimension 1 is no finite"),
    "too large": (first_value("1e39"), r", line 9: '1e39' at step 1 of dimension 1 is no finite"),
    "missing": (
        first_value("?") + "\n?,nan,1:1,2,NaN:sit\n",
        r", line 9: missing values \(\? or NaN\), 1 here and 4 in 2 of the 5 series of the file\. "
        r"Fill them in first",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = tmp_path / "Made_TRAIN.ts"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(RequestError, match=f"^{re.escape(str(path))}{message}") as caught:
        read_ts(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"Made_TRAIN\.ts cannot be read \(No such file"):
        read_ts(tmp_path / "Made_TRAIN.ts")


@pytest.mark.parametrize(
    ("series", "classes", "message"),
    [
        (
            SERIES,
            (*CLASSES, "run"),
            r"A_TEST\.ts has the class 'run', A_TRAIN\.ts has not\. Write",
        ),
        (SERIES[:2], ("walk", "run"), r"A_TRAIN\.ts has the class 'sit', A_TEST\.ts has not\."),
        (
            made_up_series(1, CLASSES, dimensions=3, lengths=(3,), seed=0),
            CLASSES,
            r"A_TRAIN\.ts has 2 dimensions, A_TEST\.ts 3\. Pass two files of one data set",
        ),
    ],
)
def test_two_files_of_several_data_sets_are_refused(
    series: list[Labelled], classes: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    train, test = tmp_path / "A_TRAIN.ts", tmp_path / "A_TEST.ts"
    train.write_text(TEXT)
    test.write_text(ts_text(series, classes))
    with pytest.raises(RequestError, match=message) as caught:
        require_alike(read_ts(train), read_ts(test))
    assert "\n" not in str(caught.value)


def test_classes_may_be_in_another_order(tmp_path: Path) -> None:
    train, test = tmp_path / "A_TRAIN.ts", tmp_path / "A_TEST.ts"
    train.write_text(TEXT)
    test.write_text(ts_text(SERIES, CLASSES[::-1]))
    require_alike(read_ts(train), read_ts(test))
