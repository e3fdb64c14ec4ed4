"""Episodes of one-shot images: does the query show the character of the first support?"""

from __future__ import annotations

from study.cell import Cell
from study.tasks.task import Modality

IMAGES = 3
"""Of an episode: first support, second support, query."""

ONE_SHOT = Modality(
    "episodes",
    counted="episodes",
    m="images m",
    evaluation="chapters.paths.one_shot.evaluation:evaluate",
    settings="transformer",
    fixed_m=IMAGES,
    evaluates_alike=False,  # the seed splits the characters
    keeps_networks=True,
)


def why_not(cell: Cell) -> str | None:
    """Why a cell cannot run for what only one-shot images have; None if it can."""
    if cell.paradigm != "soft" or cell.inference is not None:
        return "the heads of a transformer attend softly: its paradigm is soft"
    if cell.alpha is not None:
        return "attention is held on mosaics, not on the heads of a transformer"
    if cell.m != IMAGES:
        return f"an episode has {IMAGES} images, so m is {IMAGES}"
    if cell.split != "disjoint":
        return f"{cell.task} has characters of their own in each split: its split is disjoint"
    return None
