"""What a process that carries cells out tells of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Report = Callable[[dict[str, Any]], bool | None]
"""Told of events, dicts with a key `event`: `evaluation` (cell_id, comparison_id, paradigm,
schedule, budget_fraction, validation accuracy and saif; True as an answer stops the cell), `fork`
(cell_id, steps: a fork point is there), `note` (text, for people)."""


@dataclass(frozen=True)
class Ended:
    """How a cell ended.

    Attributes:
        status: done, diverged or censored.
        columns: of `study.results.CELLS_SCHEMA`, what the cell itself does not say.
        evaluations: rows of `study.results.EVALUATIONS_SCHEMA` but `cell_id`.
        earlier_seconds: wall time spent on it by processes that were interrupted.
    """

    status: str
    columns: Mapping[str, Any]
    evaluations: Sequence[Mapping[str, Any]]
    earlier_seconds: float = 0.0
