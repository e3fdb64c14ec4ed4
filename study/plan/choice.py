"""Chooses options while a study runs, as the report of its results does."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from study.cell import Cell
from study.cell.cell import Group
from study.cell.work import CONFIRM
from study.launch.workplace import Workplace
from study.terminal.command import importing


def chosen_cells(
    place: Workplace, select: str, tuned: Mapping[Group, Collection[str]]
) -> dict[Group, Cell]:
    """A cell of the chosen option of each group; a group without one is absent.

    The choice is among all options that the results directory holds, whichever command tuned them.

    Args:
        place: where the results are, as it was last looked at.
        select: the validation metric that chooses, one of `study.request.OBJECTIVES`.
        tuned: group -> ids of cells that tuned it.

    Raises:
        ResultsError: the results cannot be read.
    """
    with importing():
        from analysis.digest.choose import chosen

    recorded = place.survey.cells
    recorded = recorded[recorded["stage"].ne(CONFIRM)]
    held = recorded.groupby(["comparison_id", "paradigm"])["cell_id"].agg(set)
    ids = {cell_id for group in tuned for cell_id in {*tuned[group], *held.get(group, ())}}
    found = chosen(place.results, ids, select)
    rows = place.results.cells(found.values(), ["cell_id", "cell"])
    texts = rows.set_index("cell_id")["cell"]
    return {
        group: Cell.from_dict(json.loads(texts[cell_id]))
        for group, cell_id in found.items()
        if group in tuned
    }
