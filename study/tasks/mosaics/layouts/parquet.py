"""Hugging Face's layout: train*.parquet and test*.parquet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from study.errors import RequestError
from study.tasks.mosaics.classes import class_name
from study.tasks.mosaics.layouts.common import (
    FileNames,
    Found,
    Images,
    check_classes,
    decode,
)
from study.tasks.sources.directory import files_by_split
from study.tasks.sources.reading import reading

_BATCH_ROWS = 4096


def find_parquet(data_dir: Path, entries: list[Path], names: FileNames) -> Found | None:
    """The Parquet files in a directory or in one subfolder; None if there are none.

    Raises:
        RequestError: a split or shard is missing, or there are several data sets.
    """
    parts = files_by_split(data_dir, entries, (".parquet",))
    if not parts:
        return None
    for split in ("train", "test"):
        if split not in parts:
            raise RequestError(
                f"{data_dir} has no {split}*.parquet: the {split} split is missing. Both are "
                "needed."
            )
        require_whole(parts[split])
    return Found("parquet", train=parts["train"], test=parts["test"])


def require_whole(paths: tuple[Path, ...]) -> None:
    """Refuses a split that lacks files, such as one of two files ``...-of-00003``.

    Raises:
        RequestError: it names one that is there.
    """
    for path in paths:
        promised = re.search(r"-of-(\d+)\.parquet$", path.name.lower())
        if promised and int(promised[1]) != len(paths):
            raise RequestError(
                f"{path} is one of {int(promised[1])} files, {len(paths)} of them found in "
                f"{path.parent}. Copy the data set again."
            )


def read_parquet(path: Path, names: FileNames) -> Images:
    """The images of one Parquet file; of a bad one any exception."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        image_column = _check_schema(file.schema_arrow, names)
        count = file.metadata.num_rows
        images = np.empty((count, names.pixels, names.pixels, 3), np.uint8)
        labels = np.empty(count, np.int64)
        row = 0
        columns = [f"{image_column}.bytes", names.label_column]
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            values = whole(batch.column(names.label_column)).to_pylist()
            found = values if names.numbered else [names.label(value) for value in values]
            if None in found:
                raise ValueError(
                    f"it has no {names.label_column} in row {row + found.index(None)}"
                )
            labels[row : row + len(found)] = found
            for encoded in batch.column(image_column).field("bytes"):
                with reading(f"row {row} of {path}", names.mend):
                    images[row] = decode(encoded.as_py(), names)
                row += 1
    return Images(images, labels)


def image_column_of(schema: Any) -> str | None:
    """The name of the image column: img, image, or the first that holds bytes of files."""
    encoded = (name for name in schema.names if _encoded(schema.field(name).type))
    return next((name for name in ("img", "image") if name in schema.names), next(encoded, None))


def _encoded(kind: Any) -> bool:
    """Whether a column holds the bytes of files."""
    import pyarrow as pa

    return bool(pa.types.is_struct(kind)) and kind.get_field_index("bytes") >= 0


def whole(labels: Any) -> Any:
    """A column of labels; whole numbers that are written as floats become integers, NaN null.

    Raises:
        pyarrow.ArrowInvalid: another number is among them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(labels.type):
        return labels
    return pc.if_else(pc.is_nan(labels), None, labels).cast(pa.int64())


def _check_schema(schema: Any, names: FileNames) -> str:
    """The name of the image column.

    Raises:
        ValueError: a column is missing, or the classes are others.
    """
    image_column = image_column_of(schema) or "img"
    missing = [each for each in (image_column, names.label_column) if each not in schema.names]
    if missing:
        raise ValueError(
            f"it has no column {' and no column '.join(missing)}, only {', '.join(schema.names)}"
        )
    if not _encoded(schema.field(image_column).type):
        kind = schema.field(image_column).type
        raise ValueError(f"its column {image_column} must be a struct {{bytes, path}}, not {kind}")
    listed = listed_classes(schema.metadata, names.label_column)
    if listed is not None:
        check_classes(listed, names)
    return image_column


def listed_classes(metadata: dict[bytes, bytes] | None, column: str) -> list[str] | None:
    """The class names in a file's metadata by Hugging Face; None if there are none.

    A name that was there before gets its number: ImageNet has two classes that are called crane.
    """
    try:
        described = json.loads((metadata or {})[b"huggingface"])
        listed = described["info"]["features"][column]["names"]
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(listed, list):
        return None
    names = [class_name(name) for name in listed]
    first: dict[str, int] = {}
    return [
        name if first.setdefault(name, label) == label else f"{name} ({label})"
        for label, name in enumerate(names)
    ]
