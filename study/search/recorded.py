"""The suggestions of a search that its results hold, whatever its database knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from study.results import Results
from study.search.outcomes import Outcome, outcome_of
from study.search.space import OBJECTIVES, Space


class Recorded:
    """The recorded cells of one comparison that lie in the space of a search.

    Options that a grid trained there are among them: the search learns from them all the same.

    Args:
        results: the results directory, prepared.
        comparison_id: of all cells of the search.
        space: of the search, as it is now.

    Raises:
        ResultsError: as `Results.cells`.
    """

    def __init__(self, results: Results, comparison_id: str, space: Space) -> None:
        self._results = results
        self._space = space
        cells = results.cells(columns=_COLUMNS)
        mine = cells["comparison_id"].eq(comparison_id) & cells["seed"].isin(space.seeds)
        self._cells = cells[mine & cells["paradigm"].isin(space.paradigms)]
        self._ids = frozenset(self._cells["cell_id"])

    def __contains__(self, cell_id: object) -> bool:
        return cell_id in self._ids

    def points(self) -> list[dict[str, Any]]:
        """The points of options of which a seed is recorded, in the order in which they ended."""
        options = ["paradigm", "lr", "last_lr", "switch_point"]
        last = self._cells.sort_values("finished_at").drop_duplicates(options, keep="last")
        points = [self._space.point_of(row) for row in last[options].to_dict("records")]
        return [point for point in points if point is not None]

    def outcome(self, cell_ids: Sequence[str], objective: Sequence[str]) -> Outcome | None:
        """What is told of a suggestion; None if a cell is not recorded, or nothing can be told.

        Args:
            cell_ids: one a seed.
            objective: metrics of `OBJECTIVES`.

        Raises:
            ResultsError: as `Results.evaluations`.
        """
        if not self._ids.issuperset(cell_ids):
            return None
        cells = self._cells[self._cells["cell_id"].isin(cell_ids)]
        columns = ["cell_id", "split", "budget_fraction", *OBJECTIVES]
        outcome = outcome_of(cells, self._results.evaluations(cell_ids, columns), objective)
        return None if isinstance(outcome, str) else outcome


_COLUMNS = (
    "cell_id", "comparison_id", "task", "paradigm", "lr", "last_lr", "switch_point", "seed",
    "status", "num_classes", "finished_at",
)  # fmt: skip
