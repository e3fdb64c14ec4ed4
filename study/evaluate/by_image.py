"""What a model gets right of each base image of the foreground."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def counts_by_image(
    images: NDArray[np.int64],
    known: NDArray[np.bool_],
    in_saif: NDArray[np.bool_],
    right: NDArray[np.bool_] | None = None,
) -> dict[str, list[int]]:
    """Counts the instances of each image, by the columns `study.results.IMAGES`.

    Images are a sample as seeds are: instances of one image succeed and fail together, so a
    verdict needs to know which instances share one.

    Args:
        images: (B,) the base image of each instance's foreground, as a split numbers them.
        known: (B,) whether its foreground is known.
        in_saif: (B,) whether it is in SAIF; not read where the foreground is unknown.
        right: (B,) whether its class is predicted; None: it has no class, so no such column.

    Returns:
        Lists with an entry for each image that occurs, in ascending order.
    """
    _, image = np.unique(images, return_inverse=True)
    columns = {"count": np.ones_like(known), "known": known, "saif": known & in_saif}
    if right is not None:
        columns["right"] = right
    return {
        f"image_{name}": np.bincount(image, weights=marked).astype(int).tolist()
        for name, marked in columns.items()
    }
