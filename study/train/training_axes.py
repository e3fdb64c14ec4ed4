"""The axes of cells that train: what cells and tasks declare, and some from which more follow."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from search_spaces.base import By
from study import models, tasks
from study.cell import HYBRIDS, PARADIGMS, Cell
from study.cell.declared import LARGEST, NONE, SAME, Axis, Name, Number, Whole, axes_of
from study.cell.schedule import BUDGET_UNITS, WITHIN

OF_HYBRIDS = ("paradigm", tuple(HYBRIDS))
"""The axis, and the values without which an axis of hybrids means nothing."""

CONFIRM = Axis(
    "fresh seeds that judge the chosen options, e.g. 100-111; none: options are chosen and judged "
    "on the same seeds",
    Whole(0, LARGEST),
    (None,),
    (NONE,),
    whole=True,
)
DROP_AT = Axis(
    "share of the steps (of a hybrid's soft part) after which lr falls to a tenth",
    WITHIN,
    (None,),
    (NONE,),
)
SWITCH_POINT = Axis(
    "fraction of the budget at which a hybrid turns hard", WITHIN, (0.5,), only=OF_HYBRIDS
)
EPOCHS = Axis("the budget in epochs of soft, see budget_unit", Number(0))
BUDGET_UNIT = Axis(
    "what is equal: the FLOPs of those epochs of soft, or the mosaics seen",
    Name(BUDGET_UNITS),
    By("alpha", {None: ("flops",)}, otherwise=("mosaics",)),
)
EVALUATIONS = Axis(
    "evaluations after the first, evenly spaced in the budget", Whole(1, 10_000), (10,)
)


def axes(of_tasks: Sequence[str]) -> Mapping[str, Axis]:
    """The axes of studies of some tasks, in the order of `--help`."""
    networks = dict.fromkeys(name for task in of_tasks for name in models.names(task))
    paradigms = (*PARADIGMS, *HYBRIDS)
    return _axes(tuple(of_tasks), paradigms, tuple(networks), tuple(tasks.TASKS))


@functools.cache  # by all that files of parts may add to
def _axes(
    of_tasks: Sequence[str],
    paradigms: Sequence[str],
    networks: Sequence[str],
    known: Sequence[str],
) -> Mapping[str, Axis]:
    found: dict[str, Axis] = {}
    modalities = {task: tasks.modality(task) for task in of_tasks}
    following = {
        "seed": {"confirm": CONFIRM},
        "task": _of_data(of_tasks),
        "n": {"paradigm": Axis("paradigms to compare", Name(paradigms), alone=True)},
        "alpha": {"epochs": EPOCHS, "budget_unit": BUDGET_UNIT},
        "inference": {
            name: replace(axis, rare=True)
            for modality in modalities.values()
            for name, axis in modality.axes_of_settings.items()
        },
    }
    declared = axes_of(Cell)
    for name, axis in declared.items():
        found |= {name: axis} | following.get(name, {})
        if name == "lr":
            found |= {"hard_lr": _of_hard(axis), "drop_at": DROP_AT}
            found |= {"hard_drop_at": _of_hard(DROP_AT), "switch_point": SWITCH_POINT}
        if name == "teacher_forcing":
            found["hard_teacher_forcing"] = _of_hard(axis)
    optimiser = found["optimiser"]
    own = {task: (each.optimiser,) for task, each in modalities.items()}
    if others := {task: usual for task, usual in own.items() if usual != optimiser.default}:
        usual = By("task", others, otherwise=optimiser.default)
        found["optimiser"] = replace(optimiser, default=usual)
    found["task"] = replace(found["task"], takes=Name(known))
    found["architecture"] = replace(found["architecture"], takes=Name(networks))
    axes = {}
    for name, axis in {**found, "evaluations": EVALUATIONS}.items():
        having = [task for task, each in modalities.items() if not axis.rare or each.has(name)]
        if having:
            axes[name] = _among(axis, dict.fromkeys(having, axis), of_tasks)
    return axes


def _of_hard(axis: Axis) -> Axis:
    """The same axis of a hybrid's hard part."""
    return replace(
        axis,
        about="the same for a hybrid's hard part",
        default=(SAME,),
        words=(*axis.words, SAME),
        only=OF_HYBRIDS,
    )


def _of_data(of_tasks: Sequence[str]) -> dict[str, Axis]:
    """The options that the tasks declare: each its own default, of counts the widest bounds."""
    having: dict[str, dict[str, Axis]] = {}
    for task in of_tasks:
        for name, axis in tasks.TASKS[task].options.items():
            having.setdefault(name, {})[task] = axis
    found = {}
    for name, axes in having.items():
        axis, *_ = axes.values()
        counts = [each.takes for each in axes.values() if isinstance(each.takes, Whole)]
        if counts:
            widest = Whole(min(w.least for w in counts), max(w.most for w in counts))
            axis = replace(axis, takes=widest)
        found[name] = _among(axis, axes, of_tasks)
    return found


def _among(axis: Axis, having: Mapping[str, Axis], of_tasks: Sequence[str]) -> Axis:
    """An axis that only some tasks have, or each with a default of its own; none of the others."""
    defaults = {task: own.default for task, own in having.items()}
    if having.keys() == {*of_tasks} and len({*map(str, defaults.values())}) == 1:
        return axis
    words = tuple(dict.fromkeys((*axis.words, NONE)))
    return replace(axis, default=By("task", defaults, otherwise=(None,)), words=words)
