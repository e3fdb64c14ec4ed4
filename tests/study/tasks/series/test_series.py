"""Mosaics of windows: series are split and counted as wholes, options choose the classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from study import tasks
from study.cell import Cell, Options, Schedule
from study.errors import RequestError
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.series import japanese_vowels
from study.tasks.sources.places import NO_PLACES, Places
from study.train.steps.loop import train
from tests.conftest import tiny_cell
from tests.made_up.series import Labelled, made_up_series, write_pair, write_series

OPTIONS = Options(foreground="1+2+3", background="rest", window=7)
CLASSES = "12345"

needs_aeon = pytest.mark.skipif(
    japanese_vowels.shipped() is None, reason="needs aeon, which `uv sync --extra series` installs"
)


def load(places: Places, **changes: object) -> MosaicTask:
    task = tasks.load("series", places, Options(**{**OPTIONS, **changes}))
    assert isinstance(task, MosaicTask)
    return task


def series_cell(task: MosaicTask, **changes: object) -> Cell:
    return tiny_cell(task, **{"architecture": "conv1d", "options": OPTIONS, **changes})


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(str(write_series(tmp_path_factory.mktemp("series"), count=12)))


@pytest.fixture(scope="module")
def task(places: Places) -> MosaicTask:
    return load(places)


def test_no_series_is_in_two_splits(task: MosaicTask) -> None:
    """Of each class a quarter of the train series validates, with all of its windows."""
    splits = task.splits(series_cell(task, n=2_000, validation_size=2_000, test_size=2_000))
    used = {
        name: set(split.sources[split.index.unique().long()].tolist())
        for name, split in splits.items()
    }
    base = task.base
    assert not used["train"] & used["validation"]
    assert used["train"] | used["validation"] == set(base.train_sources.tolist())
    labels = base.train_labels[np.unique(base.train_sources, return_index=True)[1]]
    assert np.bincount(labels[sorted(used["validation"])]).tolist() == [3] * 5
    assert splits["test"].images.data_ptr() != splits["train"].images.data_ptr()
    assert used["test"] == set(base.test_sources.tolist())


def test_an_image_that_verdicts_count_is_the_series_of_a_window(task: MosaicTask) -> None:
    split = task.splits(series_cell(task, n=500))["train"]
    rows = np.arange(len(split))
    window = split.index.numpy()[rows, split.foreground.int().argmax(1).numpy()]
    series = split.base_images[:, 0].tolist()
    assert series == task.base.train_sources[window].tolist()
    assert len(set(series)) < len(set(window.tolist()))


@pytest.mark.parametrize(("background", "expected"), [("rest", "45"), ("5", "5")])
def test_segments_are_of_the_classes_that_options_name(
    places: Places, background: str, expected: str
) -> None:
    changes = {"foreground": "3+1", "background": background}
    task = load(places, **changes)
    split = task.splits(series_cell(task, n=300))["train"]
    names = np.array(task.base.class_names)[task.base.train_labels[split.index.numpy()]]
    foreground = split.foreground.numpy()
    assert (names[foreground] == np.array(["3", "1"])[split.labels.numpy()]).all()
    others = {"2", *expected} if background == "rest" else {*expected}
    assert set(names[~foreground]) == others


def test_segments_are_the_standardised_windows(task: MosaicTask) -> None:
    split = task.splits(series_cell(task))["train"]
    segments = split.batch(split.labels.new_tensor([4, 2])).segments
    assert segments.shape == (2, split.index.shape[1], 12, 7, 1)
    images = task.base.train_images[split.index[[4, 2]].numpy()]
    np.testing.assert_array_equal(segments, images.transpose(0, 1, 4, 2, 3))


def test_the_number_of_classes_is_known_without_the_data() -> None:
    info = tasks.info("series", Options(**{**OPTIONS, "foreground": "walk+sit+run+lie"}))
    assert info.classes == ("walk", "sit", "run", "lie")
    assert info.num_classes == 4


@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml"])
def test_a_trained_cell_is_tested_on_every_series(task: MosaicTask, paradigm: str) -> None:
    cell = series_cell(task, schedule=Schedule.single(paradigm, 0.03), test_size=500)
    outcome = train(cell, task)
    assert outcome.status == "done"
    series = task.base.test_sources[task.base.test_labels < 3]
    assert set(task.splits(cell)["test"].base_images[:, 0].tolist()) == set(series.tolist())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"foreground": "1"},
            r"foreground must name two classes or more, got '1'\. Join .* by \+",
        ),
        ({"foreground": "1+2+1"}, r"foreground=1\+2\+1 has a class twice\. Name each class once"),
        ({"foreground": "1++2"}, r"foreground=1\+\+2 has an empty name\."),
        (
            {"background": "3+4"},
            r"the class '3' is in foreground=1\+2\+3 and in background=3\+4\.",
        ),
        ({"foreground": "1+33"}, r"unknown class '33'\. Did you mean '3'\? .* foreground=A\+B"),
        ({"background": "4+6"}, r"unknown class '6'\. Valid: 1, 2, 3, 4, 5\. .* background=A\+B"),
        (
            {"foreground": "1+2+3+4+5"},
            r"all 5 classes of Made are in the foreground, so that none",
        ),
        ({"window": 2}, r"window must be an integer >= 3, got 2\. Change it with --set"),
        ({"window": 22}, r"window=22 is longer than every series .* at most 21 with --set window"),
    ],
)
def test_options_that_cannot_be_used_are_refused_in_one_line(
    places: Places, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        load(places, **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("train_count", "test_count", "message"),
    [
        (2, 1, r"too few series of 2 .* validation mosaics .*25 % .* at least 3 train series and"),
        (3, 0, r"too few series of 2 in the data: none is left for the test mosaics"),
    ],
)
def test_a_class_of_too_few_series_is_named(
    train_count: int, test_count: int, message: str, tmp_path: Path
) -> None:
    """However many windows they have."""

    def of(count: int, seed: int) -> list[Labelled]:
        others = made_up_series(8, "1345", dimensions=1, lengths=(70,), seed=seed)
        return [*others, *made_up_series(count, "2", dimensions=1, lengths=(70,), seed=seed + 2)]

    folder = write_pair(tmp_path, of(train_count, 0), of(test_count, 1), CLASSES)
    with pytest.raises(RequestError, match=message) as caught:
        load(Places(str(folder)))
    assert "\n" not in str(caught.value)


@needs_aeon
def test_the_bundled_example_is_japanese_vowels() -> None:
    """As its authors describe it: 30 train and 24 to 88 test series of each of nine speakers."""
    base = load(NO_PLACES).base
    assert tasks.at_hand("series")
    for sources, labels, counts in (
        (base.train_sources, base.train_labels, [30] * 9),
        (base.test_sources, base.test_labels, [31, 35, 88, 44, 29, 24, 40, 50, 29]),
    ):
        first = np.unique(sources, return_index=True)[1]
        assert np.bincount(labels[first]).tolist() == counts
    assert "channels 12, steps 7 to 29;" in base.notes[0]
    assert base.digest == "dd52135195f691fe"
