"""The two stages of a comparison: options are tuned on some seeds, the chosen ones confirmed.

A cell's `stage` says which it belongs to; where no cell of a comparison confirms, it has one
stage, in which options are chosen and tested on the same seeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    return _these_or_all(rows, rows["stage"].ne(CONFIRM), ["comparison_id", "paradigm"])


def tested(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows that numbers and verdicts are of: those of confirming cells, if there are any.

    Args:
        rows: see `tuning`; a comparison without a confirming cell keeps all of its rows.
    """
    return _these_or_all(rows, rows["stage"].eq(CONFIRM), ["comparison_id"])


def _these_or_all(rows: pd.DataFrame, these: pd.Series, group: list[str]) -> pd.DataFrame:
    """The rows that are marked, and all rows of a group that has no marked one."""
    some = these.groupby([rows[name] for name in group]).transform("any")
    return rows[these | ~some]


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
        seed: its seed.
        planned: how many seeds were to confirm then; 0: not known.
        failed: whether it has no result.
        late: whether its result came only after it had been given up.
        paradigm: whose option it is.
    """

    at: str
    seed: int
    planned: int
    failed: bool
    late: bool
    paradigm: str


@dataclass(frozen=True)
class Looks:
    """The first look at each paradigm of a comparison, by which alone a verdict is decided.

    Whoever looks again and again at a study while it runs, or adds seeds or options until one is
    decided, decides falsely more often than a test says: of 100 studies with 24 seeds that are
    looked at from 6 on, some 20. So a verdict waits until as many seeds as were planned have
    ended, and whatever comes later moves means alone: further seeds, results of runs that had been
    given up, and seeds on which another option of the paradigm was confirmed before.

    Attributes:
        runs: of the chosen options, one of each paradigm and seed.
        spent: paradigm -> seeds on which another option was confirmed before.
        tunes: whether options are tuned and none is confirmed yet.
    """

    runs: Collection[Run]
    spent: Mapping[str, frozenset[int]] = field(default_factory=dict)
    tunes: bool = False

    def of(self, *paradigms: str) -> Look:
        """The look at one paradigm, or at those that are compared."""
        in_time = sorted(run for run in self.runs if run.paradigm in paradigms)
        every = frozenset(run.seed for run in in_time)
        if self.tunes:
            return Look(every, every, interim("0", "0"), 0, 0)
        changed = [name for name in paradigms if name in self.spent]
        fresh = every.difference(*(self.spent[name] for name in changed))
        runs = [run for run in in_time if run.seed in fresh]
        counts = Counter(run.seed for run in runs)
        both = {seed for seed, count in counts.items() if count == len(paradigms)}
        failed = {run.seed for run in runs if run.failed}
        seeds, planned = _first_planned(runs)
        kept = seeds - failed - {run.seed for run in runs if run.late}
        if 0 < planned == len(seeds & both) and len(kept) < MIN_SEEDS:
            # That decided nothing, so what was lost may come late, or from further seeds.
            seeds, planned = _first_planned([run for run in runs if run.seed not in failed])
            kept = seeds
        ended = len(seeds & both)
        if 0 < planned == ended:
            return Look(seeds, kept)
        if changed and not ended:
            return Look(every, every, OTHER_OPTION.format(" and ".join(changed)))
        if planned:
            return Look(every, every, interim(str(ended), str(planned)), ended, planned)
        every = frozenset(run.seed for run in self.runs)
        return Look(every, every)


def _first_planned(runs: Iterable[Run]) -> tuple[frozenset[int], int]:
    """The seeds of the first plan that could decide, and how many it has; 0: nothing is known.

    Args:
        runs: the earliest first, by whose plan further ones with the same seed go.
    """
    plans: dict[int, int] = {}
    for run in runs:
        plans.setdefault(run.seed, run.planned)
    first = next((planned for planned in plans.values() if planned >= MIN_SEEDS), 0)
    of_plan = sorted(plans, key=lambda seed: plans[seed] > first)
    return frozenset(of_plan[: first or None]), first


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
    chosen = rows[rows["chosen"]]
    both = rows[~rows["chosen"]].merge(chosen, on=["paradigm", "seed"], suffixes=("", "_chosen"))
    before = both[(both["planned"] > 0) & ~both["failed"] & (both["at"] < both["at_chosen"])]
    runs = [Run(*run) for run in chosen[[*Run._fields]].itertuples(index=False)]
    spent: dict[Any, frozenset[int]] = before.groupby("paradigm")["seed"].agg(frozenset).to_dict()
    return Looks(runs, spent, tunes=bool(rows["stage"].eq(TUNE).all()))


def cells_left(cells: pd.DataFrame, choice: pd.DataFrame) -> int:
    """How many of the planned confirming cells have not ended, as far as the others say.

    A paradigm without a confirming cell has as many to come as were planned of another one.

    Args:
        cells, choice: as for `looks`.
    """
    confirming = cells[cells["stage"].eq(CONFIRM)].fillna({"planned_seeds": 0})
    rows = with_chosen(confirming, choice, [*GROUP, *OPTION])
    # Where another option is chosen now, as at another cut, nothing of that one was planned.
    known = _these_or_all(rows, rows["chosen"], ["paradigm"])
    of_each = known.groupby("paradigm").agg({"planned_seeds": "max", "seed": "nunique"})
    none = {"planned_seeds": rows["planned_seeds"].max(), "seed": 0}
    of_each = of_each.reindex(choice["paradigm"]).fillna(none)
    return int((of_each["planned_seeds"] - of_each["seed"]).clip(lower=0).sum())


def given(rows: pd.DataFrame) -> dict[str, int]:
    """Paradigms of a comparison with two stages that were not tuned -> options they have."""
    confirms = rows["stage"].eq(CONFIRM)
    untuned = rows[confirms.groupby(rows["paradigm"]).transform("all")]
    options = untuned.drop_duplicates(["paradigm", *OPTION])["paradigm"]
    counts: dict[Any, int] = options.value_counts(sort=False).to_dict()
    return counts
