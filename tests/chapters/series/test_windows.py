"""Windows: cut without overlap, padded, standardised by what trains; and a network of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from chapters.series.ts_files import TsFile
from chapters.series.windows import TASK, VALIDATION_SHARE, cut, windows_of
from study import models
from study.errors import RequestError
from study.tasks.mosaics.base_segments import held_out


def file(*lengths: int, seed: int = 0, classes: tuple[str, ...] = ("a", "b")) -> TsFile:
    """Series (T, 2) of such lengths of each class, far from standardised."""
    rng = np.random.default_rng(seed)
    series = [5 + 3 * rng.normal(size=(length, 2)) for _ in classes for length in lengths]
    return TsFile("Made", classes, series, np.repeat(np.arange(len(classes)), len(lengths)))


@given(st.lists(st.integers(1, 30), min_size=1), st.integers(1, 9))
def test_windows_follow_each_other_and_the_rest_is_dropped(lengths, window):
    series = [np.random.default_rng(length).normal(size=(length, 2)) for length in lengths]
    values, sources = cut(series, window)
    for number, each in enumerate(series):
        windows = values[sources == number].reshape(-1, 3)
        steps = len(each) - len(each) % window if len(each) > window else len(each)
        assert len(windows) == max(window, steps)
        np.testing.assert_array_equal(windows[:steps, :2], each[:steps])
        assert windows[:steps, 2].all()
        assert not windows[steps:].any()


def test_a_channel_marks_padding_where_there_is_any():
    train, test = file(4, 8, 9), file(8, 3, seed=1)
    base = windows_of(train, test, window=4)
    assert (base.train_images[..., 2] == 1).all()
    (padded,) = base.test_images[base.test_sources == 1, :, 0]
    np.testing.assert_array_equal(padded[:, 2], [1, 1, 1, 0])
    assert not padded[3].any()
    assert "2 series are shorter" in base.notes[2]
    assert windows_of(train, test, window=3).train_images.shape[3] == 2


def test_channels_are_standardised_by_the_series_that_train():
    """So that neither test series nor those kept for validation reach the training."""
    train, test = file(*[6] * 8), file(*[6] * 4, seed=1)
    base = windows_of(train, test, window=3)
    kept = held_out(TASK, train.labels, VALIDATION_SHARE, np.arange(len(train.labels)))
    assert kept.sum() == 4
    trains = ~kept[base.train_sources]
    values = base.train_images[trains].reshape(-1, 2).astype(float)
    np.testing.assert_allclose(values.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(values.std(0), 1, rtol=1e-6)


def test_a_constant_channel_becomes_zero():
    """In the test series, too, where it is none, and whatever rounding makes of its mean."""
    train, test = file(*[7] * 4), file(*[7] * 4, seed=1)
    for each in train.series:
        each[:, 1] = 0.1
    base = windows_of(train, test, window=7)
    assert not base.train_images[..., 1].any()
    assert not base.test_images[..., 1].any()
    assert base.test_images[..., 0].all()


def test_the_digest_tells_windows_values_and_classes_apart():
    train, test = file(6, 9, 9), file(6, seed=1)
    other, more = train._replace(classes=("a", "c")), file(6, seed=2)
    found = {windows_of(train, test, window).digest for window in (3, 4, 3)}
    assert len({*found, windows_of(train, more, 3).digest, windows_of(other, test, 3).digest}) == 4


def test_a_window_longer_than_every_series_is_refused():
    with pytest.raises(RequestError, match=r"window=10 .* at most 9"):
        windows_of(file(*[6] * 4), file(9), 10)


def test_a_channel_that_hardly_varies_in_training_is_named():
    """Its values elsewhere would drown all others, or be infinite as float32."""
    train = file(8, 9, 12, 7)
    for each in train.series:
        each[:, 1] = 1 + 1e-9 * each[:, 1]
    with pytest.raises(RequestError, match="channel 2 "):
        windows_of(train, file(8, seed=1), window=4)


def test_equal_series_are_never_in_two_splits():
    """They count as one draw of the data, of which tests/contracts/test_tasks.py tells."""
    train, test = file(*[6] * 8), file(*[6] * 4, seed=1)
    twice = train._replace(series=2 * train.series, labels=np.tile(train.labels, 2))
    sources = windows_of(twice, test, window=3).train_sources
    np.testing.assert_array_equal(sources, np.tile(sources[: len(sources) // 2], 2))


# --- the network


@pytest.mark.parametrize("window", [3, 4, 5, 100])
def test_windows_of_any_length_go_through_one_dimensional_convolutions(window):
    """They see neighbouring steps, all channels and no padding, and as many steps as there are."""
    model = models.build("conv1d", "series", (2, window, 1), 3)
    assert model.focus(torch.zeros(5, 2, window, 1)).shape == (5,)
    assert model.classifier(torch.zeros(5, 2, window, 1)).shape == (5, 3)
    first, second = (each for each in model.focus if isinstance(each, nn.Conv2d))
    assert first.kernel_size == (3, 1)
    assert second.kernel_size == (min(3, window - 2), 1)
