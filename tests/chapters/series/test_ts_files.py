"""Finding and reading two .ts files: what is written comes back, bad ones are one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from chapters.series.ts_files import read_pair
from tests.chapters.series.ts_writers import line, made_up_series, ts_text, write_pair
from tests.made_up.commands import refusal

CLASSES = ("walk", "sit")
SERIES = made_up_series(2, CLASSES, dimensions=2, lengths=(3, 5), seed=0)
TEXT = ts_text(SERIES, CLASSES)
FIRST = TEXT.splitlines()[8].split(",")[0]
"""The first value, on line 9 of 12."""


def touched(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(TEXT)
    return folder


# Which files


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ("A_TRAIN.ts A_TEST.ts A_TRAIN.arff notes.txt", "A"),
        ("A/A_TRAIN.ts A/A_TEST.ts A/B_TRAIN.ts A/B_TEST.ts B/notes.txt", "A"),
        ("A_b_TRAIN.ts A_b_TEST.ts", "A_b"),
        ("data_TRAIN.ts data_TEST.ts data_eq_TRAIN.ts data_eq_TEST.ts", "data"),
        ("A_TRAIN.ts A_TEST.ts B/B_TRAIN.ts B/B_TEST.ts C_TEST.ts", "A"),
        ("Foo_train.ts Foo_Test.TS ._Foo_TRAIN.ts ._Foo_TEST.ts", "Foo"),
    ],
)
def test_the_only_pair_is_found_or_that_of_the_folders_name(files, name, tmp_path):
    found = read_pair(touched(tmp_path / "data", *files.split()))
    assert [each.name for each in found] == [name, name]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("", r"data is empty: no pair of \.ts files"),
        ("Foo.ts", r"data holds only Foo\.ts: no pair"),
        ("A_TRAIN.ts", r"data holds only A_TRAIN\.ts: no pair .*NAME_TEST\.ts"),
        ("A/A_TEST.ts", "data holds only A: no pair"),
        ("A_TRAIN.ts A_TEST.ts B_TRAIN.ts B_TEST.ts", "data has several data sets: A, B"),
        ("A/A_TRAIN.ts A/A_TEST.ts B/B_TRAIN.ts B/B_TEST.ts", "several .*: A, B.*DIR/NAME"),
    ],
)
def test_what_is_missing_or_too_much_is_named(files, message, tmp_path):
    folder = touched(tmp_path / "data", *files.split())
    assert re.search(message, refusal(lambda: read_pair(folder)))


# What is in them


def identity(text: str) -> bytes:
    return text.encode()


@pytest.mark.parametrize(
    "written",
    [
        identity,
        lambda text: text.replace("classLabel", "CLASSLABEL").replace("@data", "@Data").encode(),
        lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        lambda text: text.replace("\n", "\n\n% \xe9\n # and one more\n").encode("latin-1"),
        lambda text: text.replace(",", " , ").replace(":", " : ").replace(" f", "\tf").encode(),
    ],
    ids=["plain", "case", "Windows", "comments", "spaces"],
)
def test_what_is_written_comes_back(written, tmp_path):
    """Labels of both files are those of the first, whatever the order in the other's header."""
    for part, classes in (("TRAIN", CLASSES), ("TEST", CLASSES[::-1])):
        (tmp_path / f"Made_{part}.ts").write_bytes(written(ts_text(SERIES, classes)))
    for found in read_pair(tmp_path):
        assert (found.name, found.classes) == ("Made", CLASSES)
        assert found.labels.tolist() == [0, 0, 1, 1]
        for ours, (_, theirs) in zip(found.series, SERIES, strict=True):
            np.testing.assert_array_equal(ours, theirs)


BAD: dict[str, tuple[str, str]] = {
    "empty": ("", "@classLabel"),
    "no series": (TEXT.partition("@data")[0] + "@data\n", "no series"),
    "regression": (TEXT.replace("classLabel true walk sit", "targetLabel true"), "@classLabel"),
    "one class": (TEXT.replace("true walk sit", "true walk"), "@classLabel"),
    "cut off": (TEXT[: -len(TEXT.splitlines()[-1]) // 2], "line 12"),
    "fewer dimensions": (TEXT + "1,2,3:sit\n", "line 13.* the 2 dimensions"),
    "a shorter dimension": (TEXT + "1,2,3:4,5:sit\n", "line 13"),
    "a label alone": (TEXT + "sit\n", "line 13"),
    "an unknown label": (TEXT + line(SERIES[0][1], "walks") + "\n", "line 13.*'walks'.* 'walk'"),
    "no number": (TEXT.replace(FIRST, "1.2.3"), r"line 9.*1\.2\.3"),
    "no value": (TEXT.replace(FIRST, ""), "line 9"),
    "too large": (TEXT.replace(FIRST, "1e300"), "line 9.* too large"),
    "missing": (TEXT.replace(FIRST, "?"), "line 9.* missing"),
    "another class": (ts_text(made_up_series(1, ["run"], 2, [3], 0), ["run", "sit"]), "'run'"),
    "of another data set": (ts_text(made_up_series(1, CLASSES, 3, [3], 0), CLASSES), "line 9"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_in_one_line(name, tmp_path):
    content, message = BAD[name]
    path = write_pair(tmp_path, SERIES, SERIES, CLASSES) / "Made_TEST.ts"
    path.write_text(content)
    if name in ("regression", "empty", "one class"):  # for the classes are the first's
        path.rename(path := tmp_path / "Made_TRAIN.ts")
        (tmp_path / "Made_TEST.ts").write_text(TEXT)
    assert re.match(f"{re.escape(str(path))}.*{message}", refusal(lambda: read_pair(tmp_path)))
