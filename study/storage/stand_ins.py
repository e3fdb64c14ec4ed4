"""What may stand in the place of a file: a pointer of Git LFS, a named pipe, a device."""

from __future__ import annotations

import stat
from pathlib import Path

from study.errors import ResultsError

_POINTER = b"version https://git-lfs.github.com/spec/"
_LONGEST = 1_024  # bytes of a pointer, by its specification


def refuse_pointer(place: object, content: bytes) -> None:
    """Refuses the content of a file that is a pointer, as a clone without Git LFS leaves it.

    Raises:
        ResultsError: it is one; not damage, after which cells would run again.
    """
    if content.startswith(_POINTER):
        raise ResultsError(
            f"{place} is a pointer of Git LFS, not the file itself. Run `git lfs pull` in its "
            "repository, or copy the file there."
        )


def refuse_stand_in(path: Path, name: object = None) -> None:
    """Refuses what could be read for ever, and pointers; a missing file is let pass.

    Args:
        path: on this machine.
        name: for messages, where it is not the path.

    Raises:
        ResultsError: it is one of these.
        OSError: it cannot be read.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode):
        if status.st_size <= _LONGEST:
            refuse_pointer(name or path, path.read_bytes())
    elif not stat.S_ISDIR(status.st_mode):
        raise ResultsError(
            f"{name or path} is a named pipe, a socket or a device, not a file. Move it away."
        )
