"""The official layout: pickles in cifar-10-batches-py/ or cifar-100-python/.

No file is trusted: its pickles may name only what arrays need.
"""

from __future__ import annotations

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
    check_labels,
    fitted_all,
    reason_of,
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


# The parts of a pickled array. Functions whose names differ between versions of NumPy are taken
# from an array, so that files of any version can be read.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_FROM_BUFFER = np.empty(1).__reduce_ex__(5)[0]
_PICKLE_MAY_NAME: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): lambda kind, *_: np.dtype(_text(kind)),  # bytes in old files
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy.core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("numpy._core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Reads arrays, lists and text; anything else that a pickle names is refused, not run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PICKLE_MAY_NAME:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no image needs")
        return _PICKLE_MAY_NAME[module, name]


def _unpickle(path: Path, names: FileNames) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            # Python 2 wrote the official files; its text becomes bytes.
            content = _ArrayUnpickler(file, encoding="bytes").load()
        if not isinstance(content, dict):
            raise TypeError(f"it holds one {type(content).__name__}, no dictionary")
        return {_text(key): value for key, value in content.items()}
    except Exception as error:  # a damaged pickle can raise anything
        raise RequestError(
            f"{path} is damaged or no file of {names.title} ({reason_of(error)}). Unpack the "
            "official archive again."
        ) from error


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def check_official_classes(path: Path, names: FileNames) -> None:
    """Refuses a meta file that lists other classes.

    Raises:
        RequestError: as `check_classes`, or the file is damaged.
    """
    listed = _unpickle(path, names).get(names.meta_key)
    if not isinstance(listed, list):
        raise RequestError(f"{path} is no file of {names.title}: it has no {names.meta_key!r}.")
    check_classes([_text(name) for name in listed], path, names)


def read_official(path: Path, names: FileNames) -> Images:
    """The images of one official file.

    Raises:
        RequestError: it is damaged or lacks a key, or its shapes or labels are wrong.
    """
    content = _unpickle(path, names)
    missing = [key for key in ("data", names.label_key) if key not in content]
    if missing:
        raise RequestError(
            f"{path} is no file of {names.title}: it has no {missing[0]!r}, "
            f"only {', '.join(sorted(content)) or 'nothing'}."
        )
    data = content["data"]
    width = 3 * SIDE * SIDE
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (width,):
        got = f"{data.dtype} {data.shape}" if isinstance(data, np.ndarray) else type(data).__name__
        raise RequestError(f"the images in {path} must be uint8 (N, {width}), got {got}.")
    labels = _integers(content[names.label_key], str(path))
    check_labels(labels, len(data), len(names.class_names), str(path))
    images = data.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return Images(fitted_all(images, names.pixels), labels)


def _integers(values: Any, where: str) -> np.ndarray:
    try:
        labels = np.asarray(values)
        if labels.size and not np.issubdtype(labels.dtype, np.integer):
            raise TypeError(f"got {labels.dtype}")
        return labels.astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(
            f"the labels of {where} must be integers ({reason_of(error)})."
        ) from error
