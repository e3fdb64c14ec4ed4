"""Posts as a task: which are drawn, words, the digest; see tests/contracts/test_tasks.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chapters.texts.hatexplain import load_posts
from chapters.texts.posts import Posts
from chapters.texts.texts import UNKNOWN, TextTask, text_task
from study.cell import Options
from study.tasks.sources.places import Places
from tests.chapters.texts.post_files import OPTIONS, text_cell, write_posts


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Posts:
    return load_posts(Places(str(write_posts(tmp_path_factory.mktemp("posts")))), OPTIONS)


def task_of(posts: Posts, **options: Any) -> TextTask:
    return text_task("hatexplain", posts, Options(**{**OPTIONS, **options}))


@pytest.fixture(scope="module")
def task(posts: Posts) -> TextTask:
    return task_of(posts)


def test_fewer_posts_are_the_first_of_all_and_each_is_drawn_once(task):
    def words(seed: int, **sizes: int) -> dict[str, list[tuple[int, ...]]]:
        splits = task.splits(text_cell(task, seed=seed, **sizes))
        return {name: [tuple(row.tolist()) for row in s.words] for name, s in splits.items()}

    few, everything = words(0, n=20), words(0)
    assert few["train"] == everything["train"][:20]
    assert len(set(few["train"])) == 20
    assert sorted(everything["train"]) == sorted(words(1)["train"])
    for name in ("validation", "test"):
        assert few[name] == everything[name]
    assert words(0, test_size=10)["test"] == everything["test"][:10]


def test_seldom_words_and_new_ones_are_the_unknown(posts, task):
    train = [word for post in posts.splits["train"] for word in post.tokens]
    words, counts = np.unique(train, return_counts=True)
    often = int(np.median(counts)) + 1
    kept = int((counts >= often).sum())
    assert 0 < kept < len(words)
    seldom = task_of(posts, min_count=often)
    assert seldom.facts.input_shape == (kept + 2,)
    batch = seldom.splits(text_cell(seldom))["train"].words
    assert (batch == UNKNOWN).sum() == counts[counts < often].sum()
    assert seldom.facts.digest != task.facts.digest


def test_the_digest_stands_for_words_labels_and_rationales(posts, task):
    first, *others = posts.splits["train"]
    changes: list[dict[str, Any]] = [
        {},
        {"tokens": first.tokens[::-1]},
        {"label": (first.label + 1) % 3},
        {"rationale": [True] * len(first.tokens)},
    ]
    digests = [
        task_of(
            replace(posts, splits={**posts.splits, "train": [first._replace(**each), *others]})
        ).facts.digest
        for each in changes
    ]
    assert digests[0] == task.facts.digest
    assert len(set(digests)) == 4
