"""The files of a report: written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from analysis.pictures import FILE_STEM
from study.results import ResultsError

_OWN_FIGURE = re.compile(rf"{FILE_STEM.pattern}-[0-9a-f]{{8}}\.(png|pdf)")
_OWN_TABLE = re.compile(
    r"(cells|claims|comparison|effort|options|paired|table1)\.csv|(paired|table1)\.(md|tex)"
    r"|(fixed-focus|trajectories|curvature)[a-z-]*-[0-9a-f]{8}\.csv"
)


def write(files: Mapping[str, bytes], out_dir: Path) -> None:
    """Every file whole: a reader finds the old one or the new one, never half of it.

    The old ones are touched when all new ones are there; then figures and tables that the report
    no longer has are removed.

    Args:
        files: path in the folder -> content.
        out_dir: is made if missing.

    Raises:
        ResultsError: one cannot be written.
    """
    partials: dict[Path, Path] = {}
    try:
        for name, data in files.items():
            path = out_dir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            partials[path] = path.with_name(f".{path.name}-{uuid.uuid4().hex}.part")
            partials[path].write_bytes(data)
        for path, partial in partials.items():
            os.replace(partial, path)
        for folder, own in ((out_dir, _OWN_TABLE), (out_dir / "figures", _OWN_FIGURE)):
            for path in folder.glob("*"):
                if path not in partials and own.fullmatch(path.name):
                    path.unlink()
    except OSError as error:
        raise _unwritable(out_dir, error) from error
    finally:
        for partial in partials.values():
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


def refuse_unwritable(folder: Path) -> None:
    """Before the work: the folder, or what it would be made in, takes a file.

    Raises:
        ResultsError: it does not.
    """
    with_parents = [folder, *folder.absolute().parents]
    there = next(path for path in with_parents if path.exists() or path.is_symlink())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> ResultsError:
    return ResultsError(
        f"cannot write the report to {folder} ({error}). Choose a folder with --out DIR of "
        "`python -m analysis.report`."
    )
