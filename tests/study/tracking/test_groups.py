"""Groups in MLflow: one run each, beside the study, replaced when its numbers change."""

from __future__ import annotations

import dataclasses

import pytest

from study.cell import Cell
from study.results import Results
from study.tracking.store import MOST_GROUPS, RunStore, fitting
from tests.made_up.tracking import (
    GROUPS,
    SUMMARY,
    Failing,
    assert_exactly_once,
    assert_groups_exactly_once,
    client_of,
    summaries,
    track,
)


def test_groups_stand_beside_the_study_in_its_order(results: Results, cells: list[Cell]) -> None:
    track(results, cells, groups=GROUPS)
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)
    newest_first = [run.data.params["paradigm"] for run in summaries(results)]
    assert newest_first == [group.paradigm for group in GROUPS]
    notes = {run.data.tags["mlflow.note.content"] for run in summaries(results)}
    assert notes == {GROUPS[0].note}


def test_a_group_is_replaced_when_its_numbers_change(results: Results, cells: list[Cell]) -> None:
    track(results, cells, groups=GROUPS[:2])
    before = {run.data.tags["group"]: run.info.run_id for run in summaries(results)}
    wider = [GROUPS[0], dataclasses.replace(GROUPS[1], saif=0.6), GROUPS[2]]
    track(results, cells, groups=wider)
    assert_groups_exactly_once(results, wider)
    after = {run.data.tags["group"]: run.info.run_id for run in summaries(results)}
    assert {key for key in before if before[key] == after[key]} == {GROUPS[0].key}
    # A command for fewer paradigms does not take away the others.
    track(results, cells, groups=wider[:1])
    assert_groups_exactly_once(results, wider)
    assert {run.info.run_id for run in summaries(results)} == set(after.values())


@pytest.mark.parametrize(
    ("name", "number"),
    [("create_run", 1), ("log_artifacts", 1), ("set_terminated", 2), ("delete_run", 1)],
)
def test_a_lost_request_or_answer_while_groups_are_replaced(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    quick: None,
    name: str,
    number: int,
) -> None:
    track(results, cells, groups=GROUPS)
    others = [dataclasses.replace(group, saif=group.saif / 2) for group in GROUPS]
    failing = Failing(monkeypatch)
    failing.patch(name, {number: "before", number + 1: "after"}.get)
    track(results, cells, groups=others)
    assert failing.failures == 2
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, others)


def test_an_end_that_was_killed_is_made_good(results: Results, cells: list[Cell]) -> None:
    """One group is half logged, one not at all, and the study's run is not finished."""
    track(results, cells, groups=GROUPS)
    client = client_of(results)
    by_key = {run.data.tags["group"]: run.info.run_id for run in summaries(results)}
    client.update_run(by_key[GROUPS[0].key], status="RUNNING")
    client.delete_run(by_key[GROUPS[1].key])
    store = RunStore(results, "digits", None)
    store.look_up()
    assert store.is_complete(SUMMARY, GROUPS[2:])
    assert not store.is_complete(SUMMARY, GROUPS[:1])
    assert not store.is_complete(SUMMARY, GROUPS[1:])
    assert [store.holds(group.key) for group in GROUPS] == [False, False, True]
    track(results, cells, groups=GROUPS)
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(results, GROUPS)
    store = RunStore(results, "digits", None)
    store.look_up()
    assert store.is_complete(SUMMARY, GROUPS)
    assert all(error is None for _, error in store.log_groups(GROUPS))
    assert store.is_complete(SUMMARY, GROUPS)  # nothing was to be logged
    changed = dataclasses.replace(GROUPS[0], saif=0.1)
    assert [error for _, error in store.log_groups([changed])] == [None]
    assert not store.is_complete(SUMMARY, GROUPS)  # killed here, the others would be outdated


def test_a_group_that_cannot_be_drawn_stops_nothing(
    results: Results, cells: list[Cell], quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    track(results, cells, groups=GROUPS)
    broken = dataclasses.replace(GROUPS[1], saif=0.9, broken=True)
    capsys.readouterr()
    track(results, cells, groups=[dataclasses.replace(GROUPS[0], saif=0.3), broken, GROUPS[2]])
    errors = capsys.readouterr().err
    assert "MLflow lacks 1 of 7 runs (it cannot be drawn)" in errors
    assert errors.count("\n") == 1
    assert_exactly_once(results, cells)
    assert_groups_exactly_once(
        results, [dataclasses.replace(GROUPS[0], saif=0.3), GROUPS[1], GROUPS[2]]
    )


def test_runs_at_the_top_stay_few(
    results: Results,
    cells: list[Cell],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whole comparisons, the first ones first; those of earlier commands make room."""
    assert MOST_GROUPS + 1 < 100
    monkeypatch.setattr("study.tracking.store.MOST_GROUPS", 5)
    first, second, third = (
        [dataclasses.replace(group, comparison_id=str(number)) for group in GROUPS]
        for number in range(3)
    )
    assert fitting([*first, *second[:2]]) == [*first, *second[:2]]
    assert fitting([*first, *second]) == first
    track(results, cells, groups=[*first, *second, *third])
    note = capsys.readouterr().err
    assert note.count("\n") == 1
    assert "the first 3 summaries and leaves out 6" in note
    assert_groups_exactly_once(results, first)
    assert_exactly_once(results, cells)
    track(results, cells, groups=third)
    kept = [group for group in first if group.paradigm != "lvml"]  # the oldest: it was last
    assert_groups_exactly_once(results, [*kept, *third])
    assert capsys.readouterr().err == ""
