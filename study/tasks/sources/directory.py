"""A directory of data: the names in it, and which of its files are of which split."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from study.errors import RequestError, as_seen
from study.tasks.sources.reading import reading

NAMED: Mapping[str, str] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}
"""What splits may be called, in small letters -> the split."""

SPLIT_NAMES = "train, validation (or val, valid, dev) and test"
"""The names of splits, for messages."""

_OF_FILE_MANAGERS = (
    "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx", "@eadir", "lost+found",
    "$recycle.bin", "system volume information",
)  # fmt: skip


@contextlib.contextmanager
def listed(data_dir: Path, title: str, depth: int = 0) -> Iterator[list[str]]:
    """Gives the names in a data set's directory, which its body may read.

    They are relative to it and sorted, folder by folder. Those of folders end with a slash, and
    stand before what is in them. Without hidden files and those of file managers, editors and
    programs that synchronise.

    Args:
        data_dir: the directory.
        title: of the data set, for messages.
        depth: how many folders deep.

    Raises:
        RequestError: there is no such directory, or it cannot be read.
    """
    mend = "Make it readable, or pass another one with --data-dir (data_dir in Python)."
    with reading(data_dir, mend):
        if not data_dir.exists():
            raise RequestError(
                f"{data_dir} does not exist. Pass the directory that holds {title} with "
                "--data-dir (data_dir in Python)."
            )
        if not data_dir.is_dir():
            raise RequestError(
                f"{data_dir} is not a directory. Unpack it if it is an archive, and pass the "
                "directory with --data-dir (data_dir in Python)."
            )
        yield [*_names(data_dir, depth)]


def _names(folder: Path, depth: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        in_order = sorted(entries, key=lambda entry: entry.name)
    for entry in in_order:
        name = entry.name
        if name.startswith((".", "~$")) or name[-1] == "~" or name.lower() in _OF_FILE_MANAGERS:
            continue
        is_folder = entry.is_dir()
        yield f"{name}/" if is_folder else name
        if is_folder and depth:
            yield from (f"{name}/{inner}" for inner in _names(folder / name, depth - 1))


def nothing_in(data_dir: Path, names: Sequence[str], title: str, accepted: str) -> RequestError:
    """The error for a directory, of these names, in which no layout is found."""
    held = [name.rstrip("/") for name in names if "/" not in name[:-1]]
    first = ", ".join(held[:5]) + (", ..." if held[5:] else "")
    return RequestError(
        f"{data_dir} {f'holds only {first}' if held else 'is empty'}: no {title} found. "
        f"Accepted layouts: {accepted}."
    )


def one_folder(data_dir: Path, files: Iterable[str]) -> Path:
    """The folder of a directory in which all of these files lie, one or more.

    Raises:
        RequestError: they are of several folders.
    """
    folders = sorted({data_dir / name.rpartition("/")[0] for name in files})
    if len(folders) > 1:
        raise RequestError(
            f"{data_dir} holds several data sets, in {', '.join(map(str, folders))}. Pass one of "
            "these with --data-dir (data_dir in Python)."
        )
    return folders[0]


def split_named(name: str) -> str | None:
    """The split that has a name, in any letter case: train, validation or test; None: no split."""
    return NAMED.get(as_seen(name).lower())


def of_no_split(path: Path) -> RequestError:
    """The error for a file whose name begins with no split beside files whose names do."""
    return RequestError(
        f"{path} belongs to no split, though other files do. Begin its name with one of "
        f"{SPLIT_NAMES}, or remove it."
    )
