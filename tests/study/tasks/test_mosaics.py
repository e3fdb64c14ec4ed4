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
from study.tasks.task import SPLITS
from tests.conftest import tiny_cell

M = 6


@pytest.fixture(scope="module")
def cell(digits: MosaicTask) -> Cell:
    return tiny_cell(digits, m=M, n=4_000, validation_size=3_000, test_size=3_000)


@pytest.fixture(scope="module")
def splits(digits: MosaicTask, cell: Cell) -> dict[str, Mosaics]:
    return digits.splits(cell)


def classes_of(task: MosaicTask, mosaics: Mosaics, split: str = "train") -> np.ndarray:
    """(n, m) the name of each segment's class."""
    labels = task.base.test_labels if split == "test" else task.base.train_labels
    return np.array(task.base.class_names)[labels[mosaics.index.numpy()]]


def labels_of(task: MosaicTask, mosaics: Mosaics) -> np.ndarray:
    """(n, 1) the name of each mosaic's class."""
    return np.array(task.foreground)[mosaics.labels.numpy()][:, None]


def test_shared_base_cuts_all_splits_from_the_train_images(digits, cell):
    splits = digits.splits(dataclasses.replace(cell, split="shared-base"))
    assert len({each.images.data_ptr() for each in splits.values()}) == 1
    train, test = (set(splits[split].index.unique().tolist()) for split in ("train", "test"))
    assert train & test


@pytest.mark.parametrize("share", [0.1, 0.25])
def test_validation_images_are_a_share_of_each_class(digits, share):
    kept = MosaicTask("digits", digits.base, digits.foreground, share, ("0",)).kept
    for label in range(10):
        rows = digits.base.train_labels == label
        assert kept[rows].sum() == round(share * rows.sum())


def test_a_mosaic_costs_an_index_a_segment(digits):
    """n = 40,000 mosaics of m = 20 take 3.2 MB; images are held once."""
    one, other = (digits.splits(tiny_cell(digits, seed=seed))["train"] for seed in (0, 1))
    assert one.index.element_size() == 4
    assert one.images is other.images


@pytest.mark.parametrize(
    ("name", "share", "least"), [("b", 0.1, 6), ("b", 0.25, 3), ("the background", 0.1, 6)]
)
def test_too_few_images_of_a_class_are_named(name, share, least):
    """The message names the least number that suffices, and it does."""

    def task(count: int) -> MosaicTask:
        counts = {"a": 20, "b": 20, "the background": 20, name: count}
        labels = np.repeat(range(3), [*counts.values()])
        images = np.zeros((len(labels), 8, 8, 1), np.uint8)
        told = {"class_names": tuple(counts), "max_value": 16, "source": "made-up images"}
        base = BaseImages.create(images, labels, images, labels, **told)
        return MosaicTask("digits", base, ("a", "b"), share, ("the background",))

    with pytest.raises(RequestError, match=rf"of {name} .* {100 * share:g} % .* least {least} tr"):
        task(least - 1)
    task(least)


@pytest.mark.parametrize(
    ("split", "foregrounds", "distractors"),
    [
        *((split, 1, 0) for split in SPLITS),
        ("train", 2, 0),
        ("train", 4, 0),
        ("train", 1, 1),
        ("train", 2, 3),
    ],
)
def test_foregrounds_and_distractors_are_at_uniform_positions(
    digits, cell, split, foregrounds, distractors
):
    """As many as asked for, distractors of all other foreground classes; else background."""
    other = dataclasses.replace(cell, foregrounds=foregrounds, distractors=distractors)
    mosaics = digits.splits(other)[split]
    classes, labels = classes_of(digits, mosaics, split), labels_of(digits, mosaics)
    is_label = classes == labels
    assert (is_label == mosaics.foreground.numpy()).all()
    assert (is_label.sum(axis=1) == foregrounds).all()
    joint = np.zeros((3, M))
    np.add.at(joint, mosaics.labels.numpy(), is_label / foregrounds)
    assert chisquare(joint.ravel()).pvalue > 1e-4
    is_foreground = np.isin(classes, digits.foreground)
    is_other = is_foreground & ~is_label
    assert (is_other.sum(axis=1) == distractors).all()
    background = set(digits.base.class_names) - set(digits.foreground)
    assert set(classes[~is_foreground]) == background
    if distractors:
        assert chisquare(is_other.sum(axis=0)).pvalue > 1e-4
        of_first = classes[is_other & (labels == digits.foreground[0])]
        assert chisquare(np.unique(of_first, return_counts=True)[1]).pvalue > 1e-4
    if foregrounds > 1:  # no mosaic is a draw of one image
        assert mosaics.base_images is None
    else:
        for part, mask in ((slice(1), mosaics.foreground), (slice(1, M), ~mosaics.foreground)):
            assert torch.equal(mosaics.base_images[:, part].flatten(), mosaics.index[mask].long())


def test_further_segments_leave_the_first_as_they_are(digits, cell):
    """So settings are paired: of one seed, labels and the first foreground are the same."""
    one, more = (
        digits.splits(dataclasses.replace(cell, distractors=count))["train"] for count in (0, 1)
    )
    assert torch.equal(one.labels, more.labels)
    assert torch.equal(one.foreground, more.foreground)
    assert (one.index != more.index).sum(dim=1).max() == 1


def test_classes_may_be_chosen(cell):
    task = tasks.load("digits", options=Options(foreground="9+0", background="1+7"))
    mosaics = task.splits(cell)["train"]
    classes, foreground = classes_of(task, mosaics), mosaics.foreground.numpy()
    assert task.foreground == ("9", "0")
    assert ((classes == labels_of(task, mosaics)) == foreground).all()
    assert set(classes[~foreground]) == {"1", "7"}
