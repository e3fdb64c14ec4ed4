"""Windows: cut without overlap, padded where they must be, standardised by what trains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from study.errors import RequestError
from study.tasks.mosaics.base_segments import held_out
from study.tasks.series.ts_file import TsFile
from study.tasks.series.windows import TASK, VALIDATION_SHARE, BaseWindows, cut, windows_of

CLASSES = ("a", "b")


def file(
    lengths: tuple[int, ...],
    seed: int = 0,
    classes: tuple[str, ...] = CLASSES,
    dimensions: int = 2,
) -> TsFile:
    """Series of such lengths of each class, far from standardised."""
    rng = np.random.default_rng(seed)
    series = tuple(
        5 + 3 * rng.normal(size=(length, dimensions)) for _ in classes for length in lengths
    )
    labels = np.repeat(np.arange(len(classes)), len(lengths))
    return TsFile(Path("Made_TRAIN.ts"), classes, series, labels)


def changed(of: TsFile, series: tuple[np.ndarray, ...]) -> TsFile:
    return TsFile(of.path, of.classes, series, of.labels)


def arrays(base: BaseWindows) -> list[np.ndarray]:
    return [base.train_images, base.train_labels, base.train_sources,
            base.test_images, base.test_labels, base.test_sources]  # fmt: skip


def test_windows_follow_each_other_and_the_rest_is_dropped() -> None:
    series = [np.arange(2.0 * length).reshape(length, 2) for length in (3, 7, 13, 14)]
    values, real, sources = cut(series, window=7)
    assert sources.tolist() == [0, 1, 2, 3, 3]
    np.testing.assert_array_equal(values[1], series[1])
    np.testing.assert_array_equal(values[2], series[2][:7])
    np.testing.assert_array_equal(values[3:].reshape(14, 2), series[3])
    assert real[1:].all()
    np.testing.assert_array_equal(values[0, :3], series[0])
    assert real[0].tolist() == [True] * 3 + [False] * 4
    assert not values[0, 3:].any()


def test_windows_carry_the_label_and_the_number_of_their_series() -> None:
    base = windows_of(file((4, 9, 12)), file((8,), seed=1), window=4)
    assert base.train_images.shape == (12, 4, 1, 2)
    assert base.train_images.dtype == np.float32
    assert base.train_sources.tolist() == [0, 1, 1, 2, 2, 2, 3, 4, 4, 5, 5, 5]
    assert base.train_labels.tolist() == [0] * 6 + [1] * 6
    assert base.test_sources.tolist() == [0, 0, 1, 1]
    assert base.class_names == CLASSES
    assert base.notes[0] == (
        "Made: 6 train and 2 test series, channels 2, steps 4 to 12; cut into 12 and 4 windows of "
        "4 steps, which leave out 3.0 % of the steps, at the ends of series"
    )
    assert "images are series" in base.notes[1]


def test_a_channel_marks_padding_where_there_is_any() -> None:
    train, test = file((4, 8, 9)), file((8, 3), seed=1)
    base = windows_of(train, test, window=4)
    assert base.train_images.shape[3] == base.test_images.shape[3] == 3
    assert (base.train_images[..., 2] == 1).all()
    padded = base.test_images[base.test_sources == 1, :, 0]
    np.testing.assert_array_equal(padded[0, :, 2], [1, 1, 1, 0])
    assert not padded[0, 3].any()
    assert base.notes[2].startswith("2 series are shorter than a window and padded with zeros;")
    assert windows_of(train, test, window=3).train_images.shape[3] == 2


def test_channels_are_standardised_by_the_series_that_train() -> None:
    """So that neither test series nor those kept for validation reach the training."""
    train, test = file((6,) * 8), file((6,) * 4, seed=1)
    base = windows_of(train, test, window=3)
    kept = held_out(TASK, train.labels, VALIDATION_SHARE, np.arange(len(train.labels)))
    assert kept.sum() == 4
    trains = base.train_images[~kept[base.train_sources]].reshape(-1, 2).astype(float)
    np.testing.assert_allclose(trains.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(trains.std(0), 1, rtol=1e-6)

    others = tuple(
        100 * each if held else each for each, held in zip(train.series, kept, strict=True)
    )
    other = windows_of(changed(train, others), changed(test, tuple(9 * e for e in test.series)), 3)
    still = ~kept[base.train_sources]
    np.testing.assert_array_equal(other.train_images[still], base.train_images[still])
    assert not np.array_equal(other.test_images, base.test_images)


def test_a_constant_channel_becomes_zero() -> None:
    """In the test series, too, where it is none, and whatever rounding makes of its mean."""
    train, test = file((7,) * 4), file((7,) * 4, seed=1)
    for each in train.series:
        each[:, 1] = 0.1
    base = windows_of(train, test, window=7)
    assert not base.train_images[..., 1].any()
    assert not base.test_images[..., 1].any()
    assert base.test_images[..., 0].all()


def test_the_digest_tells_windows_values_and_classes_apart() -> None:
    train, test = file((6, 9, 9)), file((6,), seed=1)
    same = windows_of(train, test, 3).digest
    assert same == windows_of(file((6, 9, 9)), test, 3).digest
    more = tuple(2 * each for each in test.series)
    others = {
        windows_of(train, test, 4).digest,
        windows_of(train, changed(test, more), 3).digest,
        windows_of(file((6, 9, 9), classes=("a", "c")), file((6,), 1, ("a", "c")), 3).digest,
    }
    assert len({same, *others}) == 4


def test_classes_may_be_in_another_order_in_the_test_file() -> None:
    train, test = file((6,) * 4), file((6,), seed=1)
    turned = TsFile(test.path, ("b", "a"), test.series, 1 - test.labels)
    ours, theirs = windows_of(train, turned, 3), windows_of(train, test, 3)
    assert all(np.array_equal(a, b) for a, b in zip(arrays(ours), arrays(theirs), strict=True))


def test_a_window_longer_than_every_series_is_refused() -> None:
    with pytest.raises(RequestError, match=r"window=10 is longer than every series .* at most 9"):
        windows_of(file((6,) * 4), file((9,)), 10)


def test_a_channel_that_hardly_varies_in_training_is_named() -> None:
    """Its values elsewhere would drown all others, or be infinite as float32."""
    train, test = file((8, 9, 12, 7)), file((8,), seed=1)
    flat = tuple(np.column_stack([each[:, 0], 1 + 1e-9 * each[:, 1]]) for each in train.series)
    with pytest.raises(RequestError, match=r"a value of channel 2 lies .* Leave the channel out"):
        windows_of(changed(train, flat), test, window=4)


def test_equal_series_are_never_in_two_splits() -> None:
    """They count as one draw of the data, and those that are in both files are counted."""
    train, test = file((6,) * 8), file((6,) * 4, seed=1)
    twice = TsFile(train.path, CLASSES, (*train.series, *train.series), np.tile(train.labels, 2))
    base = windows_of(twice, test, window=3)
    assert len(np.unique(base.train_sources)) == 16
    kept = held_out(TASK, base.train_labels, VALIDATION_SHARE, base.train_sources)
    of_train, held = (
        {each.tobytes() for each in base.train_images[rows]} for rows in (~kept, kept)
    )
    assert (len(of_train & held), len(held)) == (0, 2 * 4)
    assert not [note for note in base.notes if "equal" in note]
    mixed = changed(test, (*test.series[:5], *train.series[:3]))
    assert (
        windows_of(train, mixed, window=3)
        .notes[-1]
        .startswith(
            "test series that are equal to series that train or validate: 3 of 8, the first "
        )
    )
