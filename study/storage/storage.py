"""A directory on a local disk or in an object store, whose files are never half written.

Results, checkpoints and fork points go through here. Names are relative to the directory, with `/`
between folders.
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

_GLANCE = 0.05  # seconds; `is_locked` holds the lock for far less
_PATIENCE = 600.0
"""Seconds for which one that shares waits while another one begins, which reads all results."""

_SOON = 3.0
"""Seconds after which one that begins has said so, to other machines, too."""

_BEGINS = b"one that shares begins"
_PARTIAL = re.compile(r"\.[0-9a-f]{32}\.part$")
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
        self.local = urls.is_local(self._fs)
        self._held: int | None = None

    def make(self, folder: str) -> None:
        """Makes a folder of the directory, and the directory, if they are missing.

        An object store has no folders; they are only parts of names.

        Raises:
            ResultsError: it cannot be made.
        """
        if urls.has_folders(self._fs):
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

    def read(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            FileNotFoundError: there is no such file.
            ResultsError: the file cannot be read.
        """
        with self._reading(name):
            if not self.local:
                return self._fs.cat_file(self._path(name))
            with open(self._path(name), "rb") as file:
                return file.read()

    def open(self, name: str) -> pa.NativeFile | io.RawIOBase:
        """Opens a file to be read in pieces.

        Raises:
            FileNotFoundError: there is no such file.
            ResultsError: the file cannot be opened.
        """
        with self._reading(name):
            if self.local:
                import pyarrow as pa

                return pa.OSFile(self._path(name), "rb")  # read without Python's global lock
            self._fs.invalidate_cache()  # others write, too
            file = self._fs.open(self._path(name), "rb")
            return _Pieces(file, lambda: self._reading(name))

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of this name.

        Raises:
            ResultsError: an object store cannot be asked.
        """
        if self.local:
            return os.path.exists(self._path(name))
        with self._reading(name):
            self._fs.invalidate_cache()  # others write, too
            return self._fs.exists(self._path(name))

    def names(self, folder: str, suffix: str = "") -> list[str]:
        """Names of all files under a folder, at any depth, sorted; empty if there is no folder.

        Unfinished files are left out, whether their writer is at work or was killed, and hidden
        ones, which other programs leave.

        Raises:
            ResultsError: the folder cannot be listed.
        """
        found = self._files(folder)
        return sorted(n for n in found if n.endswith(suffix) and not _NO_FILE.search(n))

    def move(self, name: str, to: str) -> str:
        """Moves a file and makes the folders of its new name; never overwrites.

        Returns:
            The new name: `to`, with a number before the extension if `to` is taken.

        Raises:
            FileNotFoundError: there is no such file.
            ResultsError: the file cannot be moved.
        """
        stem, extension = os.path.splitext(to)
        target, number = to, 0
        while self.exists(target):
            number += 1
            target = f"{stem}-{number}{extension}"
        self.make(os.path.dirname(to))
        if not self.exists(name):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path(name))
        with self._writing(target):
            if self.local:
                self._fs.mv(self._path(name), self._path(target))
            else:  # a kill in between leaves both files
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

    def sweep(self, folder: str = "") -> None:
        """Removes the unfinished files that killed writers left under a folder.

        Only the driver calls it, or the first of those that share the lock. While others hold or
        share it, nothing is removed, since their files may still be finished. An object store has
        neither locks nor unfinished files.

        Raises:
            ResultsError: a file cannot be removed.
        """
        if self._held == fcntl.LOCK_SH:
            return
        try:
            with contextlib.nullcontext() if self._held else self.lock():
                for name in self._files(folder):
                    if _PARTIAL.search(name):
                        self.remove(name)
        except Locked:
            return

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps all others out of a local directory; the lock ends with the process.

        Raises:
            Locked: another process holds it, or shares it.
            ResultsError: the directory cannot be locked.
        """
        if not self.local:
            yield
            return
        with self._open_lock() as file:
            if not self._flock(file, fcntl.LOCK_EX):
                time.sleep(_GLANCE)  # a report may have just asked whether a study runs
                if not self._flock(file, fcntl.LOCK_EX):
                    raise self._refusal(shared=self._flock(file, fcntl.LOCK_SH))
            file.truncate(0)
            with self._holding(fcntl.LOCK_EX):
                yield

    @contextlib.contextmanager
    def share(self, begin: Callable[[], None]) -> Iterator[None]:
        """Keeps drivers out of a local directory, and lets others in that share it.

        Args:
            begin: called first where nobody else is there, while all others wait; by each, where
                an object store has no locks. It may be called twice.

        Raises:
            Locked: one that does not share it is there.
            ResultsError: the directory cannot be locked.
        """
        if not self.local:
            begin()
            yield
            return
        with self._open_lock() as file:
            began = time.monotonic()
            while True:
                if self._flock(file, fcntl.LOCK_EX):
                    with self._writing(".lock"):
                        file.truncate(0)
                        file.write(_BEGINS)
                        os.fsync(file.fileno())  # or NFS keeps it from the others
                    with self._holding(fcntl.LOCK_EX):
                        begin()
                    file.truncate(0)
                # Not in one step from one to the other: somebody may be faster, and begin anew.
                if self._flock(file, fcntl.LOCK_SH):
                    break
                begins = self.read(".lock") == _BEGINS
                if time.monotonic() - began > (_PATIENCE if begins else _SOON):
                    raise self._refusal(shared=False)
                time.sleep(_GLANCE)
            with self._holding(fcntl.LOCK_SH):
                yield

    @contextlib.contextmanager
    def lock_number(self, number: int) -> Iterator[bool]:
        """Keeps others off a number, of those that share a local directory.

        Gives whether no other process holds it.

        Raises:
            ResultsError: the directory cannot be locked.
        """
        if not self.local:
            yield True
            return
        with self._open_lock(".shares") as file:
            # A byte each, of one file: of a thousand that share, no thousand files stay.
            yield self._locks(
                lambda: fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number),
                held=(BlockingIOError, PermissionError),
            )

    def is_locked(self) -> bool:
        """Whether another process holds or shares the lock of a local directory.

        A lock that cannot be read counts as free, and so does an object store, which has none.
        """
        if not self.local or self._held:
            return False
        # An exclusive lock on NFS takes the right to write. Without it, only drivers are seen.
        for mode, kind in (("r+b", fcntl.LOCK_EX), ("rb", fcntl.LOCK_EX), ("rb", fcntl.LOCK_SH)):
            with (
                contextlib.suppress(OSError, ResultsError),
                open(self._path(".lock"), mode) as file,
            ):
                if self._flock(file, kind):
                    return False
                time.sleep(_GLANCE)  # somebody else may have just asked
                return not self._flock(file, kind)
        return False  # never locked, or not readable

    def path(self, name: str) -> str:
        """The full path or URL of a name, for people."""
        return f"{self.url.rstrip('/')}/{name}"

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _open_lock(self, name: str = ".lock") -> Iterator[BinaryIO]:
        """A file to lock, open for both as NFS asks for it, and unbuffered."""
        with contextlib.ExitStack() as stack:
            with self._writing(name):
                file = stack.enter_context(open(self._path(name), "a+b", buffering=0))
            yield file

    def _flock(self, file: IO[Any], kind: int) -> bool:
        """Takes a lock if it is free, and returns whether it was; it ends when the file closes."""
        return self._locks(lambda: fcntl.flock(file, kind | fcntl.LOCK_NB), (BlockingIOError,))

    def _locks(self, take: Callable[[], None], held: tuple[type[OSError], ...]) -> bool:
        """Whether a lock could be taken; `held` is what is raised where somebody has it."""
        try:
            take()
        except held:
            return False
        except OSError as error:
            raise ResultsError(
                f"cannot lock {self._what} {self.url} ({urls.reason(error)}). Its file system "
                "needs locks that hold on all machines, as Lustre has with the mount option "
                "flock. Or choose another directory."
            ) from error
        return True

    @contextlib.contextmanager
    def _holding(self, kind: int) -> Iterator[None]:
        self._held = kind
        try:
            yield
        finally:
            self._held = None

    def _refusal(self, shared: bool) -> Locked:
        who = "shards of a study are" if shared else "another study is"
        return Locked(
            f"{who} running with the results directory {self.url}. Wait for "
            f"{'their' if shared else 'its'} end, or choose another directory with --results DIR."
        )

    def _write(self, path: str, data: bytes) -> None:
        if not self.local:
            self._fs.pipe_file(path, data)  # an object appears only once it is complete
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
            raise ResultsError(  # an object store would list a missing folder as empty
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
    """A file in a store; a lost connection raises ResultsError, as the file is not damaged."""

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
    """Another study runs with the results directory."""


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
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error
