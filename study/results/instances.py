"""Which base images the instances of a test split hold: once for all cells that share them.

A results directory keeps one file for each such split, `instances/<digest>.parquet`, with a row an
instance. The digest is of its content, so that whoever writes it writes the same.
"""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from study.storage.hashed import hashed
from study.storage.storage import Storage

FOLDER = "instances"


def keep(storage: Storage, base_images: NDArray[np.int64]) -> str:
    """Writes the base images of instances and returns their digest.

    Args:
        storage: the results directory.
        base_images: (n, k), see `study.tasks.task.Split`.

    Raises:
        ResultsError: they cannot be written.
    """
    digest = _digest(base_images)
    rows = pa.FixedSizeListArray.from_arrays(base_images.ravel(), base_images.shape[1])
    sink = io.BytesIO()
    pq.write_table(pa.table({"base_images": rows}), sink, compression="zstd")
    storage.write(_file(digest), sink.getvalue())
    return digest


def load(storage: Storage, digest: str) -> NDArray[np.int64] | None:
    """(n, k) the base images of each instance; None: the file is missing or damaged.

    Raises:
        ResultsError: the file cannot be read.
    """
    try:
        data = storage.read(_file(digest))
        column = pq.read_table(io.BytesIO(data))["base_images"].combine_chunks()
        base_images = column.flatten().to_numpy().reshape(len(column), -1)
    except (FileNotFoundError, pa.ArrowException, KeyError, ValueError, AttributeError):
        return None
    return base_images if _digest(base_images) == digest else None


def _file(digest: str) -> str:
    return f"{FOLDER}/{digest}.parquet"


def _digest(base_images: NDArray[np.int64]) -> str:
    """16 hexadecimal digits that stand for the base images of instances."""
    content = f"{base_images.shape}\0".encode() + base_images.astype("<i8").tobytes()
    return hashed(content)
