"""Digits: the 1,797 images of 8 x 8 pixels that scikit-learn ships. Nothing is downloaded."""

from __future__ import annotations

import numpy as np

from study.cell.seeds import share_of_each
from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.sources.bundled_digits import MAX_VALUE, read_digits
from study.tasks.sources.places import NO_PLACES, Places

DIGITS_CLASSES = tuple("0123456789")
DIGITS_FOREGROUND = ("3", "5", "8")

TEST_SHARE = 0.2
"""Of the images of each class."""
VALIDATION_SHARE = 0.25
"""Of the train images of each class: so splits have about 60, 20 and 20 % of the images, of which
there are few."""
_PREPARED = "digits-v3"
"""Name of the prepared form; raise the number when the images or their split change."""


def load_digits(places: Places = NO_PLACES) -> BaseImages:
    """The digits, about 80 % of each class for training and validation and 20 % for testing.

    scikit-learn is needed only if the prepared form is missing.

    Args:
        places: of the cache, for the prepared form.

    Raises:
        RequestError: scikit-learn is needed and not installed.
    """
    return prepared(places.cache / "prepared" / _PREPARED, _read)


def _read() -> BaseImages:
    images, labels = read_digits()
    images = images[..., None]
    test = np.zeros(len(labels), bool)
    test[share_of_each(labels.tolist(), TEST_SHARE, "digits", "split")] = True
    return BaseImages.create(
        images[~test],
        labels[~test],
        images[test],
        labels[test],
        class_names=DIGITS_CLASSES,
        max_value=MAX_VALUE,
        source="scikit-learn's digits",
    )
