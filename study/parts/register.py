"""What chapters, packages and files of parts call to register what they bring.

It imports late what takes long, since commands import it to have the option --with.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import search_spaces
from search_spaces.base import SearchSpace
from study import errors, models, paradigms, tasks
from study.cell import HYBRIDS, Cell
from study.cell.column_groups import GROUPS, TYPES, Column, Group, Of
from study.cell.declared import Axis, axes_of
from study.cell.settings import SETTINGS, Settings
from study.cell.work import RECORDED
from study.door import Registry, open_door
from study.errors import RequestError
from study.kinds import KINDS
from study.parts.origin import ORIGINS, caller
from study.reported import FUNCTIONS, SECTIONS, SectionOf
from study.tasks.measures import MEASURES
from study.tasks.task import Declaration, Measure
from study.terminal.command import COMMANDS

if TYPE_CHECKING:
    from study.models.model import Builder
    from study.paradigms.paradigm import Paradigm
    from study.tasks.task import Outputs

P = TypeVar("P", bound="type[Paradigm]")
B = TypeVar("B", bound="Builder")
M = TypeVar("M", bound="Callable[[Outputs], Any]")

_BITS = ("focus", "known", "right", "saif")
"""What is recorded of each instance by a name of the core."""

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
    _take("paradigm", paradigm.name, paradigms.REGISTERED, *HYBRIDS)
    paradigms.REGISTERED[paradigm.name] = _place(paradigm)
    return paradigm


def register_model(
    name: str, tasks: Iterable[str], place: str = "", *, adjustable: bool = False
) -> Callable[[B], B]:
    """Registers the builder of a network for some tasks; a decorator, or by its place.

    Args:
        name: of the architecture, as on the command line.
        tasks: names of the tasks that it takes.
        place: ``module:name`` of the builder, which is then imported where it is needed; empty:
            what is returned decorates it.
        adjustable: whether the builder takes a `study.cell.NetworkSettings`, too, as those of
            `study.models.images.focus_and_classifier` do.

    Raises:
        RequestError: its name is taken.
    """
    of_tasks = tuple(tasks)

    def enter(found: str) -> None:
        if isinstance(tasks, str) or not of_tasks:
            raise RequestError(
                f"the tasks of the model {name} are a tuple of names, got {tasks!r}"
            )
        _take("model", name, models.ARCHITECTURES)
        models.ARCHITECTURES[name] = dict.fromkeys(of_tasks, found)
        if adjustable:
            models.ADJUSTABLE.add(name)

    def register(builder: B) -> B:
        enter(_place(builder))
        return builder

    if place:
        enter(place)
    return register


def register_measure(
    name: str,
    words: str = "",
    *,
    larger_is_better: bool = True,
    chance: float = math.nan,
    is_share: bool = True,
) -> Callable[[M], M]:
    """Registers a measure of the outputs of a model, by which paradigms may be tested.

    It decorates a function: `study.tasks.task.Outputs` of a split -> a number; or of each input a
    number, whose mean is taken; or whether something is true of each, in which case verdicts are
    over images, too. It is measured at every evaluation of cells whose task classifies, and is
    no part of their id.

    Args:
        name: in results, and for ``--test``.
        words: for people, in tables; empty: as its name.
        larger_is_better: whether a paradigm is better that has more of it.
        chance: what a guess gives, as which a diverged cell counts; NaN: not known.
        is_share: whether it is a fraction, which people read in per cent.

    Raises:
        RequestError: its name is taken.
    """

    def register(function: M) -> M:
        place = _place(function)
        # Those that are registered before results are known are checked when these are.
        is_taken = getattr(sys.modules.get("study.results.columns"), "is_taken", None)
        if name in _BITS or (is_taken and is_taken(name)):
            raise RequestError(f"results have a column {name}: choose another name.")
        _take("measure", name, MEASURES)
        said = words or name.replace("_", " ")
        MEASURES[name] = Measure(name, said, is_share, chance, False, larger_is_better, place)
        return function

    return register


def register_task(name: str, declaration: Declaration) -> None:
    """Registers a data set as a task.

    Args:
        name: as on the command line.
        declaration: of mosaics, see `study.tasks.mosaics.mosaic_tasks.of_images`.

    Raises:
        RequestError: it is no declaration, its name is taken, or its modality names settings or
            columns of measures that are not registered yet.
    """
    if not isinstance(declaration, Declaration):
        raise RequestError(f"the task {name} is not a study.tasks.task.Declaration.")
    for option, axis in declaration.options.items():
        if not isinstance(axis, Axis) or option in axes_of(Cell):
            raise RequestError(
                f"the option {option} of the task {name} must be a study.cell.declared.Axis whose "
                "name is not that of a field of a cell."
            )
    _let_chapters_in()
    modality = declaration.modality
    if modality.settings and modality.settings not in SETTINGS.so_far():
        raise RequestError(
            f"the models of the task {name} have the settings {modality.settings!r}, which are "
            "not registered: call register_settings first."
        )
    columns = {column for group in GROUPS.so_far().values() for column in group.columns}
    if unknown := {measure.column for measure in modality.measures} - columns:
        raise RequestError(
            f"the task {name} is measured by {', '.join(sorted(unknown))}, of which results have "
            "no column: call register_columns first."
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
    _take("study", space.name, search_spaces.STUDIES)
    search_spaces.STUDIES[space.name] = space


def register_settings(settings: type[Settings]) -> None:
    """Registers settings of models, which a task has whose modality names their key.

    Raises:
        RequestError: they have no key, or it or an axis of theirs is taken.
    """
    label = getattr(settings, "__name__", repr(settings))
    frozen = getattr(getattr(settings, "__dataclass_params__", None), "frozen", False)
    if not (frozen and issubclass(settings, Settings) and hasattr(settings, "key")):
        raise RequestError(
            f"{label} is not a frozen dataclass on study.cell.settings.Settings with a key."
        )
    named = {field.name for field in fields(cast("Any", settings))}
    if undeclared := named - axes_of(settings).keys():
        raise RequestError(
            f"the fields {', '.join(sorted(undeclared))} of {label} are no axes: declare them by "
            "study.cell.declared.declared."
        )
    _let_chapters_in()
    key = settings.key
    others = [Cell, *(each for other, each in SETTINGS.so_far().items() if other != key)]
    if taken := {axis for of in others for axis in axes_of(of)} & axes_of(settings).keys():
        raise RequestError(
            f"the axes {', '.join(sorted(taken))} of {label} are taken: rename them."
        )
    _take("settings", key, SETTINGS, *(field.name for field in fields(Cell)))
    SETTINGS[key] = settings


def register_kind(name: str, place: str) -> None:
    """Registers a kind of cell, which studies name by `SearchSpace.kind`.

    Args:
        name: in results, too.
        place: ``module:name`` of a `study.kind.Kind`, which `--help` imports: without PyTorch.

    Raises:
        RequestError: its name is taken.
    """
    _take("kind", name, KINDS, RECORDED)
    KINDS[name] = place


def register_columns(heading: str, of: Of, columns: Mapping[str, Column]) -> None:
    """Registers columns of results, which a file has all or none of.

    Args:
        heading: in docs/results.md.
        of: what they tell of, see `study.cell.column_groups.Of`.
        columns: name -> type, one of `study.cell.column_groups.TYPES`, and meaning in Markdown.

    Raises:
        RequestError: results were read already, as by a file of `--with`: whoever reads results
            has to know their columns, so that they come with an installed package.
    """
    if of not in get_args(Of):
        raise RequestError(
            f"the columns {heading!r} tell of {of!r}, must be one of {', '.join(get_args(Of))}."
        )
    _let_chapters_in()
    for name, column in columns.items():
        if not (_NAME.fullmatch(name) and len(column) == 2 and column[0] in TYPES):
            raise RequestError(
                f"the column {name!r} is {column!r}, must be (type, meaning) under a name of "
                f"letters, digits, - and _; types are {', '.join(TYPES)}."
            )
        if any(name in group.columns for group in GROUPS.so_far().values()):
            raise RequestError(f"the column {name} is taken: choose another name.")
    _take("columns", heading, GROUPS, typed=False)
    if hasattr(sys.modules.get("study.results.columns"), "ROWS_SCHEMA"):
        raise RequestError(
            f"the columns {', '.join(columns)} come too late: results would be read without "
            "them. Register columns in a package with an entry point attention_study.parts."
        )
    GROUPS[heading] = Group(of, columns)


def register_section(section: SectionOf) -> None:
    """Registers a kind of sections of the report, and which cells it shows.

    Raises:
        RequestError: it is none, or its module is taken.
    """
    if not isinstance(section, SectionOf):
        raise RequestError(f"{section!r} is not a study.reported.SectionOf.")
    _take("section", section.place, SECTIONS, typed=False)
    SECTIONS[section.place] = section


def register_function(place: str) -> None:
    """Registers a further function of the package `analysis`, by its place ``module:name``.

    Raises:
        RequestError: it is no such place, or its name is taken.
    """
    _, colon, name = str(place).partition(":")
    if not colon:
        raise RequestError(f"the place of a function is module:name, got {place!r}.")
    _take("function", name, FUNCTIONS)
    FUNCTIONS[name] = place


def register_command(name: str, place: str, about: str) -> None:
    """Registers a command: ``attention-study NAME``.

    Args:
        name: as typed.
        place: module whose `main` takes the arguments and returns the exit status.
        about: one line, shown by `--help`.

    Raises:
        RequestError: its name is taken.
    """
    _take("command", name, COMMANDS)
    COMMANDS[name] = (place, about)


def register_synonyms(words: Mapping[str, str]) -> None:
    """Registers what people call a name elsewhere, so that a near miss is told.

    Args:
        words: name -> what is typed for it, with blanks between several, and _ within one.
    """
    for name, typed in words.items():
        errors.SYNONYMS[name] = f"{errors.SYNONYMS.get(name, '')} {typed}"


def _take(sort: str, name: Any, known: Registry[Any], *others: str, typed: bool = True) -> None:
    """Notes which file a name is of; a file may register its own names again when it changed.

    A name of a chapter of the project is of no file, since the version of the code stands for it.
    """
    if not isinstance(name, str) or (typed and not _NAME.fullmatch(name)):
        raise RequestError(
            f"{name!r} cannot be typed as the name of a {sort}: use letters, digits, - and _."
        )
    _let_chapters_in()
    origin, before = caller("study.parts"), ORIGINS.get((sort, name))
    taken = name in known.so_far() or name in others
    if taken and (origin is None or before is None or not before.same_file(origin)):
        whose = "the project" if before is None else before.file
        raise RequestError(f"the {sort} {name} is taken by {whose}: choose another name.")
    if origin is not None:
        ORIGINS[sort, name] = origin


def _let_chapters_in() -> None:
    """So that nobody takes a name of a chapter; a chapter that registers is coming in."""
    if caller("study.parts") is not None:
        open_door()


def _place(part: Any) -> str:
    """Where a class or function is found: ``module:name``."""
    name = getattr(part, "__qualname__", repr(part))
    if "<" in name or not (inspect.isclass(part) or inspect.isfunction(part)):
        raise RequestError(f"{name} must be a class or function at the top level of its file.")
    return f"{part.__module__}:{name}"
