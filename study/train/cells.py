"""Makes cells that train from points (axis -> value)."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from study import models, paradigms, tasks
from study.cell import (
    HYBRIDS,
    PARADIGMS,
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
from study.evaluate.caption_scores import require_scorers
from study.models.encoders import ENCODERS
from study.models.flops import ModelFlops
from study.paradigms.parts import goes_in_parts
from study.tasks.base import IMAGES, UNKNOWN_DIGEST, Facts, FactsOf
from study.train import cost
from study.train.axes import ALL, RELU, SAME
from study.train.timeline import steps_by_phase, timeline

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
        """Forward FLOPs of the parts of its model that the cell calls."""
        facts = self._facts_of(cell.task, cell.options)
        further = models.further_of(cell)
        # If all inputs have m segments, the cost of a segment does not depend on m.
        m = cell.m if facts.lengths else None
        key = (cell.task, cell.options, cell.architecture, cell.width, further, m)
        if key not in self._flops:
            model = models.build(
                cell.architecture,
                cell.task,
                facts.input_shape,
                tasks.info(cell.task, cell.options).num_classes,
                width=cell.width,
                further=further,
            )
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
        sizes = self.facts(cell).sizes
        if sizes and cell.split != "disjoint":
            return f"{cell.task} has splits of its own: its split is disjoint"
        if sizes and cell.alpha is not None:
            noun = tasks.modality(cell.task).noun
            return (
                f"attention is held on mosaics, not on {cell.task}: {noun} may lack a foreground"
            )
        reason = _why_not_captions(cell) or _why_not_one_shot(cell)
        if reason := reason or _why_not_mosaics(cell) or self._why_not_batch(cell):
            return reason
        if cell.alpha is not None:
            held = [name for name in PARADIGMS if paradigms.get(name).held]
            if cell.paradigm not in held:
                return f"a held attention (section 3) is defined for {', '.join(held)}"
            if cell.budget.unit != "mosaics":
                return "a held attention is compared by epochs: its budget_unit is mosaics"
        steps = steps_by_phase(cell, timeline(cell, self.flops(cell)))
        for phase, count in zip(cell.schedule.phases, steps, strict=True):
            if count == 0:
                return (
                    f"the budget has no step for its {phase.paradigm} phase "
                    f"(batch {cell.batch_size})"
                )
        return None

    def _why_not_batch(self, cell: Cell) -> str | None:
        """Why a cell cannot normalise over a batch; None if it can, or does not."""
        if not cell.takes_whole_batches:
            return None
        if cell.batch_size < 2:
            return "a batch of one input becomes constant by batch normalisation: take 2 or more"
        if goes_in_parts(cell.m, math.prod(self.facts(cell).input_shape)):
            return (
                f"at m={cell.m} a mosaic goes through the networks in parts, and batch "
                "normalisation would be of a part: take layer or group"
            )
        return None

    def _cell(self, point: Mapping[str, Any]) -> Cell:
        task = point["task"]
        options = Options(**{name: point[name] for name in Options._fields})
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
        cell = Cell(
            data_digest=facts.digest,
            schedule=_schedule(point),
            decoder=_settings(DecoderSettings, point, options.encoder, "captions"),
            network=_network(point),
            foregrounds=None if point["foregrounds"] == 1 else point["foregrounds"],
            distractors=point["distractors"] or None,
            transformer=_settings(TransformerSettings, point, options.pixels, "one-shot images"),
            budget=Budget(1),
            evaluation_points=tuple(i / count for i in range(count + 1)),
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


def _why_not_mosaics(cell: Cell) -> str | None:
    """Why a cell cannot have the content of its mosaics; None if it can, or has no mosaics."""
    if not (cell.foregrounds or cell.distractors):
        return None
    if tasks.modality(cell.task) is not tasks.MOSAICS:
        return f"foregrounds and distractors are of mosaics, not of {cell.task}; leave them out"
    if cell.task == "linear-orthogonal":
        return (
            "the closed form is of one foreground segment: leave foregrounds and distractors out"
        )
    return None


def _why_not_one_shot(cell: Cell) -> str | None:
    """Why a cell cannot run for what only one-shot images have; None if it can."""
    if cell.transformer is None:
        return None
    if cell.paradigm != "soft" or cell.inference is not None:
        return "the heads of a transformer attend softly: its paradigm is soft"
    if cell.alpha is not None:
        return "attention is held on mosaics, not on the heads of a transformer"
    if cell.m != IMAGES:
        return f"an episode has {IMAGES} images, so m is {IMAGES}"
    if cell.split != "disjoint":
        return f"{cell.task} has characters of their own in each split: its split is disjoint"
    return None


def _why_not_captions(cell: Cell) -> str | None:
    """Why a cell that writes captions, or is set up as if it did, cannot run; None if it can.

    Raises:
        RequestError: the packages that score captions are not installed.
    """
    rates = {phase.encoder_lr for phase in cell.schedule.phases} - {None}
    if cell.encoder is None:
        if any(phase.teacher_forcing is not None for phase in cell.schedule.phases):
            return f"teacher_forcing is for captions, not for {cell.task}; write none"
        return f"encoder_lr is for captions, not for {cell.task}; write none" if rates else None
    require_scorers()
    if math.isqrt(cell.m) ** 2 != cell.m:
        return f"the regions of an image are a square grid, so m={cell.m} must be a square number"
    if not (rates or ENCODERS[cell.encoder].pretrained):
        return f"the {cell.encoder} encoder has no weights of its own: give it an encoder_lr"
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
    if (hard := HYBRIDS.get(point["paradigm"])) is None:
        return Schedule(Phase(point["paradigm"], lr, **first).dropping(0, drop))
    second = {**common, "teacher_forcing": forced(of_hard("teacher_forcing"))}
    soft, after = Schedule.hybrid(lr, of_hard("lr"), point["switch_point"]).phases
    soft, after = replace(soft, **first), replace(after, paradigm=hard, **second)
    return Schedule(soft.dropping(0, drop) + after.dropping(soft.until, of_hard("drop_at")))


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
