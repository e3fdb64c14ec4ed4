"""HateXplain: labels and rationales by every rule, what is left out, bad files.

Posts are made up of fruit and colours.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from study import tasks
from study.cell import Options
from study.errors import RequestError
from study.tasks.posts.hatexplain import CLASSES, load_posts
from study.tasks.posts.posts import Posts
from study.tasks.sources.places import Places
from tests.conftest import PROJECT, REAL_DATA, needs_data

HATE, NORMAL, OFFENSIVE = CLASSES
FRUIT = ("green", "apple", "red", "cherry")


def entry(
    tokens: Any = FRUIT, labels: tuple[Any, ...] = (NORMAL,) * 3, rationales: Any = ()
) -> dict[str, Any]:
    """A post as the data set writes it."""
    annotators = [
        {"label": label, "annotator_id": number, "target": ["None"]}
        for number, label in enumerate(labels)
    ]
    return {"annotators": annotators, "rationales": rationales, "post_tokens": tokens}


def fruit() -> dict[str, Any]:
    """Three posts, one for each split."""
    return {
        "1_plum": entry(["yellow", "plum"]),
        "2_pear": entry(["green", "pear", "tree"], (OFFENSIVE,) * 3, [[0, 1, 0], [1, 1, 0]]),
        "3_fig": entry(["fig"], (HATE,) * 3),
    }


def splits(**changes: Any) -> dict[str, Any]:
    return {"train": ["1_plum"], "val": ["2_pear"], "test": ["3_fig"], **changes}


def write(folder: Path, posts: Any = None, divisions: Any = None, indent: int | None = 1) -> Path:
    """Both files; what is no text is written as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        ("dataset.json", fruit() if posts is None else posts),
        ("post_id_divisions.json", splits() if divisions is None else divisions),
    ):
        text = content if isinstance(content, str) else json.dumps(content, indent=indent)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def refused(folder: Path, **rules: str) -> str:
    """The message of the error, which is one line."""
    with pytest.raises(RequestError) as caught:
        load_posts(Places(str(folder)), **rules)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(str(folder), "DIR")


def assert_equal(posts: Posts, others: Posts) -> None:
    assert posts.tokens == others.tokens
    assert posts.left_out == others.left_out
    for split, labels in posts.labels.items():
        np.testing.assert_array_equal(labels, others.labels[split])
        for ours, theirs in zip(posts.rationales[split], others.rationales[split], strict=True):
            np.testing.assert_array_equal(ours, theirs)


# What is read


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("inside", ["", "Data"])
def test_reads_both_files(tmp_path: Path, inside: str, indent: int | None) -> None:
    write(tmp_path / inside, indent=indent)
    posts = load_posts(Places(str(tmp_path)))
    assert posts.tokens == {
        "train": [["yellow", "plum"]],
        "validation": [["green", "pear", "tree"]],
        "test": [["fig"]],
    }
    for split, label in (("train", 1), ("validation", 2), ("test", 0)):
        assert posts.labels[split].dtype == np.int64
        np.testing.assert_array_equal(posts.labels[split], [label])
    (rationale,) = posts.rationales["validation"]
    assert rationale is not None
    assert rationale.dtype == bool
    np.testing.assert_array_equal(rationale, [True, True, False])
    assert posts.rationales["train"] == posts.rationales["test"] == [None]
    assert posts.left_out == {}


def test_posts_are_in_the_order_of_the_split(tmp_path: Path) -> None:
    colours = ["teal", "amber", "violet", "beige"]
    data = {**fruit(), **{colour: entry([colour]) for colour in sorted(colours)}}
    write(tmp_path, data, splits(train=colours))
    assert load_posts(Places(str(tmp_path))).tokens["train"] == [[colour] for colour in colours]


def test_the_home_directory_can_be_written_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "fruit")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load_posts(Places("~/fruit")).tokens["test"] == [["fig"]]


@pytest.mark.parametrize(
    ("labels", "majority", "first"),
    [
        ((HATE, HATE, HATE), HATE, HATE),
        ((HATE, NORMAL, NORMAL), NORMAL, HATE),
        ((NORMAL, OFFENSIVE, NORMAL), NORMAL, NORMAL),
        ((HATE, NORMAL, OFFENSIVE), None, HATE),
        ((OFFENSIVE,), OFFENSIVE, OFFENSIVE),
        ((OFFENSIVE, NORMAL), None, OFFENSIVE),
        ((NORMAL, HATE, HATE, NORMAL), None, NORMAL),
        ((NORMAL, HATE, HATE, OFFENSIVE), HATE, NORMAL),
    ],
)
def test_label_rules(
    tmp_path: Path, labels: tuple[str, ...], majority: str | None, first: str
) -> None:
    posts = {**fruit(), "4_kiwi": entry(FRUIT, labels)}
    write(tmp_path, posts, splits(train=["1_plum", "4_kiwi"]))
    got = load_posts(Places(str(tmp_path)), label_rule="first")
    np.testing.assert_array_equal(got.labels["train"], [1, CLASSES.index(first)])
    assert got.left_out == {}
    got = load_posts(Places(str(tmp_path)))
    if majority is None:
        np.testing.assert_array_equal(got.labels["train"], [1])
        assert got.left_out == {"undecided between labels": 1}
    else:
        np.testing.assert_array_equal(got.labels["train"], [1, CLASSES.index(majority)])


@pytest.mark.parametrize(
    ("rationales", "majority", "union", "first"),
    [
        ([], None, None, None),
        ([[0, 0, 0, 0]], None, None, None),
        ([[0, 1, 0, 1]], "0101", "0101", "0101"),
        ([[0, 1, 0, 1], [0, 0, 1, 1]], "0111", "0111", "0101"),
        ([[0, 0, 0, 0], [0, 0, 1, 1]], "0011", "0011", None),
        ([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0]], "1100", "1110", "1000"),
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]], None, "1100", "1000"),
        ([[0, 0, 0, 1], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]], "0001", "0111", "0001"),
    ],
)
def test_rationale_rules(
    tmp_path: Path,
    rationales: list[list[int]],
    majority: str | None,
    union: str | None,
    first: str | None,
) -> None:
    write(tmp_path, {**fruit(), "1_plum": entry(FRUIT, rationales=rationales)})
    for rule, expected in (("majority", majority), ("union", union), ("first", first)):
        (got,) = load_posts(Places(str(tmp_path)), rationale_rule=rule).rationales["train"]
        if expected is None:
            assert got is None
        else:
            assert got is not None
            assert got.dtype == bool
            np.testing.assert_array_equal(got, [mark == "1" for mark in expected])


def test_unknown_rules_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    places = Places(str(tmp_path))
    with pytest.raises(RequestError, match=r"label_rule must be one of .*majority.*, got 'last'"):
        tasks.load("hatexplain", places, Options(label_rule="last"))
    with pytest.raises(RequestError, match=r"rationale_rule must be one of .*union.*, got 'last'"):
        tasks.load("hatexplain", places, Options(rationale_rule="last"))


# What is left out


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    posts = {
        **fruit(),
        "split": entry(labels=(HATE, NORMAL, OFFENSIVE)),
        "empty": entry([]),
        "blank": entry(["", " "]),
        "short": entry(rationales=[[1, 0, 0, 0], [1, 0, 0]]),
        "spare": entry(),
        "other": entry(),
    }
    divisions = splits(
        train=["split", "lost", "1_plum"], val=["empty", "2_pear", "gone"], test=["3_fig", "blank"]
    )
    divisions["test"].append("short")
    for rule in ("majority", "union", "first"):
        got = load_posts(Places(str(write(tmp_path, posts, divisions))), rationale_rule=rule)
        assert list(got.left_out.items()) == [
            ("in no split", 2),
            ("named in a split but not in the data", 2),
            ("without a token", 2),
            ("whose rationale is not as long as its text", 1),
            ("undecided between labels", 1),
        ]
        assert [len(tokens) for tokens in got.tokens.values()] == [1, 1, 1]


def test_a_post_is_counted_once(tmp_path: Path) -> None:
    posts = {**fruit(), "bad": entry([], (HATE, NORMAL), [[1]])}
    write(tmp_path, posts, splits(train=["bad", "1_plum"]))
    assert load_posts(Places(str(tmp_path))).left_out == {"without a token": 1}


# Bad input


def test_missing_files(tmp_path: Path) -> None:
    assert "DIR does not exist" in refused(tmp_path / "none")
    assert "DIR has no dataset.json and no post_id_divisions.json." in refused(tmp_path)
    write(tmp_path / "Data")
    (tmp_path / "Data" / "dataset.json").unlink()
    assert "DIR/Data has no dataset.json." in refused(tmp_path)


@pytest.mark.parametrize("name", ["dataset.json", "post_id_divisions.json"])
@pytest.mark.parametrize("content", ["", '{"train": [', "3"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: str) -> None:
    (write(tmp_path) / name).write_text(content)
    assert f"DIR/{name} cannot be read (" in refused(tmp_path)


BAD_POSTS = {
    "no object": ["apple"],
    "no tokens": {"annotators": [{"label": NORMAL}], "rationales": []},
    "a text": entry("green apple"),
    "a number": entry(["green", 7]),
    "half a character": entry(["apple", "\ud83c"]),
    "no annotator": entry(labels=()),
    "label": entry(labels=(HATE, "Normal")),
    "rationale": entry(rationales=[[1, 0, 0, 0], 1]),
    "value": entry(rationales=[[0, 0, 2, 0]]),
    "word": entry(rationales=["0100"]),
}


@pytest.mark.parametrize("bad", BAD_POSTS.values(), ids=BAD_POSTS)
def test_a_bad_post_is_named_and_not_quoted(tmp_path: Path, bad: Any) -> None:
    write(tmp_path, {**fruit(), "2_pear": bad})
    message = refused(tmp_path)
    assert message.startswith("DIR/dataset.json, post '2_pear' cannot be read (")
    assert "apple" not in message


def test_a_bad_post_in_no_split_harms_nobody(tmp_path: Path) -> None:
    write(tmp_path, {**fruit(), "spare": None})
    assert load_posts(Places(str(tmp_path))).left_out == {"in no split": 1}


BAD_DIVISIONS = {
    "no split": ({"train": ["1_plum"], "test": ["3_fig"]}, "it has no 'val'"),
    "twice": (splits(test=["3_fig", "1_plum"]), "it names a post twice"),
    "empty": (splits(val=[]), "no post of the split 'val' can be used: it names none"),
    "unknown": (splits(test=["4_kiwi"]), "'test' can be used: 1 named in a split but not in the"),
}


@pytest.mark.parametrize(("bad", "fault"), BAD_DIVISIONS.values(), ids=BAD_DIVISIONS)
def test_bad_divisions(tmp_path: Path, bad: Any, fault: str) -> None:
    write(tmp_path, divisions=bad)
    message = refused(tmp_path)
    assert message.startswith("DIR/post_id_divisions.json")
    assert fault in message


# The rest


def test_importing_needs_no_torch() -> None:
    # The package's own __init__ imports other tasks, so it is stood in for.
    code = (
        "import sys, types; package = types.ModuleType('study.tasks');"
        "package.__path__ = ['study/tasks']; sys.modules['study.tasks'] = package;"
        "sys.modules['torch'] = None; import study.tasks.posts.hatexplain"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=PROJECT)


@needs_data
def test_the_real_posts() -> None:
    posts = load_posts(Places(str(REAL_DATA / "hatexplain")))
    assert {split: len(tokens) for split, tokens in posts.tokens.items()} == {
        "train": 15_383,
        "validation": 1_922,
        "test": 1_924,
    }
    assert posts.left_out == {}
    counts = {split: np.bincount(labels).tolist() for split, labels in posts.labels.items()}
    assert counts["train"] == [4_748, 6_251, 4_384]
    assert counts["validation"] == [593, 781, 548]
    assert counts["test"] == [594, 782, 548]
    known = {
        split: sum(rationale is not None for rationale in rationales)
        for split, rationales in posts.rationales.items()
    }
    assert known == {"train": 0, "validation": 1_141, "test": 1_141}
    for split, rationales in posts.rationales.items():
        for tokens, rationale in zip(posts.tokens[split], rationales, strict=True):
            assert len(tokens) > 0
            assert rationale is None or rationale.shape == (len(tokens),)
