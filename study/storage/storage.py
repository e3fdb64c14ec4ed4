"""A directory on a local disk or in an object store, whose files are never half written.

Results and checkpoints go through here. Names are relative to the directory, with `/`
between folders.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

from study.errors import ResultsError as ResultsError
from study.storage import urls
from study.storage.stand_ins import refuse_pointer, refuse_stand_in

_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.part$")
_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
"""Names that file systems give the version of a file, the most precise first."""

_NO_FILE = re.compile(rf"(^|/)(\.|__MACOSX/)|{_PARTIAL.pattern}")


class Storage:
    """A directory on a local disk or in an object store.

    Args:
        url: local path or fsspec URL.
        what: the directory is, for messages.

    Attributes:
        url: as given; of a `file://` URL, the path.
        local: whether it lies on a file system of this machine.

    Raises:
        ResultsError: no file system is known or installed for the URL, it holds a password, or
            its bucket does not exist or cannot be listed.
    """

    def __init__(self, url: str | os.PathLike[str], what: str = "the results directory") -> None:
        path = urls.local_path(url)
        self.url = os.fspath(url) if path is None else str(path)
        self._what = what
        self._fs, self._root = urls.open_url(self.url, what)
        self.local = urls.is_local(self.url)

    def make(self, folder: str) -> None:
        """Makes a folder of the directory, and the directory, if they are missing.

        An object store has no folders; they are only parts of names.

        Raises:
            ResultsError: it cannot be made.
        """
        if urls.has_folders(self.url):
            with self._writing(folder):
                self._fs.makedirs(self._path(folder), exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Writes a whole file: a reader sees all of it, or what was there before.

        It makes no folder, since a directory that is lost while a study runs (unmounted, deleted)
        must not come back empty.

        Raises:
            ResultsError: a full disk, a missing folder, no permission.
        """
        with self._writing(name):
            self._write(self._path(name), data)

    def probe(self, folder: str) -> None:
        """Checks that a folder can be written.

        Raises:
            ResultsError: it cannot.
        """
        name = f"{folder}/probe.{uuid.uuid4().hex}.part"
        with self._writing(folder):
            self._write(self._path(name), b"")
        self.remove(name)  # unless a sweep did

    def require_writable(self) -> None:
        """Checks before the work that the directory, or the one to make it in, can be written.

        On a local disk it makes nothing, so that a command that is refused leaves nothing.

        Raises:
            ResultsError: it cannot.
        """
        with self._writing("", end=". Or choose another one."):
            if self.local:
                with_parents = [Path(self._root), *Path(self._root).parents]
                there = next(path for path in with_parents if path.exists() or path.is_symlink())
                tempfile.TemporaryFile(dir=there).close()
            else:
                self.make("")
                self.probe("")

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: there is no such file.
            ResultsError: the file cannot be read, or is a pointer of Git LFS.
        """
        with self.reading(name):
            if self.local:
                path = Path(self._path(name))
                refuse_stand_in(path)
                return path.read_bytes()
            data = self._fs.cat_file(self._path(name))
            refuse_pointer(self.path(name), data)
            return data

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of this name.

        Raises:
            ResultsError: an object store cannot be asked.
        """
        if self.local:
            return os.path.exists(self._path(name))
        with self.reading(name):
            self._fs.invalidate_cache()  # others write, too
            return self._fs.exists(self._path(name))

    def names(self, folder: str, prefix: str = "") -> list[str]:
        """Names of all files under a folder, at any depth, sorted; empty if there is no folder.

        Unfinished files are left out, whether their writer is at work or was killed, and hidden
        ones, which other programs leave.

        Args:
            folder: to list.
            prefix: only files of the folder itself whose names begin so.

        Raises:
            ResultsError: the folder cannot be listed.
        """
        found = self._files(folder, prefix)
        return sorted(name for name in found if not _NO_FILE.search(name))

    def versions(self) -> dict[str, str]:
        """Name -> version of all files, at any depth, without hidden ones; none: no such folder.

        A version is a file's ETag or time, and its size: it changes with the content.

        Raises:
            ResultsError: the directory cannot be listed.
        """
        found: dict[str, dict[str, object]] = {}
        with contextlib.suppress(FileNotFoundError), self.reading(""):
            self._fs.invalidate_cache()  # others write, too
            found = self._fs.find(self._root, detail=True)
        versions = {}
        for path, info in found.items():
            name = path.removeprefix(f"{self._root}/")
            # "..", or an empty part, would lead out of the folder.
            if all(part and not part.startswith(".") for part in name.split("/")):
                version = next((info[key] for key in _VERSIONS if key in info), "")
                versions[name] = f"{version} {info['size']}"
        return versions

    def move(self, name: str, to: str) -> str:
        """Moves a file and makes the folders of its new name; never overwrites.

        Returns:
            The new name: `to`, with some digits before the extension if `to` is taken.

        Raises:
            FileNotFoundError: there is no such file.
            ResultsError: the file cannot be moved.
        """
        target = to
        if self.exists(to):
            stem, extension = os.path.splitext(to)
            target = f"{stem}-{uuid.uuid4().hex[:8]}{extension}"
        self.make(os.path.dirname(to))
        with self._writing(target, may_miss=True):
            if self.local:
                self._fs.mv(self._path(name), self._path(target))
            else:  # `mv` takes a name for a pattern; a kill in between leaves both files
                self._fs.cp_file(self._path(name), self._path(target))
                self._fs.rm_file(self._path(name))
        return target

    def remove(self, name: str) -> None:
        """Removes a file; a missing one is no error.

        Raises:
            ResultsError: the file cannot be removed.
        """
        with self._writing(name), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def fetch(self, names: Sequence[str], folder: Path) -> None:
        """Copies files into a folder of this machine, several at a time.

        Raises:
            FileNotFoundError: one is not there.
            ResultsError: one cannot be read or copied.
        """
        for name in names if self.local else ():  # of a file:// URL
            refuse_stand_in(Path(self._path(name)))
        paths = [str(folder / name) for name in names]
        partial = [f"{path}.part" for path in paths]  # else one that breaks off would look damaged
        for path in paths:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with self.reading(""):
            self._fs.get([self._path(name) for name in names], partial)
        for path in paths:
            os.replace(f"{path}.part", path)

    def sweep(self, folder: str = "") -> None:
        """Removes the unfinished files that killed writers left under a folder; a store has none.

        A writer at work notices it, and writes its file again.

        Raises:
            ResultsError: a file cannot be removed.
        """
        for name in self._files(folder) if self.local else ():
            if _PARTIAL.search(name):
                self.remove(name)

    def path(self, name: str) -> str:
        """The full path or URL of a name, for people."""
        return f"{self.url.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _write(self, path: str, data: bytes) -> None:
        if not self.local:
            self._fs.pipe_file(path, data)  # an object appears only once it is complete
            return
        try:
            _write_and_rename(path, data)
        except FileNotFoundError:  # swept by a command that began meanwhile
            _write_and_rename(path, data)

    def _files(self, folder: str, prefix: str = "") -> list[str]:
        """Names of all files under a folder, or of those in it that begin so."""
        path = self._path(folder)
        if self.local:
            with self.reading(folder):
                walk = itertools.islice(os.walk(path, onerror=_unless_gone), 1 if prefix else None)
                paths = [os.path.join(where, name) for where, _, names in walk for name in names]
        else:
            # An object store lists a missing folder as empty; what is not there is its bucket.
            with urls.told(f"cannot read {self.path(folder)}", self.url, "Make it readable"):
                self._fs.invalidate_cache()  # others write, too
                paths = self._fs.find(path, prefix=prefix)
        names = [path.removeprefix(f"{self._root}/") for path in paths]
        return [name for name in names if not prefix or name.startswith(f"{folder}/{prefix}")]

    def _writing(
        self,
        name: str,
        may_miss: bool = False,
        end: str = ": the same command goes on. Or choose another one.",
    ) -> contextlib.AbstractContextManager[None]:
        failure = f"cannot write to {self._what} {self.path(name)}"
        return urls.told(failure, self.url, "Make it writable", end, may_miss=may_miss)

    def reading(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Says which file cannot be read, and what to do; that it is not there stays an error."""
        failure = f"cannot read {self.path(name)}"
        return urls.told(failure, self.url, "Make it readable", may_miss=True)


def _write_and_rename(path: str, data: bytes) -> None:
    partial = f"{path}.{uuid.uuid4().hex}.part"
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        with contextlib.suppress(OSError):
            os.remove(partial)
    _sync_folder(os.path.dirname(path))


def _sync_folder(path: str) -> None:
    """Syncs a folder, so that a rename in it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot
            raise
    finally:
        os.close(descriptor)


def _unless_gone(error: OSError) -> None:
    """Raises an error of `os.walk`, which would skip an unreadable folder."""
    if not isinstance(error, FileNotFoundError):
        raise error
