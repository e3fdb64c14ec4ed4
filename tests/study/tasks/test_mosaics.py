"""Mosaics: what the definition of section 2.4 promises, on real digits and made-up images."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from study import tasks
from study.cell import Cell, Options
from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.mosaics import Mosaics, MosaicTask
from tests.conftest import tiny_cell

M = 6


@pytest.fixture(scope="module")
def cell(digits: MosaicTask) -> Cell:
    return tiny_cell(digits, m=M, n=4_000, validation_size=3_000, test_size=3_000)


@pytest.fixture(scope="module")
def splits(digits: MosaicTask, cell: Cell) -> dict[str, Mosaics]:
    return digits.splits(cell)


def base_labels(digits: MosaicTask, split: str) -> np.ndarray:
    base = digits.base
    return base.test_labels if split == "test" else base.train_labels


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_labels_and_positions_are_uniform(splits: dict[str, Mosaics], split: str) -> None:
    mosaics = splits[split]
    joint = np.zeros((3, M))
    np.add.at(joint, (mosaics.labels.numpy(), mosaics.foreground.int().argmax(1).numpy()), 1)
    assert chisquare(joint.ravel()).pvalue > 1e-4


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_foreground_is_at_z_and_nowhere_else(
    digits: MosaicTask, splits: dict[str, Mosaics], split: str
) -> None:
    mosaics = splits[split]
    classes = base_labels(digits, split)[mosaics.index.numpy()]
    names = np.array(digits.base.class_names)[classes]
    rows = np.arange(len(mosaics))
    z = mosaics.foreground.int().argmax(1).numpy()
    expected = np.array(digits.foreground)[mosaics.labels.numpy()]
    assert (names[rows, z] == expected).all()
    background = np.ones(classes.shape, bool)
    background[rows, z] = False
    assert not np.isin(names[background], digits.foreground).any()
    seen = set(names[background])
    assert seen == set(digits.base.class_names) - set(digits.foreground)


def test_splits_have_no_base_image_in_common(splits: dict[str, Mosaics]) -> None:
    train, validation = splits["train"], splits["validation"]
    assert not set(train.index.unique().tolist()) & set(validation.index.unique().tolist())
    assert train.images.data_ptr() != splits["test"].images.data_ptr()


def test_shared_base_cuts_all_splits_from_the_train_images(digits: MosaicTask, cell: Cell) -> None:
    splits = digits.splits(dataclasses.replace(cell, split="shared-base"))
    assert len({each.images.data_ptr() for each in splits.values()}) == 1
    assert set(splits["train"].index.unique().tolist()) & set(
        splits["test"].index.unique().tolist()
    )


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_validation_images_are_a_share_of_each_class(digits: MosaicTask, share: float) -> None:
    held_out = MosaicTask("digits", digits.base, digits.foreground, share)._held_out()
    for label in range(10):
        rows = digits.base.train_labels == label
        assert held_out[rows].sum() == round(share * rows.sum())


def test_a_batch_holds_the_normalised_pixels_of_its_rows(
    digits: MosaicTask, splits: dict[str, Mosaics]
) -> None:
    rows = torch.tensor([5, 0, 17])
    batch = splits["train"].batch(rows)
    assert batch.segments.shape == (3, M, 1, 8, 8)
    assert batch.mask is None
    for position, row in enumerate(rows.tolist()):
        for j in range(M):
            image = digits.base.train_images[splits["train"].index[row, j]]
            expected = (image.transpose(2, 0, 1) / np.float32(16) - 0.5) / 0.5
            np.testing.assert_allclose(batch.segments[position, j], expected, atol=1e-6)
    assert batch.foreground.sum(dim=1).tolist() == [1, 1, 1]
    z = splits["train"].foreground[rows].int().argmax(1)
    assert batch.foreground.int().argmax(dim=1).tolist() == z.tolist()


def test_a_mosaic_costs_an_index_a_segment(digits: MosaicTask) -> None:
    """n = 40,000 mosaics of m = 20 take 3.2 MB, whatever the size of an image."""
    splits = digits.splits(tiny_cell(digits, m=20, n=40_000))
    table = splits["train"].index
    assert table.numel() * table.element_size() == 40_000 * 20 * 4
    assert splits["train"].images is digits.splits(tiny_cell(digits, seed=1))["train"].images


def made_up(images_a_class: dict[str, int]) -> BaseImages:
    names = tuple(images_a_class)
    labels = np.repeat(np.arange(len(names)), list(images_a_class.values()))
    images = np.zeros((len(labels), 8, 8, 1), np.uint8)
    return BaseImages.create(
        images, labels, images, labels, class_names=names, max_value=16, source="made-up images"
    )


@pytest.mark.parametrize(("share", "least"), [(0.1, 6), (0.25, 3)])
def test_too_few_images_of_a_foreground_class_are_named(share: float, least: int) -> None:
    """The message names the least number that suffices, and it does."""
    few, enough = (made_up({"a": 20, "b": each, "rest": 20}) for each in (least - 1, least))
    too_few = (
        rf"of b in the data: none .* validation .* {100 * share:g} %.* at least {least} train"
    )
    with pytest.raises(RequestError, match=too_few):
        MosaicTask("digits", few, ("a", "b"), share)
    MosaicTask("digits", enough, ("a", "b"), share)


def test_too_few_background_images_are_named() -> None:
    with pytest.raises(RequestError, match="too few images of the background"):
        MosaicTask("digits", made_up({"a": 20, "b": 20, "rest": 1}), ("a", "b"))


@pytest.mark.parametrize(("foregrounds", "distractors"), [(2, 0), (4, 0), (1, 1), (2, 3)])
def test_several_foregrounds_and_distractors(
    digits: MosaicTask, cell: Cell, foregrounds: int, distractors: int
) -> None:
    """As many as asked for, at uniform positions, distractors of all other foreground classes."""
    other = dataclasses.replace(cell, foregrounds=foregrounds, distractors=distractors)
    mosaics = digits.splits(other)["train"]
    names = np.array(digits.base.class_names)[base_labels(digits, "train")[mosaics.index.numpy()]]
    labels = np.array(digits.foreground)[mosaics.labels.numpy()]
    is_label = names == labels[:, None]
    assert (is_label == mosaics.foreground.numpy()).all()
    assert (is_label.sum(axis=1) == foregrounds).all()
    is_other = np.isin(names, digits.foreground) & ~is_label
    assert (is_other.sum(axis=1) == distractors).all()
    assert chisquare(is_label.sum(axis=0)).pvalue > 1e-4
    if distractors:
        assert chisquare(is_other.sum(axis=0)).pvalue > 1e-4
        of_first = names[labels == digits.foreground[0]][is_other[labels == digits.foreground[0]]]
        assert chisquare(np.unique(of_first, return_counts=True)[1]).pvalue > 1e-4
    if foregrounds > 1:  # no mosaic is a draw of one image
        assert mosaics.base_images is None
    else:
        of_foreground, others = mosaics.base_images[:, :1], mosaics.base_images[:, 1:]
        assert torch.equal(of_foreground.flatten(), mosaics.index[mosaics.foreground].long())
        assert torch.equal(others.flatten(), mosaics.index[~mosaics.foreground].long())


def test_further_segments_leave_the_first_as_they_are(digits: MosaicTask, cell: Cell) -> None:
    """So settings are paired: of one seed, labels and the first foreground are the same."""
    one, more = (
        digits.splits(each)["train"] for each in (cell, dataclasses.replace(cell, distractors=1))
    )
    assert torch.equal(one.labels, more.labels)
    assert torch.equal(one.foreground, more.foreground)
    assert (one.index != more.index).sum(dim=1).max() == 1


def test_classes_may_be_chosen(cell: Cell) -> None:
    options = Options(foreground="9+0", background="1+7")
    task = tasks.load("digits", options=options)
    assert task.num_classes == 2
    chosen = dataclasses.replace(cell, options=options)
    mosaics = task.splits(chosen)["train"]
    names = np.array(task.base.class_names)[base_labels(task, "train")[mosaics.index.numpy()]]
    z = mosaics.foreground.numpy()
    assert (names[z] == np.array(["9", "0"])[mosaics.labels.numpy()]).all()
    assert set(names[~z]) == {"1", "7"}


def test_without_a_choice_all_others_are_background(digits: MosaicTask) -> None:
    """The classes that the paper's split names, written out, give the same mosaics."""
    named = tasks.load("digits", options=Options(foreground="3+5+8", background="rest"))
    one, other = (task.splits(tiny_cell(digits))["train"] for task in (digits, named))
    assert torch.equal(one.index, other.index)
