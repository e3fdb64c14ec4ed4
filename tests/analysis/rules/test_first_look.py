"""A verdict is of the first look at the planned seeds, whatever comes later."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from analysis.groups import GROUP, OPTION
from analysis.rules.stages import Look, Looks, Run, looks


def ran(paradigm: str, seeds: Sequence[int], planned: Any = 6, **columns: Any) -> pd.DataFrame:
    """Cells of the chosen option that confirm; they end one after another."""
    table = pd.DataFrame({"seed": list(seeds)})
    ends = [f"2026-01-01T00:00:{seed:02}" for seed in table["seed"]]
    usual = {
        "task": "digits", "m": 10, "comparison_id": "0", "paradigm": paradigm, "stage": "confirm",
        "lr": 0.1, "last_lr": 0.1, "switch_point": math.nan, "schedule": "lr=0.1",
        "status": "done", "given_up_at": None, "finished_at": ends, "planned_seeds": planned,
    }  # fmt: skip
    return table.assign(**(usual | columns))


def look(*cells: pd.DataFrame) -> Look:
    """That at soft and hard, of cells in any order."""
    table = pd.concat(cells).sample(frac=1, random_state=0)
    choice = table.loc[table["lr"] == 0.1, GROUP + OPTION].drop_duplicates()
    return looks(table, choice).of("hard", "soft")


@pytest.mark.parametrize(
    ("planned", "first"),
    [
        ([6] * 6 + [12] * 6, 6),
        ([3] * 3 + [6] * 3 + [12] * 6, 6),  # three seeds decide nothing, so nobody looked
        ([6] * 12, 6),  # the further ones by a command of their own
        ([12] * 6 + [6] * 6, 12),  # a plan that was cut short after a look
        ([3] * 12, 12),
        ([math.nan] * 12, 12),  # of one stage, where nothing is planned
    ],
)
def test_further_seeds_are_no_part_of_it(planned, first):
    found = look(*(ran(paradigm, range(12), planned) for paradigm in ("hard", "soft")))
    assert (found.tested, found.doubt) == ({*range(first)}, "")


HARD, SOFT = (ran(paradigm, range(6), 7) for paradigm in ("hard", "soft"))
LATE = {"given_up_at": "2026-01-01T00:00:00+00:30"}


def test_it_waits_for_the_planned_seeds_of_both_and_a_failed_run_has_ended():
    last = [ran("hard", [6], 7), ran("soft", [6], 7, status="failed")]
    found = look(HARD, SOFT, last[0])
    assert found[2:] == ("interim: 6 of 7 planned seeds", 6, 7)
    assert (look(HARD, SOFT, *last).tested, look(HARD, SOFT, *last).doubt) == ({*range(6)}, "")


@pytest.mark.parametrize(("n", "tested"), [(8, {0, 1, 2, 3, 4, 6, 7}), (6, {*range(6)})])
def test_what_was_given_up_comes_too_late_for_a_verdict_that_was_due(n, tested):
    """With seven of eight; with five of six, none was."""
    rest = ran("soft", {*range(n)} - {5}, n)
    found = look(ran("hard", range(n), n), rest, ran("soft", [5], n, **LATE))
    assert (found.tested, found.doubt) == (tested, "")


@pytest.mark.parametrize(
    ("kept", "fresh", "doubt"),
    [
        (2, 0, "interim: 2 of 6 planned seeds"),
        (2, 3, "interim: 5 of 6 planned seeds"),
        (2, 4, ""),  # as many as were planned
        (0, 7, "interim: 7 of 8 planned seeds"),  # nothing is left: the further plan counts
        (0, 8, ""),
    ],
)
def test_where_few_runs_were_left_further_seeds_give_a_verdict(kept, fresh, doubt):
    cells = [
        part
        for name in ("hard", "soft")
        for part in (
            ran(name, range(kept)),
            ran(name, range(kept, 6), status="failed"),
            ran(name, range(6, 6 + fresh), 8),
        )
    ]
    found = look(*cells)
    assert found.doubt == doubt
    assert found.tested >= {*range(kept), *range(6, 6 + fresh)}


def test_no_seed_of_the_other_paradigm_cuts_the_plan_of_a_pair():
    """Even if it is the first of all, and ends last, by a command with a plan of seven."""
    hard = [Run(f"{seed:02}", seed, 12, False, False, "hard") for seed in range(12)]
    early = Looks([*hard, *(run._replace(paradigm="soft") for run in hard[1:7])])
    late = Looks([*early.runs, Run("99", 0, 7, False, False, "soft")])
    doubts = [each.of("hard", "soft").doubt for each in (early, late)]
    assert doubts == [f"interim: {n} of 12 planned seeds" for n in (6, 7)]


def test_while_options_are_tuned_there_is_none():
    found = look(ran("hard", range(6), stage="tune"), ran("soft", range(6), stage="tune"))
    assert found[2:] == ("interim: nothing is confirmed yet", 0, 0)


@pytest.mark.parametrize(
    ("fresh", "doubt"),
    [(0, "another option of soft"), (5, "interim: 5 of 6 planned seeds"), (6, "")],
)
def test_seeds_on_which_another_option_was_confirmed_are_no_part_of_it(fresh, doubt):
    """Fresh ones are, and of other paradigms all."""
    other = ran("soft", range(6), lr=0.2, finished_at="2025-12-31T00:00:00")
    cells = [ran(name, range(6 + fresh)) for name in ("hard", "soft")]
    found = look(*cells, other)
    assert found.doubt.startswith(doubt)
    assert bool(found.doubt) == bool(doubt)
    assert found.tested == ({*range(6 + fresh)} if doubt else {*range(6, 12)})
    assert looks(pd.concat([*cells, other]), cells[0][GROUP + OPTION][:1]).of("hard").doubt == ""
