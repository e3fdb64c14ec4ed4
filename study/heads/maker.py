"""Makes cells that take trained networks apart from points (axis -> value)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.errors import RequestError
from study.heads import cost
from study.heads.cell import BOUND, SOLVED, HeadsCell
from study.heads.temperatures import FIXED
from study.posterior.cell import THEORY
from study.tasks.base import Facts, FactsOf
from study.theory.heads.pruning import MOST_SUBSETS
from study.train.cells import CellMaker


class HeadsMaker:
    """Makes cells from points, and knows their cost; see `study.kinds.Maker`.

    Args:
        facts_of: gives the known or nominal facts of a task's data.
    """

    def __init__(self, facts_of: FactsOf) -> None:
        self.networks = CellMaker(facts_of)

    def cell(self, point: Mapping[str, Any]) -> HeadsCell:
        network = self.networks.cell(point)
        method, own = point["method"], {}
        if method in SOLVED:
            chosen = point["temperature"]
            named = isinstance(chosen, str)
            own = {"choice": chosen} if named else {"choice": FIXED, "temperature": chosen}
        if method == THEORY:
            own["width"] = point["network_width"]
        try:
            return HeadsCell(network=network, method=method, examples=point["examples"], **own)
        except ValueError as error:
            raise RequestError(f"{error}. Change it with --set, see --help.") from error

    def why_not(self, cell: HeadsCell) -> str | None:
        if reason := self.networks.why_not(cell.network):
            return reason
        if max(cell.heads) == 1:
            return "a layer keeps its last head, so of one head a layer none can be removed"
        if cell.method == BOUND and 2 ** sum(cell.heads) > MOST_SUBSETS:
            return f"all subsets of {sum(cell.heads)} heads are more than {MOST_SUBSETS:,}"
        return cost.lacks_memory(cell, self.facts(cell))

    def runnable(self, point: Mapping[str, Any]) -> HeadsCell:
        cell = self.cell(point)
        if reason := self.why_not(cell):
            raise RequestError(f"{cell.text}: {reason}. Change it with --set.")
        return cell

    def facts(self, cell: HeadsCell) -> Facts:
        return self.networks.facts(cell.network)

    def flops(self, cell: HeadsCell) -> int:
        return cost.nominal_flops(cell, self.facts(cell))
