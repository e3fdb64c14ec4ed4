"""Posts as a task: vocabulary, splits, batches, and what a plan knows of them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from study import tasks
from study.cell import Options
from study.errors import RequestError
from study.tasks.posts.hatexplain import load_posts
from study.tasks.posts.texts import PADDING, UNKNOWN, Texts, TextTask
from study.tasks.sources.places import Places
from tests.made_up.posts import OPTIONS, SIZES, M, load, text_cell, write_posts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_posts(tmp_path_factory.mktemp("posts"))


@pytest.fixture(scope="module")
def task(folder: Path) -> TextTask:
    return load(folder)


def spelt(task: TextTask, folder: Path, split: str, m: int = M) -> dict[tuple[str, ...], int]:
    """The posts of a split as words -> label, in the numbers of the task's vocabulary."""
    posts = load_posts(Places(str(folder)), "majority", "majority")
    words = sorted({word for post in posts.tokens["train"] for word in post})
    number = {word: i for i, word in enumerate(words, start=2)}
    return {
        tuple(number.get(word, UNKNOWN) for word in post[:m]): int(label)
        for post, label in zip(posts.tokens[split], posts.labels[split], strict=True)
    }


@pytest.mark.parametrize("m", [M, 5])
def test_the_splits_hold_the_posts_of_the_files(task: TextTask, folder: Path, m: int) -> None:
    splits = task.splits(text_cell(task, m=m))
    for name, split in splits.items():
        batch = split.batch(torch.arange(len(split)))
        assert batch.mask is not None
        found = {
            tuple(words[real].tolist()): int(label)
            for words, real, label in zip(batch.segments, batch.mask, batch.labels, strict=True)
        }
        assert found == spelt(task, folder, name, m)
        assert (batch.segments[~batch.mask] == PADDING).all()
        assert (batch.segments[batch.mask] != PADDING).all()
        assert not (batch.foreground & ~batch.mask).any()
        assert batch.mask.any(dim=1).all()
        assert batch.mask.shape[1] <= m


def test_a_batch_is_as_wide_as_its_longest_post(task: TextTask) -> None:
    train = task.splits(text_cell(task))["train"]
    for rows in torch.arange(len(train)).split(7):
        batch = train.batch(rows)
        assert batch.mask is not None
        assert batch.mask.sum(dim=1).max() == batch.mask.shape[1]


def test_batches_are_of_few_widths() -> None:
    lengths = torch.arange(1, 31)
    words = (torch.arange(30) < lengths[:, None]).int()
    texts = Texts(words, torch.zeros(30), words > 0, lengths)
    widths = texts.widths(torch.arange(30)[:, None])
    assert widths == [8] * 8 + [16] * 8 + [24] * 8 + [30] * 6
    rows = torch.tensor([[3, 16, 0], [29, 1, 2], [4, 5, 6]])
    assert texts.widths(rows) == [max(widths[row] for row in batch) for batch in rows]
    assert texts.head(6).widths(torch.tensor([[5]])) == [8]


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
    posts = load_posts(Places(str(folder)), "majority", "majority")
    words, counts = np.unique([w for p in posts.tokens["train"] for w in p], return_counts=True)
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
    before = load(folder).facts.digest
    assert load(write_posts(tmp_path / "same")).facts.digest == before
    data = json.loads((folder / "dataset.json").read_text())
    divisions = (folder / "post_id_divisions.json").read_text()
    name = next(each for each in data if data[each]["rationales"])
    digests = {before}
    for key, value in (
        ("post_tokens", ["plum", *data[name]["post_tokens"][1:]]),
        ("annotators", [{**each, "label": "normal"} for each in data[name]["annotators"]]),
        ("rationales", [[1 - mark for mark in marks] for marks in data[name]["rationales"]]),
    ):
        changed = tmp_path / key
        changed.mkdir()
        text = json.dumps({**data, name: {**data[name], key: value}})
        (changed / "dataset.json").write_text(text)
        (changed / "post_id_divisions.json").write_text(divisions)
        digests.add(load(changed).facts.digest)
    assert len(digests) == 4


def test_a_plan_knows_sizes_lengths_and_what_to_tell(task: TextTask, folder: Path) -> None:
    facts = task.facts
    assert facts.sizes == {"train": 60, "validation": 30, "test": 40}
    assert sum(facts.lengths.values()) == SIZES["train"]
    train = task.splits(text_cell(task))["train"]
    words = sum(length * count for length, count in facts.lengths.items())
    assert words == int(train.lengths.sum())
    told = "\n".join(facts.notes)
    assert "posts: 60 (train), 30 (validation), 40 (test)" in told
    assert "with a rationale 0.0 % (train)" in told
    assert "left out" not in told


def test_posts_that_are_left_out_are_told(folder: Path, tmp_path: Path) -> None:
    data = json.loads((folder / "dataset.json").read_text())
    data["train-0"]["post_tokens"] = []
    del data["test-3"]
    (tmp_path / "dataset.json").write_text(json.dumps(data))
    (tmp_path / "post_id_divisions.json").write_text(
        (folder / "post_id_divisions.json").read_text()
    )
    facts = load(tmp_path).facts
    assert facts.sizes == {"train": 59, "validation": 30, "test": 39}
    (note,) = [note for note in facts.notes if "left out" in note]
    assert "1 without a token" in note
    assert "1 named in a split but not in the data" in note


def test_made_up_posts_are_as_long_as_real_ones(task: TextTask) -> None:
    made_up = tasks.info("hatexplain", OPTIONS).made_up(task.facts, 500)
    cell = text_cell(task, n=500, validation_size=500, test_size=500)
    splits = made_up.splits(dataclasses.replace(cell, m=1_000))
    for split in splits.values():
        assert set(split.lengths.tolist()) <= set(task.facts.lengths)
        assert int(split.words.max()) < task.facts.input_shape[0]
