"""One directory on a local disk or in an object store: whole files, none ever half written.

Results, checkpoints and fork points go through here.
Names are relative to the directory, with `/` between folders.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from study.errors import ResultsError as ResultsError
from study.storage import urls

if TYPE_CHECKING:
    import pyarrow as pa

_GLANCE = 0.05  # seconds, within which `is_locked` has long let go
_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.part$")


class Storage:
    """One directory.

    Args:
        url: local path or fsspec URL.
        what: it is, for messages.

    Attributes:
        url: as given; of a `file://` URL, the path.
        local: whether it lies on a file system of this machine.

    Raises:
        ResultsError: no file system is known or installed for the URL, it holds a password, or
            its bucket is not there or cannot be listed.
    """

    def __init__(self, url: str | os.PathLike[str], what: str = "the results directory") -> None:
        path = urls.local_path(url)
        self.url = os.fspath(url) if path is None else str(path)
        self._what = what
        self._fs, self._root = urls.open_url(self.url, what)
        self.local = urls.is_local(self._fs)
        self._locked = False

    def make(self, folder: str) -> None:
        """Makes a folder of the directory, and the directory, where they are not there.

        An object store has none: they are parts of names.

        Raises:
            ResultsError: it cannot be made.
        """
        if urls.has_folders(self._fs):
            with self._writing(folder):
                self._fs.makedirs(self._path(folder), exist_ok=True)

    def write(self, name: str, data: bytes) -> None:
        """Writes a whole file: who reads it sees all of it, or what was there before.

        It makes no folder: a directory that was lost on the way (unmounted, deleted) must not be
        made anew, empty, while a study runs.

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
        path = self._path(f"{folder}/probe.{uuid.uuid4().hex}.part")
        with self._writing(folder):
            self._write(path, b"")
            self._fs.rm_file(path)

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: it is not there.
            ResultsError: it is there and cannot be read.
        """
        with self._reading(name):
            if not self.local:
                return self._fs.cat_file(self._path(name))
            with open(self._path(name), "rb") as file:
                return file.read()

    def open(self, name: str) -> pa.NativeFile | io.RawIOBase:
        """A file to read pieces of.

        Raises:
            FileNotFoundError: it is not there.
            ResultsError: it is there and cannot be opened.
        """
        with self._reading(name):
            if self.local:
                import pyarrow as pa

                return pa.OSFile(self._path(name), "rb")  # Arrow reads it without Python's lock
            self._fs.invalidate_cache()  # others write, too
            file = self._fs.open(self._path(name), "rb")
            return _Pieces(file, lambda: self._reading(name))

    def exists(self, name: str) -> bool:
        """Whether a file or folder of this name is there.

        Raises:
            ResultsError: an object store does not say.
        """
        if self.local:
            return os.path.exists(self._path(name))
        with self._reading(name):
            self._fs.invalidate_cache()  # others write, too
            return self._fs.exists(self._path(name))

    def is_broken_link(self, name: str) -> bool:
        """Whether a link of this name is there, and what it leads to is not."""
        path = self._path(name)
        return self.local and os.path.islink(path) and not os.path.exists(path)

    def names(self, folder: str, suffix: str = "") -> list[str]:
        """Names of the files under a folder and its folders, sorted; none without the folder.

        Files that are still being written, or were when their writer was killed, are left out.

        Raises:
            ResultsError: the folder is there and cannot be listed.
        """
        found = self._files(folder)
        return sorted(n for n in found if n.endswith(suffix) and not _PARTIAL.search(n))

    def move(self, name: str, to: str) -> str:
        """Moves a file, making the folders of its new name; never overwrites.

        Returns:
            The new name: `to`, or with a number before its extension where `to` is taken.

        Raises:
            FileNotFoundError: it is not there.
            ResultsError: it cannot be moved.
        """
        stem, extension = os.path.splitext(to)
        target, number = to, 0
        while self.exists(target) or self.is_broken_link(target):
            number += 1
            target = f"{stem}-{number}{extension}"
        self.make(os.path.dirname(to))
        if not self.exists(name) and not self.is_broken_link(name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path(name))
        with self._writing(target):
            if self.local:
                self._fs.mv(self._path(name), self._path(target))
            else:  # a kill in between leaves both
                self._fs.cp_file(self._path(name), self._path(target))
                self._fs.rm_file(self._path(name))
        return target

    def remove(self, name: str) -> None:
        """Removes a file; none is no error.

        Raises:
            ResultsError: it is there and cannot be removed.
        """
        with self._writing(name), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def sweep(self, folder: str = "") -> None:
        """Removes the unfinished files that killed writers left under a folder.

        For the one driver: while another holds the lock, its unfinished files are no left-overs,
        and nothing is removed. An object store has neither locks nor such files: of an upload
        that a kill ended, it shows nothing.

        Raises:
            ResultsError: one cannot be removed.
        """
        try:
            with contextlib.nullcontext() if self._locked else self.lock():
                for name in self._files(folder):
                    if _PARTIAL.search(name):
                        self.remove(name)
        except Locked:
            return

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other drivers out of a local directory; the lock ends with the process.

        Raises:
            Locked: another process holds it.
            ResultsError: the directory cannot be locked.
        """
        if not self.local:
            yield
            return
        with contextlib.ExitStack() as stack:
            with self._writing(".lock"):
                file = stack.enter_context(open(self._path(".lock"), "w"))
                if not _flock(file):
                    time.sleep(_GLANCE)  # it may be a report that asked whether a study runs
                    if not _flock(file):
                        raise Locked(
                            f"another study is running with the results directory {self.url}. "
                            "Wait for its end, or choose another directory with --results DIR."
                        )
            self._locked = True
            stack.callback(setattr, self, "_locked", False)
            yield

    def is_locked(self) -> bool:
        """Whether another process holds the lock of a local directory.

        A lock that cannot be asked for, and an object store, which has none, count as free.
        """
        if not self.local or self._locked:
            return False
        try:
            with open(self._path(".lock"), "rb") as file:
                return not _flock(file, fcntl.LOCK_SH)
        except OSError:  # never locked, or not readable
            return False

    def path(self, name: str) -> str:
        """A name with the directory before it, for people."""
        return f"{self.url.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _write(self, path: str, data: bytes) -> None:
        if not self.local:
            self._fs.pipe_file(path, data)  # an object appears when it is complete
            return
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

    def _files(self, folder: str) -> list[str]:
        """Names of all files under a folder."""
        with self._reading(folder):
            if not self.local:
                self._fs.invalidate_cache()  # others write, too
                paths = self._found(folder)
            else:
                paths = [
                    os.path.join(where, name)
                    for where, _, names in os.walk(self._path(folder), onerror=_unless_gone)
                    for name in names
                ]
        return [path.removeprefix(f"{self._root}/") for path in paths]

    def _found(self, folder: str) -> list[str]:
        try:
            return self._fs.find(self._path(folder))
        except FileNotFoundError as error:
            if urls.has_folders(self._fs):
                return []
            raise ResultsError(  # an object store lists nothing of a folder that is not there
                f"cannot read {self.path(folder)} ({urls.reason(error)}). "
                f"{urls.remedy(error, self._fs, '')}."
            ) from error

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not urls.is_failure(error):
                raise
            remedy = urls.remedy(error, self._fs, "Make it writable")
            raise ResultsError(
                f"cannot write to {self._what} {self.path(name)} ({urls.reason(error)}). "
                f"{remedy}: the same command goes on where this one ended. Or choose another one."
            ) from error

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            if not urls.is_failure(error):
                raise
            remedy = urls.remedy(error, self._fs, "Make it readable")
            raise ResultsError(
                f"cannot read {self.path(name)} ({urls.reason(error)}). {remedy}."
            ) from error


class _Pieces(io.RawIOBase):
    """A file in a store, read in pieces: a lost connection is no damage of the file."""

    def __init__(self, file: BinaryIO, reading: Callable[[], AbstractContextManager[None]]):
        self._file = file
        self._reading = reading

    def read(self, size: int = -1) -> bytes:
        with self._reading():
            return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


class Locked(ResultsError):
    """A results directory with which another study runs."""


def _flock(file: IO[Any], kind: int = fcntl.LOCK_EX) -> bool:
    """Whether a lock could be had; it ends with the file."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync_folder(path: str) -> None:
    """Makes a rename outlast a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every file system can
            raise
    finally:
        os.close(descriptor)


def _unless_gone(error: OSError) -> None:
    """For `os.walk`, which would take an unreadable folder for an empty one."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
