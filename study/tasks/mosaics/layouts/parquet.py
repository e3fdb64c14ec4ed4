"""Hugging Face's layout: train*.parquet and test*.parquet."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from study.errors import RequestError, as_seen
from study.tasks.mosaics.classes import class_name
from study.tasks.mosaics.layouts.common import (
    FileNames,
    Found,
    Images,
    check_classes,
    check_labels,
    decode,
    reason_of,
)
from study.tasks.sources.directory import visible

_BATCH_ROWS = 4096


def find_parquet(data_dir: Path, entries: list[Path], names: FileNames) -> Found | None:
    """The Parquet files in a directory or in one subfolder; None if there are none.

    Raises:
        RequestError: a split or shard is missing, or there are several data sets.
    """
    folders = [data_dir, *(entry for entry in entries if entry.is_dir())]
    shards = {
        folder: [path for path in visible(folder) if path.name.lower().endswith(".parquet")]
        for folder in folders
    }
    holding = [
        folder
        for folder, paths in shards.items()
        if any(path.name.lower().startswith(("train", "test")) for path in paths)
    ]
    if not holding:
        return None
    if len(holding) > 1:
        raise RequestError(
            f"{data_dir} holds Parquet files of several data sets, in "
            f"{', '.join(str(folder) for folder in holding)}. Pass the one of {names.title} "
            "with --data-dir."
        )
    folder = holding[0]
    return Found(
        "parquet",
        train=_split_shards(folder, shards[folder], "train"),
        test=_split_shards(folder, shards[folder], "test"),
    )


def _split_shards(folder: Path, shards: list[Path], split: str) -> tuple[Path, ...]:
    """The files of a split; refuses one that is missing or incomplete."""
    paths = tuple(path for path in shards if path.name.lower().startswith(split))
    if not paths:
        raise RequestError(
            f"{folder} has no {split}*.parquet: the {split} split is missing. Both are needed."
        )
    require_whole(paths)
    return paths


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
    """The images of one Parquet file.

    Raises:
        RequestError: it is damaged, of another schema, or holds a damaged image or label.
    """
    import pyarrow.parquet as pq

    with opened(path), pq.ParquetFile(path) as file:
        image_column = _check_schema(file.schema_arrow, path, names)
        count = file.metadata.num_rows
        images = np.empty((count, names.pixels, names.pixels, 3), np.uint8)
        labels = np.empty(count, np.int64)
        row = 0
        columns = [f"{image_column}.bytes", names.label_column]
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            found = whole(batch.column(names.label_column), path)
            missing = [is_missing(label) for label in found.to_pylist()]
            if True in missing:
                raise RequestError(
                    f"{path} has no {names.label_column} in row {row + missing.index(True)}."
                )
            labels[row : row + len(found)] = _labels(found, names)
            for encoded in batch.column(image_column).field("bytes"):
                images[row] = decode(encoded.as_py(), f"row {row} of {path}", names)
                row += 1
    check_labels(labels, count, len(names.class_names), str(path))
    return Images(images, labels)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[None]:
    """Reads a Parquet file in its body.

    Raises:
        RequestError: it is damaged or no Parquet file.
    """
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise RequestError(
            f"{path} is damaged or no Parquet file ({reason_of(error)}). Copy it again."
        ) from error


def image_column_of(schema: Any) -> str | None:
    """The name of the image column: img, image, or the first that holds bytes of files."""
    import pyarrow as pa

    encoded = (
        name
        for name in schema.names
        if pa.types.is_struct(each := schema.field(name).type)
        and each.get_field_index("bytes") >= 0
    )
    return next((name for name in ("img", "image") if name in schema.names), next(encoded, None))


def whole(labels: Any, path: Path) -> Any:
    """A column of labels; whole numbers that are written as floats become integers, NaN null.

    Raises:
        RequestError: another number is among them.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(labels.type):
        return labels
    try:
        return pc.if_else(pc.is_nan(labels), None, labels).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise RequestError(
            f"the labels of {path} must be whole numbers or text ({reason_of(error)})."
        ) from error


def is_missing(label: object) -> bool:
    """Whether a label of a column is null or blank."""
    return label is None or not as_seen(str(label))


def _labels(found: Any, names: FileNames) -> Any:
    """The labels of a column without missing values."""
    if names.numbered:
        return found.to_numpy(zero_copy_only=False)
    return [names.label(value) for value in found.to_pylist()]


def _check_schema(schema: Any, path: Path, names: FileNames) -> str:
    """The name of the image column; refuses a file of another schema or other classes."""
    import pyarrow as pa

    image_column = image_column_of(schema)
    missing = [] if image_column else ["img"]
    missing += [] if names.label_column in schema.names else [names.label_column]
    if image_column is None or missing:
        raise RequestError(
            f"{path} has no column {' and no column '.join(missing)}, only "
            f"{', '.join(schema.names)}. Pass the directory that holds {names.title} "
            "with --data-dir."
        )
    image = schema.field(image_column).type
    if not pa.types.is_struct(image) or image.get_field_index("bytes") < 0:
        raise RequestError(
            f"column {image_column} of {path} must be a struct {{bytes, path}}, got {image}."
        )
    label = schema.field(names.label_column).type
    if names.numbered and not (pa.types.is_integer(label) or pa.types.is_floating(label)):
        raise RequestError(
            f"column {names.label_column} of {path} must hold whole numbers, got {label}."
        )
    listed = listed_classes(schema.metadata, names.label_column)
    if listed is not None:
        check_classes(listed, path, names)
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
