"""Omniglot: its zip archives, their prepared form, and their download through torchvision.

The archives are read as they are, never unpacked. They overlap: the small ones are parts of
images_background.zip and share Greek and Latin; a drawing that is in several counts once.
"""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from pathlib import Path

import numpy as np

from study.errors import RequestError
from study.tasks.one_shot.characters import Characters, prepared, resized
from study.tasks.sources.cache import cache_root
from study.tasks.sources.downloading import downloading
from study.tasks.sources.fetched import DataSet, read_data_set
from study.tasks.sources.places import Places
from study.tasks.sources.prepared import fingerprint
from study.tasks.sources.reading import why

ARCHIVES = (
    "images_background.zip",
    "images_evaluation.zip",
    "images_background_small1.zip",
    "images_background_small2.zip",
)
"""The first two are the whole data set."""

SIDE = 105
"""Height and width of a published drawing in pixels."""

CHARACTERS = 1_623
"""Of the whole data set."""

_ACCEPTED = f"its zip archives, one or more of {', '.join(ARCHIVES)}"
_PREPARED_VERSION = 1
"""Part of the prepared form's name; raise it when the reader returns something else."""

_MEMBER = re.compile(
    r"images_(?:background|evaluation|background_small[12])/"
    r"(?P<character>[^/\\]+/character\d+)/(?P<drawing>\d+_\d+)\.png"
)
_LARGEST_FILE = 1_000_000  # bytes of a drawing; published ones have some 300
_LARGEST_SIDE = 2_000  # its pixels


def load_omniglot(places: Places, pixels: int) -> Characters:
    """Omniglot, or the part of it that is at hand, as ink on an empty ground.

    Args:
        places: of the archives, and of the cache, for downloads and prepared images.
        pixels: height and width to which the drawings are resized.

    Raises:
        RequestError: it is not at hand and cannot be downloaded; or its archives are damaged, of
            another data set, or too few.
    """
    cache = cache_root(places.cache_dir)
    return read_data_set(DATA_SET, places, lambda folder: _load_from(folder, pixels, cache))


def _load_from(data_dir: Path, pixels: int, cache: Path) -> Characters:
    found = _find(data_dir)
    known = fingerprint(f"{_PREPARED_VERSION} {pixels}", found)
    folder = cache / "prepared" / f"omniglot-{known}"
    return prepared(folder, lambda: _read(data_dir, found, pixels))


def _find(data_dir: Path) -> list[Path]:
    """The archives in a directory.

    Raises:
        RequestError: there are none.
    """
    found = [data_dir / name for name in ARCHIVES if os.path.isfile(data_dir / name)]
    if not found:
        unpacked = next(
            (f"{name}/" for name in map(_stem, ARCHIVES) if os.path.isdir(data_dir / name)), None
        )
        hint = f" {unpacked} is unpacked: the archive is needed." if unpacked else ""
        there = "holds no file of Omniglot" if data_dir.is_dir() else "is no directory"
        raise RequestError(
            f"{data_dir} {there}.{hint} Pass the directory that holds "
            f"{_ACCEPTED}, with --data-dir."
        )
    return found


def _stem(archive: str) -> str:
    return archive.removesuffix(".zip")


def _read(data_dir: Path, archives: list[Path], pixels: int) -> Characters:
    """The drawings of all archives, by alphabet, character and drawing."""
    drawings: dict[tuple[str, str], np.ndarray] = {}
    for path in archives:
        _add(path, pixels, drawings)
    keys = sorted(drawings)
    names = sorted({character for character, _ in keys})
    place = {name: number for number, name in enumerate(names)}
    return Characters.create(
        np.stack([drawings[key] for key in keys]),
        np.array([place[character] for character, _ in keys], np.int64),
        names,
        title="Omniglot",
        whole=CHARACTERS,
        source=str(data_dir),
    )


def _add(path: Path, pixels: int, drawings: dict[tuple[str, str], np.ndarray]) -> None:
    """Adds an archive's drawings, (character, drawing) -> (pixels, pixels) uint8, but known ones.

    Raises:
        RequestError: the archive is damaged or of another data set.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [(member, _key(path, member.filename)) for member in archive.infolist()]
            if not any(key for _, key in members):
                raise RequestError(
                    f"{path} holds no drawing of Omniglot, such as "
                    f"{_stem(path.name)}/Greek/character01/0394_01.png. Pass {_ACCEPTED}, with "
                    "--data-dir."
                )
            for member, key in members:
                if key is not None and key not in drawings:
                    where = f"{member.filename} in {path}"
                    if member.file_size > _LARGEST_FILE:
                        raise RequestError(
                            f"{where} has {member.file_size:,} bytes, must have at most "
                            f"{_LARGEST_FILE:,}. Copy the data set again."
                        )
                    drawings[key] = _drawing(archive.read(member), where, pixels)
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({why(error)}).") from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        RuntimeError,  # encrypted, or NotImplementedError: an unknown compression
    ) as error:
        raise RequestError(
            f"{path} is damaged, incomplete or no zip archive ({why(error)}). Copy the data set "
            "again."
        ) from error


def _key(path: Path, member: str) -> tuple[str, str] | None:
    """(alphabet/character, drawing) of a member; None if it is no drawing.

    Raises:
        RequestError: its path leads out of the archive.
    """
    parts = re.split(r"[/\\]", member)
    if parts[0] == "" or parts[0].endswith(":") or ".." in parts:
        raise RequestError(
            f"{path} has a member whose path leads out of it ({member!r}), as no published one "
            "has. Take the archive from its publisher."
        )
    match = _MEMBER.fullmatch(member)
    return (match["character"], match["drawing"]) if match else None


def _drawing(encoded: bytes, where: str, pixels: int) -> np.ndarray:
    """A drawing with high ink: (pixels, pixels) uint8."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(encoded), formats=("PNG",)) as image:
            width, height = image.size
            square = width == height <= _LARGEST_SIDE
            grey = resized(image, pixels) if square else None
    except Exception as error:  # a damaged image can raise anything
        reason = "unknown format" if "cannot identify" in str(error) else why(error)
        raise RequestError(
            f"{where} is damaged or no PNG image ({reason}). Copy the data set again."
        ) from error
    if grey is None:
        raise RequestError(
            f"{where} is {width} x {height} pixels, must be square, as the published {SIDE} x "
            f"{SIDE}. Copy the data set again."
        )
    return 255 - grey


def _download(folder: Path, where: str) -> None:
    """Downloads the two archives of the whole data set into `folder`.

    Raises:
        RequestError: they cannot be downloaded, see `downloading`.
    """
    with downloading("Omniglot", 16, folder, where, f"Pass it with --data-dir DIR: {_ACCEPTED}."):
        from torchvision.datasets import Omniglot
        from torchvision.datasets.utils import download_url

        for stem, md5 in Omniglot.zips_md5.items():
            name = f"{stem}.zip"
            download_url(f"{Omniglot.download_url_prefix}/{name}", folder, name, md5)


DATA_SET = DataSet(
    title="Omniglot",
    folder="omniglot",
    accepted=_ACCEPTED,
    belongs=ARCHIVES.__contains__,
    download=_download,
)
