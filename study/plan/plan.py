"""A plan: the cells of a study, which are done or skipped, and what running them takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from study.cell import Options
from study.cell.cell import Group
from study.cell.work import Job
from study.kind import Maker
from study.kinds import KINDS
from study.plan.jobs import Seconds, forks, jobs_of, option_jobs
from study.tasks.task import Facts
from study.train.steps.packs import Packing

THIS_MACHINE = "this machine"


@dataclass(frozen=True)
class Skip:
    """Cells of the grid that cannot run, and why."""

    what: str
    reason: str


@dataclass(frozen=True)
class ToCome:
    """Cells that become known while the study runs.

    Attributes:
        examples: cells that take as long, on average.
        count: how many will run.
        group: that they confirm; None: they tune.
    """

    examples: tuple[Any, ...]
    count: int
    group: Group | None = None


@dataclass(frozen=True)
class Plan:
    """What a study would run.

    Attributes:
        study: its name.
        kind: of its cells, one of `study.kinds.KINDS`.
        preset: its preset's name.
        cells: of that kind, all that are known, in the order of starts: seed by seed, so that a
            study stopped early has compared all options on fewer seeds; those that tune before
            those that confirm.
        finished: ids of the cells that the results directory holds.
        skipped: parts of the grid that cannot run.
        flops: cell id -> what its cost follows from, see `study.kind.Maker.flops`.
        facts: (task, options) -> facts of the data.
        packing: how cells are packed into trials.
        concurrent: trials at a time.
        threads: CPU threads a trial.
        share: whether cells with a common prefix train it once; never together with packs.
        no_share_reason: why not, for people.
        gpus_per_trial: GPUs that a trial asks for, a fraction to share one; None: one if there
            are any.
        max_concurrent: most trials at a time; None: no limit.
        micro_batch: inputs a forward and backward pass; None: by device.
        grid: the axes that have several values, for people.
        search: what a search would try, for people.
        to_come: cells that a search will suggest, and those that will confirm what is not chosen
            yet, by group.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.
        watched: whether options are tuned by the mean of their seeds, which then train side by
            side: a search or a scheduler looks at it.
        where: place where the cells train, for people.
        notes: sentences on the device, for people.
        costs: cell id -> estimated seconds, of each cell to run and each example.
    """

    study: str
    kind: str
    preset: str
    cells: tuple[Any, ...]
    finished: frozenset[str]
    skipped: tuple[Skip, ...]
    flops: Mapping[str, Any]
    facts: Mapping[tuple[str, Options], Facts]
    packing: Packing = field(default_factory=Packing)
    concurrent: int = 1
    threads: int = 1
    share: bool = False
    no_share_reason: str = "as asked"
    gpus_per_trial: float | None = None
    max_concurrent: int | None = None
    micro_batch: int | None = None
    grid: tuple[str, ...] = ()
    search: str = ""
    to_come: tuple[ToCome, ...] = ()
    confirm: tuple[int, ...] = ()
    watched: bool = False
    where: str = THIS_MACHINE
    notes: tuple[str, ...] = ()
    costs: Mapping[str, Seconds] = field(default_factory=dict)

    def resumed(self, finished: Collection[str]) -> Plan:
        """The same plan with these cells finished."""
        ids = {cell.id for cell in self.cells}
        return replace(self, finished=frozenset(ids.intersection(finished)))

    @property
    def maker(self) -> Maker[Any]:
        """What makes further cells of it, of the same data."""
        return KINDS[self.kind].maker(lambda task, options: self.facts[task, options])

    @property
    def tuning(self) -> list[Any]:
        """The cells that do not confirm."""
        return [cell for cell in self.cells if cell.seed not in self.confirm]

    @property
    def suggested(self) -> list[ToCome]:
        """What a search will suggest."""
        return [each for each in self.to_come if each.group is None]

    @property
    def confirming(self) -> list[Any]:
        """The cells that confirm, as far as what they confirm is chosen."""
        return [cell for cell in self.cells if cell.seed in self.confirm]

    @property
    def to_run(self) -> list[Any]:
        return [cell for cell in self.cells if cell.id not in self.finished]

    @property
    def searches(self) -> bool:
        """Whether a search suggests further cells."""
        return bool(self.suggested)

    @property
    def open(self) -> bool:
        """Whether anything can run now: cells, or a search."""
        return bool(self.to_run) or self.searches

    @property
    def examples(self) -> list[Any]:
        """Of the cells to come."""
        return [cell for each in self.to_come for cell in each.examples]

    @property
    def shown(self) -> Sequence[Any]:
        """The cells by which people see what the study is; of a search, examples."""
        return self.cells or self.to_come[0].examples

    @property
    def num_to_come(self) -> int:
        return sum(each.count for each in self.to_come)

    @property
    def seconds_to_come(self) -> float:
        """Estimated seconds of the cells to come."""
        return sum(self.seconds_of(each.examples) * each.count for each in self.to_come)

    def seconds_of(self, examples: Sequence[Any]) -> float:
        """The mean of what cells are estimated to take."""
        return sum(self.seconds[cell.id] for cell in examples) / len(examples)

    @cached_property
    def jobs(self) -> list[Job]:
        """The cells to run, as trials."""
        watched = {cell.id for cell in self.tuning if self.watched}
        others = [cell for cell in self.to_run if cell.id not in watched]
        return option_jobs(cell for cell in self.to_run if cell.id in watched) + jobs_of(
            others, self.costs, self.packing, self.concurrent, self.share
        )

    @cached_property
    def forks(self) -> list[Any]:
        """The cells that start from the first phase of another one."""
        return [cell for job in self.jobs for cell in forks(job)]

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Cell id -> estimated seconds as the cell trains: of a fork, after its first phase."""
        alone = {cell_id: cost.alone for cell_id, cost in self.costs.items()}
        return alone | {cell.id: self.costs[cell.id].forked for cell in self.forks}
