"""What a process that runs cells reports: events while they run, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Report = Callable[[dict[str, Any]], bool | None]
"""Called with events, dicts with a key `event`: `evaluation` (cell_id, comparison_id,
budget_fraction, validation accuracy, and of a cell that trains paradigm, schedule and validation
saif; the answer True stops the cell), `fork`
(cell_id, steps: a fork point is written), `note` (text, for people)."""


@dataclass(frozen=True)
class Ended:
    """How a cell ended.

    Attributes:
        status: done, diverged or censored.
        columns: of `study.results.CELLS_SCHEMA` that do not follow from the cell.
        evaluations: rows of `study.results.EVALUATIONS_SCHEMA` without `cell_id`.
        earlier_seconds: wall time of earlier, interrupted processes.
        base_images: (n, k) of the instances whose bits are among the evaluations, see
            `study.tasks.base.Split`; None: not known.
    """

    status: str
    columns: Mapping[str, Any]
    evaluations: Sequence[Mapping[str, Any]]
    earlier_seconds: float = 0.0
    base_images: NDArray[np.int64] | None = None
