"""Reads a data set from a directory, a copy of shared storage, or its download.

    --data-dir DIR    is read in place
    --data-dir URL    is copied to the cache of this machine, even if it is file:///folder
    --cache-dir URL   keeps the download for all machines, each of which copies it to its cache
    neither           downloads it to the cache of this machine

A data set that an installed package ships is read there unless --data-dir says otherwise.

Shared storage is s3://bucket/folder or any other URL that fsspec knows. A copy is a folder
`fetched/<name>` of the cache. The name is a hash of the URL and of the names, sizes and versions
of the files, so that changed data is copied anew. One process of a machine copies and the others
wait; an interrupted copy is never used.

In `--cache-dir URL` a download is `downloads/<data set>/`, complete once it has its manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from study.errors import RequestError
from study.storage.storage import ResultsError, Storage
from study.storage.urls import expanded
from study.tasks.sources.cache import CACHE_VARIABLE, cache_root, is_url, locked, whole
from study.tasks.sources.places import Places
from study.tasks.sources.reading import why
from study.terminal.working import working

T = TypeVar("T")

MANIFEST = "manifest.json"
"""Written last beside the files of a download: {"files": {name: {"size", "sha256"}}}."""

_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""Names that file systems give the version of a file, the most precise first."""

_AT_A_TIME = 8  # whole files in memory; a Parquet shard has 120 MB


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
    """

    title: str
    folder: str
    accepted: str
    belongs: Callable[[str], bool]
    download: Callable[[Path, str], None]
    shipped: Callable[[], Path | None] = lambda: None

    @property
    def downloads(self) -> str:
        """The folder of the download, in a cache as on shared storage."""
        return f"downloads/{self.folder}"


def read_data_set(data_set: DataSet, places: Places, read: Callable[[Path], T]) -> T:
    """Reads a data set from its directory, copy or download; makes those if they are missing.

    Args:
        data_set: to read.
        places: of the data set and the cache.
        read: reads the files in a folder; raises a `RequestError`.

    Raises:
        RequestError: the data set cannot be copied or downloaded; or from `read`.
    """
    data_dir, cache_dir, *_ = places
    cache = cache_root(cache_dir)
    if data_dir is not None and not is_url(data_dir):
        return read(expanded(data_dir))
    if data_dir is None and (folder := data_set.shipped()) is not None:
        return read(folder)
    if data_dir is not None:
        files = _listed(data_set, _Source(data_dir))
    elif is_url(cache_dir):
        files = _shared_download(data_set, str(cache_dir), cache)
    else:
        return _read_download(data_set, cache, read)
    copy = _fetch(data_set, files, cache)
    try:
        return read(copy)
    except RequestError as error:
        raise RequestError(
            f"{error} It was copied from {files.where}: mend it there, or delete {copy} to have "
            "it copied again."
        ) from error


def at_hand(data_set: DataSet, places: Places) -> bool:
    """Whether `read_data_set` would neither copy nor download anything.

    Raises:
        RequestError: shared storage cannot be read, or has no file of the data set.
    """
    data_dir, cache_dir, *_ = places
    cache = cache_root(cache_dir)
    if data_dir is not None:
        return not is_url(data_dir) or _listed(data_set, _Source(data_dir)).copy(cache).is_dir()
    if data_set.shipped() is not None:
        return True
    if is_url(cache_dir):
        files = _manifest(data_set, _Source(str(cache_dir)))
        return files is not None and files.copy(cache).is_dir()
    return (cache / data_set.downloads).is_dir()


# Shared storage


class _File(NamedTuple):
    """A file on shared storage.

    Attributes:
        size: in bytes.
        version: an ETag or time, which changes with the content; empty if `sha256` is known.
        sha256: of the content.
    """

    size: int
    version: str
    sha256: str | None = None


class _Source(Storage):
    """Shared storage of data.

    Raises:
        RequestError: its URL cannot be used, see `Storage`.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, "the data directory")

    def files(self) -> dict[str, _File]:
        """Name -> file, without hidden ones.

        Raises:
            RequestError: the files cannot be listed, or have no sizes.
        """
        found: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(FileNotFoundError), self.reading(""):
            self._fs.invalidate_cache()  # others write, too
            found = self._fs.find(self._root, detail=True)
        files = {}
        for path, info in found.items():
            name = path.removeprefix(f"{self._root}/")
            # "..", or an empty part, would lead out of the folder.
            if any(not part or part.startswith(".") for part in name.split("/")):
                continue
            if not isinstance(info["size"], int):
                raise RequestError(
                    f"{self.url} tells no sizes of its files, so that a broken copy would go "
                    "unnoticed. Copy the data set yourself, and pass its directory."
                )
            version = next((str(info[key]) for key in _VERSIONS if key in info), "")
            files[name] = _File(info["size"], version)
        return files


@dataclass(frozen=True)
class _Files:
    """The files of a data set on shared storage.

    Attributes:
        source: the storage.
        folder: their folder in `source`; empty: `source` itself.
        files: name in that folder -> file; at least one.
    """

    source: _Source
    folder: str
    files: dict[str, _File]

    @property
    def checked(self) -> bool:
        """Whether all files have checksums, so that a mix of versions would show."""
        return all(file.sha256 for file in self.files.values())

    @property
    def where(self) -> str:
        """The full path or URL of the folder, for messages."""
        return self.source.path(self.folder).rstrip("/")

    def copy(self, cache: Path) -> Path:
        """The folder of their copy, whether it exists or not."""
        known = json.dumps([self.where, sorted(self.files.items())])
        return cache / "fetched" / hashlib.sha256(known.encode()).hexdigest()[:16]

    def read(self, name: str) -> bytes:
        """Reads one file.

        Raises:
            RequestError: it cannot be read, or its size or checksum is wrong.
        """
        path = f"{self.folder}/{name}".lstrip("/")
        known = self.files[name]
        try:
            data = self.source.read(path)
        except FileNotFoundError as error:
            raise self._differs(name, "is gone") from error
        if len(data) != known.size:
            raise self._differs(name, f"has {len(data)} bytes, not {known.size}")
        if known.sha256 is not None and hashlib.sha256(data).hexdigest() != known.sha256:
            raise self._differs(name, "has another checksum")
        return data

    def _differs(self, name: str, fault: str) -> RequestError:
        if self.files[name].sha256 is not None:
            return _damaged(self.where, f"{name} {fault}")
        return self.changed(f"{name} {fault}")

    def changed(self, fault: str) -> RequestError:
        """The error for files that changed while they were copied."""
        return RequestError(
            f"the data set in {self.where} changed while it was copied ({fault}). Run the command "
            "again when it is complete."
        )


def _damaged(where: str, fault: str) -> RequestError:
    return RequestError(
        f"the download in {where} is not what its {MANIFEST} says ({fault}). Delete that folder: "
        "the next run downloads it again."
    )


def _listed(data_set: DataSet, source: _Source) -> _Files:
    """The files of a data set under a URL.

    Raises:
        RequestError: there are none, or they cannot be listed.
    """
    files = {name: file for name, file in source.files().items() if data_set.belongs(name)}
    if not files:
        raise RequestError(
            f"{source.url} holds no file of {data_set.title}. Accepted: {data_set.accepted}."
        )
    return _Files(source, "", files)


def _fetch(data_set: DataSet, files: _Files, cache: Path) -> Path:
    """The copy of the files, made now if it is missing."""
    copy = files.copy(cache)
    if copy.is_dir():
        return copy
    with locked(copy):
        if copy.is_dir():  # another process made it meanwhile
            return copy
        size = sum(file.size for file in files.files.values())
        print(
            f"copying {data_set.title} ({len(files.files):,} files, {size / 1e6:,.0f} MB) from "
            f"{files.where} to {copy}",
            file=sys.stderr,
            flush=True,
        )
        try:
            with (
                working(f"copying {data_set.title}", size / 1e6, "MB") as part,
                whole(copy) as partial,
                ThreadPoolExecutor(_AT_A_TIME) as pool,
            ):
                # An error is raised here, and the rest is cancelled.
                for copied in pool.map(lambda name: _copy(files, name, partial), files.files):
                    part.step(copied / 1e6)
                if not files.checked and _listed(data_set, files.source).files != files.files:
                    raise files.changed("it has other files now")
        except OSError as error:
            raise RequestError(
                f"{files.where} cannot be copied to {copy} ({why(error)}). It takes "
                f"{size / 1e6:,.0f} MB: free space there, or set {CACHE_VARIABLE} to a directory "
                "that can be written."
            ) from error
    return copy


def _copy(files: _Files, name: str, folder: Path) -> int:
    """Copies one file; its size in bytes."""
    data = files.read(name)
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return len(data)


# Downloads kept on shared storage


def _shared_download(data_set: DataSet, url: str, cache: Path) -> _Files:
    """The download on shared storage, made now if it is missing."""
    source = _Source(url)
    files = _manifest(data_set, source)
    if files is not None:
        return files
    with locked(cache / "fetched" / data_set.folder):
        files = _manifest(data_set, source)
        if files is not None:  # another process of this machine made it meanwhile
            return files
        try:
            source.make(data_set.downloads)
            source.probe(data_set.downloads)  # before a long download
            with _downloaded(data_set, cache) as folder:
                return _upload(data_set, source, folder)
        except ResultsError as error:
            raise RequestError(
                f"{data_set.title} cannot be kept in {source.path(data_set.downloads)} "
                f"({why(error.__cause__ or error)}). Make it writable, choose another place with "
                "--cache-dir, or leave the option out."
            ) from error


def _upload(data_set: DataSet, source: _Source, folder: Path) -> _Files:
    files = {}
    paths = sorted(path for path in folder.iterdir() if data_set.belongs(path.name))
    with working(f"uploading {data_set.title}", len(paths), "files") as part:
        for path in part.each(paths):
            data = path.read_bytes()
            source.write(f"{data_set.downloads}/{path.name}", data)
            files[path.name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = json.dumps({"files": files}, indent=1).encode()
    source.write(f"{data_set.downloads}/{MANIFEST}", manifest)
    return _parsed(data_set, source, manifest)


def _manifest(data_set: DataSet, source: _Source) -> _Files | None:
    """The files of a download on shared storage; None if it is missing or incomplete."""
    try:
        manifest = source.read(f"{data_set.downloads}/{MANIFEST}")
    except FileNotFoundError:
        return None
    return _parsed(data_set, source, manifest)


def _parsed(data_set: DataSet, source: _Source, manifest: bytes) -> _Files:
    try:
        files = {
            name: _File(int(known["size"]), "", str(known["sha256"]))
            for name, known in json.loads(manifest)["files"].items()
        }
        if not files or any("/" in name or name.startswith(".") for name in files):
            raise ValueError("it names no files, or files elsewhere")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        where = source.path(data_set.downloads)
        raise _damaged(where, "which is damaged") from error
    return _Files(source, data_set.downloads, files)


# Downloads kept on this machine


def _read_download(data_set: DataSet, cache: Path, read: Callable[[Path], T]) -> T:
    with _downloaded(data_set, cache) as folder:
        try:
            return read(folder)
        except RequestError as error:
            if folder != cache / data_set.downloads:  # a temporary one
                raise
            raise RequestError(
                f"{error} Or delete {folder}: the next run downloads it again."
            ) from error


@contextlib.contextmanager
def _downloaded(data_set: DataSet, cache: Path) -> Iterator[Path]:
    """The folder of the official files; a temporary one if the cache cannot be written."""
    place = cache / data_set.downloads
    # os.path.isdir, which raises nothing if the cache cannot be entered.
    if not os.path.isdir(place) and not _can_write(place.parent):
        with tempfile.TemporaryDirectory() as temporary:
            reason = f"a temporary folder: the cache cannot be written, see {CACHE_VARIABLE}"
            data_set.download(Path(temporary), reason)
            yield Path(temporary)
        return
    if not os.path.isdir(place):
        with locked(place):
            if not os.path.isdir(place):  # unless another process was faster
                try:
                    with whole(place) as partial:
                        data_set.download(partial, str(place))
                except OSError as error:
                    raise RequestError(
                        f"{place} cannot be written ({why(error)}). Set {CACHE_VARIABLE} to a "
                        "directory that can be written."
                    ) from error
    yield place


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
