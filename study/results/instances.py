"""Which base images the instances of a test split hold: once for all cells that share them.

A results directory keeps one file for each such split, `instances/<digest>.parquet`, with a row an
instance. The digest is of its content, so that whoever writes it writes the same.
"""

from __future__ import annotations

import hashlib
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from study.storage.storage import ResultsError, Storage

FOLDER = "instances"


def keep(storage: Storage, base_images: NDArray[np.int64]) -> str:
    """Writes the base images of instances, unless they are there, and returns their digest.

    Args:
        storage: the results directory.
        base_images: (n, k), see `study.tasks.base.Split`.

    Raises:
        ResultsError: they cannot be written.
    """
    digest = _digest(base_images)
    if not storage.exists(_file(digest)):
        rows = pa.FixedSizeListArray.from_arrays(base_images.ravel(), base_images.shape[1])
        sink = io.BytesIO()
        pq.write_table(pa.table({"base_images": rows}), sink, compression="zstd")
        storage.write(_file(digest), sink.getvalue())
    return digest


def load(storage: Storage, digest: str) -> NDArray[np.int64] | None:
    """(n, k) the base images of each instance; None: the directory lacks the file.

    Raises:
        ResultsError: the file is damaged or cannot be read.
    """
    try:
        data = storage.read(_file(digest))
    except FileNotFoundError:
        return None
    try:
        column = pq.read_table(io.BytesIO(data))["base_images"].combine_chunks()
        base_images = column.flatten().to_numpy().reshape(len(column), -1)
    except (pa.ArrowException, KeyError, ValueError, AttributeError):
        base_images = np.empty((0, 0), np.int64)
    if _digest(base_images) != digest:
        raise ResultsError(
            f"{storage.path(_file(digest))} is damaged. Copy it from where its cells were "
            "trained, or remove it: verdicts are then over seeds alone."
        )
    return base_images


def _file(digest: str) -> str:
    return f"{FOLDER}/{digest}.parquet"


def _digest(base_images: NDArray[np.int64]) -> str:
    """16 hexadecimal digits that stand for the base images of instances."""
    content = f"{base_images.shape}\0".encode() + base_images.astype("<i8").tobytes()
    return hashlib.sha256(content).hexdigest()[:16]
