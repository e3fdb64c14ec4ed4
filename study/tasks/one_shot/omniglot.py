"""Omniglot: its zip archives, their prepared form, and their download through torchvision.

The archives are read as they are, never unpacked. They overlap: the small ones are parts of
images_background.zip and share Greek and Latin; a drawing that is in several counts once.
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import numpy as np

from study.tasks.one_shot.characters import Characters, prepared, resized
from study.tasks.sources.cached import fingerprint
from study.tasks.sources.data_set import DataSet, read_data_set
from study.tasks.sources.directory import listed, nothing_in
from study.tasks.sources.downloading import downloading
from study.tasks.sources.places import Places
from study.tasks.sources.reading import reading

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
_AGAIN = "Copy the data set again."
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
    cache = places.cache
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
    with listed(data_dir, "Omniglot") as entries:
        found = [data_dir / name for name in ARCHIVES if (data_dir / name).is_file()]
    if not found:
        raise nothing_in(data_dir, entries, "archive of Omniglot", _ACCEPTED)
    return found


def _read(data_dir: Path, archives: list[Path], pixels: int) -> Characters:
    """The drawings of all archives, by alphabet, character and drawing."""
    drawings: dict[tuple[str, str], np.ndarray] = {}
    for path in archives:
        _add(path, pixels, drawings)
    if not drawings:
        raise nothing_in(data_dir, archives, "drawing of Omniglot", _ACCEPTED)
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
        RequestError: the archive is damaged.
    """
    with reading(path, _AGAIN), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            match = _MEMBER.fullmatch(member.filename)
            if match and match.groups() not in drawings:
                with reading(f"{member.filename} in {path}", _AGAIN):
                    if member.file_size > _LARGEST_FILE:
                        raise ValueError(f"it has {member.file_size:,} bytes")
                    drawings[match["character"], match["drawing"]] = _drawing(
                        archive.read(member), pixels
                    )


def _drawing(encoded: bytes, pixels: int) -> np.ndarray:
    """A drawing with high ink: (pixels, pixels) uint8; of a bad one any exception."""
    from PIL import Image

    with Image.open(io.BytesIO(encoded), formats=("PNG",)) as image:
        width, height = image.size
        if not width == height <= _LARGEST_SIDE:
            raise ValueError(f"it is {width} x {height} pixels, must be {SIDE} x {SIDE}")
        return 255 - resized(image, pixels)


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
