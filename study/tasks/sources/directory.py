"""A directory of data: its entries, and which of its files are of which split."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from study.errors import RequestError, as_seen
from study.tasks.sources.reading import reading

_SPLITS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}

SPLIT_NAMES = "train, validation (or val, valid, dev) and test"
"""The names of splits, for messages."""


_OF_FILE_MANAGERS = (
    "thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx", "@eadir", "lost+found",
    "$recycle.bin", "system volume information",
)  # fmt: skip


def visible(folder: Path) -> list[Path]:
    """The entries of a folder, sorted by name.

    Without hidden ones and those of file managers, editors and programs that synchronise.
    """
    entries = (path for path in folder.iterdir() if path.name.lower() not in _OF_FILE_MANAGERS)
    return sorted(
        path for path in entries if not path.name.startswith((".", "~$")) and path.name[-1] != "~"
    )


@contextlib.contextmanager
def listed(data_dir: Path, title: str) -> Iterator[list[Path]]:
    """Gives the visible entries of a data set's directory, which its body may read.

    Raises:
        RequestError: there is no such directory, or it cannot be read.
    """
    with reading(data_dir, "Make it readable, or pass another one with --data-dir."):
        if not data_dir.exists():
            raise RequestError(
                f"{data_dir} does not exist. Pass the directory that holds {title} "
                "with --data-dir."
            )
        if not data_dir.is_dir():
            raise RequestError(
                f"{data_dir} is not a directory. Unpack it if it is an archive, and pass the "
                "directory with --data-dir."
            )
        yield visible(data_dir)


def nothing_in(data_dir: Path, entries: Sequence[Path], title: str, accepted: str) -> RequestError:
    """The error for a directory in which no layout is found."""
    held = ", ".join(entry.name for entry in entries[:5]) + (", ..." if entries[5:] else "")
    return RequestError(
        f"{data_dir} {f'holds only {held}' if held else 'is empty'}: no {title} found. "
        f"Accepted layouts: {accepted}."
    )


def require_one(data_dir: Path, holding: Sequence[Path]) -> None:
    """Refuses several folders that hold a data set each.

    Raises:
        RequestError: it names them.
    """
    if len(holding) > 1:
        raise RequestError(
            f"{data_dir} holds several data sets, in {', '.join(map(str, holding))}. Pass one of "
            "these with --data-dir."
        )


def split_named(name: str) -> str | None:
    """The split that has a name, in any letter case: train, validation or test; None: no split."""
    return _SPLITS.get(as_seen(name).lower())


def files_by_split(
    data_dir: Path, entries: Sequence[Path], suffixes: tuple[str, ...]
) -> Mapping[str, tuple[Path, ...]]:
    """The files of a data set in a directory or in one of its folders, sorted by name.

    Args:
        data_dir: the directory.
        entries: of it.
        suffixes: of the files, in small letters.

    Returns:
        Split -> its files, whose names begin with it, as in ``val-00000-of-00001.parquet``. Where
        none does, all files are of "". Empty: there are none.

    Raises:
        RequestError: several folders hold such files; or only some names begin with a split.
    """
    folders = [data_dir, *(entry for entry in entries if entry.is_dir())]
    holding = {
        folder: [path for path in visible(folder) if path.name.lower().endswith(suffixes)]
        for folder in folders
    }
    holding = {folder: paths for folder, paths in holding.items() if paths}
    require_one(data_dir, list(holding))
    found: dict[str, list[Path]] = {}
    for path in (path for paths in holding.values() for path in paths):
        word = re.match("[A-Za-z]*", path.name)
        split = split_named(word[0]) if word else None
        found.setdefault(split or "", []).append(path)
    if "" in found and len(found) > 1:
        raise RequestError(
            f"{found[''][0]} belongs to no split, though other files do. Begin its name with one "
            f"of {SPLIT_NAMES}, or remove it."
        )
    return {split: tuple(paths) for split, paths in found.items()}
