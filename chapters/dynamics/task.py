"""The declared task of the linear orthogonal setting."""

from __future__ import annotations

from chapters.dynamics.vectors import LARGEST_NUM_CLASSES, base_vectors, vector_names
from study.cell import Cell, Options
from study.cell.declared import Axis, Whole
from study.tasks.mosaics.mosaic_tasks import mosaics_of
from study.tasks.task import MOSAICS, Declaration, TaskInfo

TASK = "linear-orthogonal"


def why_not(cell: Cell) -> str | None:
    """Why a cell cannot run on vectors; None if it can."""
    if (cell.foregrounds, cell.distractors) != (1, 0):
        return (
            "the closed form is of one foreground segment: leave foregrounds and distractors out"
        )
    return None


def _info(options: Options) -> TaskInfo:
    count = options["num_classes"]
    return mosaics_of(TASK, vector_names(count), lambda _: base_vectors(count))


LINEAR_ORTHOGONAL = Declaration(
    MOSAICS,
    _info,
    {"num_classes": Axis("foreground classes", Whole(2, LARGEST_NUM_CLASSES))},
    chooses=False,
    why_not="chapters.dynamics.task:why_not",
    artifacts="",  # the theory tells more than a heat map
)
