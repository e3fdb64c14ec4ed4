"""The kind of cell that takes a trained network apart; see `study.kind.Kind`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chapters.paths.heads.heads_cell import BOUND, FIXED, PUBLISHED, SOLVED, VALIDATION, HeadsCell
from chapters.paths.posterior.posterior_cell import THEORY, WIDTH
from chapters.paths.posterior.theory_kind import TheoryKind
from study.cell import Cell
from study.cell.declared import Axis, Number, axes_of
from study.kind import Maker
from study.tasks.task import Facts, FactsOf
from study.terminal import counted
from study.train.training_kind import TRAINING

if TYPE_CHECKING:
    import pandas as pd

TEMPERATURE = Axis(
    f"of the theory: {VALIDATION} (the best of ten on validation episodes), {PUBLISHED} (the best "
    "of ten on the test episodes, and of five for the limit, as the paper does), or a number",
    Number(0),
    (VALIDATION,),
    (VALIDATION, PUBLISHED),
    only=("method", SOLVED),
)
NETWORK_WIDTH = Axis(
    "N, of every layer of the theory's network", WIDTH, only=("method", (THEORY,))
)


class HeadsMaker(Maker[HeadsCell]):
    """Makes cells from points, and knows their cost. PyTorch is imported late.

    Args:
        facts_of: gives the facts of a task's data.
    """

    def __init__(self, facts_of: FactsOf) -> None:
        self.networks = TRAINING.maker(facts_of)

    def made(self, point: Mapping[str, Any]) -> HeadsCell:
        method = point["method"]
        chosen = point["temperature"] if method in SOLVED else None
        fixed = isinstance(chosen, float)
        return HeadsCell(
            network=self.networks.made(point),
            method=method,
            examples=point["examples"],
            width=point["network_width"] if method == THEORY else None,
            choice=FIXED if fixed else chosen,
            temperature=chosen if fixed else None,
        )

    def why_not(self, cell: HeadsCell) -> str | None:
        from chapters.paths.heads import heads_cost
        from chapters.paths.heads.pruning import MOST_SUBSETS

        if reason := self.networks.why_not(cell.network):
            return reason
        if max(cell.heads) == 1:
            return "a layer keeps its last head, so of one head a layer none can be removed"
        if cell.method == BOUND and 2 ** sum(cell.heads) > MOST_SUBSETS:
            return f"all subsets of {sum(cell.heads)} heads are more than {MOST_SUBSETS:,}"
        return heads_cost.lacks_memory(cell, self.facts(cell))

    def facts(self, cell: HeadsCell) -> Facts:
        return self.networks.facts(cell.network)

    def flops(self, cell: HeadsCell) -> int:
        from chapters.paths.heads import heads_cost

        return heads_cost.flops(cell, self.facts(cell))


class Heads(TheoryKind[HeadsCell]):
    """Cells take a network apart that a cell of another kind has trained."""

    cell = HeadsCell
    run = "chapters.paths.heads.run_heads:run"
    uses = ("training",)
    fastest = ("method", "network_width", "temperature")
    row_names = ("method", "N", "temperature")

    def axes(self, of_tasks: Sequence[str]) -> Mapping[str, Axis]:
        trained = {n: axis for n, axis in TRAINING.axes(of_tasks).items() if n != "confirm"}
        own = axes_of(HeadsCell)
        about = "seeds of networks, which draw characters, episodes and weights; 0-5 is a range"
        return {
            **trained,
            "seed": replace(trained["seed"], about=about),
            "examples": own["examples"],
            "temperature": TEMPERATURE,
            "method": own["method"],
            "network_width": NETWORK_WIDTH,
        }

    def maker(self, facts_of: FactsOf) -> HeadsMaker:
        return HeadsMaker(facts_of)

    def needs(self, cells: Sequence[HeadsCell]) -> list[Cell]:
        return list(dict.fromkeys(cell.network for cell in cells))

    def row(self, cell: HeadsCell) -> tuple[str, ...]:
        width = "infinite" if cell.method in SOLVED else "-"
        return (
            cell.method,
            width if cell.width is None else f"{cell.width:,}",
            (cell.choice or "-") if cell.temperature is None else f"{cell.temperature:g}",
        )

    def heading(self, rows: pd.DataFrame, facts: Facts) -> Iterator[str]:
        first: HeadsCell = rows["cell"].iloc[0]
        networks = counted(len(self.needs([*rows["cell"]])), "network")
        yield (
            f"heads {first.heads_text} of {networks} on {first.task}: theory from "
            f"P={first.examples:,} episodes, heads removed without training again"
        )

    def short(self, cell: HeadsCell) -> HeadsCell:
        """Few episodes."""
        few = replace(TRAINING.short(cell.network), validation_size=20, test_size=20)
        return replace(cell, network=few, examples=min(cell.examples, 20))


HEADS = Heads()
