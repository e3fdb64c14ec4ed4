"""The linear orthogonal setting (section 4) as base images, so as a task of mosaics."""

from __future__ import annotations

import functools

import numpy as np

from study.tasks.mosaics.base_images import BaseImages

BACKGROUND_AXES = 8
LARGEST_NUM_CLASSES = 10_000

_COPIES = 10  # of each vector, as a tenth of each class is kept for validation
_MAX_VALUE = 2  # pixels 0, 1, 2 become -1, 0, 1


def vector_names(num_classes: int) -> tuple[str, ...]:
    return tuple(f"s{k}" for k in range(1, num_classes + 1))


@functools.lru_cache(maxsize=4)
def base_vectors(num_classes: int) -> BaseImages:
    """The vectors of Assumptions 1 to 3, in R^(C + 8), as images of one row.

    Class k of the foreground is the one point s_k = e_k. The background is uniform on the 16
    points +e and -e of the last 8 axes: its mean is zero, it is orthogonal to every s_k, and it is
    not zero itself. Train, validation and test have the same points.

    Args:
        num_classes: C, >= 2.
    """
    size = num_classes + BACKGROUND_AXES
    background = np.eye(BACKGROUND_AXES, size, k=num_classes, dtype=np.int64)
    points = np.concatenate([np.eye(num_classes, size, dtype=np.int64), background, -background])
    names = [f"{sign}b{i}" for sign in "+-" for i in range(1, BACKGROUND_AXES + 1)]
    # Each background point is a class of its own, so that each keeps its share in every split.
    labels = np.repeat(np.arange(len(points)), _COPIES)
    images = (points + 1).astype(np.uint8)[labels][:, None, :, None]
    return BaseImages.create(
        images,
        labels,
        images[::_COPIES],
        labels[::_COPIES],
        class_names=(*vector_names(num_classes), *names),
        max_value=_MAX_VALUE,
        source="the linear orthogonal setting",
    )
