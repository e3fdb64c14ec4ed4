"""Episodes: which characters train, what is drawn, and what the seed draws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import datasets

from study import tasks
from study.cell import Budget, Cell, Options, Schedule
from study.errors import RequestError
from study.tasks.base import SPLITS
from study.tasks.one_shot.characters import Characters, made_up_characters, shares
from study.tasks.one_shot.episodes import Episodes, OneShotTask
from study.tasks.sources.places import Places
from tests.made_up.cells import cell_of

COUNT = 600


def characters(drawings: tuple[int, ...] = (2, 5, 3, 9, 2, 4, 7, 2)) -> Characters:
    """Characters that have so many drawings; all pixels of a drawing are its row."""
    rows = np.arange(sum(drawings), dtype=np.uint8)
    return Characters.create(
        np.broadcast_to(rows[:, None, None], (len(rows), 4, 4)),
        np.repeat(np.arange(len(drawings)), drawings),
        [f"{'GN'[number % 2]}/character{number:02d}" for number in range(len(drawings))],
        title="Letters",
        whole=20,
        source="somewhere",
    )


def task(channels: int = 1) -> OneShotTask:
    return OneShotTask("letters", characters(), channels)


def cell(of: OneShotTask, **changes: object) -> Cell:
    values = {
        "task": of.name, "data_digest": of.facts.digest, "m": 3, "n": 40, "architecture": "any",
        "schedule": Schedule.single("soft", 0.1), "seed": 0, "batch_size": 5, "budget": Budget(1),
        "train_metrics_size": 10, "validation_size": 20, "test_size": 30,
        "evaluation_points": (1.0,), "pixels": 4,
    }  # fmt: skip
    return cell_of(**{**values, **changes})


def equal(one: Episodes, other: Episodes) -> bool:
    return torch.equal(one.index, other.index) and torch.equal(one.labels, other.labels)


# The characters


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1_623, (1_028, 172, 423)),
        (242, (153, 26, 63)),
        (10, (6, 2, 2)),
        (6, (2, 2, 2)),
        (7, (3, 2, 2)),
    ],
)
def test_shares_are_the_published_ones(count: int, expected: tuple[int, int, int]) -> None:
    assert shares(count) == expected


def test_every_split_has_two_characters_at_least() -> None:
    for count in range(6, 200):
        assert sum(shares(count)) == count
        assert min(shares(count)) >= 2


@pytest.mark.parametrize("seed", range(5))
def test_splits_share_no_character(seed: int) -> None:
    data = characters()
    split = data.split("letters", seed)
    assert list(split) == list(SPLITS)
    assert [len(split[name]) for name in SPLITS] == list(shares(8))
    assert sorted(np.concatenate(list(split.values()))) == list(range(8))
    drawn = {
        name: set(data.characters[task().drawn(name, COUNT, seed).index.numpy().flatten()])
        for name in SPLITS
    }
    assert drawn == {name: set(split[name]) for name in SPLITS}


def test_seed_and_task_split_the_characters() -> None:
    data = made_up_characters(4)
    of = [tuple(data.split(name, seed)["test"]) for name in ("a", "b") for seed in (0, 1, 2)]
    assert len(set(of)) == 6
    assert of[0] == tuple(data.split("a", 0)["test"])


def test_too_few_characters_are_refused() -> None:
    with pytest.raises(RequestError, match=r"somewhere holds 5 characters of Letters.*least 6"):
        characters((2,) * 5)


def test_a_character_with_one_drawing_is_refused() -> None:
    words = r"somewhere holds 1 drawing of N/character03, must hold at least 2"
    with pytest.raises(RequestError, match=words):
        characters((2, 2, 2, 1, 2, 2))


def test_the_note_counts_characters() -> None:
    assert task().facts.notes == (
        "Letters: 8 characters of 2 alphabets (of 20 in the whole data set); 4 train, 2 validate, "
        "2 test",
    )


# Episodes


@pytest.mark.parametrize("split", SPLITS)
def test_the_label_names_the_support_of_the_query_s_character(split: str) -> None:
    drawn = task().drawn(split, COUNT, 3)
    shown = characters().characters[drawn.index.numpy()]
    rows = np.arange(COUNT)
    labels = drawn.labels.numpy()
    np.testing.assert_array_equal(shown[rows, labels], shown[:, 2])
    assert (shown[:, 0] != shown[:, 1]).all()
    assert (drawn.index[rows, labels] != drawn.index[:, 2]).all()  # another drawing of it
    expected = np.zeros((COUNT, 3), bool)
    expected[rows, labels] = True
    np.testing.assert_array_equal(drawn.foreground.numpy(), expected)


def test_draws_are_uniform() -> None:
    """Labels; the ordered pairs of characters; the pairs of drawings of a query's character."""
    count = 40_000
    drawn = task().drawn("train", count, 0)
    assert abs(drawn.labels.double().mean().item() - 0.5) < 0.01
    shown = characters().characters[drawn.index.numpy()]
    pairs = np.unique(shown[:, :2], axis=0, return_counts=True)[1]
    assert len(pairs) == 4 * 3
    np.testing.assert_allclose(pairs / count, 1 / 12, rtol=0.1)
    index = drawn.index.numpy()
    chosen = shown[:, 2] == characters().split("letters", 0)["train"][0]
    matching = index[np.arange(count), drawn.labels.numpy()]
    drawings = np.stack([matching, index[:, 2]], axis=1)[chosen]
    pairs = np.unique(drawings, axis=0, return_counts=True)[1]
    _, each = characters().spans
    size = each[characters().split("letters", 0)["train"][0]]
    assert len(pairs) == size * (size - 1)
    np.testing.assert_allclose(pairs / chosen.sum(), 1 / len(pairs), rtol=0.2)


def test_a_batch_has_the_drawings_in_every_channel() -> None:
    drawn = task(channels=3).drawn("test", 20, 0)
    rows = torch.tensor([4, 0, 11])
    batch = drawn.batch(rows)
    assert batch.segments.shape == (3, 3, 3, 4, 4)
    assert batch.segments.dtype == torch.float32
    expected = (drawn.index[rows] / 255)[..., None, None, None].expand(3, 3, 3, 4, 4)
    torch.testing.assert_close(batch.segments, expected)
    assert torch.equal(batch.labels, drawn.labels[rows])
    assert torch.equal(batch.foreground, drawn.foreground[rows])
    assert drawn.bytes_each == batch.segments[0].numel() * 4


# The seed


def test_the_same_seed_draws_the_same_episodes() -> None:
    one, again, other = (task().drawn("train", COUNT, seed) for seed in (0, 0, 1))
    assert equal(one, again)
    assert not equal(one, other)


def test_another_stream_gives_further_episodes_of_the_same_characters() -> None:
    of = task()
    further = of.drawn("train", COUNT, 0, stream="theory")
    assert not equal(further, of.drawn("train", COUNT, 0))
    shown = characters().characters[further.index.numpy()]
    assert set(shown.flatten()) == set(characters().split("letters", 0)["train"])


def test_a_cell_has_the_splits_of_its_seed_and_sizes() -> None:
    of = task()
    splits = of.splits(cell(of, seed=4))
    assert {name: len(split) for name, split in splits.items()} == {
        "train": 40, "validation": 20, "test": 30,
    }  # fmt: skip
    for name, split in splits.items():
        assert equal(split, of.drawn(name, len(split), 4))
    again = of.splits(replace(cell(of, seed=4), n=41))
    assert again["test"] is splits["test"]
    assert again["validation"] is splits["validation"]
    assert again["train"].images is splits["test"].images


def test_another_m_than_three_is_refused() -> None:
    with pytest.raises(RequestError, match=r"letters has 3 images an episode, got m = 4"):
        task().splits(cell(task(), m=4))


# Digits


def test_digits_are_ten_characters_and_the_same_on_their_side(cache_dir: Path) -> None:
    of = tasks.load("digits-one-shot", Places(cache_dir=str(cache_dir)), Options(pixels=8))
    assert isinstance(of, OneShotTask)
    data = of.characters
    assert data.images.shape == (2 * 1_797, 8, 8)
    assert (data.images.min(), data.images.max()) == (0, 255)
    assert data.names[4:8] == ("2", "2 on its side", "3", "3 on its side")
    assert of.facts.notes == (
        "scikit-learn's digits: 20 characters; 12 train, 4 validate, 4 test",
    )
    bundled = datasets.load_digits()
    starts, counts = data.spans
    for digit in range(10):
        theirs = bundled.images[bundled.target == digit]
        for turns in (0, 1):
            character = 2 * digit + turns
            ours = data.images[starts[character] : starts[character] + counts[character]]
            expected = np.rot90(theirs, turns, axes=(1, 2))
            np.testing.assert_array_equal(np.rint(ours * (16 / 255)), expected)


@pytest.mark.parametrize("seed", range(20))
def test_no_digit_is_in_two_splits_whatever_its_side(cache_dir: Path, seed: int) -> None:
    of = tasks.load("digits-one-shot", Places(cache_dir=str(cache_dir)), Options(pixels=8))
    assert isinstance(of, OneShotTask)
    parts = of.characters.split(of.name, seed)
    digits = [set((part // 2).tolist()) for part in parts.values()]
    assert [len(part) for part in parts.values()] == [12, 4, 4]
    assert sum(map(len, digits)) == len(set.union(*digits)) == 10


def test_digits_can_be_resized(cache_dir: Path) -> None:
    small, large = (
        tasks.load("digits-one-shot", Places(cache_dir=str(cache_dir)), Options(pixels=pixels))
        for pixels in (8, 16)
    )
    assert large.facts.input_shape == (1, 16, 16)
    assert small.facts.digest != large.facts.digest


@pytest.mark.parametrize(("pixels", "rule"), [(3, "an integer >= 4"), (65, "at most 64")])
def test_pixels_out_of_range_are_refused(pixels: int, rule: str) -> None:
    with pytest.raises(RequestError, match=f"pixels must be {rule}, got {pixels}"):
        tasks.info("digits-one-shot", Options(pixels=pixels))
