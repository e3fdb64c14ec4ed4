"""What every kind of cell is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Report = Callable[[dict[str, Any]], bool | None]
"""Told of events, dicts with a key `event`: `evaluation` (cell_id, comparison_id, paradigm,
schedule, budget_fraction, validation accuracy and saif; True as an answer stops the cell), `fork`
(cell_id, steps: a fork point is there), `note` (text, for people)."""
