"""Options tune on some seeds and are confirmed on others: in no time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

import analysis
from analysis import compare, load
from study import run
from study.cell import Cell
from study.cell.events import Report
from study.cell.work import Job, Work
from study.plan.plan import Plan
from study.plan.stages import unchosen
from study.results import Results
from study.tasks.sources.places import Places
from study.terminal.command import DONE, INTERRUPTED, UNUSABLE
from tests.conftest import trials_here
from tests.made_up.commands import answer
from tests.made_up.comparisons import make_results, write

pytestmark = pytest.mark.usefixtures("digits")

GRID = ("paradigm=soft,hybrid", "lr=0.1,0.3", "switch_point=0.5", "seed=0,1", "confirm=100-102")
"""Four cells tune each paradigm, and three confirm it, on 0.3, which is the better rate."""

SEEDS = [100, 101, 102]

PLAN = ("--no-share", "--plan")


class Command:
    """`study.run digits`, whose cells end at once.

    Args:
        results: the directory.
        sets: assignments that replace those of `GRID`.
        options: further ones of the command.
        end_of: how a cell ends: a status, or `failed` whenever it is tried.
        most: jobs after which the command is killed.

    Attributes:
        jobs: that ended, in their order.
        threads: CPU threads of their trials.
        status: the exit status.
        said: all that was said.
        trained: the outcome, as `study.drive.driver.train` returns it.
    """

    def __init__(
        self,
        results: Results,
        *sets: str,
        options: Sequence[str] = ("--no-share",),
        end_of: Callable[[Cell], str] = lambda _: "done",
        most: int = 10**6,
    ) -> None:
        self._end_of, self._most = end_of, most
        self.jobs: list[Job] = []
        self.threads: set[int] = set()
        self.trained: Any = None
        named = {text.partition("=")[0] for text in sets}
        grid = [text for text in GRID if text.partition("=")[0] not in named]
        how = ["--max-concurrent", "2", "--tracking", "none", *options]
        words = ["digits", "--results", results.url, *how, "--set", *grid, *sets]
        with trials_here(), pytest.MonkeyPatch.context() as patch:
            patch.setattr("study.plan.divide.usable_cores", lambda: 64)
            patch.setattr("study.plan.planning.cell_seconds", _seconds)
            patch.setattr("study.launch.tune.run_job", self._do)
            patch.setattr("study.drive.closing.close", self._close)
            self.status, self.said = answer(run.main, words)

    @property
    def cells(self) -> list[Cell]:
        return [cell for job in self.jobs for cell in job.cells]

    def _do(self, job: Job, work: Work, report: Report) -> None:
        """The larger rate is better; each seed has its luck."""
        if len(self.jobs) == self._most:
            raise KeyboardInterrupt
        self.jobs.append(job)
        self.threads.add(work.threads)
        for cell in job.cells:
            status, why = self._end_of(cell), {}
            if status == "failed":
                why = {"kind": "out of memory", "text": "too large"}
            else:
                points = () if status == "diverged" else None
                how = {"status": status, "points": points, "stage": work.stage(cell)}
                write(Results(work.results), cell, 0.5 + cell.lr + 0.01 * (cell.seed % 7), **how)
            report({"event": "ended", "cell_id": cell.id, "status": status, **why})

    def _close(self, _: object, __: object, trained: Any) -> int:
        self.trained = trained
        return DONE


def _seconds(plan: Plan, _: Places) -> pd.DataFrame:
    return plan.rows[["alone", "forked"]].assign(alone=1.0, forked=0.5)


def recorded(results: Results) -> dict[str, dict[float, list[int]]]:
    """``PARADIGM STAGE`` -> lr -> seeds."""
    cells = results.cells()
    stages = cells.groupby(cells["paradigm"] + " " + cells["stage"])
    return {name: of.groupby("lr")["seed"].agg(sorted).to_dict() for name, of in stages}


TUNED = {0.1: [0, 1], 0.3: [0, 1]}
CONFIRMED = {0.3: SEEDS}
WHOLE = {
    f"{name} {stage}": rates
    for name in ("soft", "hybrid")
    for stage, rates in (("tune", TUNED), ("confirm", CONFIRMED))
}
BOTH = {0.1: SEEDS, 0.3: SEEDS}


def done(_: Cell) -> str:
    return "done"


def diverges(cell: Cell) -> str:
    return "diverged" if cell.seed in SEEDS else "done"


def stopped(cell: Cell) -> str:
    return "censored" if cell.lr == 0.3 else "done"


def lost(cell: Cell) -> str:
    """Both options of the hybrid lack a seed; what is left of them can be compared."""
    failed = (cell.paradigm == "hybrid" or cell.lr == 0.3) and cell.seed == 1
    return "failed" if failed else "done"


STORIES: dict[str, tuple[list, dict]] = {
    "a confirmed option that diverges stays chosen": ([("", diverges), ("", done)], WHOLE),
    "an added paradigm tunes and is confirmed alone": (
        [("", done), ("paradigm=soft,hybrid,lvml", done)],
        WHOLE | {"lvml tune": TUNED, "lvml confirm": CONFIRMED},
    ),
    "more confirming seeds tune nothing": (
        [("", done), ("confirm=100-105", done)],
        WHOLE | {f"{name} confirm": {0.3: [*range(100, 106)]} for name in ("soft", "hybrid")},
    ),
    "tuning on that changes the choice confirms the new one": (
        [("", done), ("paradigm=soft lr=0.4", done), ("confirm=103", done)],
        WHOLE
        | {"soft tune": TUNED | {0.4: [0, 1]}, "soft confirm": CONFIRMED | {0.4: [*SEEDS, 103]}}
        | {"hybrid confirm": {0.3: [*SEEDS, 103]}},
    ),
    "what is given needs no tuning": (
        [("paradigm=soft lr=0.1", done)],
        {"soft confirm": {0.1: SEEDS}},
    ),
    "unless the directory knows other options of it": (
        [("paradigm=soft lr=0.3", done), ("paradigm=soft lr=0.1", done)],
        {"soft tune": {0.1: [0, 1]}, "soft confirm": BOTH},
    ),
    "failed options are not chosen, but tried again, and the choice is made anew": (
        [("", lost), ("", done)],
        WHOLE | {"soft confirm": BOTH},
    ),
    "stopped options cannot be chosen": (
        [("--scheduler asha", stopped)],
        WHOLE | {f"{name} confirm": {0.1: SEEDS} for name in ("soft", "hybrid")},
    ),
}
"""What is typed, and how cells end, command for command -> what is recorded in the end."""


@pytest.mark.parametrize("story", STORIES)
def test_what_is_tuned_and_confirmed(results, story):
    trained = list[str]()
    commands, expected = STORIES[story]
    for typed, end_of in commands:
        options = typed.split() if typed.startswith("--") else ["--no-share"]
        sets = () if typed.startswith("--") else typed.split()
        cells = Command(results, *sets, options=options, end_of=end_of).cells
        trained += [cell.id for cell in cells if end_of(cell) != "failed"]
    assert recorded(results) == expected
    assert len(trained) == len(set(trained))  # nothing trains twice


def test_the_second_stage_is_the_chosen_option_on_fresh_seeds_alone(results, tmp_path):
    command = Command(results)
    assert recorded(results) == WHOLE
    # All that tunes starts before.
    assert [cell.seed for cell in command.cells[8:]] == sorted(2 * SEEDS)
    assert command.threads == {4}  # of the 64 cores, in both stages
    assert "\n14/14 cells done | " in command.said
    assert not Command(results).jobs
    given = make_results(tmp_path / "given")
    for lr in ("lr=0.3", "lr=0.1"):  # of options given one by one, none is chosen by what confirms
        Command(given, "paradigm=soft", lr)
    (found,) = compare(load(given))
    assert set(found.chosen["lr"]) == {0.1}  # though 0.3, which is not tuned, looks better


@pytest.mark.parametrize("killed_after", [0, 5, 8, 11])
def test_killed_anywhere_and_resumed_is_as_if_uninterrupted(results, killed_after):
    killed = Command(results, most=killed_after)
    assert killed.status == INTERRUPTED
    rest = Command(results)
    assert recorded(results) == WHOLE
    assert len({cell.id for cell in killed.cells + rest.cells}) == 14
    assert len(killed.cells + rest.cells) == 14


def test_a_group_of_which_no_option_can_be_chosen_is_named(results):
    command = Command(results, end_of=lambda _: "failed")
    assert {cell.paradigm for cell in unchosen(command.trained.plans[-1])} == {"soft", "hybrid"}
    assert "\n8/8 cells done, 8 failed" in command.said


def test_a_confirming_cell_that_failed_is_recorded_as_such_and_tried_again(
    results,
):
    Command(results, end_of=lambda cell: "failed" if cell.seed == 102 else "done")
    lost = results.cells().query("status == 'failed'")
    assert set(lost["paradigm"]) == {"soft", "hybrid"}
    assert set(zip(lost["seed"], lost["stage"], lost["planned_seeds"], strict=True)) == {
        (102, "confirm", 3)
    }
    assert set(lost["status_reason"]) == {"out of memory: too large"}
    assert not results.finished() & set(lost["cell_id"])
    (found,) = analysis.compare_results(results)
    assert found.summary["num_seeds"].tolist() == [2, 2]
    assert found.looks.of("soft", "hybrid").seeds == {*SEEDS}
    again = Command(results)
    assert {cell.id for cell in again.cells} == set(lost["cell_id"])
    assert set(results.cells()["status"]) == {"done"}


@pytest.mark.parametrize(
    ("options", "together"),
    [
        (("--pack", "seed"), [SEEDS, SEEDS]),
        ((), [[100, 100], [101, 101], [102], [102]]),  # so that no worker idles at the end
    ],
)
def test_what_is_confirmed_together_trains_together(results, options, together):
    """Packs by seed, or prefixes that a hybrid shares with soft at the same rate."""
    Command(results, most=8)
    jobs = Command(results, options=options).jobs
    assert [[cell.seed for cell in job.cells] for job in jobs] == together


def test_plans_before_between_and_after_the_stages(results):
    """Threads are those of the whole study: else one that was killed went on with others."""
    before = Command(results, options=PLAN).said
    assert "\n14 cells: 0 done already, 14 to run\n" in before
    assert "\n1. tune: 4 options on 2 seeds, 8 cells\n" in before
    assert "\n2. confirm: the chosen option of 2 groups on 3 fresh seeds, 6 cells\n" in before
    assert "chosen:" not in before
    Command(results, most=10)
    after = Command(results, options=PLAN).said
    assert "\n14 cells: 10 done already, 4 to run\n" in after
    assert "\n1. tune: 4 options on 2 seeds, 8 cells, 8 done already\n" in after
    assert "\nchosen: soft lr=0.3, soft lr=0.3 until 0.5 > hard lr=0.3\n" in after
    for said in (before, after):
        assert "\ntrials at a time: 2, CPU threads each: 4\n" in said


@pytest.mark.parametrize(
    ("sets", "advice"),
    [
        (("seed=2,3", "confirm=1,2"), "--set confirm=100-101"),
        (("seed=101-103", "confirm=200"), "--set seed=0-2"),
        (("seed=101", "confirm=none"), "--set seed=0"),
        (("confirm=0-2", "seed=3"), "--set confirm=100-102"),
        (("seed=100-101", "confirm=0-1", "n=100"), ""),  # another comparison
    ],
)
def test_no_seed_is_of_both_stages_in_one_directory(results, sets, advice):
    Command(results)
    command = Command(results, *sets, options=PLAN)
    assert command.status == (UNUSABLE if advice else DONE)
    assert advice in command.said
