"""Results of cells of posts, of which not all have a rationale, as a study writes them."""

from __future__ import annotations

from typing import Any

from study.cell import Cell
from study.results import Results
from tests.made_up.comparisons import Row, make_cell, write

SHARES = {"train": 0.0, "validation": 0.58, "test": 0.594}
"""Of posts with a rationale, as in the data at hand."""

NOTES = "A vocabulary of 9 words covers 90 % of the test tokens.\n12 posts were left out."

PLAUSIBILITY = {"token_f1": 1, "iou_f1": 2, "auprc": 3}
"""Measure -> by what SAIF is divided to give it."""


def make_text_cell(
    paradigm: str = "soft", lr: float = 0.1, seed: int = 0, **settings: Any
) -> Cell:
    """A cell of the hatexplain task; `settings` as for `make_cell`."""
    defaults: dict[str, Any] = {
        "task": "hatexplain",
        "m": 64,
        "n": 15_000,
        "architecture": "embedding",
        "label_rule": "majority",
        "rationale_rule": "majority",
        "min_count": 2,
    }
    return make_cell(paradigm, lr, seed, **(defaults | settings))


def write_text(results: Results, cell: Cell, *args: float, **columns: Any) -> Cell:
    """As `write`, with what only posts have."""
    defaults = {"study": "hatexplain", "shares": SHARES, "data_notes": NOTES}
    return write(results, cell, *args, further=_plausibility, **(defaults | columns))


def _plausibility(evaluation: Row) -> Row:
    """Of posts with a rationale."""
    if evaluation["foreground_share"] == 0:
        return {}
    return {name: evaluation["saif"] / by for name, by in PLAUSIBILITY.items()}
