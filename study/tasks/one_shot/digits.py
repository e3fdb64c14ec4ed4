"""The digits that scikit-learn ships as twenty characters: ten, and the same on their side.

Nothing is downloaded. With the ten upright digits alone, six of which train, networks tell the two
test digits apart in 60 % of the episodes only (docs/log.md).
"""

from __future__ import annotations

import numpy as np

from study.tasks.one_shot.characters import Characters, prepared, resized
from study.tasks.sources.bundled_digits import MAX_VALUE, read_digits
from study.tasks.sources.places import Places

_NAMES = tuple(f"{digit}{side}" for digit in range(10) for side in ("", " on its side"))
_PREPARED = "digits-one-shot-v2"
"""Start of the prepared form's name; raise the number when the images change."""


def load_digits(places: Places, pixels: int) -> Characters:
    """The digits, of 8 x 8 pixels or resized.

    Args:
        places: of the cache, for the prepared form, without which scikit-learn is needed.
        pixels: height and width.

    Raises:
        RequestError: scikit-learn is needed and not installed.
    """
    folder = places.cache / "prepared" / f"{_PREPARED}-{pixels}"
    return prepared(folder, lambda: _read(pixels))


def _read(pixels: int) -> Characters:
    from PIL import Image

    images, labels = read_digits()
    grey = np.rint(images * (255 / MAX_VALUE)).astype(np.uint8)
    small = np.stack([resized(Image.fromarray(image), pixels) for image in grey])
    both = np.concatenate([small, np.rot90(small, axes=(1, 2))])
    characters = np.concatenate([2 * labels, 2 * labels + 1])
    order = np.argsort(characters, kind="stable")
    return Characters.create(
        both[order],
        characters[order],
        _NAMES,
        title="scikit-learn's digits",
        whole=len(_NAMES),
        versions=2,
        source="scikit-learn's digits",
    )
