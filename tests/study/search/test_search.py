"""Search: on the real Optuna, over results that are written as studies do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import search_spaces.digits
from study.cell import Budget, Cell
from study.errors import RequestError
from study.plan.axes import resolve
from study.request import in_order
from study.results import Results
from study.search.search import Search
from study.storage.storage import Storage
from tests.made_up.comparisons import NUM_CLASSES, SPLITS, make_cell, make_results, write

SETS = ("paradigm=soft,hybrid", "lr=0.01,1", "hard_lr=0.001,0.1", "switch_point=0.2,0.8")


def axes_of(*sets: str) -> dict[str, Any]:
    return resolve(search_spaces.digits.SPACE, "quick", (*sets,))


AXES = axes_of(*SETS, "seed=0,3")


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


def search_in(
    results: Results, num_samples: int, objective: str = "accuracy", **changes: Any
) -> Search:
    values: dict[str, Any] = {
        "name": "digits",
        "results": results,
        "axes": AXES,
        "make_cell": cell_of,
        "objective": in_order(objective),
        "num_samples": num_samples,
        "finished": results.cells().set_index("cell_id")["status"].to_dict(),
        "announce": lambda cells, done, gone: None,
    }
    return Search(**(values | changes))


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
    """What the command does: trains what the results do not hold, several suggestions at a time.

    Returns:
        The cells of each suggestion, as `more` gave them.
    """
    given_out: list[list[Cell]] = []
    while not search.exhausted:
        batch = [cells for cells in (search.more() for _ in range(parallel)) if cells]
        given_out += batch
        for cell in [cell for cells in batch for cell in cells]:
            search.ended(cell.id, how(results, cell))
    assert search.more() == []
    return given_out


def trials_of(search: Search) -> list[optuna.trial.FrozenTrial]:
    """What Optuna knows."""
    return search._study.trials


def states(search: Search) -> Counter[str]:
    return Counter(trial.state.name for trial in trials_of(search))


def truth(cells: list[Cell], metric: str) -> float:
    return float(np.mean([scores(cell)[metric] for cell in cells]))


def no_fast_soft(point: Mapping[str, Any]) -> Cell:
    if point["paradigm"] == "soft" and point["lr"] > 0.1:
        raise RequestError("no step for its soft phase")
    return cell_of(point)


# --- what is suggested


def test_every_suggestion_has_the_same_seeds_and_one_comparison(results: Results) -> None:
    search = search_in(results, 8)
    given_out = run(search, results)
    assert len(given_out) == 8
    for cells in given_out:
        assert [cell.seed for cell in cells] == [0, 3]
        assert len({cell.schedule for cell in cells}) == 1
    assert len({cell.comparison_id for cell in search.cells}) == 1
    assert {cell.id for cells in given_out for cell in cells} == {c.id for c in search.cells}
    assert {cell.paradigm for cell in search.cells} == {"soft", "hybrid"}


# --- what Optuna is told


def test_optuna_is_told_the_seed_mean_that_the_results_hold(results: Results) -> None:
    search = search_in(results, 6)
    given_out = run(search, results, parallel=3)
    told = [trial.value for trial in trials_of(search)]
    assert told == pytest.approx([truth(cells, "accuracy") for cells in given_out])
    rows = results.evaluations([cell.id for cell in given_out[0]])
    at_end = rows[(rows["split"] == "validation") & (rows["budget_fraction"] == 1)]
    assert told[0] == pytest.approx(at_end["accuracy"].mean())


def test_nothing_is_told_before_the_last_seed_has_ended(results: Results) -> None:
    search = search_in(results, 1)
    first, second = search.more()
    for cell in (first, second):
        train(results, cell)
    search.ended(first.id, "done")
    assert states(search) == {"RUNNING": 1}
    search.ended(second.id, "done")
    assert states(search) == {"COMPLETE": 1}


def test_a_diverged_seed_counts_as_nothing_learned(results: Results) -> None:
    search = search_in(results, 1, "accuracy,saif")
    first, second = search.more()
    search.ended(first.id, train(results, first))
    search.ended(second.id, train(results, second, "diverged"))
    (trial,) = trials_of(search)
    expected = [
        (scores(first)["accuracy"] + 1 / NUM_CLASSES) / 2,
        scores(first)["saif"] / 2,
    ]
    assert trial.values == pytest.approx(expected)


def test_a_seed_that_diverged_before_any_evaluation_counts_too(results: Results) -> None:
    search = search_in(results, 1)
    for cell in search.more():
        write(results, cell, status="diverged", points=())
        search.ended(cell.id, "diverged")
    assert trials_of(search)[0].value == 1 / NUM_CLASSES


def test_a_metric_without_a_value_is_a_failure(results: Results) -> None:
    search = search_in(results, 1, "saif")
    for cell in search.more():
        write(results, cell, by_split={split: {"saif": math.nan} for split in SPLITS})
        search.ended(cell.id, "done")
    assert search.summary().startswith("1 suggestion: 1 failed\n")


def test_a_censored_suggestion_is_pruned_with_the_last_value(results: Results) -> None:
    search = search_in(results, 1)
    first, second = search.more()
    search.ended(first.id, train(results, first, "censored"))
    write(results, second, status="censored", points=(0.25,))  # stopped before, by its option
    search.ended(second.id, "censored")
    (trial,) = trials_of(search)
    assert trial.state.name == "PRUNED"
    assert trial.intermediate_values == {50: pytest.approx(scores(first)["accuracy"] / 2)}
    assert search.summary() == "1 suggestion: 1 pruned"
    assert search.exhausted


def test_the_pareto_front_is_that_of_all_suggestions(results: Results) -> None:
    search = search_in(results, 8, "saif,accuracy")
    given_out = run(search, results)
    values = [[truth(cells, metric) for metric in ("accuracy", "saif")] for cells in given_out]
    front = [
        cells[0].schedule.text
        for cells, mine in zip(given_out, values, strict=True)
        if not any(
            all(np.greater_equal(other, mine)) and any(np.greater(other, mine)) for other in values
        )
    ]
    lines = search.summary().splitlines()
    assert lines[0] == "8 suggestions: 8 done"
    table = lines[lines.index(next(x for x in lines if x.startswith("  accuracy %"))) + 1 :]
    listed = [line.split("  ")[-1] for line in table if line.startswith("  ")]
    assert sorted(listed) == sorted(front)
    assert 1 < len(front) < 8


def test_the_summary_says_once_what_was_improved_and_what_chose(results: Results) -> None:
    search = search_in(results, 1, "saif,accuracy")
    run(search, results)
    for select, name in (("accuracy", "accuracy"), ("saif", "SAIF")):
        told = [line for line in search.summary(select).splitlines() if "validation" in line]
        assert told == [
            "The search improved validation accuracy and SAIF (a Pareto front); SAIF uses the "
            f"hidden foreground. The tables show what validation {name} chose (--select)."
        ]


def test_the_summary_names_the_best_suggestion(results: Results) -> None:
    search = search_in(results, 5)
    given_out = run(search, results)
    best = max(given_out, key=lambda cells: truth(cells, "accuracy"))
    text = search.summary()
    assert f"{100 * truth(best, 'accuracy'):.1f}" in text
    assert best[0].schedule.text in text
    assert "hidden foreground" not in text
    assert sum("lr=" in line for line in text.splitlines()) == 1


def test_the_search_learns(results: Results) -> None:
    search = search_in(results, 25, axes=axes_of("paradigm=soft", "lr=0.0001,10", "seed=0"))
    values = [truth(cells, "accuracy") for cells in run(search, results)]
    random, guided = values[:10], values[10:]
    assert np.median(guided) > np.median(random)
    assert max(guided) == pytest.approx(0.9, abs=0.02)


# --- what cannot run or fails


def test_a_point_that_cannot_run_is_replaced(results: Results) -> None:
    search = search_in(results, 6, make_cell=no_fast_soft)
    assert len(run(search, results)) == 6
    found = states(search)
    assert found["COMPLETE"] == 6
    assert found["FAIL"] >= 1
    assert f"; {found['FAIL']} more cannot run (" in search.summary()


def test_a_search_of_which_nothing_can_run_ends(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.search.search.MOST_REFUSED", 7)

    def only_middles(point: Mapping[str, Any]) -> Cell:
        if point.get("lr") != pytest.approx(0.1):
            raise ValueError("too fast")
        return cell_of(point)

    search = search_in(results, 6, make_cell=only_middles)
    with pytest.raises(RequestError, match=r"last 7 suggestions .*too fast"):
        search.more()

    def never(point: Mapping[str, Any]) -> Cell:
        raise ValueError("too slow")

    with pytest.raises(RequestError, match="nothing to run in this search: too slow"):
        search_in(results, 6, make_cell=never)


def test_a_failed_suggestion_is_not_tried_twice_in_a_run_but_in_the_next(results: Results) -> None:
    failing = {"left": 1}

    def fail_once(results: Results, cell: Cell) -> str:
        if failing["left"]:
            failing["left"] -= 1
            return "failed"
        return train(results, cell)

    search = search_in(results, 4)
    first = run(search, results, parallel=1, how=fail_once)
    assert "4 suggestions: 3 done, 1 failed" in search.summary()

    search = search_in(results, 4)
    assert run(search, results) == [first[0][:1]]
    assert "4 suggestions: 4 done\n" in search.summary()
    assert search_in(results, 4).exhausted
    (another,) = run(search_in(results, 5), results)
    assert another not in first


def test_what_is_recorded_already_is_not_trained_again(results: Results, tmp_path: Path) -> None:
    """As where a grid had the same cells; alone, they are no suggestions."""
    given_out = run(search_in(results, 3), results)
    other = make_results(tmp_path / "other")
    for cell in (*given_out[0], given_out[2][1]):
        train(other, cell)
    search = search_in(other, 3)
    assert search.cells == []
    assert run(search, other, parallel=1) == [given_out[1], given_out[2][:1]]
    assert search.summary().startswith("3 suggestions: 3 done")


def test_equal_suggestions_are_trained_once_and_told_twice(results: Results) -> None:
    search = search_in(results, 5, axes=axes_of("paradigm=soft,lvml", "lr=0.1", "seed=0-1"))
    given_out = run(search, results, parallel=3)
    ids = [cell.id for cells in given_out for cell in cells]
    assert len(ids) == len(set(ids)) == 4
    assert search.summary().startswith("5 suggestions: 5 done")


# --- a second run


def test_a_second_run_finishes_and_a_third_adds(results: Results) -> None:
    first = run(search_in(results, 3), results)
    assert run(search_in(results, 3), results) == []
    search = search_in(results, 5)
    more = run(search, results)
    assert (len(first), len(more)) == (3, 2)
    assert states(search) == {"COMPLETE": 5}
    texts = {cell.schedule for cells in first + more for cell in cells}
    assert len(texts) == 5  # the sampler does not begin again with what it drew before
    assert {cell.id for cell in search.cells} == {c.id for cells in first + more for c in cells}


def knowledge(search: Search) -> list[tuple[Any, ...]]:
    """What Optuna knows of the suggestions that could run."""
    return [
        (trial.state, trial.values, trial.intermediate_values, trial.params, trial.distributions)
        for trial in trials_of(search)
        if trial.state.name != "FAIL"
    ]


def test_one_by_one_an_interrupted_search_is_as_one_that_ran_through(
    results: Results, tmp_path: Path
) -> None:
    """Beyond Optuna's ten random suggestions, where the next one depends on all before."""

    def stop_the_slow(results: Results, cell: Cell) -> str:
        return train(results, cell, "censored" if cell.lr < 0.02 else "done")

    through = search_in(results, 14, make_cell=no_fast_soft)
    whole = run(through, results, parallel=1, how=stop_the_slow)
    other = make_results(tmp_path / "other")
    parts = []
    for count in (3, 11, 14):
        search = search_in(other, count, make_cell=no_fast_soft)
        parts += run(search, other, parallel=1, how=stop_the_slow)
    assert parts == whole
    assert knowledge(search) == knowledge(through)
    assert search.summary() == through.summary()
    assert {"COMPLETE", "PRUNED", "FAIL"} <= states(through).keys()


def test_what_a_killed_run_left_comes_first(results: Results) -> None:
    search = search_in(results, 4)
    left = [search.more() for _ in range(2)]
    train(results, left[0][0])
    del search  # as a killed driver leaves it

    search = search_in(results, 4)
    assert search.more() == left[0][1:]
    assert search.more() == left[1]
    search = search_in(results, 4)
    run(search, results)
    assert states(search) == {"COMPLETE": 4}


def test_ranges_may_change_between_runs(results: Results) -> None:
    first = run(search_in(results, 11), results)
    assert not all(0.05 <= cells[0].lr <= 0.2 for cells in first)
    search = search_in(results, 15, axes=axes_of(*SETS[:1], "lr=0.05,0.2", *SETS[2:], "seed=0,3"))
    assert search.cells == [cell for cells in first for cell in cells]
    assert all(0.05 <= cells[0].lr <= 0.2 for cells in run(search, results))
    assert states(search) == {"COMPLETE": 15}


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {**AXES, "seed": (0, 1, 3)}},
        {"axes": {**AXES, "paradigm": ("soft", "hybrid", "hard")}},
        {"axes": {**AXES, "hard_lr": ("same",)}},
        {"objective": "saif"},
        {"make_cell": lambda point: cell_of(point, budget=Budget(5_000))},
        {"name": "another"},
    ],
)
def test_what_cannot_be_compared_is_another_search(
    results: Results, changes: dict[str, Any]
) -> None:
    run(search_in(results, 1), results)
    search = search_in(results, 1, **changes)
    assert search.cells == []
    run(search, results)
    assert len(list(Path(results.url, "search").iterdir())) == 2


def test_a_damaged_file_is_named(results: Results) -> None:
    run(search_in(results, 1), results)
    (file,) = Path(results.url, "search").iterdir()
    file.write_text("[{")
    with pytest.raises(RequestError, match=f"{file} is damaged.*Remove it"):
        search_in(results, 1)


class _Killed(BaseException):
    pass


@pytest.mark.parametrize("written", [False, True])
def test_no_suggestion_is_lost_or_doubled_wherever_a_run_is_killed(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """Just before a file is written, or just after; no other moment changes anything."""
    whole = run(search_in(results, 3), results, parallel=1)
    count, kill_at = 0, -1
    write = Storage.write

    def killed(storage: Storage, name: str, data: bytes) -> None:
        nonlocal count
        count += 1
        if count == kill_at and not written:
            raise _Killed
        write(storage, name, data)
        if count == kill_at:
            raise _Killed

    monkeypatch.setattr(Storage, "write", killed)
    for kill_at in range(1, 100):
        there, count = make_results(tmp_path / str(kill_at)), 0
        try:
            run(search_in(there, 3), there, parallel=1)
        except _Killed:
            search = search_in(there, 3)
            run(search, there, parallel=1)
            assert search.cells == [cell for cells in whole for cell in cells], kill_at
            assert search.summary().startswith("3 suggestions: 3 done"), kill_at
            assert len(there.finished()) == 6, kill_at
        else:
            break
    assert 9 <= kill_at < 99
