"""Readers of the layouts in which a CIFAR data set may lie on disk.

    official       cifar-10-batches-py/ or cifar-100-python/, as torchvision keeps them
    parquet        train*.parquet and test*.parquet, as Hugging Face keeps them
    class folders  train/<class name>/*.png and test/<class name>/*.png

`find` tells which layout a directory has and which files belong to it; `read` reads them. Whatever
is wrong with a file is a `RequestError` of one line that names the file. No file is trusted:
pickles may name nothing but what arrays need, and only four image formats are decoded.
"""

from __future__ import annotations

import io
import json
import pickle
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from study.errors import RequestError, unknown
from study.tasks.base_images import check_labels

SIDE = 32
"""Height and width of an image in pixels."""

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_IMAGE_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
_BATCH_ROWS = 4096


@dataclass(frozen=True)
class FileNames:
    """How one data set is named and laid out.

    Attributes:
        title: for messages.
        class_names: in the order of the labels.
        folder: of the official layout.
        train: the official files of the train split, in order.
        test: the official files of the test split.
        meta: the official file that lists the class names.
        meta_key: under which key.
        label_key: key of the labels in the official files.
        label_column: column of the labels in the Parquet layout.
        misspelt: class names that published copies spell wrong, with the right ones.
    """

    title: str
    class_names: tuple[str, ...]
    folder: str
    train: tuple[str, ...]
    test: tuple[str, ...]
    meta: str
    meta_key: str
    label_key: str
    label_column: str
    misspelt: Mapping[str, str] = field(default_factory=dict)

    def label(self, class_name: str) -> int | None:
        """The label of a class name in any letter case, None if there is no such class."""
        name = class_name.lower()
        name = self.misspelt.get(name, name)
        return self.class_names.index(name) if name in self.class_names else None

    @property
    def accepted_layouts(self) -> str:
        """For messages."""
        return (
            f"{self.folder}/ as torchvision keeps it, Hugging Face Parquet (train*.parquet and "
            "test*.parquet), or class folders (train/<class>/*.png and test/<class>/*.png)"
        )


@dataclass(frozen=True)
class Found:
    """The files of a data set.

    Attributes:
        layout: one of the three.
        train: the files of the train split, in the order of their images.
        test: the files of the test split.
        meta: the file with the class names; official layout only.
    """

    layout: Literal["official", "parquet", "class folders"]
    train: tuple[Path, ...]
    test: tuple[Path, ...]
    meta: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        return (*self.train, *self.test, *([self.meta] if self.meta else []))


class Images(NamedTuple):
    """Some images, in order.

    Attributes:
        images: (N, 32, 32, 3) uint8.
        labels: (N,) int64 in [0, number of classes).
    """

    images: np.ndarray
    labels: np.ndarray


def find(data_dir: Path, names: FileNames) -> Found:
    """The files of a data set under `data_dir`, which may be the official folder or its parent.

    Raises:
        RequestError: the directory is missing, empty, in no accepted layout, or incomplete.
    """
    try:
        if not data_dir.exists():
            raise RequestError(
                f"{data_dir} does not exist. Pass the directory that holds {names.title} "
                "with --data-dir."
            )
        if not data_dir.is_dir():
            raise RequestError(
                f"{data_dir} is not a directory. Unpack it if it is an archive, and pass the "
                "directory with --data-dir."
            )
        entries = _list(data_dir)
        found = (
            _find_official(data_dir, names)
            or _find_parquet(data_dir, entries, names)
            or _find_class_folders(data_dir, names)
        )
    except OSError as error:
        raise RequestError(f"{data_dir} cannot be read ({_reason(error)}).") from error
    if found is None:
        held = ", ".join(entry.name for entry in entries[:5]) + (", ..." if entries[5:] else "")
        raise RequestError(
            f"{data_dir} {f'holds only {held}' if held else 'is empty'}: no {names.title} found. "
            f"Accepted layouts: {names.accepted_layouts}."
        )
    return found


def read(found: Found, names: FileNames) -> tuple[Images, Images]:
    """The train and the test images of the files that `find` found.

    Raises:
        RequestError: a file is damaged, of another data set, or holds a label or an image that
            the data set cannot have.
    """
    if found.meta is not None:
        _check_official_classes(found.meta, names)
    if found.layout == "class folders":
        return _read_class_folders(found.train, names), _read_class_folders(found.test, names)
    read_file: Callable[[Path, FileNames], Images] = (
        _read_official if found.layout == "official" else _read_parquet
    )
    train, test = (
        [read_file(path, names) for path in paths] for paths in (found.train, found.test)
    )
    return _concatenate(train), _concatenate(test)


def _concatenate(parts: list[Images]) -> Images:
    return Images(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


def _list(folder: Path) -> list[Path]:
    """What a folder holds, hidden entries left out, by name."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _reason(error: BaseException) -> str:
    """What an exception says first, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split())
    return text.split(". ")[0].rstrip(".")[:200] or type(error).__name__


# The official layout


def _find_official(data_dir: Path, names: FileNames) -> Found | None:
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


# What a pickled array consists of. Functions that NumPy keeps under different names in different
# versions are taken from an array, so that files of any version can be read.
_RECONSTRUCT = np.empty(0).__reduce__()[0]
_FROM_BUFFER = np.empty(1).__reduce_ex__(5)[0]
_PICKLE_MAY_NAME: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): lambda kind, *_: np.dtype(_text(kind)),  # old files say it in bytes
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy.core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("numpy._core.numeric", "_frombuffer"): _FROM_BUFFER,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Reads arrays, lists and text; whatever else a pickle asks for is refused, not run."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PICKLE_MAY_NAME:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no image needs")
        return _PICKLE_MAY_NAME[module, name]


def _unpickle(path: Path, names: FileNames) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            # The official files were written by Python 2, whose text is bytes here.
            content = _ArrayUnpickler(file, encoding="bytes").load()
        if not isinstance(content, dict):
            raise TypeError(f"it holds one {type(content).__name__}, no dictionary")
        return {_text(key): value for key, value in content.items()}
    except Exception as error:  # a damaged pickle can raise anything
        raise RequestError(
            f"{path} is damaged or no file of {names.title} ({_reason(error)}). Unpack the "
            "official archive again."
        ) from error


def _text(value: object) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


def _check_official_classes(path: Path, names: FileNames) -> None:
    listed = _unpickle(path, names).get(names.meta_key)
    if not isinstance(listed, list):
        raise RequestError(f"{path} is no file of {names.title}: it has no {names.meta_key!r}.")
    _check_classes([_text(name) for name in listed], path, names)


def _check_classes(listed: list[str], path: Path, names: FileNames) -> None:
    if len(listed) != len(names.class_names):
        raise RequestError(
            f"{path} lists another number of classes than {names.title} has: {len(listed)}, not "
            f"{len(names.class_names)}. Pass the directory that holds {names.title} "
            "with --data-dir."
        )
    for label, (got, expected) in enumerate(zip(listed, names.class_names, strict=True)):
        if names.label(got) != label:
            raise RequestError(
                f"{path} calls class {label} {got!r}, {names.title} calls it {expected!r}. Pass "
                f"the directory that holds {names.title} with --data-dir."
            )


def _read_official(path: Path, names: FileNames) -> Images:
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
    return Images(data.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1), labels)


def _integers(values: Any, where: str) -> np.ndarray:
    try:
        labels = np.asarray(values)
        if labels.size and not np.issubdtype(labels.dtype, np.integer):
            raise TypeError(f"got {labels.dtype}")
        return labels.astype(np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(
            f"the labels of {where} must be integers ({_reason(error)})."
        ) from error


# Parquet


def _find_parquet(data_dir: Path, entries: list[Path], names: FileNames) -> Found | None:
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


def _read_parquet(path: Path, names: FileNames) -> Images:
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
                    images[row] = _decode(encoded.as_py(), f"row {row} of {path}")
                    row += 1
    except (pa.ArrowException, OSError) as error:
        raise RequestError(
            f"{path} is damaged or no Parquet file ({_reason(error)}). Copy it again."
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
        _check_classes(listed, path, names)
    return image_column


def _listed_classes(metadata: dict[bytes, bytes] | None, column: str) -> list[str] | None:
    """The class names that Hugging Face writes into a file's metadata, None where it did not."""
    try:
        described = json.loads((metadata or {})[b"huggingface"])
        return [str(name) for name in described["info"]["features"][column]["names"]]
    except (KeyError, TypeError, ValueError):
        return None


# Class folders


def _find_class_folders(data_dir: Path, names: FileNames) -> Found | None:
    if not any((data_dir / split).is_dir() for split in ("train", "test")):
        return None
    return Found(
        "class folders",
        train=_class_images(data_dir, "train", names),
        test=_class_images(data_dir, "test", names),
    )


def _class_images(data_dir: Path, split: str, names: FileNames) -> tuple[Path, ...]:
    """The images of a split, in order.

    The order is that of the file names where they tell all images of the split apart, as in an
    export named by the official index; else class by class.
    """
    split_folder = data_dir / split
    if not split_folder.is_dir():
        raise RequestError(
            f"{data_dir} has no folder {split}/: the {split} split is missing. Both are needed."
        )
    paths = []
    for folder in _list(split_folder):
        if not folder.is_dir():
            continue
        if names.label(folder.name) is None:
            error = unknown(f"{names.title} class", folder.name, names.class_names)
            raise RequestError(f"{folder}: {error}")
        paths += [path for path in _list(folder) if path.suffix.lower() in IMAGE_SUFFIXES]
    if not paths:
        raise RequestError(
            f"{split_folder} holds no images in class folders such as {names.class_names[0]}/ "
            f"({', '.join(IMAGE_SUFFIXES)})."
        )
    repeated = max(Counter(path.stem for path in paths).values()) > 1

    def order(path: Path) -> tuple[Any, ...]:
        label = names.label(path.parent.name) if repeated else 0
        return label, _natural(path.stem), path.name

    return tuple(sorted(paths, key=order))


def _natural(stem: str) -> list[str | int]:
    """Sort key by which 2 comes before 10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", stem)]


def _read_class_folders(paths: tuple[Path, ...], names: FileNames) -> Images:
    images = np.empty((len(paths), SIDE, SIDE, 3), np.uint8)
    for row, path in enumerate(paths):
        try:
            encoded = path.read_bytes()
        except OSError as error:
            raise RequestError(f"{path} cannot be read ({_reason(error)}).") from error
        images[row] = _decode(encoded, str(path))
    return Images(images, np.array([names.label(path.parent.name) for path in paths], np.int64))


def _decode(encoded: bytes | None, where: str) -> np.ndarray:
    """The pixels of an encoded image: (32, 32, 3) uint8."""
    from PIL import Image

    if encoded is None:
        raise RequestError(f"{where} holds no image bytes.")
    try:
        with Image.open(io.BytesIO(encoded), formats=_IMAGE_FORMATS) as image:
            size, mode = image.size, image.mode
            pixels = np.asarray(image.convert("RGB")) if size == (SIDE, SIDE) else None
    except Exception as error:  # a damaged image can raise anything
        reason = "unknown format" if "cannot identify" in str(error) else _reason(error)
        raise RequestError(
            f"{where} is damaged or no PNG, JPEG, BMP or WebP image ({reason}). Copy the data set "
            "again."
        ) from error
    if pixels is None:
        raise RequestError(
            f"{where} is {size[0]} x {size[1]} pixels, must be {SIDE} x {SIDE}. Pass the data set "
            "at its own size."
        )
    if mode.startswith(("I", "F")):  # conversion would clip these
        raise RequestError(f"{where} has more than 8 bits a channel ({mode}), must have 8.")
    return pixels
