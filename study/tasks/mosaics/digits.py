"""Digits: the 1,797 images of 8 x 8 pixels that scikit-learn ships. Nothing is downloaded."""

from __future__ import annotations

import numpy as np

from study.cell.seeds import share_of_each
from study.errors import RequestError
from study.tasks.mosaics.base_images import BaseImages, prepared
from study.tasks.sources.places import NO_PLACES, Places

DIGITS_CLASSES = tuple("0123456789")
DIGITS_FOREGROUND = ("3", "5", "8")

MAX_VALUE = 16
"""Of a pixel."""

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
    return prepared(places.cache / "prepared" / _PREPARED, _divided)


def _divided() -> BaseImages:
    images, labels = read_digits()
    images = images[..., None]
    drawn = share_of_each(labels.tolist(), TEST_SHARE, "digits", "split")
    test = np.isin(np.arange(len(labels)), drawn)
    return BaseImages.create(
        images[~test],
        labels[~test],
        images[test],
        labels[test],
        class_names=DIGITS_CLASSES,
        max_value=MAX_VALUE,
        source="scikit-learn's digits",
    )


def read_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 8, 8) uint8 in [0, `MAX_VALUE`], ink high; labels (1797,) int64 in [0, 10).

    Raises:
        RequestError: scikit-learn is not installed.
    """
    try:
        from sklearn import datasets
    except ImportError as error:
        raise RequestError(
            f"digits ships with scikit-learn, which cannot be imported ({error}). "
            "Install it with `pip install scikit-learn`."
        ) from error
    digits = datasets.load_digits()
    return digits.images.astype(np.uint8), digits.target.astype(np.int64)
