"""Why a cell cannot run, though each of its values is in range."""

from __future__ import annotations

import math

from study import paradigms, tasks
from study.cell import PARADIGMS, Cell, Phase
from study.cell.declared import axes_of
from study.door import imported
from study.models.flops import ModelFlops
from study.paradigms.parts import goes_in_parts
from study.tasks.task import Facts
from study.train.budget.timeline import steps_by_phase, timeline


def why_not(cell: Cell, facts: Facts, flops: ModelFlops) -> str | None:
    """Why a cell cannot run; None if it can.

    Args:
        facts: of the cell's data.
        flops: forward FLOPs of the parts of its model that the cell calls.

    Raises:
        RequestError: packages that the cell needs are not installed.
    """
    return (
        _why_not_splits(cell, facts)
        or _why_not_rare(cell)
        or _why_not_task(cell)
        or _why_not_mosaics(cell)
        or _why_not_batch(cell, facts)
        or _why_not_held(cell)
        or _why_not_budget(cell, flops)
    )


def _why_not_splits(cell: Cell, facts: Facts) -> str | None:
    if facts.sizes and cell.split != "disjoint":
        return f"{cell.task} has splits of its own: its split is disjoint"
    if facts.sizes and cell.alpha is not None:
        noun = tasks.modality(cell.task).noun
        return f"attention is held on mosaics, not on {cell.task}: {noun} may lack a foreground"
    return None


def _why_not_batch(cell: Cell, facts: Facts) -> str | None:
    """Why a cell cannot normalise over a batch; None if it can, or does not."""
    if not cell.takes_whole_batches:
        return None
    if cell.batch_size < 2:
        return "a batch of one input becomes constant by batch normalisation: take 2 or more"
    if goes_in_parts(cell.m, math.prod(facts.input_shape)):
        return (
            f"at m={cell.m} a mosaic goes through the networks in parts, and batch "
            "normalisation would be of a part: take layer or group"
        )
    return None


def _why_not_held(cell: Cell) -> str | None:
    if cell.alpha is None:
        return None
    held = [name for name in PARADIGMS if paradigms.get(name).held]
    if cell.paradigm not in held:
        return f"a held attention (section 3) is defined for {', '.join(held)}"
    if cell.budget.unit != "mosaics":
        return "a held attention is compared by epochs: its budget_unit is mosaics"
    return None


def _why_not_budget(cell: Cell, flops: ModelFlops) -> str | None:
    steps = steps_by_phase(cell, timeline(cell, flops))
    for phase, count in zip(cell.schedule.phases, steps, strict=True):
        if count == 0:
            return (
                f"the budget has no step for its {phase.paradigm} phase (batch {cell.batch_size})"
            )
    return None


def _why_not_mosaics(cell: Cell) -> str | None:
    """Why a cell cannot have the content of its mosaics; None if it can, or has no mosaics."""
    if (cell.foregrounds, cell.distractors) == (1, 0):
        return None
    if not tasks.modality(cell.task).backgrounds:
        return f"foregrounds and distractors are of mosaics, not of {cell.task}; leave them out"
    named = cell.foregrounds + cell.distractors
    if named >= cell.m:
        return (
            f"foregrounds and distractors together must be less than m={cell.m}, as the "
            f"background is a segment, too, got {named}"
        )
    return None


def _why_not_rare(cell: Cell) -> str | None:
    """Why a cell cannot have a value of an axis that only others have; None if it has none."""
    known = tasks.modality(cell.task)
    said = {name for phase in cell.schedule.phases for name in phase.to_dict()}
    for name, axis in axes_of(Phase).items():
        if axis.rare and name in said and not known.has(name):
            having = (task.modality for task in tasks.TASKS.values() if task.modality.has(name))
            nouns = dict.fromkeys(each.noun for each in having)
            return f"{name} is for {' and '.join(nouns)}, not for {cell.task}; write none"
    return None


def _why_not_task(cell: Cell) -> str | None:
    """Why a cell cannot run for what its task alone knows; None if it can."""
    place = tasks.TASKS[cell.task].why_not
    return imported(place)(cell) if place else None
