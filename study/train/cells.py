"""Makes cells that train from points (axis -> value)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from study import models, parts, tasks
from study.cell import (
    HYBRIDS,
    Budget,
    Cell,
    DecoderSettings,
    NetworkSettings,
    Options,
    Phase,
    Schedule,
    TransformerSettings,
)
from study.cell.checks import require
from study.errors import RequestError
from study.models.flops import ModelFlops
from study.tasks.base import UNKNOWN_DIGEST, Facts, FactsOf
from study.train.axes import ALL, RELU, SAME
from study.train.budget import cost
from study.train.refusals import why_not

S = TypeVar("S")

MOST_EVALUATIONS = 10_000


class CellMaker:
    """Makes cells from points (axis -> value), and knows their cost.

    Args:
        facts_of: gives the known or nominal facts of a task's data.
    """

    def __init__(self, facts_of: FactsOf) -> None:
        self._facts_of = functools.cache(facts_of)
        self._flops: dict[tuple[Any, ...], ModelFlops] = {}

    def cell(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point; `hard_lr` and `switch_point` are read only for a hybrid.

        Raises:
            RequestError: a value is out of range.
        """
        try:
            return self._cell(point)
        except ValueError as error:
            raise RequestError(f"{error}. Change it with --set, see --help.") from error

    def flops(self, cell: Cell) -> ModelFlops:
        """Forward FLOPs of the parts of its model that the cell calls.

        Raises:
            RequestError: its model does not fit into memory.
        """
        facts = self._facts_of(cell.task, cell.options)
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

    def runnable(self, point: Mapping[str, Any]) -> Cell:
        """The cell of a point; refuses one that cannot run.

        Raises:
            RequestError: a value is out of range, or the cell cannot run.
        """
        cell = self.cell(point)
        if reason := self.why_not(cell):
            raise RequestError(f"{cell.schedule.text}: {reason}. Change it with --set.")
        return cell

    def why_not(self, cell: Cell) -> str | None:
        """Why a cell cannot run; None if it can."""
        return why_not(cell, self.facts(cell), self.flops(cell))

    def _cell(self, point: Mapping[str, Any]) -> Cell:
        task = point["task"]
        options = tasks.as_usual(task, Options(**{name: point[name] for name in Options._fields}))
        tasks.info(task, options)  # refuses options that the task does not take
        count = point["evaluations"]
        require(
            1 <= count <= MOST_EVALUATIONS, "evaluations", count, f"in 1..{MOST_EVALUATIONS:,}"
        )
        named = (
            "m", "architecture", "width", "batch_size", "precision", "momentum", "split", "seed",
            "task", "alpha", "inference",
        )  # fmt: skip
        for name, least in (("foregrounds", 1), ("distractors", 0)):
            require(point[name] >= least, name, point[name], f"an integer >= {least}")
        facts = self._facts_of(task, options)
        one_shot = tasks.modality(task) is tasks.ONE_SHOT or None
        cell = Cell(
            data_digest=facts.digest,
            schedule=_schedule(point),
            decoder=_settings(DecoderSettings, point, options.encoder, "captions"),
            network=_network(point),
            foregrounds=None if point["foregrounds"] == 1 else point["foregrounds"],
            distractors=point["distractors"] or None,
            transformer=_settings(TransformerSettings, point, one_shot, "one-shot images"),
            budget=Budget(1),
            evaluation_points=tuple(i / count for i in range(count + 1)),
            sources=parts.sources(
                model=point["architecture"], task=task, inference=point["inference"]
            ),
            **{name: point[name] for name in named},
            **_sizes(point, facts),
            **options._asdict(),
        )
        flops = self.flops(cell)  # refuses a network that cannot be built
        if point["budget_unit"] == "mosaics":
            budget = cost.epochs(point["epochs"], cell.n)
        else:
            budget = cost.soft_epochs(point["epochs"], flops, cell.m, cell.n)
        return replace(cell, budget=budget)


def _network(point: Mapping[str, Any]) -> NetworkSettings | None:
    """How the networks of a point differ from the architecture; None: in `width` alone.

    Raises:
        ValueError: a value is out of range, or given for an architecture that takes none.
    """
    usual: dict[str, tuple[Any, ...]] = {
        "focus_width": (SAME, point["width"]),
        "classifier_width": (SAME, point["width"]),
        "depth": (0,),
        "normalisation": (None,),
        "activation": (RELU,),
    }
    given = {name: point[name] for name, values in usual.items() if point[name] not in values}
    if not given:
        return None
    if not models.takes_network(point["architecture"], point["task"]):
        name, value = next(iter(given.items()))
        own = "none" if usual[name][0] is None else usual[name][0]
        only = f"{own}, as the architecture {point['architecture']} has no other"
        require(False, name, value, only)
    return NetworkSettings(**given)


def _settings(
    kind: Callable[..., S], point: Mapping[str, Any], option: object, what: str
) -> S | None:
    """The settings of a model that only some tasks have; None of a task without `option`.

    Raises:
        ValueError: a value is out of range, or given for a task without `what`.
    """
    names = (each.name for each in dataclasses.fields(cast("Any", kind)))
    given = {name: point[name] for name in names}
    if option is not None:
        return kind(**given)
    for name, value in given.items():
        require(value is None, name, value, f"none, as {point['task']} has no {what}")
    return None


def _schedule(point: Mapping[str, Any]) -> Schedule:
    """The phases of a point: those of its paradigms, each maybe with a drop of its rate."""

    def of_hard(axis: str) -> Any:
        value = point[f"hard_{axis}"]
        return point[axis] if value == SAME else value

    def forced(share: float | None) -> float | None:
        return None if share == 1 else share

    lr, drop, share = point["lr"], point["drop_at"], forced(point["teacher_forcing"])
    optimiser = None if point["optimiser"] == "sgd" else point["optimiser"]
    common = {
        "optimiser": optimiser,
        "encoder_lr": point["encoder_lr"],
        "weight_decay": point["weight_decay"],
    }
    first = {**common, "teacher_forcing": share}
    first["source"] = parts.digest_of("paradigm", point["paradigm"])
    if (hard := HYBRIDS.get(point["paradigm"])) is None:
        return Schedule(Phase(point["paradigm"], lr, **first).dropping(0, drop))
    second = {**common, "teacher_forcing": forced(of_hard("teacher_forcing"))}
    soft, after = Schedule.hybrid(lr, of_hard("lr"), point["switch_point"]).phases
    soft, after = replace(soft, **first), replace(after, paradigm=hard, **second)
    own = "drop_at" if point["hard_drop_at"] == SAME else "hard_drop_at"
    hard_drop = of_hard("drop_at")
    return Schedule(soft.dropping(0, drop) + after.dropping(soft.until, hard_drop, own))


def _sizes(point: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """How many inputs a cell takes of each split.

    Raises:
        ValueError: more inputs than the split has, or `ALL` of mosaics, which are drawn without
            end.
    """
    split_of = {
        "n": "train",
        "train_metrics_size": "train",
        "validation_size": "validation",
        "test_size": "test",
    }
    sizes = {}
    for name, split in split_of.items():
        size = point[name]
        if not facts.sizes:
            require(size != ALL, name, size, "a number for mosaics, which are drawn at will")
        elif size == ALL:
            size = facts.sizes[split]
        elif name != "train_metrics_size" and facts.digest != UNKNOWN_DIGEST:
            most = facts.sizes[split]
            noun = tasks.modality(point["task"]).noun
            rule = f"at most {most:,}, the {noun} of the {split} split, or {ALL}"
            require(size <= most, name, size, rule)
        sizes[name] = size
    return sizes
