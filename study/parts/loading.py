"""Imports files of parts, here and on workers, which get their text."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import linecache
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from importlib.util import decode_source
from pathlib import Path
from typing import NamedTuple, TypeVar

from study.door import ENTRY_POINTS, PROJECT
from study.errors import RequestError
from study.parts.origin import ORIGINS

T = TypeVar("T")


class PartFile(NamedTuple):
    """A file of parts, as it travels to workers.

    Attributes:
        name: its path as the user typed it, for messages.
        text: of the file.
    """

    name: str
    text: str

    @property
    def module(self) -> str:
        """The name of its module: that of its text, so that a changed file is another module."""
        return f"attention_study_parts_{hashlib.sha256(self.text.encode()).hexdigest()[:16]}"


_LOADED: dict[str, PartFile] = {}
"""Module -> file of parts, of all that this process has imported from `--with`."""


def loaded() -> tuple[PartFile, ...]:
    """The files that this process has imported, for its workers."""
    return tuple(_LOADED.values())


def load(files: Iterable[str | PartFile]) -> None:
    """Imports files of parts, and then those of installed packages, each once.

    Args:
        files: paths, or files as they travel.

    Raises:
        RequestError: one cannot be read or imported; the message names its line, or its package.
    """
    for each in files:
        file = each if isinstance(each, PartFile) else _read(each)
        if file.module in _LOADED:
            continue
        module = types.ModuleType(file.module)
        module.__file__ = file.name
        # So that tracebacks show lines of it, also on workers, and its parts are told apart.
        lines = file.text.splitlines(keepends=True)
        linecache.cache[file.name] = (len(file.text), None, lines, file.name)
        sys.modules[file.module] = module
        try:
            code = compile(file.text, file.name, "exec", dont_inherit=True)
            with _without_neighbours():
                exec(code, module.__dict__)
        except (Exception, SystemExit) as error:
            del sys.modules[file.module]
            raise RequestError(f"{_where(error, file.name)}{_why(error)}") from error
        brought = {sort for (sort, _), origin in ORIGINS.items() if origin.file == file.name}
        if "columns" in brought:
            raise RequestError(
                f"{file.name} registers columns, which all who read the results have to know: "
                "bring them by a package with an entry point attention_study.parts."
            )
        if not brought:
            raise RequestError(
                f"{file.name} registers nothing. Call register_paradigm, register_model, "
                "register_task, register_study or another one of study.parts in it."
            )
        _LOADED[file.module] = file
    _load_installed()


@functools.cache  # a search through all packages, which a worker would make for each trial
def _load_installed() -> None:
    """Imports the parts of installed packages, by their entry points."""
    for point in entry_points(group=ENTRY_POINTS):
        if _package(point) == PROJECT:  # its chapters come in at the first read of a registry
            continue
        try:
            point.load()
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}".rstrip(".")
            raise RequestError(
                f"the parts {point.value} of the package {_package(point)} cannot be imported "
                f"({why}). Fix it, or uninstall the package."
            ) from error


@contextlib.contextmanager
def _without_neighbours() -> Iterator[None]:
    """Leaves the current folder out, in which `python -m` looks for modules and workers do not."""
    here, project = Path.cwd(), Path(__file__).resolve().parents[2]
    known = [os.path.realpath(each) for each in sys.path]
    if here == project or str(here) not in known:
        yield
        return
    place = known.index(str(here))
    path = sys.path.pop(place)
    try:
        yield
    finally:
        sys.path.insert(place, path)


def with_parts(files: Sequence[PartFile], function: Callable[..., T], *arguments: object) -> T:
    """Calls a function in another process, which may not have imported the files yet.

    Raises:
        RequestError: a file cannot be imported there.
    """
    load(files)
    return function(*arguments)


def _read(path: str) -> PartFile:
    try:
        return PartFile(path, decode_source(Path(path).read_bytes()))
    except (UnicodeDecodeError, SyntaxError) as error:
        raise RequestError(f"{path} is not a Python file: it is not text.") from error
    except OSError as error:
        raise RequestError(f"{path} cannot be read ({error.strerror}).") from error


def _where(error: BaseException, name: str) -> str:
    """``my_parts.py, line 12: ``, the line of the file that failed."""
    if isinstance(error, SyntaxError) and error.filename == name:
        return f"{name}, line {error.lineno}: "
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == name]
    return f"{name}, line {lines[-1]}: " if lines else f"{name}: "


def _why(error: BaseException) -> str:
    """What went wrong, as a sentence."""
    if isinstance(error, RequestError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return (
            f"there is no module {error.name!r}. A file of parts stands alone, as workers get "
            "its text: install what it imports, there as well."
        )
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(".") + "."


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.module
