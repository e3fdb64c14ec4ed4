"""What a process that runs cells reports: events while they run, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Report = Callable[[dict[str, Any]], bool | None]
"""Called with events, dicts with a key `event`:

- `evaluation`: of the cells that train side by side, at a point of the budget. budget_fraction;
  cells, id -> validation accuracy; and accuracy and saif, means over the cells. The answer True
  stops them.
- `ended`: cell_id, status and, of a cell that failed, kind and text of the
  `study.launch.failures.Failure`.
- `raised`: cells, ids of the pack at which the job ends with an error.
- `note`: text, for people.
"""


class Instances(NamedTuple):
    """What the instances of a test split hold.

    Attributes:
        base_images: (n, k), see `study.tasks.task.Split`.
        labels: (n,) the name of the class of each; None: they have none.
    """

    base_images: NDArray[np.int64]
    labels: NDArray[np.str_] | None = None


@dataclass(frozen=True)
class Ended:
    """How a cell ended.

    Attributes:
        status: done, diverged or censored.
        columns: of `study.results.CELLS_SCHEMA` that do not follow from the cell.
        evaluations: rows of `study.results.EVALUATIONS_SCHEMA` without `cell_id`.
        earlier_seconds: wall time of earlier, interrupted processes.
        instances: whose bits are among the evaluations; None: not known what they hold.
    """

    status: str
    columns: Mapping[str, Any]
    evaluations: Sequence[Mapping[str, Any]]
    earlier_seconds: float = 0.0
    instances: Instances | None = None


Runner = Callable[[Sequence[Any], Sequence[Any]], list[Ended]]
"""Runs cells side by side, from where an interrupted process left them; gives how each ended. The
second argument are those that it will run later, which may go on from where these have been."""
