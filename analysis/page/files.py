"""The files of a report: written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from study import tasks
from study.reported import SECTIONS
from study.results import FOLDERS, ResultsError, Storage, local_path

_TABLES = (
    r"(cells|claim_matrix|claims|class_parts|classes|comparison|options|paired|table1)\.csv"
    r"|(paired|table1)\.(md|tex)|(across-settings|across-effects)\.csv"
)


def figures() -> str:
    """Pattern of the names of figures, without their ends."""
    galleries = {task.modality.gallery for task in tasks.TASKS.values()}
    stems = [_of_sections(), *(f"{each.stem}-[0-9]+" for each in galleries if each)]
    return (
        r"(heatmaps-(test|validation|train|class-[a-zA-Z0-9-]+)|(differences|compute|switch-point|learning-rate)-"
        rf"[A-Za-z0-9-]+|across-(factors|grid)-[A-Za-z0-9-]+|{'|'.join(stems)})"
    )


def _of_sections() -> str:
    return "|".join(each.files for each in SECTIONS.values())


class Unwritable(ResultsError):
    """A folder that takes no report; the message says why. What to do depends on the command."""


def write(files: Mapping[str, bytes], out_dir: str | os.PathLike[str]) -> str | Path:
    """Writes every file whole: a reader finds the old one or the new one, never half of it.

    On a local disk, old files are replaced once all new ones are written; an object store gets
    them one by one. Then figures and tables that the report no longer has are removed.

    Args:
        files: path in the folder -> content.
        out_dir: path or URL of a folder, made if missing.

    Returns:
        The folder, a path if it is local and a URL if it is not.

    Raises:
        Unwritable: a file cannot be written.
    """
    place = local_path(out_dir) or os.fspath(out_dir).rstrip("/")
    with _refusing(place):
        if isinstance(place, Path):
            _write_to_disk(files, place)
        else:
            _write_to_store(files, place)
    return place


def link(path: str | Path) -> str:
    """What opens a file at a click: ``file:///...`` of a local path, else its URL."""
    return path.resolve().as_uri() if isinstance(path, Path) else path


def refuse_unwritable(out_dir: str | os.PathLike[str]) -> None:
    """Checks before the work that the folder, or the one to create it in, takes a report.

    Raises:
        Unwritable: it does not.
    """
    storage = Storage(out_dir, "the report's folder")  # whose remedies are its own
    with _refusing(storage.url):
        whole = Path(storage.url).resolve()
        if whole.name in FOLDERS and (whole.parent / "cells").is_dir():
            raise ResultsError("a results directory keeps files of its own there")
        storage.require_writable()


def _write_to_disk(files: Mapping[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".report-", dir=folder) as new:
        made = {name: Path(new, str(number)) for number, name in enumerate(files)}
        for name, path in made.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(files[name])
        for name, path in made.items():
            os.replace(path, folder / name)
    for path in [*folder.glob("*"), *folder.glob("figures/*")]:
        name = path.relative_to(folder).as_posix()
        if name not in files and _is_own(name):
            path.unlink()


def _write_to_store(files: Mapping[str, bytes], url: str) -> None:
    storage = Storage(url, "the report's folder")
    for where in {os.path.dirname(name) for name in files}:
        storage.make(where)
    for name, data in files.items():
        storage.write(name, data)
    for name in storage.names(""):
        if name not in files and _is_own(name):
            storage.remove(name)


def _is_own(name: str) -> bool:
    """Whether a path in the folder is named as a figure or a table of a report."""
    where, _, file = name.rpartition("/")
    pattern = rf"{_TABLES}|({_of_sections()})-[0-9a-f]{{8}}\.csv"
    if where == "figures":
        pattern = rf"{figures()}-[0-9a-f]{{8}}\.(png|pdf)"
    return where in ("", "figures") and bool(re.fullmatch(pattern, file))


@contextlib.contextmanager
def _refusing(folder: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ResultsError) as error:
        cause = error.__cause__ or error
        reason = getattr(cause, "strerror", None) or cause  # without number and temporary file
        raise Unwritable(f"cannot write the report to {folder} ({reason}).") from error
