"""HateXplain: labels and rationales by every rule, what is left out, bad files.

Posts are made up of fruit and colours.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapters.texts.hatexplain import CLASSES, load_posts
from chapters.texts.posts import Post, Posts
from study.cell import Options
from study.tasks.sources.places import Places
from tests.conftest import REAL_DATA, needs_data
from tests.made_up.commands import refusal

HATE, NORMAL, OFFENSIVE = CLASSES
FRUIT = ["green", "apple", "red", "cherry"]


def entry(tokens: Any = FRUIT, labels: Any = (NORMAL,), rationales: Any = ()) -> dict[str, Any]:
    """A post as the data set writes it."""
    annotators = [{"label": label, "target": ["None"]} for label in labels]
    return {"annotators": annotators, "rationales": rationales, "post_tokens": tokens}


def write(folder: Path, changes: Any = None, divisions: Any = None) -> Path:
    """Both files, of three posts, one for each split; without what is changed."""
    posts = {
        "1_plum": entry(["yellow", "plum"]),
        "2_pear": entry(["green", "pear", "tree"], [OFFENSIVE] * 3, [[0, 1, 0], [1, 1, 0]]),
        "3_fig": entry(["fig"], [HATE]),
    }
    splits = {"train": ["1_plum"], "val": ["2_pear"], "test": ["3_fig"]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.json").write_text(json.dumps({**posts, **(changes or {})}))
    (folder / "post_id_divisions.json").write_text(json.dumps({**splits, **(divisions or {})}))
    return folder


def load(folder: Path, **rules: str) -> Posts:
    options = dict.fromkeys(("label_rule", "rationale_rule"), "majority") | rules
    return load_posts(Places(str(folder)), Options(**options))


@pytest.mark.parametrize("inside", ["", "Data"])
def test_reads_both_files_in_the_order_of_the_splits(tmp_path, inside):
    colours = ["teal", "amber", "violet"]
    posts = {colour: entry([colour]) for colour in sorted(colours)}
    write(tmp_path / inside, posts, {"train": [*colours, "1_plum"]})
    assert load(tmp_path) == Posts(
        CLASSES,
        {
            "train": [
                *(Post([colour], 1, [False]) for colour in colours),
                Post(["yellow", "plum"], 1, [False, False]),
            ],
            "validation": [Post(["green", "pear", "tree"], 2, [True, True, False])],
            "test": [Post(["fig"], 0, [False])],
        },
        {},
    )


MARKS = st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), max_size=4)


@given(labels=st.lists(st.sampled_from(CLASSES), min_size=1, max_size=4), marks=MARKS)
def test_rules(tmp_path_factory, labels, marks):
    folder = tmp_path_factory.mktemp("rules")
    write(folder, {"kiwi": entry(FRUIT, labels, marks)}, {"train": ["1_plum", "kiwi"]})
    counts = Counter(labels)
    winners = [label for label in CLASSES if counts[label] == max(counts.values())]
    votes = [sum(each[place] for each in marks) for place in range(4)]
    marked = {
        "majority": [count > 0 and 2 * count >= len(marks) for count in votes],
        "union": [count > 0 for count in votes],
        "first": [bool(marks) and marks[0][place] == 1 for place in range(4)],
    }
    if len(winners) > 1:
        assert load(folder).left_out == {"undecided between labels": 1}
    else:
        assert load(folder).splits["train"][1].label == CLASSES.index(winners[0])
    for rule, expected in marked.items():
        post = load(folder, label_rule="first", rationale_rule=rule).splits["train"][1]
        assert (post.label, post.rationale) == (CLASSES.index(labels[0]), expected)


def test_what_is_left_out_is_counted_once(tmp_path):
    posts = {
        "tie": entry(labels=(HATE, NORMAL, OFFENSIVE)),
        "empty": entry([], (HATE, NORMAL), [[1]]),
        "blank": entry(["", " "]),
        "short": entry(rationales=[[1, 0, 0, 0], [1, 0, 0]]),
        "spare": None,
    }
    write(tmp_path, posts, {"train": ["tie", "lost", "empty", "1_plum", "short", "blank"]})
    found = load(tmp_path, rationale_rule="first")
    assert found.left_out == {
        "in no split": 1,
        "named in a split but not in the data": 1,
        "undecided between labels": 1,
        "whose rationale is not as long as its text": 1,
        "without a token": 2,
    }
    assert len(found.splits["train"]) == 1


BAD: dict[str, tuple[Any, Any, str]] = {
    "no tokens": (
        {"annotators": [{"label": NORMAL}], "rationales": []},
        None,
        "dataset.json, post '2_pear' cannot be read (it has no 'post_tokens'",
    ),
    "a text": (entry("green apple"), None, "post '2_pear' "),
    "a number": (entry(["apple", 7]), None, "post '2_pear' "),
    "a label": (entry(labels=(HATE, "Normal")), None, "post '2_pear' "),
    "a rationale": (entry(rationales=[[0, 0, 2, 0]]), None, "post '2_pear' "),
    "no such split": (entry(), {"val": None}, "post_id_divisions.json "),
    "an empty split": (entry(), {"val": ["4_kiwi"]}, "its split 'val' "),
}


@pytest.mark.parametrize(("post", "divisions", "fact"), BAD.values(), ids=BAD)
def test_what_is_bad_is_named_and_not_quoted(tmp_path, post, divisions, fact):
    message = refusal(lambda: load(write(tmp_path, {"2_pear": post}, divisions)))
    assert message.startswith(str(tmp_path))
    assert fact in message
    assert "apple" not in message


@needs_data
def test_the_real_posts():
    posts = load(REAL_DATA / "hatexplain")
    assert posts.left_out == {}
    labels = {split: Counter(post.label for post in each) for split, each in posts.splits.items()}
    assert labels == {
        "train": {0: 4_748, 1: 6_251, 2: 4_384},
        "validation": {0: 593, 1: 781, 2: 548},
        "test": {0: 594, 1: 782, 2: 548},
    }
