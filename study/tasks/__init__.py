"""Data sets as focus-classify tasks. Their names are known without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from study.cell import NO_OPTIONS, Options
from study.door import Registry, imported
from study.errors import RequestError, unknown
from study.tasks.measures import MEASURES as MEASURES
from study.tasks.mosaics import mosaic_tasks
from study.tasks.sources import data_set as data_sets
from study.tasks.sources.places import NO_PLACES, Places
from study.tasks.task import MOSAICS as MOSAICS
from study.tasks.task import OTHERS as OTHERS
from study.tasks.task import Declaration, Modality, Task, TaskInfo
from study.terminal.working import working

TASKS: Registry[Declaration] = Registry(mosaic_tasks.TASKS)
"""Name -> task; chapters and files of parts register more."""


def modality(name: str) -> Modality:
    """The modality of a task; `OTHERS` for an unknown one, mosaics for an empty name."""
    if not name:
        return MOSAICS
    return TASKS[name].modality if name in TASKS else OTHERS


def taking(option: str) -> dict[str, Declaration]:
    """The tasks that take an option of their data."""
    return {name: task for name, task in TASKS.items() if option in task.options}


def info(name: str, options: Options = NO_OPTIONS) -> TaskInfo:
    """A task with its options, without its data.

    Args:
        name: of `TASKS`.
        options: of its data, see `resolved`.

    Raises:
        RequestError: no such task, or wrong options.
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name].info(resolved(name, options))


def resolved(name: str, options: Options) -> Options:
    """The options as cells have them: with defaults, without what is usual.

    Raises:
        RequestError: a value is out of range or missing, or the task does not take it.
    """
    known, found = TASKS[name].options, {}
    for option in options:
        if option not in known:
            raise RequestError(
                f"{option} is for {', '.join(taking(option)) or 'no task'}, not for {name}. Leave "
                "it out."
            )
    for option, axis in known.items():
        if not axis.default and option not in options:
            raise RequestError(f"{name} needs a {option}. Give it with --set {option}=VALUE.")
        usual = axis.default[0] if isinstance(axis.default, tuple) and axis.default else None
        if (value := options.get(option, usual)) is not None:
            try:
                value = axis.takes.checked(option, value)
            except ValueError as error:
                raise RequestError(f"{error}. Change it with --set {option}=VALUE.") from error
        found[option] = None if value == axis.usual else value
    return Options(**found)


def places() -> dict[str, str]:
    """Option -> its line in `--help`, of the files that tasks take besides their data sets."""
    return {name: about for task in TASKS.values() for name, about in task.files.items()}


def require_use(places: Places, names: Sequence[str], asked: str = "") -> None:
    """Refuses places that none of these tasks takes; `asked` is what they are of, for messages.

    Raises:
        RequestError: one is given, and no task takes it.
    """
    for place in places.given:
        reading = (name for name in names if name in TASKS and TASKS[name].reads(place))
        if place != "cache_dir" and not any(reading):
            raise RequestError(
                f"--{place.replace('_', '-')} is of no use to {asked or names[0]}; leave the "
                "option out."
            )


def at_hand(name: str, places: Places = NO_PLACES, options: Options = NO_OPTIONS) -> bool:
    """Whether `load` would neither download nor copy anything from shared storage.

    That includes what it reads besides, such as the weights of an encoder.

    Raises:
        RequestError: shared storage cannot be read, or has no files of the data set.
    """
    task = TASKS[name]
    if task.data_set is not None and not data_sets.at_hand(task.data_set, places):
        return False
    besides = task.at_hand
    return not besides or imported(besides)(places, options)


def load(name: str, places: Places = NO_PLACES, options: Options = NO_OPTIONS) -> Task:
    """The task with its data.

    Args:
        name: of `TASKS`.
        places: of its files; those that it does not take are ignored.
        options: of its data, see `resolved`.

    Raises:
        RequestError: no such task; or its data is not at hand, damaged or too small.
    """
    with working(f"loading {name}"):
        return info(name, options).load(places)
