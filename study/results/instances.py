"""What the instances of a test split hold: once for all cells that share them.

A results directory keeps one file for each such split, `instances/<digest>.parquet`, with a row an
instance. The digest is of its content, so that whoever writes it writes the same.
"""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from study.cell.events import Instances
from study.storage.hashed import hashed
from study.storage.storage import Storage

FOLDER = "instances"


def keep(storage: Storage, held: Instances) -> str:
    """Writes what instances hold and returns their digest.

    Raises:
        ResultsError: they cannot be written.
    """
    digest = _digest(held)
    columns = {
        "base_images": pa.FixedSizeListArray.from_arrays(
            held.base_images.ravel(), held.base_images.shape[1]
        )
    }
    if held.labels is not None:
        columns["label"] = pa.array(held.labels, pa.string()).dictionary_encode()
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    storage.write(_file(digest), sink.getvalue())
    return digest


def load(storage: Storage, digest: str) -> Instances | None:
    """What the instances hold; None: the file is missing or damaged.

    Labels may be beside base images that were recorded before there were any.

    Raises:
        ResultsError: the file cannot be read.
    """
    try:
        table = pq.read_table(io.BytesIO(storage.read(_file(digest))))
        images = table["base_images"].combine_chunks()
        base_images = images.flatten().to_numpy().reshape(len(images), -1)
    except (FileNotFoundError, pa.ArrowException, KeyError, ValueError, AttributeError):
        return None
    labels = None
    if "label" in table.column_names:
        labels = table["label"].to_numpy().astype(str)
    held = Instances(base_images, labels)
    return held if digest in (_digest(held), _digest(Instances(base_images))) else None


def _file(digest: str) -> str:
    return f"{FOLDER}/{digest}.parquet"


def _digest(held: Instances) -> str:
    """16 hexadecimal digits that stand for what instances hold."""
    base_images: NDArray[np.int64] = held.base_images
    content = f"{base_images.shape}\0".encode() + base_images.astype("<i8").tobytes()
    return hashed(content + "\0".join([] if held.labels is None else held.labels).encode())
