"""HateXplain: labels and rationales by every rule, what is left out, bad files.

Posts are made up of fruit and colours.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path / "without")
    write(tmp_path / "with", "\ufeff" + json.dumps(fruit()))
    assert_equal(
        load_posts(Places(str(tmp_path / "with"))), load_posts(Places(str(tmp_path / "without")))
    )


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
    with pytest.raises(ValueError, match=r"label_rule must be one of .*majority.*, got 'last'"):
        load_posts(Places(str(tmp_path)), label_rule="last")
    with pytest.raises(ValueError, match=r"rationale_rule must be one of .*union.*, got 'last'"):
        load_posts(Places(str(tmp_path)), rationale_rule="last")


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
    assert refused(tmp_path / "none").startswith("DIR does not exist. Pass HateXplain with --da")
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file").startswith("DIR is not a directory.")
    assert refused(tmp_path) == (
        "DIR has no dataset.json and no post_id_divisions.json. HateXplain is dataset.json and "
        "post_id_divisions.json as in the data set's repository, in DIR or in DIR/Data."
    )
    write(tmp_path / "Data")
    (tmp_path / "Data" / "dataset.json").unlink()
    assert refused(tmp_path).startswith("DIR/Data has no dataset.json. HateXplain is")


@pytest.mark.parametrize("name", ["dataset.json", "post_id_divisions.json"])
def test_a_file_that_cannot_be_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes

    def read_bytes(path: Path) -> bytes:
        if path.name == name:
            raise PermissionError(13, "Permission denied")
        return read(path)

    write(tmp_path)
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    assert refused(tmp_path) == f"DIR/{name} cannot be read (Permission denied)."


def test_a_directory_that_cannot_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_dir(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", is_dir)
    assert refused(tmp_path) == "DIR cannot be read (Permission denied)."


@pytest.mark.parametrize("indent", [None, 1])
def test_broken_json_is_placed(tmp_path: Path, indent: int | None) -> None:
    text = json.dumps(fruit(), indent=indent)
    broken = text.replace('"pear",', '"pear"', 1)
    write(tmp_path, broken)
    with pytest.raises(json.JSONDecodeError) as error:
        json.loads(broken)
    assert refused(tmp_path) == (
        f"DIR/dataset.json is no JSON: Expecting ',' delimiter, line {error.value.lineno}, "
        f"column {error.value.colno}, the last post before it is '2_pear'. Copy the file again, "
        "as it was published."
    )


def test_a_file_that_ends_early_is_placed(tmp_path: Path) -> None:
    write(tmp_path, json.dumps(fruit(), indent=1).partition('"fig')[0])
    message = refused(tmp_path)
    assert message.startswith("DIR/dataset.json is no JSON: ")
    assert "the last post before it is '3_fig'." in message
    write(tmp_path, "")
    assert "is no JSON: Expecting value, line 1, column 1. Copy" in refused(tmp_path)
    write(tmp_path, divisions='{"train": ["1_plum",\n "2_pear" "3_fig"]}')
    assert refused(tmp_path) == (
        "DIR/post_id_divisions.json is no JSON: Expecting ',' delimiter, line 2, column 11, the "
        "last post before it is '1_plum'. Copy the file again, as it was published."
    )


def test_a_file_in_another_encoding_is_placed(tmp_path: Path) -> None:
    write(tmp_path)
    text = json.dumps({**fruit(), "2_pear": entry(["crème"])}, indent=1, ensure_ascii=False)
    line = text.partition("crème")[0].count("\n") + 1
    (tmp_path / "dataset.json").write_bytes(text.encode("latin1"))
    assert refused(tmp_path) == (
        f"DIR/dataset.json is not UTF-8: line {line}, the last post before it is '2_pear'. Copy "
        "the file again, as it was published."
    )
    (tmp_path / "dataset.json").write_bytes(text.encode("utf-16"))
    assert "DIR/dataset.json is not UTF-8: line 1. Copy" in refused(tmp_path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' + "9" * 10_000 + "}"])
def test_json_that_python_does_not_read(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    # How deep is too deep differs between versions of Python.
    assert re.match("DIR/dataset.json (holds numbers or lists that|is no JSON)", refused(tmp_path))


@pytest.mark.parametrize(
    ("content", "got"), [("[]", "a list"), ("null", "null"), ("3", "a number"), ("true", "true")]
)
@pytest.mark.parametrize("name", ["dataset.json", "post_id_divisions.json"])
def test_a_file_of_another_kind(tmp_path: Path, name: str, content: str, got: str) -> None:
    write(tmp_path)
    (tmp_path / name).write_text(content)
    assert f"DIR/{name} must hold an object, got {got}" in refused(tmp_path)


BAD_POSTS = {
    "no object": (["apple"], "a post must be an object, got a list."),
    "nothing": (None, "a post must be an object, got null."),
    "no tokens": ({"annotators": [], "rationales": []}, "'post_tokens' is missing."),
    "no annotators": ({"post_tokens": [], "rationales": []}, "'annotators' is missing."),
    "no rationales": ({"post_tokens": [], "annotators": []}, "'rationales' is missing."),
    "a text": (entry("green apple"), "'post_tokens' must be a list, got text."),
    "a number": (entry(["green", 7]), "token 2 must be text, got a number."),
    "half a character": (entry(["apple", "\ud83c"]), "a token holds half a character (a lone"),
    "no annotator": (entry(labels=()), "'annotators' is empty: nobody labelled the post."),
    "an annotator": (
        {**entry(), "annotators": [{"label": NORMAL}, NORMAL]},
        "annotator 2 must be an object, got text.",
    ),
    "annotators by key": (
        {**entry(), "annotators": {"label": [NORMAL]}},
        "'annotators' must be a list, got an object.",
    ),
    "no label": ({**entry(), "annotators": [{}]}, "annotator 1 has no 'label'."),
    "label number": (entry(labels=(1,)), "the label of annotator 1 must be text, got a number."),
    "label": (
        entry(labels=(HATE, "Normal")),
        "annotator 2: unknown label 'Normal'. Did you mean 'normal'? Valid: hatespeech, normal, "
        "offensive.",
    ),
    "label text": (
        entry(labels=("green apple",)),
        "annotator 1: unknown label '(no single word)'. Valid: hatespeech, normal, offensive.",
    ),
    "rationales": (entry(rationales=None), "'rationales' must be a list, got null."),
    "rationale": (entry(rationales=[[1, 0, 0, 0], 1]), "rationale 2 must be a list, got a num"),
    "value": (
        entry(rationales=[[0, 0, 2, 0]]),
        "value 3 of rationale 1 must be 0 or 1, got 2.",
    ),
    "negative": (entry(rationales=[[-1] * 4]), "value 1 of rationale 1 must be 0 or 1, got -1."),
    "fraction": (entry(rationales=[[0.5]]), "value 1 of rationale 1 must be 0 or 1, got 0.5."),
    "not a number": (
        entry(rationales=[[float("nan")]]),
        "value 1 of rationale 1 must be 0 or 1, got nan.",
    ),
    "truth": (
        entry(rationales=[[True]]),
        "value 1 of rationale 1 must be 0 or 1, got true or false.",
    ),
    "word": (entry(rationales=[["apple"]]), "value 1 of rationale 1 must be 0 or 1, got text."),
    "list": (entry(rationales=[[[1]]]), "value 1 of rationale 1 must be 0 or 1, got a list."),
}


@pytest.mark.parametrize(("bad", "fault"), BAD_POSTS.values(), ids=BAD_POSTS)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_bad_post_is_placed_and_not_quoted(
    tmp_path: Path, bad: Any, fault: str, indent: int | None
) -> None:
    posts = {**fruit(), "2_pear": bad}
    write(tmp_path, posts, indent=indent)
    lines = json.dumps(posts, indent=indent).split("\n")
    number = next(n for n, line in enumerate(lines, 1) if '"2_pear":' in line)
    for rules in ({}, {"label_rule": "first", "rationale_rule": "first"}):
        message = refused(tmp_path, **rules)
        assert message.startswith(f"DIR/dataset.json, line {number}, post '2_pear': {fault}")
        assert "apple" not in message


def test_a_bad_post_in_no_split_harms_nobody(tmp_path: Path) -> None:
    write(tmp_path, {**fruit(), "spare": None})
    assert load_posts(Places(str(tmp_path))).left_out == {"in no split": 1}


def test_a_key_that_might_be_a_text_is_not_quoted(tmp_path: Path) -> None:
    write(tmp_path, {**fruit(), "green apple": None}, splits(train=["green apple"]))
    message = refused(tmp_path)
    assert "post without a usual name: a post must be an object" in message
    assert "apple" not in message


def test_an_id_in_other_letters_is_found(tmp_path: Path) -> None:
    for ascii_only in (True, False):
        text = json.dumps({**fruit(), "2_pêche": 3}, indent=1, ensure_ascii=ascii_only)
        write(tmp_path, text, splits(train=["2_pêche"]))
        number = text.count("\n")
        assert f"dataset.json, line {number}, post '2_pêche'" in refused(tmp_path)


def test_a_key_that_is_there_twice(tmp_path: Path) -> None:
    text = json.dumps(fruit(), indent=1)
    write(tmp_path, text.replace('"3_fig"', '"1_plum"'))
    number = text.partition('"3_fig"')[0].count("\n") + 1
    assert refused(tmp_path) == (
        f"DIR/dataset.json, line {number}, post '1_plum' is there more than once. Leave one."
    )
    write(tmp_path, divisions=json.dumps(splits(), indent=1).replace('"val"', '"train"'))
    assert refused(tmp_path) == (
        "DIR/post_id_divisions.json, line 5, split 'train' is there more than once. Leave one."
    )


BAD_DIVISIONS = {
    "no split": (
        {"train": ["1_plum"], "valid": [], "test": ["3_fig"]},
        " has no split 'val': train, val, test are needed.",
    ),
    "no list": (splits(val="2_pear"), ": the split 'val' must be a list, got text."),
    "number": (
        splits(val=["2_pear", 3]),
        ": in the split 'val', entry 2 must be text, got a number.",
    ),
    "two splits": (
        splits(test=["3_fig", "1_plum"]),
        ", line 10, post '1_plum' is named twice: in the split 'train' and in 'test'. Leave one.",
    ),
    "twice": (
        splits(train=["1_plum", "1_plum"]),
        ", line 4, post '1_plum' is named twice: in the split 'train' and in 'train'. Leave one.",
    ),
    "empty": (splits(val=[]), ": no post of the split 'val' can be used: it names none."),
    "unknown": (
        splits(test=["4_kiwi", "5_lime"]),
        ": no post of the split 'test' can be used: 2 named in a split but not in the data.",
    ),
}


@pytest.mark.parametrize(("bad", "fault"), BAD_DIVISIONS.values(), ids=BAD_DIVISIONS)
def test_bad_divisions(tmp_path: Path, bad: Any, fault: str) -> None:
    write(tmp_path, divisions=bad)
    assert refused(tmp_path) == f"DIR/post_id_divisions.json{fault}"


def test_a_split_without_usable_posts_says_why(tmp_path: Path) -> None:
    posts = {**fruit(), "1_plum": entry(labels=(HATE, NORMAL)), "4_kiwi": entry([])}
    write(tmp_path, posts, splits(train=["lost", "1_plum", "4_kiwi"]))
    assert refused(tmp_path) == (
        "DIR/post_id_divisions.json: no post of the split 'train' can be used: 1 named in a split "
        "but not in the data, 1 without a token, 1 undecided between labels."
    )


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
