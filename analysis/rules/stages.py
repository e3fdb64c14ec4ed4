"""The two stages of a comparison: options are tuned on some seeds, the chosen ones confirmed.

A cell's `stage` says which it belongs to; where no cell of a comparison confirms, it has one
stage, in which options are chosen and tested on the same seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from analysis.groups import GROUP, OPTION, rows_of, with_chosen
from analysis.rules.statistics import MIN_SEEDS
from study.results import CONFIRM, TUNE

OTHER_OPTION = (
    "another option of {} was confirmed on these seeds before: only fresh ones give a verdict "
    "(--set confirm=SEEDS)"
)


def tuning(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that options are chosen by.

    Those of cells that do not confirm; of a group that has none of them, since it was given its
    option, all.

    Args:
        rows: with `comparison_id`, `paradigm` and `stage`.
    """
    confirms = rows["stage"].eq(CONFIRM)
    tuned = (~confirms).groupby([rows["comparison_id"], rows["paradigm"]]).transform("any")
    return rows[~(confirms & tuned)]


def tested(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that numbers and verdicts are of: those of confirming cells, if there are any.

    Args:
        rows: see `tuning`; a comparison without a confirming cell keeps all of its rows.
    """
    confirms = rows["stage"].eq(CONFIRM)
    return rows[confirms | ~confirms.groupby(rows["comparison_id"]).transform("any")]


def tested_choice(rows: pd.DataFrame, choice: pd.DataFrame) -> pd.DataFrame:
    """The rows of `tested` that are of the chosen options."""
    return rows_of(choice, tested(rows))


class Look(NamedTuple):
    """What a verdict on some paradigms rests on.

    Attributes:
        seeds: of the first look, also those whose runs were lost; all, where there was none yet or
            nothing is known of a plan.
        tested: those of them that verdicts are of, as far as their runs have results.
        doubt: why there is no verdict; empty: there may be.
        ended: while planned seeds have not ended, how many have; None else.
        planned: as many as were planned; 0 while options are tuned, None else.
    """

    seeds: frozenset[int]
    tested: frozenset[int]
    doubt: str = ""
    ended: int | None = None
    planned: int | None = None


class Run(NamedTuple):
    """A run of a chosen option with one seed.

    Attributes:
        at: when it ended, or was given up.
        planned: how many seeds were to confirm then; 0: not known.
        failed: whether it has no result.
        late: whether its result came only after it had been given up.
    """

    at: str
    planned: int = 0
    failed: bool = False
    late: bool = False


@dataclass(frozen=True)
class Looks:
    """The first look at each paradigm of a comparison, by which alone a verdict is decided.

    Whoever looks again and again at a study while it runs, or adds seeds or options until one is
    decided, decides falsely more often than a test says: of 100 studies with 24 seeds that are
    looked at from 6 on, some 20. So a verdict waits until as many seeds as were planned have
    ended, and whatever comes later moves means alone: further seeds, results of runs that had been
    given up, and seeds on which another option of the paradigm was confirmed before.

    Attributes:
        runs: paradigm -> seed -> run of its chosen option.
        spent: paradigm -> seeds on which another option was confirmed before.
        tunes: whether options are tuned and none is confirmed yet.
    """

    runs: Mapping[str, Mapping[int, Run]]
    spent: Mapping[str, frozenset[int]] = field(default_factory=dict)
    tunes: bool = False

    def of(self, *paradigms: str) -> Look:
        """The look at one paradigm, or at those that are compared."""
        of_each = [self.runs.get(name, {}) for name in paradigms]
        every = frozenset().union(*of_each)
        if self.tunes:
            return Look(every, every, interim("0", "0"), 0, 0)
        runs = {seed: [mine[seed] for mine in of_each if seed in mine] for seed in every}
        changed = [name for name in paradigms if self.spent.get(name)]
        fresh = every.difference(*(self.spent[name] for name in changed))
        in_time = sorted(fresh, key=lambda seed: (min(runs[seed]), seed))
        looked_at, first = _planned(in_time, runs)
        lost = {seed for seed in looked_at if any(run.failed or run.late for run in runs[seed])}
        ended = sum(len(runs[seed]) == len(paradigms) for seed in looked_at)
        if first and ended == first and first - len(lost) < MIN_SEEDS:
            # That decided nothing, so what was lost may come late, or from further seeds.
            there = [seed for seed in in_time if not any(run.failed for run in runs[seed])]
            (looked_at, first), lost = _planned(there, runs), set()
            ended = sum(len(runs[seed]) == len(paradigms) for seed in looked_at)
        if first and ended == first:
            return Look(frozenset(looked_at), frozenset(looked_at) - lost)
        if changed and not ended:
            return Look(every, every, OTHER_OPTION.format(" and ".join(changed)))
        if first:
            return Look(every, every, interim(str(ended), str(first)), ended, first)
        every = frozenset().union(*self.runs.values())
        return Look(every, every)


def interim(ended: str, planned: str) -> str:
    """Why there is no verdict yet; nothing is planned while options are tuned."""
    if planned == "0":
        return "interim: nothing is confirmed yet"
    return f"interim: {ended} of {planned} planned seeds"


def looks(cells: pd.DataFrame, choice: pd.DataFrame) -> Looks:
    """When the chosen options of a comparison were looked at first.

    Args:
        cells: one row a cell, with the columns of `CELLS_SCHEMA`.
        choice: as `analysis.digest.choose.choose` gives it.
    """
    rows = with_chosen(tested(cells), choice, [*GROUP, *OPTION])
    rows = rows.assign(
        at=rows["given_up_at"].fillna(rows["finished_at"]),
        planned=rows["planned_seeds"].fillna(0).astype(int),
        failed=rows["status"].eq("failed"),
        late=rows["given_up_at"].notna(),
    )
    runs: dict[str, dict[int, Run]] = {}
    spent: dict[str, set[int]] = {}
    columns = ["paradigm", "seed", *Run._fields]
    for paradigm, seed, *run in rows.loc[rows["chosen"], columns].itertuples(index=False):
        runs.setdefault(paradigm, {})[seed] = Run(*run)
    for paradigm, seed, *run in rows.loc[~rows["chosen"], columns].itertuples(index=False):
        before, mine = Run(*run), runs.get(paradigm, {})
        if before.planned and not before.failed and seed in mine and before.at < mine[seed].at:
            spent.setdefault(paradigm, set()).add(seed)
    tunes = len(rows) > 0 and bool(rows["stage"].eq(TUNE).all())
    return Looks(runs, {name: frozenset(seeds) for name, seeds in spent.items()}, tunes)


def cells_left(cells: pd.DataFrame, choice: pd.DataFrame) -> int:
    """How many of the planned confirming cells have not ended, as far as the others say.

    A paradigm without a confirming cell has as many to come as were planned of another one.

    Args:
        cells, choice: as for `looks`.
    """
    confirming = cells[cells["stage"].eq(CONFIRM)].fillna({"planned_seeds": 0})
    # Where another option is chosen now, as at another cut, nothing of that one was planned.
    chosen, any_option = (
        rows.groupby("paradigm").agg(planned=("planned_seeds", "max"), ended=("seed", "nunique"))
        for rows in (rows_of(choice, confirming), confirming)
    )
    of_each = chosen.combine_first(any_option).reindex(choice["paradigm"])
    of_each = of_each.fillna({"planned": any_option["planned"].max(), "ended": 0})
    return int((of_each["planned"] - of_each["ended"]).clip(lower=0).sum())


def _planned(
    in_time: Sequence[int], runs: Mapping[int, Sequence[Run]]
) -> tuple[Sequence[int], int]:
    """The seeds of the first plan that could decide, and how many it has; 0: nothing is known."""
    plans = {seed: min(runs[seed]).planned for seed in in_time}
    first = next((plans[seed] for seed in in_time if plans[seed] >= MIN_SEEDS), 0)
    return sorted(in_time, key=lambda seed: plans[seed] > first)[: first or None], first


def given(rows: pd.DataFrame) -> dict[str, int]:
    """Paradigms of a comparison with two stages that were not tuned -> options they have."""
    if not rows["stage"].eq(CONFIRM).any():
        return {}
    tuned = rows.loc[~rows["stage"].eq(CONFIRM), "paradigm"]
    rest = rows[~rows["paradigm"].isin(tuned)]
    counts = rest.drop_duplicates(["paradigm", *OPTION])["paradigm"].value_counts(sort=False)
    return {str(name): int(count) for name, count in counts.items()}
