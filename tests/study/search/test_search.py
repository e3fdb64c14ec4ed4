"""Search: on the real Optuna and its real file, over results that are written as studies do."""

from __future__ import annotations

import contextlib
import math
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
import sqlalchemy

import search_spaces.digits
from study.cell import Budget, Cell
from study.errors import RequestError
from study.plan.axes import resolve
from study.results import Results
from study.search.search import Search

DATABASE = ""
from tests.made_up.comparisons import NUM_CLASSES, SPLITS, make_cell, make_results, write

PROJECT = Path(__file__).parents[3]
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
        "objective": objective.split(","),
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
            if results.has_cell(cell.id):
                search.ended(cell.id, results.cells([cell.id])["status"].item())
            else:
                search.ended(cell.id, how(results, cell))
    assert search.more() == []
    return given_out


def trials_in(results: Results) -> list[optuna.trial.FrozenTrial]:
    """All trials of the study that was made last."""
    url = f"sqlite:///{results.url}/{DATABASE}"
    # That the tables are there and of this version, the search has seen to: it takes a while.
    storage = optuna.storages.RDBStorage(
        url, skip_compatibility_check=True, skip_table_creation=True
    )
    name = storage.get_all_studies()[-1].study_name
    return optuna.load_study(study_name=name, storage=storage).trials


def states(results: Results) -> Counter[str]:
    return Counter(trial.state.name for trial in trials_in(results))


def truth(cells: list[Cell], metric: str) -> float:
    return float(np.mean([scores(cell)[metric] for cell in cells]))


def cells_of(trial: optuna.trial.FrozenTrial) -> list[Cell]:
    point = trial.user_attrs["point"]
    return [cell_of({**point, "seed": seed, "m": 10}) for seed in (0, 3)]


@pytest.fixture(scope="module", autouse=True)
def no_waiting_for_disks_by_sqlite() -> Iterator[None]:
    """As `no_waiting_for_disks` of tests/conftest.py, of which SQLite does not ask Python."""

    def connected(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", connected)
    yield
    sqlalchemy.event.remove(sqlalchemy.Engine, "connect", connected)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an opened but empty search: making the database takes a while."""
    results = make_results(tmp_path_factory.mktemp("search") / "fresh")
    search_in(results, 1)
    return Path(results.url)


@pytest.fixture
def results(fresh: Path, tmp_path: Path) -> Results:
    shutil.copytree(fresh, tmp_path / "results")
    return Results(str(tmp_path / "results"))


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


def test_its_database_lies_here_where_the_results_are_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("memory://x/a/b", "memory://x/a-b", "memory://x/a/b/"):
        search_in(Results(url), 3)
    first, second = tmp_path.rglob("*.db")
    assert first.name == second.name == "optuna.db"
    assert first.parent.parent == second.parent.parent == tmp_path / "databases"


# --- what Optuna is told


def test_optuna_is_told_the_seed_mean_that_the_results_hold(results: Results) -> None:
    run(search_in(results, 6), results, parallel=3)
    told = trials_in(results)
    assert len(told) == 6
    for trial in told:
        assert trial.value == pytest.approx(truth(cells_of(trial), "accuracy"))
        rows = results.evaluations([cell.id for cell in cells_of(trial)])
        at_end = rows[(rows["split"] == "validation") & (rows["budget_fraction"] == 1)]
        assert trial.value == pytest.approx(at_end["accuracy"].mean())


def test_nothing_is_told_before_the_last_seed_has_ended(results: Results) -> None:
    search = search_in(results, 1)
    first, second = search.more()
    for cell in (first, second):
        train(results, cell)
    search.ended(first.id, "done")
    search.ended(first.id, "done")
    assert states(results) == {"RUNNING": 1}
    search.ended(second.id, "done")
    search.ended(second.id, "done")
    assert states(results) == {"COMPLETE": 1}
    with pytest.raises(ValueError, match="cell 0123 is of no suggestion"):
        search.ended("0123", "done")


def test_a_diverged_seed_counts_as_nothing_learned(results: Results) -> None:
    search = search_in(results, 1, "accuracy,saif")
    first, second = search.more()
    search.ended(first.id, train(results, first))
    search.ended(second.id, train(results, second, "diverged"))
    (trial,) = trials_in(results)
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
    assert trials_in(results)[0].value == 1 / NUM_CLASSES


def test_a_censored_suggestion_is_pruned_with_the_last_value(results: Results) -> None:
    search = search_in(results, 1)
    first, second = search.more()
    search.ended(first.id, train(results, first, "censored"))
    write(results, second, status="censored", points=(0.25,))  # stopped before, by its option
    search.ended(second.id, "censored")
    (trial,) = trials_in(results)
    assert trial.state.name == "PRUNED"
    assert trial.intermediate_values == {50: pytest.approx(scores(first)["accuracy"] / 2)}
    assert "1 suggestion: 1 pruned" in search.summary()
    assert search.exhausted


def test_with_two_objectives_a_censored_suggestion_fails(results: Results) -> None:
    search = search_in(results, 1, "accuracy,saif")
    for cell in search.more():
        search.ended(cell.id, train(results, cell, "censored"))
    assert states(results) == {"FAIL": 1}


def test_the_pareto_front_is_that_of_all_suggestions(results: Results) -> None:
    search = search_in(results, 8, "saif,accuracy")
    run(search, results)
    trials = trials_in(results)
    values = [[truth(cells_of(t), metric) for metric in ("accuracy", "saif")] for t in trials]
    front = [
        cells_of(trial)[0].schedule.text
        for trial, mine in zip(trials, values, strict=True)
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


def test_the_summary_names_the_best_suggestion_and_the_dashboard(results: Results) -> None:
    search = search_in(results, 5)
    given_out = run(search, results)
    best = max(given_out, key=lambda cells: truth(cells, "accuracy"))
    text = search.summary()
    assert f"{100 * truth(best, 'accuracy'):.1f}" in text
    assert best[0].schedule.text in text
    assert f"optuna-dashboard sqlite:///{results.url}/optuna.db" in text
    assert "hidden foreground" not in text
    assert sum("lr=" in line for line in text.splitlines()) == 1


def test_the_search_learns(results: Results) -> None:
    run(search_in(results, 25, axes=axes_of("paradigm=soft", "lr=0.0001,10", "seed=0")), results)
    trials = trials_in(results)
    random, guided = ([t.value for t in part] for part in (trials[:10], trials[10:]))
    assert np.median(guided) > np.median(random)
    assert max(guided) == pytest.approx(0.9, abs=0.02)


# --- what cannot run or fails


def test_a_point_that_cannot_run_is_replaced(results: Results) -> None:
    def make(point: Mapping[str, Any]) -> Cell:
        if point["paradigm"] == "soft" and point["lr"] > 0.1:
            raise RequestError("no step for its soft phase")
        return cell_of(point)

    search = search_in(results, 6, make_cell=make)
    assert len(run(search, results)) == 6
    found = states(results)
    assert found["COMPLETE"] == 6
    assert found["FAIL"] >= 1
    assert f"; {found['FAIL']} more were never trained" in search.summary()


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
    assert states(results) == {"FAIL": 7}

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
    assert states(results) == {"COMPLETE": 3, "FAIL": 1}
    assert "4 suggestions: 3 done, 1 failed" in search.summary()

    search = search_in(results, 4)
    assert not search.exhausted
    (again,) = run(search, results)
    assert again == first[0]
    assert states(results) == {"COMPLETE": 4, "FAIL": 1}
    assert "4 suggestions: 4 done\n" in search.summary()
    assert search_in(results, 4).exhausted
    (another,) = run(search_in(results, 5), results)
    assert another != again


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
    assert states(results) == {"COMPLETE": 5}
    texts = {cell.schedule for cells in first + more for cell in cells}
    assert len(texts) == 5  # the sampler does not begin again with what it drew before
    assert {cell.id for cell in search.cells} == {c.id for cells in first + more for c in cells}


def test_one_by_one_an_interrupted_search_suggests_what_one_run_does(
    results: Results, tmp_path: Path
) -> None:
    whole = run(search_in(results, 12), results, parallel=1)
    other = make_results(tmp_path / "other")
    parts = [run(search_in(other, count), other, parallel=1) for count in (3, 11, 12)]
    assert [cells for part in parts for cells in part] == whole


def test_what_a_killed_run_left_comes_first(results: Results) -> None:
    search = search_in(results, 4)
    left = [search.more() for _ in range(2)]
    train(results, left[0][0])
    del search  # as a killed driver leaves it

    search = search_in(results, 4)
    taken_up = [search.more() for _ in range(2)]
    assert taken_up == left
    for cell in (cell for cells in taken_up for cell in cells):
        search.ended(cell.id, "done" if results.has_cell(cell.id) else train(results, cell))
    run(search, results)
    assert states(results) == {"COMPLETE": 4}


def test_ranges_may_change_between_runs(results: Results) -> None:
    run(search_in(results, 11), results)
    search = search_in(results, 15, axes=axes_of(*SETS[:1], "lr=0.05,0.2", *SETS[2:], "seed=0,3"))
    assert len(search.cells) == 22
    given_out = run(search, results)
    assert all(0.05 <= cells[0].lr <= 0.2 for cells in given_out)
    assert states(results) == {"COMPLETE": 15}


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
def test_what_cannot_be_compared_is_another_optuna_study(
    results: Results, changes: dict[str, Any]
) -> None:
    run(search_in(results, 1), results)
    search = search_in(results, 1, **changes)
    assert not search.exhausted
    assert search.cells == []
    run(search, results)
    url = f"sqlite:///{results.url}/{DATABASE}"
    assert sorted(s.n_trials for s in optuna.get_all_study_summaries(url)) == [1, 1]


def without_times(results: Results) -> list[tuple[Any, ...]]:
    """What Optuna knows of each suggestion, but for when it was told."""
    return [
        (t.number, t.state.name, t.values, t.params, t.distributions, t.user_attrs["point"])
        for t in trials_in(results)
    ]


def lose_database(results: Results) -> None:
    (Path(results.url) / DATABASE).unlink()


def test_a_search_whose_database_is_lost_is_as_one_that_kept_it(
    results: Results, tmp_path: Path
) -> None:
    """Beyond Optuna's ten random suggestions, where the next one depends on all before."""
    run(search_in(results, 14), results, parallel=1)
    other = make_results(tmp_path / "other")
    run(search_in(other, 12), other, parallel=1)
    lose_database(other)
    search = search_in(other, 14)
    assert search.added == 12
    assert len(search.cells) == 24
    run(search, other, parallel=1)
    assert without_times(other) == without_times(results)
    assert search.summary().startswith("14 suggestions: 14 done")
    assert search_in(other, 14).added == 0


def test_what_was_refused_and_stopped_keeps_its_place_where_the_database_is_lost(
    results: Results,
) -> None:
    def make(point: Mapping[str, Any]) -> Cell:
        if point["paradigm"] == "soft" and point["lr"] > 0.1:
            raise RequestError("no step for its soft phase")
        return cell_of(point)

    def stop_the_hybrids(results: Results, cell: Cell) -> str:
        return train(results, cell, "censored" if cell.paradigm == "hybrid" else "done")

    search = search_in(results, 6, make_cell=make)
    run(search, results, how=stop_the_hybrids)
    before = trials_in(results)
    assert {trial.state.name for trial in before} == {"COMPLETE", "PRUNED", "FAIL"}
    lose_database(results)
    assert search_in(results, 6, make_cell=make).exhausted
    after = trials_in(results)[: len(before)]
    for old, new in zip(before, after, strict=False):
        assert (old.number, old.state) == (new.number, new.state)
        assert old.intermediate_values == new.intermediate_values
        assert old.values == new.values


def test_what_had_not_ended_comes_first_where_the_database_is_lost(results: Results) -> None:
    run(search_in(results, 2), results)
    search = search_in(results, 4)
    left = search.more()
    train(results, left[0])
    del search
    lose_database(results)
    search = search_in(results, 4)
    assert search.added == 3
    assert search.more() == left
    for cell in left:
        search.ended(cell.id, "done" if results.has_cell(cell.id) else train(results, cell))
    run(search, results)
    assert states(results) == {"COMPLETE": 4}


def test_cells_of_a_grid_are_no_suggestions(results: Results) -> None:
    for seed in (0, 3):
        train(results, cell_of({"paradigm": "soft", "lr": 0.1, "seed": seed, "m": 10}))
    assert search_in(results, 1).added == 0


def test_two_directories_copied_together_are_one_search(results: Results, tmp_path: Path) -> None:
    """As docs/results.md copies them."""
    other = make_results(tmp_path / "other")
    one = run(search_in(results, 3), results)
    two = run(search_in(other, 4), other)
    for folder in ("cells", "evaluations", "search"):
        shutil.copytree(Path(other.url, folder), Path(results.url, folder), dirs_exist_ok=True)
    search = search_in(results, 4)
    assert search.exhausted
    ids = {cell.id for cells in one + two for cell in cells}
    assert {cell.id for cell in search.cells} == ids
    assert len(trials_in(results)) == len(ids) / 2


def test_a_damaged_suggestion_is_named(results: Results) -> None:
    run(search_in(results, 1), results)
    lose_database(results)
    (file,) = Path(results.url, "search").rglob("*.json")
    file.write_text("{}")
    with pytest.raises(RequestError, match=f"{file}.*Remove it"):
        search_in(results, 1)


# --- kills


class _Killed(BaseException):
    pass


@contextlib.contextmanager
def killed_instead_of_commit(number: int) -> Iterator[dict[str, int]]:
    """Kills what runs inside instead of that commit; counts the commits before it."""
    count = {"commits": 0}

    def on_commit(_: object) -> None:
        if count["commits"] == number:
            raise _Killed
        count["commits"] += 1

    sqlalchemy.event.listen(sqlalchemy.Engine, "commit", on_commit)
    try:
        yield count
    except _Killed:
        pass
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "commit", on_commit)


def test_no_suggestion_is_lost_or_told_twice_wherever_a_run_is_killed(
    results: Results, tmp_path: Path
) -> None:
    """Nothing reaches the file but by a commit, so other moments are none of their own."""
    axes = {**AXES, "paradigm": ("hybrid",), "switch_point": (0.5,), "hard_lr": ("same",)}
    search_in(results, 1, axes=axes)
    for kill_at in range(100):
        there = Results(str(tmp_path / str(kill_at)))
        shutil.copytree(results.url, there.url)
        trained: Counter[str] = Counter()

        def count(results: Results, cell: Cell, trained: Counter[str] = trained) -> str:
            trained[cell.id] += 1
            return train(results, cell)

        with killed_instead_of_commit(kill_at) as counted:
            run(search_in(there, 1, axes=axes), there, how=count)
        if counted["commits"] < kill_at:
            break
        run(search_in(there, 1, axes=axes), there, how=count)
        (trial,) = [trial for trial in trials_in(there) if trial.state.name != "FAIL"]
        assert trial.value == pytest.approx(truth(cells_of(trial), "accuracy")), kill_at
        assert set(trained.values()) == {1}, kill_at
        assert len(there.finished()) == 2, kill_at
    assert 8 <= kill_at < 99


def test_a_process_that_was_killed_for_good_is_continued(results: Results) -> None:
    code = f"""
import os, signal
from study.results import Results
from tests.study.search.test_search import search_in, train
results = Results({results.url!r})
search = search_in(results, 3)
for cell in search.more():
    search.ended(cell.id, train(results, cell))
for cell in search.more()[:1]:
    train(results, cell)
    print(cell.id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    assert states(results) == {"COMPLETE": 1, "RUNNING": 1}
    given_out = run(search_in(results, 3), results)
    assert given_out[0][0].id == process.stdout.strip()
    assert states(results) == {"COMPLETE": 3}


# --- the file


def test_a_suggestion_that_another_driver_ended_meanwhile_is_made_anew(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the connection breaks off that keeps others out."""
    search = search_in(results, 1)
    begin, ended = search._begin, []

    def another_is_faster(number: int, point: Mapping[str, Any]) -> None:
        if not ended:
            ended.append(number)
            search._study.tell(number, state=optuna.trial.TrialState.FAIL)
        begin(number, point)

    monkeypatch.setattr(search, "_begin", another_is_faster)
    assert search.more()
    assert [trial.state.name for trial in search._study.trials] == ["FAIL", "RUNNING"]
    assert search.exhausted


def test_a_damaged_database_is_named(results: Results) -> None:
    path = Path(results.url) / DATABASE
    path.write_bytes(b"no database" * 1_000)
    with pytest.raises(RequestError, match=f"{path}.*move it away"):
        search_in(results, 1)


def test_a_database_that_loses_pages_is_named(results: Results) -> None:
    path = Path(results.url) / DATABASE
    whole = path.read_bytes()
    search = search_in(results, 2)
    path.write_bytes(whole[:4_096] + bytes(len(whole) - 4_096))
    with pytest.raises(RequestError, match=f"{path}.*move it away"):
        search.more()


def test_a_directory_with_any_name_holds_a_search(tmp_path: Path) -> None:
    results = make_results(tmp_path / "a b {x} 100%25 ? #1")
    search = search_in(results, 1)
    run(search, results)
    assert (Path(results.url) / DATABASE).is_file()
    assert "'sqlite+pysqlite:////" in search.summary()
