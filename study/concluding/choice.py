"""Chooses options while a study runs, as the report of its results does."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from study.cell import Cell
from study.cell.cell import Group
from study.cell.work import CONFIRM
from study.launch.workplace import Workplace
from study.request import Request
from study.terminal.command import importing


class Choice:
    """Chooses among all options that a results directory holds, whichever command tuned them.

    Args:
        request: says by which metric.
        place: where the results are; surveyed before this command trains.
    """

    def __init__(self, request: Request, place: Workplace) -> None:
        self._results, self._select = place.results, request.select
        cells = place.survey.cells
        tuned = cells[cells["stage"].ne(CONFIRM)]
        self._held = tuned.groupby(["comparison_id", "paradigm"])["cell_id"].agg(set).to_dict()

    def __call__(self, tuned: Mapping[Group, Collection[str]]) -> dict[Group, Cell]:
        """A cell of the chosen option of each group; a group without one is absent.

        Args:
            tuned: group -> ids of cells that tuned it; those that the survey has are added.

        Raises:
            ResultsError: the results cannot be read.
        """
        with importing():
            from analysis.comparison.choice import chosen

        ids = {i for group, new in tuned.items() for i in {*new, *self._held.get(group, ())}}
        found = chosen(self._results, ids, self._select)
        rows = self._results.cells(found.values(), ["cell_id", "cell"])
        texts = dict(zip(rows["cell_id"], rows["cell"], strict=True))
        cells = {group: Cell.from_dict(json.loads(texts[i])) for group, i in found.items()}
        return {group: cells[group] for group in tuned if group in cells}
