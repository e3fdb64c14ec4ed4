"""Data sets as focus-classify tasks. Their names are known without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

from study.cell import NO_OPTIONS, Options
from study.errors import RequestError, unknown
from study.tasks.base import CAPTIONS as CAPTIONS
from study.tasks.base import MOSAICS as MOSAICS
from study.tasks.base import ONE_SHOT as ONE_SHOT
from study.tasks.base import OTHERS as OTHERS
from study.tasks.base import POSTS as POSTS
from study.tasks.base import Declaration, Modality, Task, TaskInfo
from study.tasks.captions import encoders
from study.tasks.captions import known as captions_known
from study.tasks.mosaics import known as mosaics_known
from study.tasks.one_shot import known as one_shot_known
from study.tasks.posts import known as posts_known
from study.tasks.series import known as series_known
from study.tasks.sources import fetched
from study.tasks.sources.places import NO_PLACES, Places
from study.terminal.working import working

TASKS: dict[str, Declaration] = {
    **mosaics_known.TASKS,
    **posts_known.TASKS,
    **captions_known.TASKS,
    **one_shot_known.TASKS,
    **series_known.TASKS,
}


def modality(name: str) -> Modality:
    """The modality of a task; `OTHERS` for an unknown one, mosaics for an empty name."""
    if not name:
        return MOSAICS
    return TASKS[name].modality if name in TASKS else OTHERS


def taking(option: str) -> dict[str, Declaration]:
    """The tasks that take an option, a field of `study.cell.Options`."""
    return {name: task for name, task in TASKS.items() if option in task.options}


def info(name: str, options: Options = NO_OPTIONS) -> TaskInfo:
    """A task with its options, without its data.

    Args:
        name: of `TASKS`.
        options: of its data, see `study.cell.Cell`.

    Raises:
        RequestError: no such task, an option that it does not take, or a missing option.
    """
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    for option, value in options._asdict().items():
        if value is not None and option not in TASKS[name].options:
            raise RequestError(
                f"{option} is for {', '.join(taking(option))}, not for {name}. Leave it out, or "
                f"write --set {option}=none."
            )
    return TASKS[name].info(options)


def as_usual(name: str, options: Options) -> Options:
    """The options, None where a value says what None stands for: one data set has one name."""
    usual = TASKS[name].usual if name in TASKS else {}
    same = [option for option, value in usual.items() if getattr(options, option) == value]
    return options._replace(**dict.fromkeys(same))


def takes_data_dir(name: str) -> bool:
    """Whether a task reads a data set, which `--data-dir` may name."""
    return name in TASKS and TASKS[name].data_set is not None


def require_use(places: Places, names: Sequence[str]) -> None:
    """Refuses places that none of these tasks takes.

    Raises:
        RequestError: one is given, and no task takes it.
    """
    for place, given in places._asdict().items():
        if given and not any(_takes(name, place) for name in names):
            raise RequestError(
                f"--{place.replace('_', '-')} is of no use to {' and '.join(names)}; leave the "
                "option out."
            )


def _takes(name: str, place: str) -> bool:
    """Whether a task takes a place, a field of `Places`."""
    if place == "data_dir":
        return takes_data_dir(name)
    return place == "cache_dir" or (name in TASKS and place in TASKS[name].files)


def at_hand(name: str, places: Places = NO_PLACES, options: Options = NO_OPTIONS) -> bool:
    """Whether `load` would neither download nor copy anything from shared storage.

    That includes the weights of an encoder.

    Raises:
        RequestError: shared storage cannot be read, or has no files of the data set.
    """
    data_set = TASKS[name].data_set
    if data_set is not None and not fetched.at_hand(data_set, places):
        return False
    return options.encoder is None or encoders.at_hand(options.encoder, places)


def load(name: str, places: Places = NO_PLACES, options: Options = NO_OPTIONS) -> Task:
    """The task with its data.

    Args:
        name: of `TASKS`.
        places: of its files; those that it does not take are ignored.
        options: of its data, see `study.cell.Cell`.

    Raises:
        RequestError: no such task; or its data is not at hand, damaged or too small.
    """
    with working(f"loading {name}"):
        return info(name, options).load(places)
