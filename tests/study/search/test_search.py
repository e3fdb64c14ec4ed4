"""Search: on the real Optuna, over results that are written as studies do."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

import search_spaces.digits
from search_spaces.base import By
from study.cell import Cell, Schedule
from study.cell.axis import rules_of
from study.errors import RequestError
from study.launch.workplace import Workplace
from study.plan.axes import resolve
from study.request import in_order
from study.results import Results
from study.search.search import Search
from study.search.space import Space
from study.storage.storage import Storage
from tests.made_up.comparisons import NUM_CLASSES, SPLITS, make_cell, make_results, write

SETS = ("paradigm=soft,hybrid", "lr=0.01,1", "hard_lr=0.001,0.1", "switch_point=0.2,0.8")


def axes_of(*sets: str) -> dict[str, Any]:
    return resolve(search_spaces.digits.SPACE, "quick", (*sets,))


AXES = axes_of(*SETS, "seed=0,3")
SOFT = axes_of("paradigm=soft", "lr=0.01,1", "seed=0,3")


def cell_of(point: Mapping[str, Any], **settings: Any) -> Cell:
    """As the command makes cells, but in a moment."""
    hard_lr = point.get("hard_lr", "same")
    return make_cell(
        point["paradigm"],
        point["lr"],
        point["seed"],
        last_lr=point["lr"] if hard_lr == "same" else hard_lr,
        switch_point=point.get("switch_point", 0.5),
        m=point["m"],
        **settings,
    )


def scores(cell: Cell) -> dict[str, float]:
    """A made-up truth: accuracy has its best at lr=.1, SAIF at lr=.5 and late switches."""
    accuracy = 0.9 - 0.2 * abs(math.log10(cell.lr) + 1) + 0.01 * cell.seed
    saif = 0.7 - 0.3 * abs(math.log10(cell.lr / 0.5)) + 0.2 * (cell.switch_point or 0)
    return {"accuracy": accuracy, "saif": max(saif, 0.0)}


STOPPED = {"budget_percent": 50.0, "accuracy": 0.4, "saif": 0.3}
"""The last evaluation that a scheduler saw."""


def search_in(
    results: Results,
    num_samples: int,
    objective: str = "accuracy",
    axes: Mapping[str, Any] = AXES,
    make_cell: Callable[[Mapping[str, Any]], Cell] = cell_of,
) -> Search:
    """Where a scheduler stops options, so that those that it stopped are not run again."""
    space, place = Space.of(axes), Workplace(results, accepts_censored=True)
    place.look()
    return Search(
        name="digits",
        place=place,
        space=space,
        comparison_id=cell_of(space.examples()[0]).comparison_id,
        make_cell=make_cell,
        objective=in_order(objective),
        num_samples=num_samples,
    )


def train(results: Results, cell: Cell, status: str = "done") -> str:
    """Writes a validation score that no other split has."""
    points = cell.evaluation_points if status == "done" else cell.evaluation_points[:2]
    lower = {"accuracy": 0.01, "saif": 0.02}
    by_split = {split: lower if split != "validation" else scores(cell) for split in SPLITS}
    write(results, cell, status=status, points=points, by_split=by_split)
    return status


def run(
    search: Search,
    results: Results,
    parallel: int = 2,
    how: Callable[[Results, Cell], str] = train,
) -> list[list[Cell]]:
    """What the command does, several trials at a time; the cells of each."""
    given_out: list[list[Cell]] = []
    names = [str(number) for number in range(parallel)]
    while jobs := {name: job for name in names if (job := search.next(name))}:
        for name, job in jobs.items():
            given_out.append(list(job.cells))
            ends = [how(results, cell) for cell in job.cells]
            search.ended(name, STOPPED if "censored" in ends else {"event": "ended"})
    return given_out


def trials_of(search: Search, paradigm: str = "soft") -> list[optuna.trial.FrozenTrial]:
    """What Optuna knows of a paradigm."""
    return search._study(paradigm).trials


def truth(cells: list[Cell], metric: str) -> float:
    return float(np.mean([scores(cell)[metric] for cell in cells]))


def test_each_paradigm_gets_as_many_suggestions_on_the_same_seeds(results):
    """Optuna is told the mean over seeds that the results hold."""
    search = search_in(results, 5)
    given_out = run(search, results, parallel=3)
    assert Counter(cells[0].paradigm for cells in given_out) == {"soft": 5, "hybrid": 5}
    for cells in given_out:
        assert [cell.seed for cell in cells] == [0, 3]
        assert len({cell.schedule for cell in cells}) == 1
    assert len({cell.comparison_id for cell in search.cells}) == 1
    assert {cell.id for cells in given_out for cell in cells} == {c.id for c in search.cells}
    for name in ("soft", "hybrid"):
        expected = [truth(cells, "accuracy") for cells in given_out if cells[0].paradigm == name]
        assert [trial.value for trial in trials_of(search, name)] == pytest.approx(expected)
    assert search.left.total() == 0
    once = search_in(results, 4, axes=axes_of("paradigm=soft,lvml", "lr@soft=0.1", "seed=0-1"))
    tried = Counter(cells[0].paradigm for cells in run(once, results))
    assert tried == {"soft": 1, "lvml": 4}  # soft has nothing to search


def unknown(results: Results, cell: Cell) -> str:
    write(results, cell, by_split={split: {"saif": math.nan} for split in SPLITS})
    return "done"


@pytest.mark.parametrize("how", [unknown, lambda *_: "failed"])
def test_what_has_no_value_has_failed(results, how):
    search = search_in(results, 1, "saif")
    run(search, results, how=how)
    assert search.summary().startswith("2 suggestions: 2 failed")


def test_the_summary_names_the_best_or_those_that_none_beats_in_both(results):
    for lr, seed in itertools.product((0.1, 0.5, 1.0), (0, 3)):
        train(results, cell_of({"paradigm": "soft", "lr": lr, "m": 10, "seed": seed}))
    of_one, of_both = (
        search_in(results, 3, each, SOFT).summary() for each in ("accuracy", "saif,accuracy")
    )
    rows = [
        re.findall(r"^soft lr=([\d.]+) .*?([\d.]+)$", text, re.M) for text in (of_one, of_both)
    ]
    assert rows == [[("0.1", "91.5")], [("0.1", "49.0"), ("0.5", "70.0")]]
    for text in (of_one, of_both):
        assert text.startswith("3 suggestions: 3 done\n")
        assert (
            ("Pareto" in text) == ("SAIF uses the hidden foreground" in text) == (text is of_both)
        )


def test_a_point_that_cannot_run_is_replaced_unless_none_can(results, monkeypatch):
    monkeypatch.setattr("study.search.search.MOST_REFUSED", 7)

    def slower_than(most: float) -> Callable[[Mapping[str, Any]], Cell]:
        def made(point: Mapping[str, Any]) -> Cell:
            if point["lr"] > most and point["lr"] != pytest.approx(0.1):
                raise RequestError("too fast")
            return cell_of(point)

        return made

    search = search_in(results, 5, make_cell=slower_than(0.2))
    assert len(run(search, results)) == 10
    assert all(cell.lr <= 0.2 for cell in search.cells)
    with pytest.raises(RequestError, match=r"last 7 suggestions .*too fast"):
        search_in(results, 6, make_cell=slower_than(0)).next("0")


def test_a_diverged_seed_counts_as_nothing_learned(results):
    """Also one that diverged before any evaluation."""

    def half_diverged(results: Results, cell: Cell) -> str:
        if cell.seed == 0:
            return train(results, cell)
        write(results, cell, status="diverged", points=())
        return "diverged"

    search = search_in(results, 1, "accuracy,saif", SOFT)
    ((first, _),) = run(search, results, how=half_diverged)
    (trial,) = trials_of(search)
    expected = [(scores(first)["accuracy"] + 1 / NUM_CLASSES) / 2, scores(first)["saif"] / 2]
    assert trial.values == pytest.approx(expected)


def test_a_stopped_option_is_pruned_with_the_mean_that_was_told(results):
    """In the next run, with what is recorded."""
    search = search_in(results, 1, axes=SOFT)
    (cells,) = run(search, results, how=lambda *each: train(*each, "censored"))
    (trial,) = trials_of(search)
    assert (trial.state.name, trial.intermediate_values) == ("PRUNED", {50: 0.4})
    assert search.summary() == "1 suggestion: 1 pruned"
    again = search_in(results, 1, axes=SOFT)
    (trial,) = trials_of(again)
    assert trial.state.name == "PRUNED"
    assert trial.intermediate_values == {50: pytest.approx(truth(cells, "accuracy") / 2)}
    assert again.left.total() == 0


def test_the_search_learns(results):
    search = search_in(results, 25, axes=axes_of("paradigm=soft", "lr=0.0001,10", "seed=0"))
    values = [truth(cells, "accuracy") for cells in run(search, results)]
    assert np.median(values[10:]) > np.median(values[:10])
    assert max(values[10:]) == pytest.approx(0.9, abs=0.02)


# --- what cannot run or fails


def test_a_failed_option_is_not_tried_twice_in_a_run_but_in_the_next(results):
    failing = {"left": 1}

    def fail_once(results: Results, cell: Cell) -> str:
        if failing["left"]:
            failing["left"] -= 1
            return "failed"
        return train(results, cell)

    search = search_in(results, 2)
    first = run(search, results, parallel=1, how=fail_once)
    assert search.summary().startswith("4 suggestions: 3 done, 1 failed")
    assert run(search_in(results, 2), results) == [first[0][:1]]


# --- a second run


def test_a_second_run_finishes_and_a_third_adds(results):
    first = run(search_in(results, 3), results)
    assert run(search_in(results, 3), results) == []
    search = search_in(results, 5)
    more = run(search, results)
    assert (len(first), len(more)) == (6, 4)
    assert len(trials_of(search)) == 5
    # The sampler does not begin again with what it drew before.
    assert len({cell.schedule for cells in first + more for cell in cells}) == 10


def test_what_other_commands_trained_in_the_space_counts(results):
    """As of a grid; beyond the ranges, on other seeds or of one that confirms it does not."""
    inside, outside = (
        cell_of({"paradigm": "soft", "lr": lr, "m": 10, "seed": 0}) for lr in (0.5, 5)
    )
    seeds = [replace(inside, seed=seed) for seed in (0, 3)]
    for cell in (*seeds, outside, replace(inside, seed=7)):
        train(results, cell)
    search = search_in(results, 2)
    assert search.cells == seeds
    assert search.left.total() == 3
    assert len(run(search, results)) == 3


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("written", [False, True])
def test_no_option_is_lost_or_doubled_wherever_a_run_is_killed(
    results, tmp_path, monkeypatch, written
):
    """Just before a cell is recorded, or just after. What was in training is suggested again."""
    whole = run(search_in(results, 2), results, parallel=1)
    count, kill_at = 0, -1
    real = Storage.write

    def killed(storage: Storage, name: str, data: bytes) -> None:
        nonlocal count
        count += 1
        if count == kill_at and not written:
            raise _Killed
        real(storage, name, data)
        if count == kill_at:
            raise _Killed

    monkeypatch.setattr(Storage, "write", killed)
    for kill_at in range(1, 100):
        there, count = make_results(tmp_path / str(kill_at)), 0
        try:
            run(search_in(there, 2), there, parallel=1)
        except _Killed:
            search = search_in(there, 2)
            run(search, there, parallel=1)
            assert {cell.id for cells in whole for cell in cells} == there.finished(), kill_at
            assert search.summary().startswith("4 suggestions: 4 done"), kill_at
        else:
            break
    assert kill_at == 9  # eight cells are recorded


# --- the space


@given(st.floats(1e-6, 1e3), st.floats(1.0001, 1e4), st.floats(0, 1))
def test_suggested_numbers_are_rounded_within_their_bounds(low, span, at):
    high = low * span
    space = Space.of(axes_of("paradigm=soft", f"lr={low!r},{high!r}", "seed=0"))
    (value,) = space.rounded("soft", {"lr": low + at * (high - low)}).values()
    assert low <= value <= high
    assert value in (low, high) or value == float(f"{value:.4g}")


def test_what_has_one_value_is_not_searched():
    space = Space.of(axes_of("paradigm=hybrid", "lr=0.1", "switch_point=0.2,0.4", "seed=0"))
    assert list(space.ranges("hybrid")) == ["switch_point"]
    point = space.point("hybrid", {"switch_point": 0.3}, 0)
    assert (point["paradigm"], point["lr"], point["hard_lr"]) == ("hybrid", 0.1, "same")


def test_ranges_that_depend_on_the_fixed_point():
    axes = {**AXES, "lr": rules_of(By("m", {10: (0.2, 0.4)}, (5.0, 6.0)))}
    assert Space.of(axes).examples()[0]["lr"] == pytest.approx(math.sqrt(0.08))


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("lr@seed:0=0.1,1",), "lr cannot have values by seed, which is not known where lr is"),
        (("m=5,10",), r"m has 2 values \(5, 10\). Give one with --set m=5"),
        (("hard_lr=same,0.1",), r"hard_lr has 2 values .* Give one with --set hard_lr=same"),
        (("paradigm=soft", "lr=0.1"), "nothing to search"),
    ],
)
def test_refuses_what_cannot_be_searched(sets, message):
    with pytest.raises(RequestError, match=message):
        Space.of(axes_of(*sets))


def test_the_rate_before_it_drops_is_the_one_that_is_searched():
    space = Space.of(axes_of("paradigm=hybrid", "lr=0.01,1", "hard_lr=0.001,1", "seed=0"))
    cell = make_cell("hybrid", 0.1, last_lr=0.3, switch_point=0.5)
    soft, hard = cell.schedule.phases
    dropped = replace(cell, schedule=Schedule((soft, *hard.dropping(0.5, 0.4))))
    assert space.nearest(dropped) == {"lr": 0.1, "hard_lr": 0.3, "switch_point": 0.5}
