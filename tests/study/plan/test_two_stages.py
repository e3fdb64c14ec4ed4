"""Options tune on some seeds and are confirmed on others: in no time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from analysis import compare, load
from study.cell import Cell
from study.cell.work import Job, Work
from study.concluding.choice import Choice
from study.drive import train
from study.errors import RequestError
from study.launch.watching import Watch
from study.launch.workplace import Workplace, looked_at
from study.plan.course import Course
from study.plan.describe import describe
from study.plan.divide import with_packing
from study.plan.jobs import Seconds
from study.plan.plan import Plan
from study.plan.planning import planned
from study.request import Request
from study.results import Results
from study.run_options import requested
from study.train.steps.packs import Packing
from tests.made_up.comparisons import write
from tests.made_up.tables import in_memory

pytestmark = pytest.mark.usefixtures("digits")

GRID = ("paradigm=soft,hybrid", "lr=0.1,0.3", "switch_point=0.5", "seed=0,1", "confirm=100-102")
"""Four cells tune each paradigm, and three confirm it, on 0.3, which is the better rate."""

SEEDS = [100, 101, 102]


def truth(cell: Cell) -> float:
    """The larger rate is better; each seed has its luck."""
    return 0.5 + cell.lr + 0.01 * (cell.seed % 7)


@dataclass
class Command:
    """`study.run digits`, whose cells end at once, in any results directory.

    Attributes:
        results: the directory.
        sets: assignments of --set.
        packing: of its cells.
        options: further ones of the command.
        share: whether they share prefixes.
        end_of: how a cell ends: a status, or `failed` whenever it is tried.
        accuracy_of: of a cell that is done.
    """

    results: Results
    sets: Iterable[str] = GRID
    packing: Packing = field(default_factory=Packing)
    share: bool = False
    options: Sequence[str] = ()
    end_of: Callable[[Cell], str] = lambda _: "done"
    accuracy_of: Callable[[Cell], float] = truth

    def course(self) -> tuple[Request, Workplace, Course]:
        request = requested(["digits", "--tracking", "none", *self.options, "--set", *self.sets])
        place = looked_at(self.results.url)
        place.accepts_censored = bool(request.scheduler)
        grid, choose = planned(request), Choice(request, place)
        return request, place, Course(request, grid, place, choose, self._divided)

    def plan(self) -> Plan:
        (plan,) = self.course()[2].plans()
        return plan

    def _divided(self, plans: Sequence[Plan]) -> list[Plan]:
        (plan,) = plans
        plan = with_packing(plan, self.packing, self.share)
        costs = {cell.id: Seconds(1.0, 0.5) for cell in (*plan.to_run, *plan.examples)}
        return [replace(plan, costs=costs, concurrent=2)]

    def run(self, most: int = 10**6) -> list[Job]:
        """The jobs that ended, in their order; the command is killed after `most`."""
        request, place, course = self.course()
        plans = course.plans()
        ended: list[Job] = []

        def launch(plan: Plan, watch: Watch, _: Course) -> bool:
            self.progress = watch.progress
            for job in plan.jobs:
                if len(ended) == most:
                    raise KeyboardInterrupt
                for cell in job.cells:
                    if (status := self.end_of(cell)) == "failed":
                        why = {"kind": "out of memory", "text": "too large"}
                    else:
                        self._record(plan, cell, status)
                        why = {}
                    event = {"event": "ended", "cell_id": cell.id, "status": status, **why}
                    watch.told(job.ids, event)
                ended.append(job)
            return True

        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
            patch.setattr("study.drive._on_ray", lambda *_: contextlib.nullcontext(launch))
            self.unchosen = train(request, course, plans, place).unchosen
        return ended

    def _record(self, plan: Plan, cell: Cell, status: str) -> None:
        work = Work(study="digits", results="", code_version="", confirm=plan.confirm)
        points, stage = () if status == "diverged" else None, work.stage(cell)
        write(
            self.results, cell, self.accuracy_of(cell), status=status, points=points, stage=stage
        )


def cells_of(jobs: Iterable[Job]) -> list[Cell]:
    return [cell for job in jobs for cell in job.cells]


def recorded(results: Results) -> dict[tuple[str, str], dict[float, list[int]]]:
    """(paradigm, stage) -> lr -> seeds."""
    cells = results.cells().sort_values("seed")
    found: dict[tuple[str, str], dict[float, list[int]]] = {}
    for (paradigm, stage, lr), rows in cells.groupby(["paradigm", "stage", "lr"], dropna=False):
        found.setdefault((paradigm, stage), {})[lr] = rows["seed"].tolist()
    return found


TUNED = {0.1: [0, 1], 0.3: [0, 1]}
WHOLE = {
    ("soft", "tune"): TUNED, ("soft", "confirm"): {0.3: SEEDS},
    ("hybrid", "tune"): TUNED, ("hybrid", "confirm"): {0.3: SEEDS},
}  # fmt: skip


def test_the_second_stage_is_the_chosen_option_on_fresh_seeds_alone() -> None:
    command = Command(in_memory())
    cells = cells_of(command.run())
    assert recorded(command.results) == WHOLE
    stages = ["confirm" if cell.seed in SEEDS else "tune" for cell in cells]
    assert stages == sorted(stages, reverse=True)  # all that tunes starts before
    assert command.progress.line().startswith("14/14 cells done, 0 running, 0 left")
    assert not Command(command.results).run()


@pytest.mark.parametrize("killed_after", [0, 1, 5, 7, 8, 9, 11, 13, 14])
def test_killed_anywhere_and_resumed_is_as_if_uninterrupted(killed_after: int) -> None:
    command = Command(in_memory())
    before = {cell.id for cell in cells_of(command.run(killed_after))}
    rest = {cell.id for cell in cells_of(Command(command.results).run())}
    assert recorded(command.results) == WHOLE
    assert not before & rest


def test_a_confirmed_option_that_diverges_stays_chosen() -> None:
    command = Command(
        in_memory(), end_of=lambda cell: "diverged" if cell.seed in SEEDS else "done"
    )
    command.run()
    assert recorded(command.results) == WHOLE
    assert not Command(command.results).run()


def test_an_added_paradigm_tunes_and_is_confirmed_alone() -> None:
    results = in_memory()
    Command(results).run()
    added = cells_of(Command(results, ("paradigm=soft,hybrid,lvml", *GRID[1:])).run())
    assert {cell.paradigm for cell in added} == {"lvml"}
    assert recorded(results) == WHOLE | {
        ("lvml", "tune"): TUNED, ("lvml", "confirm"): {0.3: SEEDS},
    }  # fmt: skip


def test_more_confirming_seeds_tune_nothing() -> None:
    results = in_memory()
    Command(results).run()
    added = cells_of(Command(results, (*GRID[:-1], "confirm=100-105")).run())
    assert sorted((cell.paradigm, cell.seed) for cell in added) == [
        (paradigm, seed) for paradigm in ("hybrid", "soft") for seed in (103, 104, 105)
    ]
    assert {cell.lr for cell in added} == {0.3}


def test_tuning_on_that_changes_the_choice_confirms_the_new_one() -> None:
    """Whichever command tuned an option: the report chooses among all, too."""
    results = in_memory()
    Command(results).run()
    Command(results, ("paradigm=soft", "lr=0.4", *GRID[2:])).run()
    confirmed = recorded(results)["soft", "confirm"]
    assert confirmed == {0.3: SEEDS, 0.4: SEEDS}
    again = cells_of(Command(results, (*GRID[:-1], "confirm=103,104")).run())
    assert {(cell.paradigm, cell.lr) for cell in again} == {("soft", 0.4), ("hybrid", 0.3)}


def test_what_is_given_needs_no_tuning() -> None:
    """Unless the directory knows other options of it."""
    results = in_memory()
    given = ("paradigm=soft", "lr=0.1", *GRID[2:])
    Command(results, given).run()
    assert recorded(results) == {("soft", "confirm"): {0.1: SEEDS}}
    Command(results, ("paradigm=soft", "lr=0.3", *GRID[2:-1], "confirm=none")).run()
    Command(results, given).run()
    assert recorded(results)["soft", "tune"] == {0.1: [0, 1]}
    assert recorded(results)["soft", "confirm"] == {0.1: SEEDS, 0.3: SEEDS}


def test_of_options_given_one_by_one_none_is_chosen_on_the_seeds_that_confirm() -> None:
    results = in_memory()
    for lr in ("lr=0.3", "lr=0.1"):
        Command(results, ("paradigm=soft", lr, *GRID[2:])).run()
    assert recorded(results)["soft", "tune"] == {0.1: [0, 1]}
    (found,) = compare(load(results))
    assert set(found.chosen["lr"]) == {0.1}  # though 0.3, which is not tuned, looks better


def test_failed_options_are_not_chosen_and_a_group_without_another_is_named() -> None:
    def end_of(cell: Cell) -> str:
        lost = cell.paradigm == "hybrid" or cell.lr == 0.3
        return "failed" if lost and cell.seed == 1 else "done"

    results = in_memory()
    # Both options of the hybrid lack a seed; what is left of them can be compared.
    command = Command(results, end_of=end_of)
    command.run()
    assert recorded(results)["soft", "confirm"] == {0.1: SEEDS}
    assert recorded(results)["hybrid", "confirm"] == {0.3: SEEDS}
    nothing = Command(in_memory(), end_of=lambda cell: "failed")
    nothing.run()
    assert {cell.paradigm for cell in nothing.unchosen} == {"soft", "hybrid"}
    assert nothing.progress.line().startswith("8/8 cells done, 0 running, 0 left, 8 failed")
    assert Command(results).run()  # what failed is tried again, and the choice made anew
    assert recorded(results)["soft", "confirm"] == {0.1: SEEDS, 0.3: SEEDS}


def test_stopped_options_cannot_be_chosen() -> None:
    command = Command(
        in_memory(),
        options=["--scheduler", "asha"],
        end_of=lambda cell: "censored" if cell.lr == 0.3 else "done",
    )
    command.run()
    assert {lr for rates in recorded(command.results).values() for lr in rates} == {0.1, 0.3}
    assert recorded(command.results)["soft", "confirm"] == {0.1: SEEDS}


def test_what_is_confirmed_together_trains_together() -> None:
    """Packs by seed, or prefixes that a hybrid shares with soft at the same rate."""

    def confirming(**how: Any) -> list[Job]:
        results = in_memory()
        Command(results).run(8)
        return [job for job in Command(results, **how).run() if job.cells[0].seed in SEEDS]

    packs = confirming(packing=Packing("seed"))
    assert [[cell.seed for cell in job.cells] for job in packs] == [SEEDS, SEEDS]
    families = [job for job in confirming(share=True) if len(job.packs) > 1]
    assert families
    assert all([cell.paradigm for cell in job.cells] == ["soft", "hybrid"] for job in families)


def test_plans_before_between_and_after_the_stages() -> None:
    results = in_memory()

    def told() -> list[str]:
        return describe(Command(results).plan(), "").splitlines()

    assert "14 cells: 0 done already, 14 to run" in told()
    assert "1. tune: 4 options on 2 seeds, 8 cells, 4 s" in told()
    assert "2. confirm: the chosen option of 2 groups on 3 fresh seeds, 6 cells, 3 s" in told()
    assert not any(line.startswith("chosen") for line in told())
    Command(results).run(10)
    assert "14 cells: 10 done already, 4 to run" in told()
    assert "1. tune: 4 options on 2 seeds, 8 cells, 8 done already, 0 s" in told()
    assert "chosen: soft lr=0.3, soft lr=0.3 until 0.5 > hard lr=0.3" in told()


def test_threads_are_those_of_the_whole_study_before_and_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a study that was killed would go on with other rounding."""
    monkeypatch.setattr("study.plan.divide.usable_cores", lambda: 64)
    results = in_memory()
    before = Command(results).plan()
    Command(results).run(8)
    between = Command(results).plan()
    assert (before.threads, before.num_to_come) == (4, 6)
    assert (between.threads, between.num_to_come) == (4, 0)


@pytest.mark.parametrize(
    ("sets", "advice"),
    [
        (("seed=2,3", "confirm=1,2"), "--set confirm=100-101"),
        (("seed=101-103", "confirm=200"), "--set seed=0-2"),
        (("seed=101", "confirm=none"), "--set seed=0"),
        (("confirm=0-2",), "--set confirm=100-102"),
    ],
)
def test_no_seed_is_of_both_stages_in_one_directory(sets: tuple[str, ...], advice: str) -> None:
    results = in_memory()
    Command(results).run()
    named = {text.partition("=")[0] for text in sets}
    others = [text for text in GRID if text.partition("=")[0] not in named]
    with pytest.raises(RequestError, match=advice):
        Command(results, (*others, *sets)).plan()


def test_another_comparison_may_use_any_seeds() -> None:
    results = in_memory()
    Command(results).run()
    other = ("seed=100-101", "confirm=0-1", "n=100", *GRID[:-2])
    assert len(Command(results, other).plan().to_run) == 8
