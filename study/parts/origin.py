"""Which file registered a name, by the digest of what it uses there."""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

from study.cell import Cell
from study.door import packages
from study.errors import RequestError
from study.parts.used import used_digest


class Origin(NamedTuple):
    """The file that registered a name.

    Attributes:
        file: its path where it was first read, or its name.
        digest: of what the name uses there, see `study.parts.used`.
    """

    file: str
    digest: str

    def same_file(self, other: Origin) -> bool:
        """Whether it is one file, maybe changed since, or a copy, as of an installed package."""
        same = os.path.realpath(self.file) == os.path.realpath(other.file)
        return same or self.digest == other.digest


ORIGINS: dict[tuple[str, str], Origin] = {}
"""Sort and name -> its file, of all that is registered; the project's own names are not."""


def caller(package: str) -> Origin | None:
    """The file whose code called into a package; None: a chapter of the project did.

    Raises:
        RequestError: the caller is in no file, such as a prompt.
    """
    stack = list(traceback.walk_stack(sys._getframe()))
    around = (frame.f_globals for frame, _ in stack)
    names = next(each for each in around if not str(each.get("__name__")).startswith(package))
    if str(names.get("__name__")).partition(".")[0] in packages():
        return None
    file = names.get("__file__") or ""
    text = "".join(linecache.getlines(file, names))
    if not text:
        raise RequestError(
            "parts have to be registered by a file, whose digest becomes part of the cells. "
            "Write them to one, and pass it with --with FILE."
        )
    top = (n for f, n in stack if f.f_globals is names and f.f_code.co_name == "<module>")
    return Origin(file, used_digest(text, next(top, None)))


def digest_of(sort: str, name: str) -> str | None:
    """The digest of what a name uses of its file; None: the name is the project's own."""
    origin = ORIGINS.get((sort, name))
    return origin and origin.digest


def sources(**names: str | None) -> tuple[str, ...] | None:
    """What a cell keeps of the parts that it uses besides its paradigms; None: it uses none.

    Args:
        names: role of a part (`model`, `task`, `settings`, or `inference` of a paradigm) -> its
            name.
    """
    found = []
    for role, name in sorted(names.items()):
        sort: Any = "paradigm" if role == "inference" else role
        if name is not None and (digest := digest_of(sort, name)):
            found.append(f"{role} {name} {digest}")
    return tuple(found) or None


def require(cell: Cell) -> None:
    """Refuses to run a cell with other parts than it was planned with.

    Raises:
        RequestError: a part is missing here, or its file is another one.
    """
    needed: dict[tuple[str, str], str | None] = {
        ("paradigm", phase.paradigm): phase.source for phase in cell.schedule.phases
    }
    for source in cell.sources or ():
        role, name, planned = source.split(" ")
        needed["paradigm" if role == "inference" else role, name] = planned
    here: Mapping[Any, Origin] = ORIGINS
    for key, digest in needed.items():
        origin = here.get(key)
        if (origin and origin.digest) == digest:
            continue
        what = f"the {key[0]} {key[1]}"
        if origin is None:
            raise RequestError(
                f"cell {cell.id} uses {what} with the digest {digest}. Give its file with "
                "--with FILE (in Python: study.parts.load)."
            )
        raise RequestError(
            f"cell {cell.id} uses {what} with the digest {digest}, but that of {origin.file} "
            f"has {origin.digest}: it changed, or this machine has another version of it. Run "
            "the command again to plan with this one, or pass the one with that digest."
        )
