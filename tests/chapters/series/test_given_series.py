"""Series that a person gives are cut and standardised as those that trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from chapters.series.given_series import given_series
from chapters.series.ts_files import read_pair
from study import tasks
from study.cell import Options
from study.errors import RequestError
from study.tasks.mosaics.mosaics import MosaicTask
from study.tasks.sources.places import Places
from study.tasks.task import carried
from tests.chapters.series.ts_writers import write_series

WINDOW = 7


def opened(folder: Path, *lengths: int) -> MosaicTask:
    options = Options(foreground="1+2+3", background="rest", window=WINDOW)
    task = tasks.load("series", Places(str(write_series(folder, lengths))), options)
    assert isinstance(task, MosaicTask)
    return task


@pytest.mark.parametrize("lengths", [(7, 15, 21), (4, 15)], ids=["whole", "some are padded"])
def test_the_windows_of_a_series_are_those_of_its_task(lengths, tmp_path):
    task = opened(tmp_path, *lengths)
    _, test = read_pair(tmp_path)
    facts = carried(task)
    expected = torch.from_numpy(task.base.test_images).permute(0, 3, 1, 2)
    (windows,) = given_series(facts, [each[:WINDOW] for each in test.series], None)
    firsts = np.unique(task.base.test_sources, return_index=True)[1]
    np.testing.assert_array_equal(windows.segments, expected[firsts])
    for number, each in enumerate(test.series):
        (asked,) = given_series(facts, each, None)
        mine = expected[task.base.test_sources == number]
        np.testing.assert_array_equal(asked.segments, mine)
        assert np.shape(asked.shown()["windows"]) == (len(mine), facts["input_shape"][0], WINDOW)
        assert [*asked.parts] == [*range(len(mine))]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (
            (6, 12),
            r"^series 0 cannot be read \(its shape is \(6, 12\)\). Give windows of 7 steps x 12",
        ),
        ((7, 11), r"^series 0 cannot be read \(its shape is \(7, 11\)\).* x 12 channels"),
        ((7,), r"^series 0 cannot be read \(its shape is \(7,\)\)"),
        (
            (2, 8, 12),
            r"^series 0 cannot be read \(its shape is \(8, 12\)\). Give windows of 7 steps x 12",
        ),
        ((2, 0, 7, 12), "^an empty list"),
    ],
)
def test_what_fits_no_window_is_refused(shape, message, tmp_path):
    facts = carried(opened(tmp_path, 7, 15))
    with pytest.raises(RequestError, match=message):
        given_series(facts, np.zeros(shape), None)


def test_what_is_no_number_is_refused(tmp_path):
    facts = carried(opened(tmp_path, 7))
    for bad in (np.full((7, 12), np.nan), "series.csv", None):
        with pytest.raises(RequestError, match=r"^series 0 cannot be read"):
            given_series(facts, bad, None)
