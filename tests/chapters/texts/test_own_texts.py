"""Texts of your own: the same rows in any form are the same data; faults name file and row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from chapters.texts.own_texts import load_own
from chapters.texts.posts import Post, Posts
from study.tasks.sources.places import Places
from tests.chapters.texts.text_files import SIZES, Row, rows, write_jsonl, write_texts
from tests.made_up.commands import refusal


def load(folder: Path) -> Posts:
    return load_own(Places(str(folder)))


def by_split(**options: Any) -> dict[str, list[Row]]:
    """The rows that `write_texts` writes."""
    counts = enumerate(SIZES.items())
    return {split: rows(count, seed=seed, **options) for seed, (split, count) in counts}


# Forms of the same rows


def _in_parts_with_other_names(folder: Path) -> None:
    """And spelt otherwise, beside files that are none of texts."""
    names = {"train": "Training", "validation": "dev", "test": "testing"}
    for split, texts in by_split().items():
        for row in texts[::3]:
            row["label"] += "\xa0 "
            row["rationale"] = list(map(float, row["rationale"]))
        write_jsonl(folder / f"{names[split]}-1.jsonl", texts[10:])
        path = write_jsonl(folder / f"{names[split]}-0.JSONL", texts[:10])
        path.write_text(path.read_text() + "\n \n")
    (folder / "metadata.json").write_text('{"licence": "free"}')


def _with_numbered_classes(folder: Path, **of_test: Any) -> None:
    """As Parquet in the folder `data`, the rows to test with other values."""
    features = datasets.Features(
        tokens=datasets.List(datasets.Value("string")),
        label=datasets.ClassLabel(names=["cold", "warm", "hot"]),
        rationale=datasets.List(datasets.Value("int8")),
    )
    for split, texts in by_split(labels=(1, 0)).items():
        texts = [{**row, **of_test} for row in texts] if split == "test" else texts
        table = datasets.Dataset.from_list(texts, features=features)
        table.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")


@pytest.mark.parametrize("write", [_in_parts_with_other_names, _with_numbered_classes])
def test_every_form_of_the_rows_is_the_same(tmp_path, write):
    (tmp_path / "data").mkdir()
    write(tmp_path)
    assert load(tmp_path) == load(write_texts(tmp_path / "plain"))


def test_where_the_texts_to_test_have_no_label_those_that_validate_test(tmp_path):
    """As in data sets of competitions."""
    (tmp_path / "data").mkdir()
    _with_numbered_classes(tmp_path, label=-1)
    found = load(tmp_path)
    assert found.left_out == {"without a label": SIZES["test"]}
    expected = [tuple(row["tokens"]) for row in by_split()["validation"]]
    assert [post.tokens for post in found.splits["test"]] == expected


def test_a_label_is_one_class_as_text_and_as_a_number(tmp_path):
    texts = [*rows(60, labels=("1", "2")), *rows(60, labels=(1, 2), seed=1)]
    write_jsonl(tmp_path / "all.jsonl", texts)
    assert load(tmp_path).classes == ("1", "2")


@pytest.mark.parametrize(
    ("files", "classes"),
    [
        ({"all": ("10", "9")}, ("9", "10")),
        ({"all": (" 10", "10", "9 ")}, ("9", "10")),
        ({"all": ("-0", "0")}, ("-0", "0")),
        ({"all": ("1", "01", "2")}, ("01", "1", "2")),
        ({"all": ("TRUE", "FALSE")}, ("FALSE", "TRUE")),
        ({"all": (str(2**53 + 1), str(2**53))}, (str(2**53), str(2**53 + 1))),
        # Whether they are numbers, all files say together.
        ({"train-0": ("10", "9"), "train-1": ("10", "9", "x"), "test": ("10", "9", "x")},
         ("10", "9", "x")),
    ],
)  # fmt: skip
def test_labels_of_csv_are_as_they_are_written(tmp_path, files, classes):
    for name, labels in files.items():
        lines = [f"word{row} of a text,{labels[row % len(labels)]}" for row in range(60)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *lines]))
    assert load(tmp_path).classes == classes


# Texts that are no lists of words

TEXT = "Don't stop: Caf\xe9 No.7 is\tfine!\n"
TOKENS = ("don't", "stop", ":", "caf\xe9", "no", ".", "7", "is", "fine", "!")


@pytest.mark.parametrize("column", ["text", "sentence", "review"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_text_is_split_into_words(tmp_path, column, suffix):
    other = {"title": ["a"] * 30} if column == "text" else {}
    texts = datasets.Dataset.from_dict({column: [TEXT] * 30, **other, "label": [0, 1, 0] * 10})
    for split in SIZES:
        getattr(texts, f"to_{suffix}")(tmp_path / f"{split}.{suffix}")
    posts = load(tmp_path)
    assert posts.splits["train"] == [Post(TOKENS, i % 3 % 2, [False] * 10) for i in range(30)]
    assert any(f"column {column}, in lower case" in note for note in posts.notes)


# Splits


def test_texts_of_two_splits_are_counted(tmp_path):
    train, test = (write_texts(tmp_path) / f"{split}.jsonl" for split in ("train", "test"))
    test.write_text(test.read_text() + "".join(train.read_text().splitlines(keepends=True)[:7]))
    assert f"7 of 47, the first in {test}, row 41." in load(tmp_path).notes[2]


def test_without_splits_shares_of_each_class_are_drawn(tmp_path):
    """Of the different texts: equal ones stay together, whatever else their rows hold."""
    texts = rows(100, seed=2)
    write_jsonl(tmp_path / "a.jsonl", [*texts, *({**row, "rationale": None} for row in texts)])
    posts = load(tmp_path)
    for split, share in {"train": 32, "validation": 8, "test": 10}.items():
        rows_of = Counter((tuple(post.tokens), post.label) for post in posts.splits[split])
        assert set(rows_of.values()) == {2}
        assert Counter(label for _, label in rows_of) == {0: share, 1: share}
    assert "100 of 200" in posts.notes[2]
    assert load(tmp_path) == posts


@pytest.mark.parametrize(("gone", "tested"), [("validation", "test"), ("test", "validation")])
def test_a_split_that_is_missing_is_drawn(tmp_path, gone, tested):
    """One of the 60 texts to train on is there twice, and validates."""
    expected = load(write_texts(tmp_path)).splits[tested]
    (tmp_path / f"{gone}.jsonl").unlink()
    posts = load(tmp_path)
    assert (len(posts.splits["train"]), len(posts.splits["validation"])) == (47, 13)
    assert posts.splits["test"] == expected
    assert "20 % of the train texts" in posts.notes[0]


# What cannot be used

SECRET = "nobody may read this"


def _row(**changes: Any) -> Callable[[Path], object]:
    """A file whose row 4 has other values."""
    texts = [{**row, "split": "train"} for row in rows(20)]
    texts[3].update(changes)
    return lambda folder: write_jsonl(folder / "texts.jsonl", texts)


def _all(name: str, texts: list[Row]) -> Callable[[Path], object]:
    return lambda folder: write_jsonl(folder / name, texts)


ROW = "{folder}/texts.jsonl, row 4 "
UNUSABLE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no tokens": (_row(tokens=None), ROW, "tokens"),
    "a token is missing": (_row(tokens=["a", None]), ROW, "not a list of words"),
    "a label is NaN": (_row(label=math.nan), ROW, "label"),
    "an empty text": (_row(tokens=[" "], rationale=[0]), ROW, "no word"),
    "a long rationale": (_row(tokens=["a", SECRET], rationale=[1, 0, 0]), ROW, "3 values for 2"),
    "an unknown split": (_row(split="trian"), ROW, "trian"),
    "no split": (_row(split=None), ROW, "no split"),
    "nothing": (Path.exists, "{folder}", "is empty"),
    "one class": (_all("a.jsonl", rows(9, labels=["warm"] * 2)), "{folder}", "one class, 'warm'"),
    "a rare class": (
        _all("a.jsonl", [*rows(20), {"tokens": ["a"], "label": "hot"}]), "{folder}", "'hot'",
    ),
    "no train split": (_all("test.jsonl", rows(20)), "{folder}", "no train split"),
    "an empty file": (_all("a.jsonl", []), "{folder}/a.jsonl", "holds no text"),
    "no column of text": (
        _all("a.jsonl", [{"premise": SECRET, "hypothesis": "b", "label": 1}]),
        "{folder}/a.jsonl", "premise, hypothesis, label",
    ),
    "no column of labels": (_all("a.jsonl", [{"text": SECRET}]), "{folder}/a.jsonl", "label"),
}  # fmt: skip
"""What is written -> the place that is named, and what is said of it."""


@pytest.mark.parametrize("case", UNUSABLE)
def test_what_cannot_be_used_is_named_and_not_quoted(tmp_path, case):
    write, place, fact = UNUSABLE[case]
    write(tmp_path)
    message = refusal(lambda: load(tmp_path))
    assert message.startswith(place.format(folder=tmp_path))
    assert fact in message
    assert "nobody" not in message
