"""Omniglot: its zip archives, their prepared form, and their download through torchvision.

The archives are read as they are, never unpacked. They overlap: the small ones are parts of
images_background.zip and share Greek and Latin; a drawing that is in several counts once.
torchvision's `Omniglot` unpacks them, and knows no small ones.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from chapters.paths.one_shot.characters import Characters, prepared
from study.errors import RequestError
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

_CHARACTERS = 1_623  # of the whole data set
_LEAST_CHARACTERS = 6  # two each that train, validate and test
_LARGEST_FILE = 1_000_000  # bytes of a drawing; published ones have some 300

_ACCEPTED = f"its zip archives, one or more of {', '.join(ARCHIVES)}"
_AGAIN = "Copy the data set again."
_PREPARED_VERSION = 2
"""Part of the prepared form's name; raise it when the reader returns something else."""

_MEMBER = re.compile(  # a character, and the drawing of it
    r"images_(?:background|evaluation|background_small[12])/"
    r"([^/\\]+/character\d+)/(\d+_\d+)\.png"
)


def load_omniglot(places: Places, pixels: int) -> Characters:
    """Omniglot, or the part of it that is at hand, as ink on an empty ground.

    Args:
        places: of the archives, and of the cache, for downloads and prepared images.
        pixels: height and width to which the drawings are resized, antialiased.

    Raises:
        RequestError: it is not at hand and cannot be downloaded; or its archives are damaged, of
            another data set, or too few.
    """

    def load(folder: Path) -> Characters:
        with listed(folder, "Omniglot") as names:
            archives = [folder / name for name in names if name in ARCHIVES]
        if not archives:
            raise nothing_in(folder, names, "archive of Omniglot", _ACCEPTED)
        known = fingerprint(f"{_PREPARED_VERSION} {pixels}", archives)
        place = places.cache / "prepared" / f"omniglot-{known}"
        return prepared(place, lambda: _characters(archives, pixels))

    return read_data_set(DATA_SET, places, load)


def _characters(archives: Sequence[Path], pixels: int) -> Characters:
    """The drawings of archives of a folder, in the order of their names.

    Raises:
        RequestError: an archive is damaged, or they are too few.
    """
    drawings = _drawings(archives, pixels)
    keys = sorted(drawings)
    names, characters = np.unique([name for name, _ in keys], return_inverse=True)
    counts = np.bincount(characters, minlength=1)
    if len(names) < _LEAST_CHARACTERS or counts.min() < 2:
        raise RequestError(
            f"{archives[0].parent} holds {len(names)} characters of Omniglot and at least "
            f"{counts.min()} drawings of each: episodes take {_LEAST_CHARACTERS} characters or "
            f"more, and 2 drawings or more. Accepted: {_ACCEPTED}."
        )
    alphabets = {name.partition("/")[0] for name in names.tolist()}
    about = f"Omniglot: {len(names):,} of its {_CHARACTERS:,} characters"
    return Characters(
        np.stack([drawings[key] for key in keys]),
        characters,
        names.tolist(),
        f"{about}, of {len(alphabets)} alphabets",
    )


def _drawings(archives: Sequence[Path], pixels: int) -> dict[tuple[str, ...], np.ndarray]:
    """(character, drawing) -> (pixels, pixels) uint8, ink is high."""
    found: dict[tuple[str, ...], np.ndarray] = {}
    for path in archives:
        with reading(path, _AGAIN), zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                match = _MEMBER.fullmatch(member.filename)
                if match and match.groups() not in found:
                    with reading(f"{member.filename} in {path}", _AGAIN):
                        found[match.groups()] = _drawing(archive, member, pixels)
    return found


def _drawing(archive: zipfile.ZipFile, member: zipfile.ZipInfo, pixels: int) -> np.ndarray:
    from PIL import Image

    if member.file_size > _LARGEST_FILE:
        raise ValueError(f"it has {member.file_size:,} bytes")
    image = Image.open(io.BytesIO(archive.read(member)), formats=("PNG",))
    grey = image.convert("L").resize((pixels, pixels), Image.Resampling.BILINEAR)
    return 255 - np.asarray(grey)


def _download(folder: Path, where: str) -> None:
    """Downloads the two archives of the whole data set into `folder`.

    Raises:
        RequestError: they cannot be downloaded, see `downloading`.
    """
    remedy = f"Pass it with --data-dir DIR (data_dir in Python): {_ACCEPTED}."
    with downloading("Omniglot", 16, folder, where, remedy):
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
