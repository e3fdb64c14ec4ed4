"""The door by which chapters come in, those of the project and those of other packages.

A chapter is a module that an entry point of the group `attention_study.parts` names. It registers
what it brings by the functions of `study.parts`; the core imports no chapter and names none.
"""

from __future__ import annotations

import functools
import pkgutil
import threading
import tomllib
import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Any, TypeVar

from study.errors import RequestError

V = TypeVar("V")

ENTRY_POINTS = "attention_study.parts"
"""Group of entry points, each naming a module that registers parts."""

PROJECT = "attention-study"

_LOCK = threading.RLock()  # a chapter may read a registry while it is imported
_BEGUN: list[str] = []


@functools.cache
def chapters() -> tuple[EntryPoint, ...]:
    """The project's own chapters, in the order of their names.

    In a checkout those of its pyproject.toml: what was installed may be older.
    """
    named: dict[str, str] = {}
    for installed in distributions(name=PROJECT):
        named |= {
            point.name: point.value for point in installed.entry_points.select(group=ENTRY_POINTS)
        }
    declared = Path(__file__).parents[1] / "pyproject.toml"
    if declared.is_file():
        project = tomllib.loads(declared.read_text(encoding="utf-8"))["project"]
        if project["name"] == PROJECT:
            named = project.get("entry-points", {}).get(ENTRY_POINTS, {})
    return tuple(EntryPoint(name, named[name], ENTRY_POINTS) for name in sorted(named))


@functools.cache
def packages() -> frozenset[str]:
    """The top-level packages of the project's own chapters, whose parts make no other cells."""
    return frozenset(point.module.partition(".")[0] for point in chapters())


def open_door() -> None:
    """Imports the project's own chapters, each once; warns of one that cannot be imported."""
    with _LOCK:
        if _BEGUN:
            return
        for point in chapters():
            _BEGUN.append(point.name)
            try:
                point.load()
            except (Exception, SystemExit) as error:
                why = f"{type(error).__name__}: {error}".rstrip(".")
                warnings.warn(
                    f"what the chapter {point.name} brings is missing, as it cannot be imported "
                    f"({why}).",
                    stacklevel=2,
                )


class Registry(MutableMapping[str, V]):
    """Name -> part. Whoever reads it first lets the project's chapters in.

    Args:
        core: what the core itself declares, which comes first.

    Attributes:
        core: the names of that.
    """

    def __init__(self, core: Mapping[str, Any]) -> None:
        self.core = tuple(core)
        self._parts: dict[str, Any] = dict(core)

    def so_far(self) -> Mapping[str, V]:
        """What it holds by now; lets no chapter in, since one may be asking."""
        return self._parts

    def __getitem__(self, name: str) -> V:
        if name not in self._parts:
            open_door()
        part: V = self._parts[name]
        return part

    def __setitem__(self, name: str, part: Any) -> None:
        self._parts[name] = part

    def __delitem__(self, name: str) -> None:
        del self._parts[name]

    def __iter__(self) -> Iterator[str]:
        open_door()
        return iter(tuple(self._parts))

    def __len__(self) -> int:
        open_door()
        return len(self._parts)


class Places(Registry[V]):
    """Name -> part, entered as its place ``module:name``, which is imported when it is read.

    Args:
        core: as of `Registry`.
        of: the class of each part.
    """

    def __init__(self, core: Mapping[str, str], of: type[Any]) -> None:
        super().__init__(core)
        self._of = of

    def __getitem__(self, name: str) -> V:
        place: Any = super().__getitem__(name)
        found: V = imported(place)
        if not isinstance(found, self._of):
            raise RequestError(
                f"{place} must be a {self._of.__module__}.{self._of.__name__}, got {found!r}. "
                "Mend it, or uninstall its package."
            )
        return found


def imported(place: str) -> Any:
    """What stands at a place, ``module:name`` or a module.

    Raises:
        RequestError: nothing does, or its module cannot be imported.
    """
    try:
        return pkgutil.resolve_name(place)
    except RequestError:
        raise
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}".rstrip(".")
        raise RequestError(
            f"{place!r}, the place of a part, cannot be imported ({why}). Mend it where the part "
            "is registered, or install what it imports."
        ) from error
