"""Posts as a task: vocabulary, splits, batches, and what a plan knows of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from chapters.texts.hatexplain import load_posts
from chapters.texts.posts import Posts
from chapters.texts.texts import PADDING, UNKNOWN, Texts, TextTask, text_task
from study.cell import Options
from study.errors import RequestError
from study.tasks.sources.places import Places
from tests.chapters.texts.post_files import OPTIONS, M, text_cell, write_posts


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Posts:
    return load_posts(Places(str(write_posts(tmp_path_factory.mktemp("posts")))), OPTIONS)


def task_of(posts: Posts, **options: Any) -> TextTask:
    return text_task("hatexplain", posts, Options(**{**OPTIONS, **options}))


@pytest.fixture(scope="module")
def task(posts: Posts) -> TextTask:
    return task_of(posts)


@pytest.mark.parametrize("m", [M, 5])
def test_the_splits_hold_the_posts_in_the_numbers_of_the_vocabulary(
    task: TextTask, posts: Posts, m: int
) -> None:
    """With their labels, and their rationales as the foreground."""
    words = sorted({word for post in posts.splits["train"] for word in post.tokens})
    number = {word: i for i, word in enumerate(words, start=2)}
    for name, split in task.splits(text_cell(task, m=m)).items():
        batch = split.batch(torch.arange(len(split)))
        found = {
            tuple(words[real].tolist()): (int(label), marks[real].tolist())
            for words, label, marks, real in zip(*batch, strict=True)
        }
        assert found == {
            tuple(number.get(word, UNKNOWN) for word in post.tokens[:m]): (
                post.label,
                list(post.rationale[:m]),
            )
            for post in posts.splits[name]
        }
        assert (batch.segments[~batch.mask] == PADDING).all()
        assert batch.mask.sum(dim=1).max() == batch.mask.shape[1] <= m


def test_batches_are_of_few_widths() -> None:
    lengths = torch.arange(1, 31)
    words = (torch.arange(30) < lengths[:, None]).int()
    texts = Texts(words, torch.zeros(30), words > 0, lengths)
    widths = texts.widths(torch.arange(30)[:, None])
    assert widths == [8] * 8 + [16] * 8 + [24] * 8 + [30] * 6
    assert texts.widths(torch.tensor([[3, 16, 0], [29, 1, 2], [4, 5, 6]])) == [24, 30, 8]


def test_fewer_posts_are_the_first_of_all_and_each_is_drawn_once(task: TextTask) -> None:
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


def test_seldom_words_and_new_ones_are_the_unknown(posts: Posts, task: TextTask) -> None:
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
    with pytest.raises(RequestError, match=r"vocabulary is empty: no word occurs 5000 times"):
        task_of(posts, min_count=5_000)


def test_the_digest_stands_for_words_labels_and_rationales(posts: Posts, task: TextTask) -> None:
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


def test_a_plan_knows_sizes_lengths_and_what_to_tell(posts: Posts) -> None:
    task = task_of(replace(posts, left_out={"without a token": 1}))
    assert task.facts.sizes == {"train": 60, "validation": 30, "test": 40}
    lengths = [len(post.tokens) for post in posts.splits["train"]]
    assert task.facts.lengths == Counter(lengths)
    marked = np.mean([any(post.rationale) for post in posts.splits["validation"]])
    told = "\n".join(task.facts.notes)
    for fact in (
        "label by majority", f"{100 * marked:.1f} % (validation)", f"at most {max(lengths)}",
        "left out: 1 without a token",
    ):  # fmt: skip
        assert fact in told
