"""A plan: one row per cell of a study, and how a machine is divided among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from study.cell import AnyCell, Options
from study.cell.work import Job
from study.kernels import Kernels
from study.kind import Maker
from study.kinds import KINDS
from study.plan.jobs import Seconds, forks, jobs_of, option_jobs
from study.tasks.task import Facts
from study.train.steps.packs import Packing

THIS_MACHINE = "this machine"


@dataclass(frozen=True)
class Division:
    """How cells become trials, and what each of these has of the machine.

    Attributes:
        packing: how cells are packed into trials.
        concurrent: trials at a time.
        threads: CPU threads a trial.
        share: whether cells with a common prefix train it once; never together with packs.
        no_share_reason: why not, for people.
        gpus_per_trial: GPUs that a trial asks for, a fraction to share one; None: one if there
            are any.
        micro_batch: inputs a forward and backward pass; None: by device.
        kernels: of a step on a GPU.
        kernels_reason: why, for people; empty: cells train on CPUs.
        where: place where the cells train, for people.
        notes: sentences on the device, for people.
    """

    packing: Packing = field(default_factory=Packing)
    concurrent: int = 1
    threads: int = 1
    share: bool = False
    no_share_reason: str = "as asked"
    gpus_per_trial: float | None = None
    micro_batch: int | None = None
    kernels: Kernels = ()
    kernels_reason: str = ""
    where: str = THIS_MACHINE
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """What a study would run.

    Attributes:
        study: its name.
        kind: of its cells, one of `study.kinds.KINDS`.
        preset: its preset's name.
        rows: as `rows_of` makes them, in the order of starts: seed by seed, so that a study
            stopped early has compared all options on fewer seeds; those that tune before those
            that confirm.
        facts: (task, options) -> facts of the data.
        how: cells become trials, and what each of these has of the machine.
        confirm: seeds that confirm the chosen options; empty: the study has one stage.
        watched: whether options are tuned by the mean of their seeds, which then train side by
            side: a search or a scheduler looks at it.
        grid: the axes that have several values, for people.
        search: what a search would try, for people.
    """

    study: str
    kind: str
    preset: str
    rows: pd.DataFrame
    facts: Mapping[tuple[str, Options], Facts]
    how: Division = field(default_factory=Division)
    confirm: tuple[int, ...] = ()
    watched: bool = False
    grid: tuple[str, ...] = ()
    search: str = ""

    def resumed(self, finished: Collection[str]) -> Plan:
        """The same plan with these cells done."""
        done = self.rows["known"] & self.rows["id"].isin({*finished})
        return replace(self, rows=self.rows.assign(done=done))

    def timed(self, seconds: pd.DataFrame) -> Plan:
        """The same plan with the time that some rows take: `alone` and `forked`, by index."""
        rows = self.rows.copy()
        rows.loc[seconds.index, [*seconds]] = seconds
        return replace(self, rows=rows)

    @cached_property
    def flops(self) -> dict[str, Any]:
        """Cell id -> what its cost follows from."""
        return dict(zip(self.rows["id"], self.rows["flops"], strict=True))

    @property
    def maker(self) -> Maker[Any]:
        """What makes further cells of it, of the same data."""
        return KINDS[self.kind].maker(lambda task, options: self.facts[task, options])

    @property
    def runnable(self) -> pd.DataFrame:
        """The rows of all that can run, known or to come."""
        return self.rows[self.rows["skipped"].isna()]

    @property
    def known(self) -> pd.DataFrame:
        return self.runnable[self.runnable["known"]]

    @property
    def to_come(self) -> pd.DataFrame:
        return self.runnable[~self.runnable["known"]]

    @property
    def left(self) -> pd.DataFrame:
        """The known rows that are not done."""
        return self.known[~self.known["done"]]

    @property
    def cells(self) -> list[Any]:
        """All that are known."""
        return [*self.known["cell"]]

    @property
    def to_run(self) -> list[Any]:
        return [*self.left["cell"]]

    @property
    def skipped(self) -> list[str]:
        """What cannot run, and why, for people."""
        return [*self.rows["skipped"].dropna().unique()]

    def tuning(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Those of some of its rows that do not confirm."""
        return rows[~rows["seed"].isin(self.confirm)]

    def confirming(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Those of some of its rows that do."""
        return rows[rows["seed"].isin(self.confirm)]

    @property
    def searches(self) -> bool:
        """Whether a search suggests further cells."""
        return not self.tuning(self.to_come).empty

    @property
    def open(self) -> bool:
        """Whether anything can run now: cells, or a search."""
        return not self.left.empty or self.searches

    @cached_property
    def jobs(self) -> list[Job]:
        """The cells to run, as trials."""
        rows = self.left
        watched = self.tuning(rows) if self.watched else rows[:0]
        others = rows.drop(watched.index)
        seconds = dict(zip(rows["id"], map(Seconds, rows["alone"], rows["forked"]), strict=True))
        how = self.how
        return option_jobs(watched["cell"]) + jobs_of(
            [*others["cell"]], seconds, how.packing, how.concurrent, how.share
        )

    @cached_property
    def forks(self) -> list[Any]:
        """The cells that start from the first phase of another one."""
        return [cell for job in self.jobs for cell in forks(job)]

    @cached_property
    def seconds(self) -> pd.Series:
        """Estimated seconds as the cells train, of each that is left, by its id."""
        rows = self.left.set_index("id")
        forked = rows.index.isin([cell.id for cell in self.forks])
        return rows["alone"].mask(forked, rows["forked"])


def rows_of(
    cells: Iterable[AnyCell],
    flops: Sequence[Any],
    *,
    known: bool | Sequence[bool] = True,
    skipped: Sequence[str | None] = (),
) -> pd.DataFrame:
    """The rows of a plan, one per cell.

    Args:
        cells: each once, but those to come.
        flops: what their cost follows from, see `study.kind.Maker.flops`; None if one cannot run.
        known: whether they are; a cell to come is an example that takes as long.
        skipped: what cannot run and why, for people; None, or empty for all: it can.

    Returns:
        These, and `id`, `group`, `label`, `option` and `seed` of each cell. `number`: of all that
        can run, group by group, by which shards share them. `done`: whether it needs no run.
        `alone` and `forked`: seconds of all its phases and of those after the first one, which are
        estimated later.
    """
    rows = pd.DataFrame({"cell": pd.Series([*cells], dtype=object)})
    for name in ("id", "group", "label", "option", "seed"):
        rows[name] = [getattr(cell, name) for cell in rows["cell"]]
    rows["flops"] = pd.Series([*flops], dtype=object)
    rows = rows.assign(known=known).astype({"known": bool, "seed": "int64"})  # of no cell, too
    rows["skipped"] = pd.Series([*skipped], dtype=object)
    runs = rows[rows["skipped"].isna()]
    by_group = runs.groupby("group", sort=False).ngroup().sort_values(kind="stable")
    numbers = pd.Series(range(len(runs)), by_group.index)
    return rows.assign(
        number=numbers.reindex(rows.index, fill_value=-1), done=False, alone=0.0, forked=0.0
    )
