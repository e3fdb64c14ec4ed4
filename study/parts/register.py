"""What a file of parts calls to register them.

It imports late what takes long, since commands import it to have the option --with.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import search_spaces
from search_spaces.base import SearchSpace
from study import paradigms
from study.cell import HYBRIDS, Cell
from study.cell.declared import Axis, axes_of
from study.errors import RequestError
from study.parts.origin import ORIGINS, Sort, caller

if TYPE_CHECKING:
    from study.models.model import Builder
    from study.paradigms.paradigm import Paradigm
    from study.tasks.task import Declaration

P = TypeVar("P", bound="type[Paradigm]")
B = TypeVar("B", bound="Builder")

_NAME = re.compile(r"[A-Za-z][\w.-]{0,60}")


def register_paradigm(paradigm: P) -> P:
    """Registers a paradigm by its `name`; a decorator of its class.

    Args:
        paradigm: a class on `study.paradigms.paradigm.Paradigm`, made without arguments.

    Raises:
        RequestError: it lacks something, or its name is taken.
    """
    from study.paradigms.paradigm import Paradigm

    label = getattr(paradigm, "__name__", repr(paradigm))
    if not (isinstance(paradigm, type) and issubclass(paradigm, Paradigm)):
        raise RequestError(f"{label} is not a subclass of study.paradigms.paradigm.Paradigm.")
    missing = [each for each in ("name", "exact", "mixes") if not hasattr(paradigm, each)]
    missing += [f"{each}()" for each in sorted(paradigm.__abstractmethods__)]
    if missing:
        raise RequestError(
            f"{label} lacks {', '.join(missing)}, which every paradigm declares; see "
            "study/paradigms/paradigm.py."
        )
    cost = paradigm().cost(10, 2, 5)
    if not (isinstance(cost, int) and cost > 0):
        raise RequestError(
            f"the cost of {label} is {cost!r} for focus_flops=10, classifier_flops=2, m=5. It "
            "must be the FLOPs of its calls, a whole number > 0, on which equal compute rests."
        )
    _take("paradigm", paradigm.name, {**paradigms.REGISTERED, **HYBRIDS})
    paradigms.REGISTERED[paradigm.name] = _place(paradigm)
    return paradigm


def register_model(name: str, tasks: Iterable[str]) -> Callable[[B], B]:
    """Registers the builder of a network for some tasks; a decorator.

    Args:
        name: of the architecture, as on the command line.
        tasks: names of the tasks that it takes.

    Raises:
        RequestError: its name is taken.
    """
    from study import models

    def register(builder: B) -> B:
        of_tasks = tuple(tasks)
        if isinstance(tasks, str) or not of_tasks:
            raise RequestError(
                f"the tasks of the model {name} are a tuple of names, got {tasks!r}"
            )
        _take("model", name, models.ARCHITECTURES)
        models.ARCHITECTURES[name] = dict.fromkeys(of_tasks, _place(builder))
        return builder

    return register


def register_task(name: str, declaration: Declaration) -> None:
    """Registers a data set as a task.

    Args:
        name: as on the command line.
        declaration: of mosaics, see `study.tasks.mosaics.mosaic_tasks.of_images`.

    Raises:
        RequestError: it is no declaration, or its name is taken.
    """
    from study import tasks
    from study.tasks.task import Declaration

    if not isinstance(declaration, Declaration):
        raise RequestError(f"the task {name} is not a study.tasks.task.Declaration.")
    for option, axis in declaration.options.items():
        if not isinstance(axis, Axis) or option in axes_of(Cell):
            raise RequestError(
                f"the option {option} of the task {name} must be a study.cell.declared.Axis whose "
                "name is not that of a field of a cell."
            )
    _take("task", name, tasks.TASKS)
    tasks.TASKS[name] = declaration


def register_study(space: SearchSpace) -> None:
    """Registers a study by its name.

    Raises:
        RequestError: it is no search space, or its name is taken.
    """
    if not isinstance(space, SearchSpace):
        raise RequestError(f"{space!r} is not a search_spaces.base.SearchSpace.")
    _take("study", space.name, search_spaces.all_studies())
    search_spaces.REGISTERED[space.name] = space


def _take(sort: Sort, name: Any, known: Iterable[str]) -> None:
    """Notes which file a name is of; a file may register its own names again when it changed."""
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise RequestError(
            f"{name!r} cannot be typed as the name of a {sort}: use letters, digits, - and _."
        )
    origin, before = caller("study.parts"), ORIGINS.get((sort, name))
    if name in known and (before is None or not before.same_file(origin)):
        whose = "the project" if before is None else before.file
        raise RequestError(f"the {sort} {name} is taken by {whose}: choose another name.")
    ORIGINS[sort, name] = origin


def _place(part: Any) -> str:
    """Where a class or function is found: ``module:name``."""
    place = f"{part.__module__}:{part.__qualname__}"
    if "<" in place or not (inspect.isclass(part) or inspect.isfunction(part)):
        raise RequestError(f"{place} must be a class or function at the top level of its file.")
    return place
