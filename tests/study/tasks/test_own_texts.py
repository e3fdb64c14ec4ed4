"""Texts of your own: their files and splits, one clear line if not, a study without rationales."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from study import run, tasks
from study.cell import Options
from study.errors import RequestError
from study.results import Results
from study.tasks.posts.own_texts import DATA_SET, SHARE, load_own
from study.tasks.posts.posts import Posts
from study.tasks.sources.places import Places
from tests.conftest import run_without_ray
from tests.made_up.commands import called
from tests.made_up.texts import SIZES, Row, rows, write_jsonl, write_texts


def load(folder: Path) -> Posts:
    return load_own(Places(str(folder)))


def texts_of(posts: Posts, split: str) -> list[tuple[str, ...]]:
    return sorted(map(tuple, posts.tokens[split]))


def assert_equal(one: Posts, other: Posts) -> None:
    assert one.classes == other.classes
    assert one.tokens == other.tokens
    for split in SIZES:
        np.testing.assert_array_equal(one.labels[split], other.labels[split])
        for a, b in zip(one.rationales[split], other.rationales[split], strict=True):
            assert (a is None and b is None) or np.array_equal(a, b)


# Files and splits


def test_rows_are_the_posts(tmp_path: Path) -> None:
    posts = load(write_texts(tmp_path))
    assert posts.classes == ("cold", "warm")
    for seed, (split, count) in enumerate(SIZES.items()):
        written = rows(count, seed=seed)
        assert posts.tokens[split] == [row["tokens"] for row in written]
        assert posts.labels[split].tolist() == [row["label"] == "warm" for row in written]
        marks = [row["rationale"] for row in written]
        assert [each.astype(int).tolist() for each in posts.rationales[split]] == marks
    assert posts.notes[0] == "splits: as given"
    assert posts.notes[1] == (
        "classes: 2, of which the rarest has 30 (train), 15 (validation), 20 (test) texts"
    )


@pytest.mark.parametrize("labels", [("warm", "cold"), (10, 9)])
@pytest.mark.parametrize("rationales", [True, False])
def test_parquet_gives_the_same(tmp_path: Path, labels: tuple, rationales: bool) -> None:
    one = write_texts(tmp_path / "one", labels=labels, rationales=rationales)
    (tmp_path / "other" / "data").mkdir(parents=True)
    for path in one.iterdir():
        lines = path.read_text().splitlines()
        table = pa.Table.from_pylist([json.loads(line) for line in lines])
        name = f"{path.stem}-00000-of-00001.parquet"
        pq.write_table(table, tmp_path / "other" / "data" / name)
    assert_equal(load(tmp_path / "other"), load(one))
    assert load(one).classes == tuple(map(str, sorted(labels)))


@pytest.mark.parametrize("name", ["val", "valid", "dev", "Validation"])
def test_other_names_of_the_validation_split(tmp_path: Path, name: str) -> None:
    expected = load(write_texts(tmp_path))
    (tmp_path / "validation.jsonl").rename(tmp_path / f"{name}_2.jsonl")
    assert_equal(load(tmp_path), expected)


def test_several_files_of_a_split_are_joined(tmp_path: Path) -> None:
    expected = load(write_texts(tmp_path))
    lines = (tmp_path / "train.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "train.jsonl").unlink()
    (tmp_path / "train-0.jsonl").write_text("".join(lines[:10]) + "\n")
    (tmp_path / "train-1.jsonl").write_text("".join(lines[10:]))
    assert_equal(load(tmp_path), expected)


def test_a_column_may_name_the_splits(tmp_path: Path) -> None:
    expected = load(write_texts(tmp_path / "one"))
    mixed = [
        {**row, "split": split}
        for seed, (split, count) in enumerate(SIZES.items())
        for row in rows(count, seed=seed)
    ]
    write_jsonl(tmp_path / "other" / "texts.jsonl", mixed)
    assert_equal(load(tmp_path / "other"), expected)


def test_other_ways_to_write_the_same(tmp_path: Path) -> None:
    """Floats, blanks and accents apart."""
    labels = ("b\xe9", "c d")
    spelt = {"b\xe9": "be\u0301", "c d": "c\xa0d "}
    texts = rows(60, labels=labels)
    expected = load(write_jsonl(tmp_path / "one" / "all.jsonl", texts).parent)
    for text in texts[::3]:
        text["label"] = spelt[text["label"]]
        text["rationale"] = list(map(float, text["rationale"]))
    assert_equal(load(write_jsonl(tmp_path / "two" / "ALL.JSONL", texts).parent), expected)


def test_equal_texts_are_never_in_two_splits(tmp_path: Path) -> None:
    texts = rows(80)
    every = {tuple(text["tokens"]) for text in texts}
    twice = [*texts, *({**text, "rationale": None} for text in texts), *texts[::2]]
    posts = load(write_jsonl(tmp_path / "texts.jsonl", twice).parent)
    splits = [set(texts_of(posts, split)) for split in SIZES]
    assert sum(len(posts.labels[split]) for split in SIZES) == 80 + 80 + 40
    assert set.union(*splits) == every
    assert sum(map(len, splits)) == len(every)
    assert f"{200 - len(every)} of 200" in posts.notes[2]


def test_texts_of_two_splits_are_counted(tmp_path: Path) -> None:
    write_texts(tmp_path)
    assert not any("earlier" in note for note in load(tmp_path).notes)
    train, test = (tmp_path / f"{split}.jsonl" for split in ("train", "test"))
    test.write_text(test.read_text() + "".join(train.read_text().splitlines(keepends=True)[:7]))
    assert load(tmp_path).notes[2] == (
        f"test texts that an earlier split has, too: 7 of 47, the first in {test}, line 41. Take "
        "them out, or give all texts in files of no split, of which equal ones stay together"
    )


def test_without_splits_shares_of_each_class_are_drawn(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "texts.jsonl", rows(100))
    posts = load(tmp_path)
    assert SHARE == 0.2
    counts = {split: np.bincount(posts.labels[split]).tolist() for split in SIZES}
    assert counts == {"train": [32, 32], "validation": [8, 8], "test": [10, 10]}
    every = sorted(tuple(row["tokens"]) for row in rows(100))
    assert sorted(text for split in SIZES for text in texts_of(posts, split)) == every
    assert_equal(load(tmp_path), posts)
    assert posts.notes[0] == (
        "splits: 20 % of the train texts of each class, drawn by hash, test, then 20 % of the "
        "train texts of each class, drawn by hash, validate"
    )


@pytest.mark.parametrize(
    ("gone", "note", "sizes"),
    [
        ("validation", "splits: 20 % of the train texts of each class, drawn by hash, validate",
         {"train": 47, "validation": 13, "test": 40}),
        ("test", "splits: the validation texts test, then 20 % of the train texts of each class",
         {"train": 47, "validation": 13, "test": 30}),
    ],
)  # fmt: skip
def test_a_split_that_is_missing_is_drawn(
    tmp_path: Path, gone: str, note: str, sizes: dict[str, int]
) -> None:
    """One of the 60 texts to train on is there twice, and validates."""
    (write_texts(tmp_path) / f"{gone}.jsonl").unlink()
    posts = load(tmp_path)
    assert {split: len(posts.labels[split]) for split in SIZES} == sizes
    assert posts.notes[0].startswith(note)


def test_files_are_known_by_their_names() -> None:
    for name in ("train.jsonl", "data/test-00000-of-00001.parquet"):
        assert DATA_SET.belongs(name)
    for name in ("train.csv", "a/b/train.jsonl", "README.md"):
        assert not DATA_SET.belongs(name)


# What cannot be used


SECRET = "nobody may read this"


def _changed(**changes: Any) -> Callable[[Path], object]:
    """Changes row 3 of the train file, which is line 4; None takes a column away."""

    def change(folder: Path) -> None:
        texts = rows(60)
        texts[3] = {k: v for k, v in {**texts[3], **changes}.items() if v is not None}
        write_jsonl(folder / "train.jsonl", texts)

    return change


def _line(text: bytes) -> Callable[[Path], object]:
    """Replaces line 4 of the train file."""

    def change(folder: Path) -> None:
        lines = (folder / "train.jsonl").read_bytes().splitlines()
        lines[3] = text
        (folder / "train.jsonl").write_bytes(b"\n".join(lines))

    return change


def _all(name: str, texts: list[Row]) -> Callable[[Path], object]:
    return lambda folder: write_jsonl(folder / name, texts)


LINE_4 = "{folder}/train.jsonl, line 4 cannot be read ("
TWO = ["a", SECRET]
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no JSON": (_line(b'{"tokens": ["nobody may'), LINE_4),
    "no tokens": (_changed(tokens=None), f"{LINE_4}it has no 'tokens')."),
    "no label": (_changed(label=None), f"{LINE_4}it has no 'label')."),
    "a label is NaN": (_changed(label=math.nan), f"{LINE_4}its label is no text"),
    "tokens are text": (_changed(tokens=SECRET), f"{LINE_4}its tokens are no list of words)."),
    "a token is a number": (_changed(tokens=["a", 3]), LINE_4),
    "no token": (_changed(tokens=[" "], rationale=[0]), f"{LINE_4}its tokens hold no word)."),
    "half a character": (_changed(tokens=["\ud800"], rationale=[0]), LINE_4),
    "another length": (
        _changed(tokens=TWO, rationale=[1]),
        f"{LINE_4}its rationale has 1 values for 2 tokens). Mend it,",
    ),
    "other marks": (_changed(tokens=TWO, rationale=[0, 2]), LINE_4),
    "marks are text": (_changed(tokens=TWO, rationale="01"), LINE_4),
    "a label of another type": (_changed(label=1), "{folder}: some labels are text, others"),
    "a class in one split alone": (
        _changed(label="hot"),
        "{folder}: the validation split has no text of the class 'hot', of which there are 1 in",
    ),
    "an empty file": (_all("train.jsonl", []), "{folder}/train.jsonl holds no text. Fill it,"),
    "no train split": (
        lambda folder: (folder / "train.jsonl").unlink(),
        "{folder} has no train split, only test and validation. Add it.",
    ),
    "a file of no split": (
        _all("more.jsonl", rows(4)),
        "{folder}/more.jsonl is of no split, other files are. Begin its name with one of train,",
    ),
    "no Parquet": (
        lambda folder: (folder / "train-2.parquet").write_bytes(b"x"),
        "{folder}/train-2.parquet cannot be read (",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_is_one_line_that_quotes_no_text(tmp_path: Path, case: str) -> None:
    folder = write_texts(tmp_path / "data")
    break_it, expected = FAULTS[case]
    break_it(folder)
    refused(folder, expected)


ALONE: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda _: None, "{folder} is empty: no texts of your own found. Accepted layouts"),
    "one class": (
        _all("a.jsonl", rows(9, labels=("warm", "warm"))),
        "{folder}: all texts are of one class, 'warm'. Add texts of another one.",
    ),
    "a class that is too rare": (
        _all("a.jsonl", [*rows(20), {"tokens": ["a"], "label": "hot"}]),
        "{folder}: the validation split has no text of the class 'hot', of which there are 1",
    ),
    "some have a split": (
        _all("a.jsonl", [{**row, "split": "train"} for row in rows(3)] + rows(4)),
        "{folder}/a.jsonl, line 4 has no split, other texts have. Write one of train, validation",
    ),
    "an unknown split": (
        _all("a.jsonl", [{**row, "split": "trian"} for row in rows(3)]),
        "{folder}/a.jsonl, line 1 cannot be read (its split must be one of train, validation (or "
        "val, valid, dev) and test, not 'trian').",
    ),
    "a row of Parquet": (
        lambda folder: pq.write_table(
            pa.table({"tokens": [["a"], ["b"], None], "label": [0, 1, 0]}), folder / "a.parquet"
        ),
        "{folder}/a.parquet, row 2 cannot be read (its tokens are no list of words).",
    ),
    "two data sets": (
        lambda folder: [write_jsonl(folder / n / "a.jsonl", rows(4)) for n in ("one", "two")],
        "{folder} holds several data sets, in {folder}/one, {folder}/two. Pass one of these",
    ),
}


@pytest.mark.parametrize("case", ALONE)
def test_a_directory_that_cannot_be_used(tmp_path: Path, case: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    write_it, expected = ALONE[case]
    write_it(folder)
    refused(folder, expected)


def refused(folder: Path, expected: str) -> None:
    with pytest.raises(RequestError) as caught:
        load(folder)
    message = str(caught.value)
    assert expected.format(folder=folder) in message
    assert message.endswith(".")
    assert "\n" not in message
    assert "nobody" not in message


# The task and the command


def test_the_data_tell_the_classes(tmp_path: Path) -> None:
    texts = [*rows(60), *({**row, "label": "hot"} for row in rows(30, seed=1))]
    write_jsonl(tmp_path / "texts.jsonl", texts)
    task = tasks.load("texts", Places(str(tmp_path)), Options(min_count=1))
    assert task.num_classes == task.facts.num_classes == 3


TINY = [
    "--set", "m=8", "epochs=2", "lr=0.1", "architecture=self-attention", "seed=0",
    "confirm=100,101", "evaluations=1", "batch_size=10", "paradigm=soft,lvml",
]  # fmt: skip


def test_a_plan_tells_of_the_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["texts", "--data-dir", str(write_texts(tmp_path)), "--plan", *TINY]
    status, printed, errors = called(run.main, capsys, *asked)
    assert (status, errors) == (0, "")
    text = " ".join(printed.split())
    assert "posts: 60 (train), 30 (validation), 40 (test) splits: as given" in text
    assert "label by" not in text
    assert "with a rationale 100.0 % (train)" in text


@pytest.mark.parametrize("rationales", [True, False])
def test_a_study_of_texts_ends_with_its_report(tmp_path: Path, rationales: bool) -> None:
    """Without rationales nothing is known of SAIF, and all else as ever."""
    folder = write_texts(tmp_path / "data", rationales=rationales)
    results = tmp_path / "results"
    places = ["--data-dir", str(folder), "--results", str(results)]
    run_without_ray(["texts", *places, "--tracking", "none", *TINY])
    cells = Results(results).cells()
    assert cells["status"].tolist() == ["done"] * 4
    assert cells["num_classes"].tolist() == [2] * 4
    last = Results(results).evaluations().query("budget_fraction == 1 and split == 'test'")
    assert last["accuracy"].notna().all()
    for column in ("saif", "token_f1"):
        assert last[column].notna().all() == rationales
    text = (results / "report" / "texts" / "report.md").read_text()
    assert ("no post has a rationale: SAIF and plausibility are unknown" in text) != rationales
    assert "self-attention" in text
