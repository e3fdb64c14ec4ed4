"""Hugging Face's layout: train*.parquet and test*.parquet."""

from __future__ import annotations

import json
import re
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
    decode,
    reason_of,
)

_BATCH_ROWS = 4096


def find_parquet(data_dir: Path, entries: list[Path], names: FileNames) -> Found | None:
    """The Parquet files in a directory or in one subfolder; None if there are none.

    Raises:
        RequestError: a split or shard is missing, or there are several data sets.
    """
    folders = [data_dir, *(entry for entry in entries if entry.is_dir())]
    shards = {folder: sorted(folder.glob("t*.parquet")) for folder in folders}
    holding = [
        folder
        for folder, paths in shards.items()
        if any(path.name.startswith(("train", "test")) for path in paths)
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
    """The files of a split; refuses one that is incomplete, e.g. two of ``...-of-00003``."""
    paths = tuple(path for path in shards if path.name.startswith(split))
    if not paths:
        raise RequestError(
            f"{folder} has no {split}*.parquet: the {split} split is missing. Both are needed."
        )
    for path in paths:
        promised = re.search(r"-of-(\d+)\.parquet$", path.name)
        if promised and int(promised[1]) != len(paths):
            raise RequestError(
                f"{path} is one of {int(promised[1])} files, {len(paths)} of them found in "
                f"{folder}. Copy the data set again."
            )
    return paths


def read_parquet(path: Path, names: FileNames) -> Images:
    """The images of one Parquet file.

    Raises:
        RequestError: it is damaged, of another schema, or holds a damaged image or label.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            image_column = _check_schema(file.schema_arrow, path, names)
            count = file.metadata.num_rows
            images = np.empty((count, SIDE, SIDE, 3), np.uint8)
            labels = np.empty(count, np.int64)
            row = 0
            columns = [f"{image_column}.bytes", names.label_column]
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                found = batch.column(names.label_column)
                if found.null_count:
                    raise RequestError(
                        f"{path} has no {names.label_column} in row "
                        f"{row + found.is_null().index(True).as_py()}."
                    )
                labels[row : row + len(found)] = found.to_numpy(zero_copy_only=False)
                for encoded in batch.column(image_column).field("bytes"):
                    images[row] = decode(encoded.as_py(), f"row {row} of {path}")
                    row += 1
    except (pa.ArrowException, OSError) as error:
        raise RequestError(
            f"{path} is damaged or no Parquet file ({reason_of(error)}). Copy it again."
        ) from error
    check_labels(labels, count, len(names.class_names), str(path))
    return Images(images, labels)


def _check_schema(schema: Any, path: Path, names: FileNames) -> str:
    """The name of the image column; refuses a file of another schema or other classes."""
    import pyarrow as pa

    image_column = next((name for name in ("img", "image") if name in schema.names), None)
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
    if not pa.types.is_integer(label):
        raise RequestError(
            f"column {names.label_column} of {path} must hold integers, got {label}."
        )
    listed = _listed_classes(schema.metadata, names.label_column)
    if listed is not None:
        check_classes(listed, path, names)
    return image_column


def _listed_classes(metadata: dict[bytes, bytes] | None, column: str) -> list[str] | None:
    """The class names in a file's metadata by Hugging Face; None if there are none."""
    try:
        described = json.loads((metadata or {})[b"huggingface"])
        return [str(name) for name in described["info"]["features"][column]["names"]]
    except (KeyError, TypeError, ValueError):
        return None
