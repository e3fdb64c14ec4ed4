"""Why a cell cannot run, though each of its values is in range."""

from __future__ import annotations

import math

from study import paradigms, tasks
from study.cell import PARADIGMS, Cell
from study.evaluate.caption_scores import require_scorers
from study.models.flops import ModelFlops
from study.paradigms.parts import goes_in_parts
from study.tasks.captions.encoders import ENCODERS
from study.tasks.task import IMAGES, Facts
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
        or _why_not_captions(cell)
        or _why_not_one_shot(cell)
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
    if tasks.modality(cell.task) is not tasks.MOSAICS:
        return f"foregrounds and distractors are of mosaics, not of {cell.task}; leave them out"
    if cell.task == "linear-orthogonal":
        return (
            "the closed form is of one foreground segment: leave foregrounds and distractors out"
        )
    named = cell.foregrounds + cell.distractors
    if named >= cell.m:
        return (
            f"foregrounds and distractors together must be less than m={cell.m}, as the "
            f"background is a segment, too, got {named}"
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
    if "encoder" not in cell.options:
        if any(phase.teacher_forcing != 1 for phase in cell.schedule.phases):
            return f"teacher_forcing is for captions, not for {cell.task}; write none"
        return f"encoder_lr is for captions, not for {cell.task}; write none" if rates else None
    encoder = cell.options["encoder"]
    require_scorers()
    if math.isqrt(cell.m) ** 2 != cell.m:
        return f"the regions of an image are a square grid, so m={cell.m} must be a square number"
    if not (rates or ENCODERS[encoder].pretrained):
        return f"the {encoder} encoder has no weights of its own: give it an encoder_lr"
    return None
