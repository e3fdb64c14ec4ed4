"""The course of a study: what it has to run, as far as the results make it known."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from study.cell.work import Job
from study.errors import RequestError
from study.kinds import KINDS
from study.launch.failures import Failure
from study.launch.watching import Watch
from study.launch.workplace import Workplace
from study.plan.jobs import Seconds
from study.plan.networks import with_networks_first
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

    Attributes:
        search: suggests options; None: they are those of a grid.
    """

    def __init__(self, request: Request, grid: Plan, place: Workplace, choose: Choose) -> None:
        self._request, self._grid, self._place, self._choose = request, grid, place, choose
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
            )

    def plans(self, failed: Collection[str] = ()) -> list[Plan]:
        """The plans to run, one after the other, beside what the results directory holds now.

        Args:
            failed: ids of cells that are not to be tried again.

        Raises:
            RequestError: see `study.plan.stages.staged`; or none of a search's points can run.
        """
        place, grid = self._place, self._grid
        if self.search is not None:
            grid = self._searched(self.search)
        over = {*place.finished, *failed}
        confirm = self._request.confirm
        plan = staged(grid, confirm, place.survey.cells, over, self._choose)
        return with_networks_first(self._request, plan, place.survey, over, place.results.storage)

    @property
    def searches(self) -> bool:
        """Whether the next stage is a search, once in a command."""
        return self.search is not None and not self._is_searched and bool(self.search.left)

    def suggesting(self, plan: Plan, watch: Watch) -> tuple[Any, ...]:
        """The search stage as the arguments of `study.search.under_tune.Suggestions`."""
        self._is_searched = True
        costs = Costs(plan)

        def announce(job: Job) -> None:
            watch.expect(job.cells, {cell.id: costs.of(cell).alone for cell in job.cells})

        def refuse(error: RequestError) -> None:
            watch.failed((), Failure("request", str(error)))

        return self.search, watch.statuses, announce, refuse

    def _searched(self, search: Search) -> Plan:
        """The plan with the options that were tried, and as many to come as are left."""
        if not self._is_searched:
            search.look(self._place.survey, self._place.finished)
        cells = tuple(search.cells)
        (examples,) = self._grid.to_come
        count = 0 if self._is_searched else search.left * len(search.space.seeds)
        return replace(
            self._grid,
            cells=cells,
            flops={**self._grid.flops, **{cell.id: self._maker.flops(cell) for cell in cells}},
            to_come=(replace(examples, count=count),) if count else (),
        )


class Costs:
    """Estimated seconds of the cells of a study, also of those that were not known at first.

    Args:
        divided: a plan of all that was known, timed.
    """

    def __init__(self, divided: Plan) -> None:
        self._known = divided.costs
        self._confirm = divided.confirm
        label = {cell.id: cell.label for cell in (*divided.cells, *divided.examples)}
        alike: dict[str, list[Seconds]] = {}
        for cell_id, cost in divided.costs.items():
            alike.setdefault(label[cell_id], []).append(cost)
        self._mean = {label: _mean(costs) for label, costs in alike.items()}
        self._overall = _mean([*divided.costs.values()] or [Seconds(1.0, 0.0)])

    def of(self, cell: Any) -> Seconds:
        """As estimated for its option, or for cells that differ in options alone."""
        if cell.id in self._known:
            return self._known[cell.id]
        option = replace(cell, seed=self._confirm[0]).id if self._confirm else cell.id
        return self._known.get(option) or self._mean.get(cell.label) or self._overall


def _mean(costs: Sequence[Seconds]) -> Seconds:
    return Seconds(*(sum(column) / len(costs) for column in zip(*costs, strict=True)))


def like(plan: Plan, divided: Plan) -> Plan:
    """A later plan of a study, divided and timed as an earlier one of the same kind."""
    costs = Costs(divided)
    return replace(
        plan,
        packing=divided.packing,
        concurrent=divided.concurrent,
        threads=divided.threads,
        share=divided.share,
        gpus_per_trial=divided.gpus_per_trial,
        where=divided.where,
        costs={cell.id: costs.of(cell) for cell in (*plan.to_run, *plan.examples)},
    )
