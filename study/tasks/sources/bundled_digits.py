"""The 1,797 images of digits that scikit-learn ships."""

from __future__ import annotations

import numpy as np

from study.errors import RequestError

MAX_VALUE = 16
"""Of a pixel."""


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
