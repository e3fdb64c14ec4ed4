"""Posts as a task: vocabulary, splits, batches, and what a plan knows of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study.cell import Options
from study.errors import RequestError
from study.tasks.posts.hatexplain import load_posts
from study.tasks.posts.texts import PADDING, UNKNOWN, Texts, TextTask
from study.tasks.sources.places import Places
from tests.made_up.posts import OPTIONS, M, load, text_cell, write_posts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_posts(tmp_path_factory.mktemp("posts"))


@pytest.fixture(scope="module")
def task(folder: Path) -> TextTask:
    return load(folder)


def spelt(task: TextTask, folder: Path, split: str, m: int = M) -> dict[tuple[str, ...], int]:
    """The posts of a split as words -> label, in the numbers of the task's vocabulary."""
    posts = load_posts(Places(str(folder))).splits
    words = sorted({word for post in posts["train"] for word in post.tokens})
    number = {word: i for i, word in enumerate(words, start=2)}
    return {
        tuple(number.get(word, UNKNOWN) for word in post.tokens[:m]): post.label
        for post in posts[split]
    }


@pytest.mark.parametrize("m", [M, 5])
def test_the_splits_hold_the_posts_of_the_files(task: TextTask, folder: Path, m: int) -> None:
    splits = task.splits(text_cell(task, m=m))
    for name, split in splits.items():
        batch = split.batch(torch.arange(len(split)))
        found = {
            tuple(words[real].tolist()): int(label)
            for words, real, label in zip(batch.segments, batch.mask, batch.labels, strict=True)
        }
        assert found == spelt(task, folder, name, m)
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


def test_passes_hold_like_lengths_together(task: TextTask) -> None:
    split = task.splits(text_cell(task))["test"]
    lengths = split.lengths[torch.cat(list(split.passes(7)))]
    assert (lengths.diff() >= 0).all()


def test_the_foreground_is_the_rationale_and_may_be_missing(task: TextTask) -> None:
    splits = task.splits(text_cell(task))
    assert not splits["train"].foreground.any()
    for name in ("validation", "test"):
        has = splits[name].foreground.any(dim=1)
        assert torch.equal(has, splits[name].labels != 1)  # nobody marks what is normal
        assert (splits[name].foreground.sum(dim=1)[has] == 2).all()


def test_seldom_words_and_new_ones_are_the_unknown(folder: Path, task: TextTask) -> None:
    posts = load_posts(Places(str(folder))).splits["train"]
    words, counts = np.unique([w for post in posts for w in post.tokens], return_counts=True)
    often = int(np.median(counts)) + 1
    options = Options(**{**OPTIONS, "min_count": often})
    seldom = load(folder, options)
    kept = int((counts >= often).sum())
    assert 0 < kept < len(words)
    assert seldom.facts.input_shape == (kept + 2,)
    batch = seldom.splits(text_cell(seldom, options=options))["train"].words
    assert (batch == UNKNOWN).sum() == counts[counts < often].sum()
    assert any(f"vocabulary: {kept} words" in note for note in seldom.facts.notes)
    assert seldom.facts.digest != task.facts.digest


def test_an_empty_vocabulary_is_refused(folder: Path) -> None:
    with pytest.raises(RequestError, match=r"vocabulary is empty: no word occurs 5000 times"):
        load(folder, Options(**{**OPTIONS, "min_count": 5_000}))


def test_the_digest_stands_for_words_labels_and_rationales(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "dataset.json").read_text())
    name, post = next((name, post) for name, post in data.items() if post["rationales"])
    changes: list[dict[str, Any]] = [
        {},
        {"post_tokens": ["plum", *post["post_tokens"][1:]]},
        {"annotators": [{**each, "label": "normal"} for each in post["annotators"]]},
        {"rationales": [[1 - mark for mark in marks] for marks in post["rationales"]]},
    ]
    digests = [load(folder).facts.digest]
    for change in changes:
        (write_posts(tmp_path) / "dataset.json").write_text(
            json.dumps({**data, name: {**post, **change}})
        )
        digests.append(load(tmp_path).facts.digest)
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_a_plan_knows_sizes_lengths_and_what_to_tell(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "dataset.json").read_text())
    data["train-0"]["post_tokens"] = []
    del data["test-3"]
    (write_posts(tmp_path) / "dataset.json").write_text(json.dumps(data))
    task = load(tmp_path)
    assert task.facts.sizes == {"train": 59, "validation": 30, "test": 39}
    lengths = task.splits(text_cell(task, m=1_000))["train"].lengths.tolist()
    assert task.facts.lengths == Counter(lengths)
    marked = np.mean([bool(post["rationales"]) for name, post in data.items() if "val" in name])
    told = "\n".join(task.facts.notes)
    for fact in (
        "posts: 59 (train), 30 (validation), 39 (test); label by majority",
        f"(train), {100 * marked:.1f} % (validation)",
        f"{np.mean(lengths):.1f} words a training post in the mean, at most {max(lengths)}",
        "posts left out: 1 named in a split but not in the data, 1 without a token",
    ):
        assert fact in told
