"""The kinds of cell, see `study.kind`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.cell.work import RECORDED
from study.door import Places
from study.errors import RequestError, unknown
from study.kind import Kind

KINDS: Places[Kind[Any]] = Places({"training": "study.train.training_kind:TRAINING"}, Kind)
"""Name, as in `search_spaces.base.SearchSpace.kind` -> kind; chapters register more."""


def kind_of(row: Mapping[Any, Any]) -> Kind[Any]:
    """The kind of a recorded cell, by its row of `study.results.CELLS_SCHEMA`.

    Raises:
        RequestError: another training loop trained the cell, so it is of none; or none is known.
    """
    if row["kind"] == RECORDED:
        raise RequestError(
            f"run {row['cell_id']} was trained elsewhere and recorded by analysis.record: only "
            "the training loop that trained it can do that again."
        )
    if row["kind"] not in KINDS:
        raise unknown("kind of cell", row["kind"], KINDS)
    return KINDS[row["kind"]]
