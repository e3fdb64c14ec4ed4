"""The two stages of a comparison: options are tuned on some seeds, the chosen ones confirmed.

A cell's `stage` says which it belongs to; where no cell of a comparison confirms, it has one
stage, in which options are chosen and tested on the same seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from analysis.groups import GROUP, OPTION, rows_of, with_chosen
from analysis.statistics import MIN_SEEDS
from analysis.words import listed
from study.results import CONFIRM

OTHER_OPTION = (
    "another option of {} was confirmed on these seeds before: only fresh seeds give a verdict, "
    "as of --set confirm=200-211"
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
        seeds: of the first look, whether or not their runs failed; all, where there was none yet
            or nothing is known of a plan.
        doubt: why there is no verdict, ``interim: 6 of 12 planned seeds``; empty: there may be.
        given_up: seeds of it with a run that was recorded only after it had been given up.
    """

    seeds: frozenset[int]
    doubt: str = ""
    given_up: frozenset[int] = frozenset()

    @property
    def tested(self) -> frozenset[int]:
        """The seeds that verdicts are of, as far as their runs have results."""
        return self.seeds - self.given_up


class Run(NamedTuple):
    """When a chosen option ended with a seed, and how many seeds were planned (0: not known)."""

    at: str
    planned: int


@dataclass(frozen=True)
class Looks:
    """The first look at each paradigm of a comparison, by which alone a verdict is decided.

    Whoever looks again and again at a study while it runs, or adds seeds or options until one is
    decided, decides falsely more often than a test says: of 100 studies with 24 seeds that are
    looked at from 6 on, some 20. So a verdict waits until as many seeds as were planned have
    ended, and whatever comes later moves means alone: further seeds, and seeds on which another
    option of the paradigm was confirmed before. A seed whose run was given up has ended, for good.

    Attributes:
        runs: paradigm -> seed -> run of its chosen option, failed ones included.
        spent: paradigm -> seeds on which another option was confirmed before.
        given_up: paradigm -> seeds whose run was recorded after it had been given up.
    """

    runs: Mapping[str, Mapping[int, Run]]
    spent: Mapping[str, frozenset[int]]
    given_up: Mapping[str, frozenset[int]]

    def of(self, *paradigms: str) -> Look:
        """The look at one paradigm, or at those that are compared."""
        of_each = [self.runs.get(name, {}) for name in paradigms]
        seeds = set().union(*of_each)
        runs = {seed: [mine[seed] for mine in of_each if seed in mine] for seed in seeds}
        changed = [name for name in paradigms if self.spent.get(name)]
        fresh = seeds.difference(*(self.spent[name] for name in changed))
        planned = {
            seed: min((run.planned for run in runs[seed] if run.planned), default=0)
            for seed in fresh
        }
        in_time = sorted(fresh, key=lambda seed: (min(run.at for run in runs[seed]), seed))
        # A plan of fewer seeds decides nothing, so it is not looked at.
        first = next((planned[seed] for seed in in_time if planned[seed] >= MIN_SEEDS), 0)
        looked_at = sorted(in_time, key=lambda seed: planned[seed] > first)[: first or None]
        ended = [seed for seed in looked_at if len(runs[seed]) == len(paradigms)]
        if first and len(ended) == first:
            late = frozenset().union(*(self.given_up.get(name, ()) for name in paradigms))
            return Look(frozenset(looked_at), given_up=late)
        if changed:
            return Look(frozenset(seeds), OTHER_OPTION.format(listed(changed)))
        if first:
            return Look(frozenset(seeds), f"interim: {len(ended)} of {first} planned seeds")
        return Look(frozenset().union(*self.runs.values()))


def looks(cells: pd.DataFrame, choice: pd.DataFrame) -> Looks:
    """When the chosen options of a comparison were looked at first.

    Args:
        cells: one row a cell, with the columns of `CELLS_SCHEMA`.
        choice: as `analysis.comparison.choice.choose` gives it.
    """
    rows = with_chosen(tested(cells), choice, [*GROUP, *OPTION])
    chosen, others = rows[rows["chosen"]], rows[~rows["chosen"]]
    runs: dict[str, dict[int, Run]] = {}
    columns = ["paradigm", "seed", "finished_at", "planned_seeds"]
    known = chosen[columns].fillna({"planned_seeds": 0})
    for paradigm, seed, at, planned in known.itertuples(index=False):
        runs.setdefault(paradigm, {})[seed] = Run(at, int(planned))
    confirmed = others[others["planned_seeds"].notna() & others["status"].ne("failed")]
    spent = {
        (name, seed)
        for name, seed, at in confirmed[columns[:3]].itertuples(index=False)
        if seed in runs.get(name, {}) and at < runs[name][seed].at
    }
    late = chosen.loc[chosen["planned_seeds"].eq(0), ["paradigm", "seed"]]
    return Looks(runs, _seeds_of(spent), _seeds_of(late.itertuples(index=False)))


def _seeds_of(pairs: Iterable[tuple[str, int]]) -> dict[str, frozenset[int]]:
    """Paradigm -> its seeds."""
    found: dict[str, set[int]] = {}
    for paradigm, seed in pairs:
        found.setdefault(paradigm, set()).add(seed)
    return {paradigm: frozenset(seeds) for paradigm, seeds in found.items()}


def given(rows: pd.DataFrame) -> dict[str, int]:
    """Paradigms of a comparison with two stages that were not tuned -> options they have."""
    if not rows["stage"].eq(CONFIRM).any():
        return {}
    tuned = rows.loc[~rows["stage"].eq(CONFIRM), "paradigm"]
    rest = rows[~rows["paradigm"].isin(tuned)]
    counts = rest.drop_duplicates(["paradigm", *OPTION])["paradigm"].value_counts(sort=False)
    return {str(name): int(count) for name, count in counts.items()}
