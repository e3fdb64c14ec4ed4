"""Mosaics of windows: series are split and counted as wholes, options choose the classes."""

from __future__ import annotations

import numpy as np
import pytest

from chapters.series import task as series_tasks
from study import tasks
from study.cell import Options
from study.door import imported
from study.errors import RequestError
from study.tasks.mosaics.mosaics import Mosaics, MosaicTask
from study.tasks.sources.places import NO_PLACES, Places
from tests.chapters.series.ts_writers import made_up_series, write_pair, write_series
from tests.conftest import tiny_cell

OPTIONS = Options(foreground="1+2+3", background="rest", window=7)


def load(places: Places, **changes: object) -> MosaicTask:
    return tasks.load("series", places, Options(**{**OPTIONS, **changes}))


def split(task: MosaicTask, name: str) -> Mosaics:
    """2,000 mosaics."""
    sizes = dict.fromkeys(("n", "validation_size", "test_size"), 2_000)
    return task.splits(tiny_cell(task, architecture="conv1d", options=OPTIONS, **sizes))[name]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    return Places(str(write_series(tmp_path_factory.mktemp("series"), count=12)))


@pytest.fixture(scope="module")
def task(places: Places) -> MosaicTask:
    return load(places)


def test_an_image_that_verdicts_count_is_the_series_of_a_window(task):
    of = split(task, "train")
    window = of.index[of.foreground].long()
    series = of.base_images[:, 0]
    np.testing.assert_array_equal(series, task.base.train_sources[window])
    assert len(series.unique()) < len(window.unique())


def test_a_mosaic_is_shown_by_the_values_of_its_windows(task):
    of = split(task, "test")
    values = of.images[of.index[3].long()].numpy()[:, :, 0].transpose(0, 2, 1)
    shown = imported(of.modality.shown)(of, 3)["windows"]
    np.testing.assert_allclose(shown, values, rtol=0, atol=0.0051)


def test_a_class_must_be_left_for_the_background(places):
    with pytest.raises(RequestError, match="all 5 classes of Made"):
        load(places, foreground="1+2+3+4+5")


@pytest.mark.parametrize(
    ("counts", "message"), [((2, 1), r"series of 2 .* 3 train"), ((3, 0), r"series of 2 .* test")]
)
def test_a_class_of_too_few_series_is_named(counts, message, tmp_path):
    """However many windows they have."""
    train, test = (
        [*made_up_series(8, "1345", 1, [70], 0), *made_up_series(count, "2", 1, [70], 1)]
        for count in counts
    )
    with pytest.raises(RequestError, match=message):
        load(Places(str(write_pair(tmp_path, train, test, "12345"))))


@pytest.mark.skipif(not series_tasks.shipped(), reason="needs aeon, see `uv sync --extra series`")
def test_the_bundled_example_is_japanese_vowels():
    """As its authors describe it: 30 train and 24 to 88 test series of each of nine speakers."""
    base = load(NO_PLACES).base
    _, first = np.unique(base.train_sources, return_index=True)
    assert np.bincount(base.train_labels[first]).tolist() == [30] * 9
    _, first = np.unique(base.test_sources, return_index=True)
    counts = np.bincount(base.test_labels[first])
    assert counts.tolist() == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    assert base.digest == "dd52135195f691fe"
