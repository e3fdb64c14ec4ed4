"""Episodes: which characters train, what is drawn, and what the seed draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from chapters.paths.one_shot.characters import Characters, shares
from chapters.paths.one_shot.episodes import Episodes, OneShotTask
from study import tasks
from study.tasks.sources.places import Places
from study.tasks.task import SPLITS

COUNT = 600
DRAWINGS = (2, 5, 3, 9, 2, 4, 7, 2)
"""Of each character."""

CHARACTERS = Characters(
    np.tile(np.arange(sum(DRAWINGS), dtype=np.uint8)[:, None, None], (4, 4)),
    np.repeat(np.arange(len(DRAWINGS)), DRAWINGS),
    [f"character{number:02d}" for number in range(len(DRAWINGS))],
    "Letters: 8 characters",
)
"""All pixels of a drawing are its row."""


def drawn(split: str, count: int = COUNT, seed: int = 0, **changes: str) -> Episodes:
    return OneShotTask("letters", CHARACTERS, 3).drawn(split, count, seed, **changes)


def shown(episodes: Episodes) -> np.ndarray:
    """The characters of each episode's images."""
    return CHARACTERS.characters[episodes.index.numpy()]


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1_623, (1_028, 172, 423)), (242, (153, 26, 63)), (10, (6, 2, 2)), (7, (3, 2, 2))],
)
def test_shares_are_the_published_ones(count, expected):
    assert shares(count) == expected


@pytest.mark.parametrize("stream", ["episodes", "theory"])
@pytest.mark.parametrize("seed", range(3))
def test_splits_share_no_character(seed, stream):
    split = CHARACTERS.split("letters", seed)
    assert sorted(np.concatenate(list(split.values()))) == list(range(8))
    for name, size in zip(SPLITS, shares(8), strict=True):
        assert len(split[name]) == size
        assert set(shown(drawn(name, seed=seed, stream=stream)).flat) == set(split[name])


def test_seed_and_task_split_the_characters_and_a_stream_draws_of_them():
    tasks_and_seeds = [(name, seed) for name in ("a", "b") for seed in (0, 1, 2)]
    splits = [CHARACTERS.split(name, seed).values() for name, seed in tasks_and_seeds]
    assert len({tuple(np.concatenate([*split])) for split in splits}) == 6
    assert not torch.equal(drawn("train").index, drawn("train", stream="theory").index)


@pytest.mark.parametrize("split", SPLITS)
def test_the_label_names_the_support_of_the_query_s_character(split):
    episodes, rows = drawn(split, seed=3), np.arange(COUNT)
    labels, index, of = episodes.labels.numpy(), episodes.index.numpy(), shown(episodes)
    np.testing.assert_array_equal(of[rows, labels], of[:, 2])
    assert (of[:, 0] != of[:, 1]).all()
    assert (index[rows, labels] != index[:, 2]).all()  # another drawing of it
    np.testing.assert_array_equal(episodes.foreground, np.eye(2, 3)[labels])


# Digits


def test_no_digit_is_in_two_splits_whatever_its_side(cache_dir):
    """Ten digits, and the same on their side, are twenty characters."""
    task = tasks.load("digits-one-shot", Places(cache_dir=str(cache_dir)))
    data = task.characters
    for number in range(0, 20, 2):
        upright, turned = (data.images[data.characters == number + side] for side in (0, 1))
        np.testing.assert_array_equal(turned, np.rot90(upright, axes=(1, 2)))
    for seed in range(20):
        parts = data.split(task.name, seed).values()
        assert [len(part) for part in parts] == [12, 4, 4]
        assert sorted(digit for part in parts for digit in set(part // 2)) == list(range(10))
