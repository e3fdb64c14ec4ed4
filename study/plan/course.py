"""The course of a study: what it has to run, as far as the results make it known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from study.kinds import KINDS
from study.launch.workplace import Workplace
from study.plan.networks_first import with_networks_first
from study.plan.plan import Plan
from study.plan.stages import Choose, staged
from study.request import Request
from study.search.search import Search
from study.search.space import Space


class Course:
    """Names what is next: networks before what takes them apart, tuning before confirming.

    Args:
        request: what was asked for.
        grid: the plan of all its options, or of a search.
        place: where it runs.
        choose: chooses options of groups that are tuned.
        divide: gives what this command runs of plans, divided among workers and timed.

    Attributes:
        search: suggests options; None: they are those of a grid.

    Raises:
        RequestError: none of a search's points can run.
    """

    def __init__(
        self,
        request: Request,
        grid: Plan,
        place: Workplace,
        choose: Choose,
        divide: Callable[[Sequence[Plan]], list[Plan]],
    ) -> None:
        self._request, self._grid, self._place = request, grid, place
        self._choose, self._divide = choose, divide
        self.search: Search | None = None
        self._is_searched = False
        if request.search:
            self._maker = KINDS[grid.kind].maker(lambda task, options: grid.facts[task, options])
            self.search = Search(
                name=grid.study,
                results=place.results,
                space=Space.of(request.axes),
                make_cell=self._maker.runnable,
                objective=request.metrics,
                num_samples=request.num_samples or 0,
                survey=place.survey,
                finished=place.finished,
            )

    def plans(self, failed: Collection[str] = ()) -> list[Plan]:
        """The plans to run, one after the other, beside what the results directory holds now.

        Args:
            failed: ids of cells that are not to be tried again.

        Raises:
            RequestError: see `study.plan.stages.staged`.
        """
        place, grid = self._place, self._grid
        if self.search is not None:
            grid = self._searched(self.search)
        over = {*place.finished, *failed}
        confirm = self._request.confirm
        plan = staged(grid, confirm, place.survey.cells, over, self._choose)
        storage = place.results.storage
        return self._divide(with_networks_first(self._request, plan, place.survey, over, storage))

    def ends_with(self, stage: Plan) -> bool:
        """Whether nothing becomes known by a stage that has run, so that none follows."""
        return stage.kind == self._grid.kind and not stage.to_come

    def begun_search(self) -> Search | None:
        """The search, if the next stage is one, once in a command; else None."""
        if self._is_searched or self.search is None or not self.search.left:
            return None
        self._is_searched = True
        return self.search

    def _searched(self, search: Search) -> Plan:
        """The plan with the options that were tried, and as many to come as are left."""
        cells = tuple(search.cells)
        (examples,) = self._grid.to_come
        count = 0 if self._is_searched else search.left * len(search.space.seeds)
        return replace(
            self._grid,
            cells=cells,
            flops={**self._grid.flops, **{cell.id: self._maker.flops(cell) for cell in cells}},
            to_come=(replace(examples, count=count),) if count else (),
        )
