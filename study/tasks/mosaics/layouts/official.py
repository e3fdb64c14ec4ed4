"""The official layout: pickles in cifar-10-batches-py/ or cifar-100-python/.

No file is trusted: its pickles may name only what arrays need.
"""

from __future__ import annotations

import operator
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.layouts.common import (
    SIDE,
    FileNames,
    Found,
    Images,
    check_classes,
    fitted_all,
)


def find_official(data_dir: Path, names: FileNames) -> Found | None:
    """The official files in a directory or in its subfolder; None if there are none.

    Raises:
        RequestError: some of the files are missing.
    """
    expected = (*names.train, *names.test, names.meta)
    for folder in (data_dir / names.folder, data_dir):
        missing = [name for name in expected if not (folder / name).is_file()]
        if folder.name != names.folder and len(missing) == len(expected):
            continue
        if not folder.is_dir():
            continue
        if missing:
            raise RequestError(
                f"{folder} is incomplete: {', '.join(missing)} not found. Unpack the official "
                f"archive of {names.title} again."
            )
        return Found(
            "official",
            train=tuple(folder / name for name in names.train),
            test=tuple(folder / name for name in names.test),
            meta=folder / names.meta,
        )
    return None


_PICKLE_MAY_NAME: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): lambda kind, *_: np.dtype(_text(kind)),
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
}
"""The parts of an array, as Python 2 named them."""


class _ArrayUnpickler(pickle.Unpickler):
    """Reads arrays, lists and text; anything else that a pickle names is refused, not run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PICKLE_MAY_NAME:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, as no file of CIFAR does")
        return _PICKLE_MAY_NAME[module, name]


def _unpickle(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        # Python 2 wrote the official files; its text becomes bytes.
        content = _ArrayUnpickler(file, encoding="bytes").load()
    return {_text(key): value for key, value in content.items()}


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def check_official_classes(path: Path, names: FileNames) -> None:
    """Refuses a meta file that lists other classes, or is damaged, with any exception."""
    check_classes([_text(name) for name in _unpickle(path)[names.meta_key]], names)


def read_official(path: Path, names: FileNames) -> Images:
    """The images of one official file; of a bad one any exception."""
    content = _unpickle(path)
    data = content["data"]
    if data.dtype != np.uint8:
        raise TypeError(f"its pixels are {data.dtype}, must be uint8")
    images = data.reshape(len(data), 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    labels = np.array([operator.index(label) for label in content[names.label_key]], np.int64)
    return Images(fitted_all(images, names.pixels), labels.reshape(len(data)))
