"""Finds a data set: in a directory, as a copy of shared storage, or as its download.

    --data-dir DIR    is read in place
    --data-dir URL    is copied to the cache of this machine, even if it is file:///folder
    --cache-dir URL   keeps the download for all machines, each of which copies it to its cache
    neither           downloads it to the cache of this machine

A data set that an installed package ships is read there unless --data-dir says otherwise.

A URL is s3://bucket/folder, or any other one that fsspec knows. Its copy is a folder
`fetched/<name>` of the cache, whose name is a hash of the URL and of the names, sizes and versions
of the files, so that changed data is copied anew. hf://datasets/ORG/NAME is a data set of the
Hugging Face Hub; where a task takes any, it is kept as Parquet, see `study.tasks.sources.hub`.

In `--cache-dir URL` a download is `downloads/<data set>/`, complete once it has its list of files.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

from study.errors import RequestError, ResultsError
from study.storage.hashed import hashed
from study.storage.storage import Storage
from study.storage.urls import expanded
from study.tasks.sources.cached import cached
from study.tasks.sources.hub import fetch_of_the_hub, parsed
from study.tasks.sources.places import HUB, Places, is_url
from study.tasks.sources.reading import why
from study.terminal.working import aside, working

T = TypeVar("T")

LIST = "files.json"
"""Written last beside the files of a download on shared storage: their names."""


@dataclass(frozen=True)
class DataSet:
    """A data set that lies in a directory, on shared storage, or is downloaded.

    Attributes:
        title: for messages.
        folder: of its download, in `downloads` of the cache.
        accepted: the accepted layouts, for messages.
        belongs: whether a file belongs to it, by its name relative to the directory.
        download: (empty folder, its later place for a message) fills the folder with the official
            files, without subfolders; raises a `RequestError`.
        shipped: the folder in which an installed package ships it; None: no package does.
        any_of_the_hub: whether every data set of the Hugging Face Hub is tried.
    """

    title: str
    folder: str
    accepted: str
    belongs: Callable[[str], bool]
    download: Callable[[Path, str], None]
    shipped: Callable[[], Path | None] = lambda: None
    any_of_the_hub: bool = False


class _Found(NamedTuple):
    """Where a data set is or will be.

    Attributes:
        folder: of this machine.
        make: fills it, if it is missing; None: it is not the cache's.
        damaged: what to do if its files are, a sentence.
    """

    folder: Path
    make: Callable[[Path], None] | None = None
    damaged: str = ""


def read_data_set(data_set: DataSet, places: Places, read: Callable[[Path], T]) -> T:
    """Reads a data set from its directory, copy or download; makes those if they are missing.

    Args:
        data_set: to read.
        places: of the data set and the cache.
        read: reads the files in a folder; raises a `RequestError`.

    Raises:
        RequestError: the data set cannot be copied or downloaded; or from `read`.
    """
    found = _find(data_set, places)
    if found.make is None:
        return read(found.folder)
    folder = cached(found.folder, found.make, lambda folder: folder)
    try:
        return read(folder)
    except RequestError as error:
        raise RequestError(f"{error} {found.damaged}") from error


def at_hand(data_set: DataSet, places: Places) -> bool:
    """Whether `read_data_set` would neither copy nor download anything.

    Raises:
        RequestError: shared storage cannot be read, or has no file of the data set.
    """
    found = _find(data_set, places)
    return found.make is None or found.folder.is_dir()


def _find(data_set: DataSet, places: Places) -> _Found:
    given = places.data_dir
    if given is None:
        shipped = data_set.shipped()
        return _download(data_set, places) if shipped is None else _Found(shipped)
    if given.startswith(HUB):
        return _of_the_hub(data_set, given, places)
    return _copy(data_set, given, places) if is_url(given) else _Found(expanded(given))


def _of_the_hub(data_set: DataSet, url: str, places: Places) -> _Found:
    if not data_set.any_of_the_hub:
        raise RequestError(
            f"{data_set.title} is not taken from the Hub. Pass a directory with "
            f"--data-dir DIR (data_dir in Python). Accepted: {data_set.accepted}."
        )
    parsed(url)
    folder = places.cache / "fetched" / _hash(url)
    return _Found(
        folder,
        lambda partial: fetch_of_the_hub(url, partial),
        f"It is from {url}: delete {folder} to fetch it again.",
    )


# Shared storage


def _copy(data_set: DataSet, url: str, places: Places) -> _Found:
    """The copy of a URL's files.

    Raises:
        RequestError: there are none, or they cannot be listed.
    """
    source = Storage(url, "the data directory")
    files = _files(data_set, source)
    if not files:
        raise RequestError(
            f"{source.url} holds no file of {data_set.title}. Accepted: {data_set.accepted}."
        )
    folder = places.cache / "fetched" / _hash([source.url, sorted(files.items())])

    def make(partial: Path) -> None:
        where = f"({len(files):,} files) from {source.url} to {folder}"
        aside(f"copying {data_set.title} {where}")
        try:
            with working(f"copying {data_set.title}"):
                source.fetch(list(files), partial)
        except FileNotFoundError as error:
            raise RequestError(
                f"{source.url} cannot be copied: a file is gone, or a broken link ({why(error)}). "
                "Fix it, and run the command again."
            ) from error
        if _files(data_set, source) != files:
            raise RequestError(
                f"the data set in {source.url} changed while it was copied. Run the command again "
                "when it is complete."
            )

    mend = f"It was copied from {source.url}: fix it there, or delete {folder}."
    return _Found(folder, make, mend)


def _files(data_set: DataSet, source: Storage) -> Mapping[str, str]:
    """Name -> version, of the files of a data set."""
    return {name: version for name, version in source.versions().items() if data_set.belongs(name)}


def _hash(value: object) -> str:
    return hashed(json.dumps(value).encode())


# Downloads


def _download(data_set: DataSet, places: Places) -> _Found:
    folder = places.cache / "downloads" / data_set.folder
    if not is_url(places.cache_dir):
        return _Found(
            folder,
            lambda partial: data_set.download(partial, str(folder)),
            f"Or delete {folder}: the next run downloads it again.",
        )
    url = f"{str(places.cache_dir).rstrip('/')}/downloads/{data_set.folder}"
    shared = Storage(url, "the cache directory")
    return _Found(
        folder,
        lambda partial: _download_for_all(data_set, shared, partial, folder),
        f"Or delete {folder} and {shared.url}: the next run downloads it again.",
    )


def _download_for_all(data_set: DataSet, shared: Storage, partial: Path, folder: Path) -> None:
    """Copies the download of shared storage; if it is not there, downloads it and keeps it there.

    Raises:
        RequestError: it cannot be downloaded, or kept.
    """
    with contextlib.suppress(FileNotFoundError):
        names = json.loads(shared.read(LIST))
        with working(f"copying {data_set.title} from {shared.url}"):
            return shared.fetch(names, partial)
    try:
        shared.make("")
        shared.probe("")  # before a long download
        data_set.download(partial, str(folder))
        files = [path for path in sorted(partial.iterdir()) if data_set.belongs(path.name)]
        with working(f"uploading {data_set.title}", len(files), "files") as part:
            for path in part.each(files):
                shared.write(path.name, path.read_bytes())
        shared.write(LIST, json.dumps([path.name for path in files]).encode())
    except ResultsError as error:
        raise RequestError(
            f"{data_set.title} cannot be kept in {shared.url} ({why(error.__cause__ or error)}). "
            "Make it writable, choose another place with --cache-dir (cache_dir in Python), or "
            "leave the option out."
        ) from error
