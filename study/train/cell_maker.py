"""Makes cells that train from points (axis -> value)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from study import models, parts, tasks
from study.cell import (
    HYBRIDS,
    Budget,
    Cell,
    NetworkSettings,
    Options,
    Phase,
    Schedule,
)
from study.cell.checks import require
from study.cell.declared import ALL, NONE, SAME, axes_of
from study.cell.settings import SETTINGS, Settings
from study.errors import RequestError
from study.kind import Maker
from study.models.flops import ModelFlops
from study.tasks.task import Facts, FactsOf
from study.train.budget import cost
from study.train.refusals import why_not
from study.train.training_axes import EPOCHS, EVALUATIONS

_SPLIT_OF = {
    "n": "train",
    "train_metrics_size": "train",
    "validation_size": "validation",
    "test_size": "test",
}
"""A size -> the split that it is of."""

_NAMED = [
    each.name
    for each in dataclasses.fields(Cell)
    if "axis" in each.metadata and each.name not in _SPLIT_OF
]
"""Fields whose values points have."""

_OF_A_PHASE = [name for name in axes_of(Phase) if name != "lr"]
"""What the parts of a hybrid have in common, unless an axis `hard_...` says otherwise."""

_OF_BOTH_PARTS = ("drop_at", *axes_of(Phase))
_OF_A_SCHEDULE = {
    "paradigm",
    "switch_point",
    *_OF_BOTH_PARTS,
    *(f"hard_{name}" for name in _OF_BOTH_PARTS),
}
"""Axes from whose values a schedule follows."""

_OF_AN_OPTION = {"paradigm", "lr", "hard_lr", "switch_point", "seed"}
"""Axes on which neither the network of a cell depends nor its budget."""

Values = tuple[tuple[str, Any], ...]
"""Axes, and the value of each."""


class CellMaker(Maker[Cell]):
    """Makes cells from points (axis -> value), and knows their cost.

    Args:
        facts_of: gives the facts of a task's data.
    """

    def __init__(self, facts_of: FactsOf) -> None:
        self._facts_of = functools.cache(facts_of)
        self._schedule = functools.cache(_schedule)
        self._like: dict[Values, Cell] = {}
        self._flops: dict[tuple[Any, ...], ModelFlops] = {}
        self._options = {name for task in tasks.TASKS.values() for name in task.options}

    def flops(self, cell: Cell) -> ModelFlops:
        """Forward FLOPs of the parts of its model that the cell calls.

        Raises:
            RequestError: its model does not fit into memory.
        """
        facts = self.facts(cell)
        further = models.further_of(cell)
        # If all inputs have m segments, the cost of a segment does not depend on m.
        m = cell.m if facts.lengths else None
        key = (cell.task, cell.options, cell.architecture, cell.width, further, m)
        if key not in self._flops:
            try:
                model = models.build(
                    cell.architecture,
                    cell.task,
                    facts.input_shape,
                    facts.num_classes or tasks.info(cell.task, cell.options).num_classes,
                    width=cell.width,
                    further=further,
                )
            except RuntimeError as error:
                if "DefaultCPUAllocator" not in str(error):
                    raise
                raise RequestError(
                    f"{cell.text}: its network needs more memory than this machine gives. Make it "
                    "smaller with --set."
                ) from error
            self._flops[key] = model.flops(facts.input_shape, facts.lengths, m)
        return cost.cell_flops(cell, self._flops[key])

    def facts(self, cell: Cell) -> Facts:
        return self._facts_of(cell.task, cell.options)

    def why_not(self, cell: Cell) -> str | None:
        return why_not(cell, self.facts(cell), self.flops(cell))

    def made(self, point: Mapping[str, Any]) -> Cell:
        values = point.items()
        schedule = self._schedule(tuple(each for each in values if each[0] in _OF_A_SCHEDULE))
        alike = tuple(each for each in values if each[0] not in _OF_AN_OPTION)
        if alike not in self._like:  # few of a grid are unlike, and their checks take long
            self._like[alike] = self._first(point, schedule)
        return self._like[alike].compared(schedule, point["seed"])

    def _first(self, point: Mapping[str, Any], schedule: Schedule) -> Cell:
        """The cell of a point, with all that follows from its values."""
        task = point["task"]
        given = {name: point[name] for name in self._options & point.keys()}
        for name, axis in tasks.TASKS[task].options.items():
            missing = given.get(name, axis) is None and axis.default != (None,)
            require(not missing, name, NONE, f"given, as {task} has it")
        options = tasks.resolved(task, Options(**given))
        count: Any = EVALUATIONS.takes.checked("evaluations", point["evaluations"])
        epochs: Any = EPOCHS.takes.checked("epochs", point["epochs"])
        facts, modality = self._facts_of(task, options), tasks.modality(task)
        cell = Cell(
            **{name: point[name] for name in _NAMED},
            **_sizes(point, facts),
            options=options,
            data_digest=facts.digest,
            schedule=schedule,
            network=_network(point),
            settings=_settings(point, modality.settings),
            budget=Budget(1),
            evaluation_points=tuple(i / count for i in range(count + 1)),
            sources=parts.sources(
                model=point["architecture"],
                task=task,
                settings=modality.settings,
                inference=point["inference"],
            ),
        )
        flops = self.flops(cell)  # refuses a network that cannot be built
        if point["budget_unit"] == "mosaics":
            budget = cost.epochs(epochs, cell.n)
        else:
            budget = cost.soft_epochs(epochs, flops, cell.m, cell.n)
        return replace(cell, budget=budget)


def _settings(point: Mapping[str, Any], own: str) -> Settings | None:
    """The settings of the model of a point; `own` is their key, empty if it has none.

    Raises:
        ValueError: a value is out of range, or given for a task that has none.
    """
    found = None
    for key, kind in SETTINGS.items():
        given = {name: point[name] for name in axes_of(kind) if name in point}
        if key == own:
            found = kind(**given)
            continue
        for name, value in given.items():
            require(value is None, name, value, f"none, as {point['task']} has no such thing")
    return found


def _network(point: Mapping[str, Any]) -> NetworkSettings:
    """How the networks of a point differ from the architecture.

    Raises:
        ValueError: a value is out of range, or given for an architecture that takes none.
    """
    same = (None, SAME, point["width"])
    widths = [name for name in ("focus_width", "classifier_width") if point[name] in same]
    names = [name for name in axes_of(NetworkSettings) if name not in widths]
    settings = NetworkSettings(**{name: point[name] for name in names})
    if not models.takes_network(point["architecture"], point["task"]):
        for name, value in settings.to_dict().items():
            usual = getattr(NetworkSettings(), name) or (SAME if "width" in name else NONE)
            own = f"as the architecture {point['architecture']} has no other"
            require(False, name, value, f"{0 if name == 'depth' else usual}, {own}")
    return settings


def _schedule(values: Values) -> Schedule:
    """The phases of a point: those of its paradigms, each maybe with a drop of its rate."""
    point = dict(values)

    def of_hard(axis: str) -> Any:
        own = point.get(f"hard_{axis}", SAME)
        return point.get(axis) if own == SAME else own

    paradigm, drop = point["paradigm"], point["drop_at"]
    given = {n: point[n] for n in _OF_A_PHASE if point.get(n) is not None}
    first = {**given, "source": parts.digest_of("paradigm", paradigm)}
    if (hard := HYBRIDS.get(paradigm)) is None:
        return Schedule(Phase(paradigm, point["lr"], **first).dropping(0, drop))
    soft, after = Schedule.hybrid(point["lr"], of_hard("lr"), point["switch_point"]).phases
    if (forced := of_hard("teacher_forcing")) is not None:
        given["teacher_forcing"] = forced
    soft, after = replace(soft, **first), replace(after, paradigm=hard, **given)
    own = "drop_at" if point["hard_drop_at"] == SAME else "hard_drop_at"
    return Schedule(soft.dropping(0, drop) + after.dropping(soft.until, of_hard("drop_at"), own))


def _sizes(point: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """How many inputs a cell takes of each split.

    Raises:
        ValueError: more inputs than the split has, or `ALL` of mosaics, which are drawn without
            end.
    """
    sizes = {}
    for name, split in _SPLIT_OF.items():
        size, most = point[name], facts.sizes.get(split)
        require(
            most is not None or size != ALL, name, size,
            "a number for mosaics, which are drawn at will",
        )  # fmt: skip
        if size == ALL:
            size = most
        elif most and name != "train_metrics_size":
            noun = tasks.modality(point["task"]).noun
            rule = f"at most {most:,}, the {noun} of the {split} split, or {ALL}"
            require(size <= most, name, size, rule)
        sizes[name] = size
    return sizes
