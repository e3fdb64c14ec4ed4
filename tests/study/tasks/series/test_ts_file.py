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
    ],
    ids=["case", "Windows", "comments", "spaces"],
)
def test_other_ways_to_write_the_same(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "Made_TRAIN.ts"
    path.write_bytes(content)
    found = read_ts(path)
    assert found.labels.tolist() == [0, 0, 1, 1]
    for ours, (_, theirs) in zip(found.series, SERIES, strict=True):
        np.testing.assert_array_equal(ours, theirs)


BAD: dict[str, tuple[str, str]] = {
    "empty": ("", r" cannot be read \(it has no line @data\)\. Copy the file again"),
    "no series": (TEXT.partition("@data")[0] + "@data\n", r" cannot be read \(it has no series"),
    "regression": (
        edited("classLabel true walk sit", "targetLabel true"),
        r" has no classes \(@classLabel\)",
    ),
    "one class": (
        edited("true walk sit", "true walk"),
        r" cannot be read \(@classLabel true must name two classes or more",
    ),
    "cut off in the last dimension": (
        TEXT[: -len(LAST) // 2],
        r", line 12 cannot be read \(",
    ),
    "fewer dimensions": (
        TEXT + "1,2,3:sit\n",
        r", line 13 cannot be read \(it has not the 2 dimensions of all\)",
    ),
    "a shorter dimension": (TEXT + "1,2,3:4,5:sit\n", r", line 13 cannot be read \("),
    "an unknown label": (
        TEXT + line(SERIES[0][1], "walks") + "\n",
        r", line 13 cannot be read \(unknown class 'walks'\. Did you mean 'walk'\?",
    ),
    "no number": (first_value("1.2.3"), r", line 9 cannot be read \(could not convert .*1\.2\.3"),
    "no value": (first_value(""), r", line 9 cannot be read \("),
    "infinite": (first_value("-inf"), r", line 9 cannot be read \(a value is too large"),
    "too large": (first_value("1e300"), r", line 9 cannot be read \(a value is too large"),
    "missing": (first_value("?"), r", line 9 lacks values .* Fill them in"),
    "a label alone": (TEXT + "sit\n", r", line 13 cannot be read \(it has no values"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    path = tmp_path / "Made_TRAIN.ts"
    path.write_text(content)
    with pytest.raises(RequestError, match=f"^{re.escape(str(path))}{message}") as caught:
        read_ts(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"Made_TRAIN\.ts cannot be read \(No such file"):
        read_ts(tmp_path / "Made_TRAIN.ts")


@pytest.mark.parametrize(
    ("series", "classes"),
    [
        (SERIES, (*CLASSES, "run")),
        (SERIES[:2], ("walk", "run")),
        (made_up_series(1, CLASSES, dimensions=3, lengths=(3,), seed=0), CLASSES),
    ],
)
def test_two_files_of_several_data_sets_are_refused(
    series: list[Labelled], classes: tuple[str, ...], tmp_path: Path
) -> None:
    train, test = tmp_path / "A_TRAIN.ts", tmp_path / "A_TEST.ts"
    train.write_text(TEXT)
    test.write_text(ts_text(series, classes))
    with pytest.raises(RequestError, match=r"A_TRAIN\.ts and A_TEST\.ts are not of one data set"):
        require_alike(read_ts(train), read_ts(test))


def test_classes_may_be_in_another_order(tmp_path: Path) -> None:
    train, test = tmp_path / "A_TRAIN.ts", tmp_path / "A_TEST.ts"
    train.write_text(TEXT)
    test.write_text(ts_text(SERIES, CLASSES[::-1]))
    require_alike(read_ts(train), read_ts(test))
