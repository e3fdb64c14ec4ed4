"""Columns of the instances of a test split, from counts by image, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def of_counts(counts: ArrayLike, **marked: ArrayLike) -> dict[str, Any]:
    """Columns of a test row as `analysis.load` gives them: instances image by image, marked first.

    Args:
        counts: (I,) instances of each image.
        marked: right, known or saif -> (I,) how many of them are so.
    """
    whole = np.asarray(counts)
    image = np.repeat(np.arange(len(whole)), whole)
    place = np.arange(len(image)) - np.repeat(whole.cumsum() - whole, whole)
    bits = {name: place < np.asarray(each)[image] for name, each in marked.items()}
    return {
        "num_evaluated": len(image),
        "instances": "made up",
        "base_images": image,
        **{f"instance_{name}": np.packbits(each).tobytes() for name, each in bits.items()},
    }


def marked(row: Mapping[str, Any], name: str) -> NDArray[np.bool_]:
    """(n,) what is marked of a row: right, known or saif."""
    packed = np.frombuffer(row[f"instance_{name}"], np.uint8)
    return np.unpackbits(packed, count=int(row["num_evaluated"])).astype(bool)
