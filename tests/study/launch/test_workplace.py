"""The place where a command trains: what it sets aside, and what it merges."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from study import run
from study.cell import Cell
from study.cell.work import Job
from study.drive import driver
from study.drive.opened import opened
from study.launch.run_job import run_job
from study.launch.watching import Watch
from study.launch.workplace import Workplace, looked_at
from study.results import Results, ResultsError, merging
from study.run_options import requested
from study.terminal.command import DONE
from study.terminal.progress import Progress
from study.terminal.working import telling
from tests.made_up.commands import called
from tests.made_up.comparisons import make_cell, write
from tests.made_up.tables import contents, frames, put
from tests.made_up.tiny_studies import TINY


def test_a_study_merges_what_earlier_ones_left_and_its_own_cells(results, monkeypatch):
    monkeypatch.setattr(merging, "MOST_SMALL_FILES", 3)
    for seed in range(4):
        write(results, make_cell(seed=seed))
    write(results, make_cell(seed=9), status="censored", points=(0.25,))
    before = frames(results)
    notes: list[str] = []
    with opened(requested(["digits", "--results", results.url])) as place:
        place.prepare()
        assert len(contents(results)) == 1 + 2  # one is left, and one that may go on
        assert len(results.survey().small) == 1
        assert results.cells().equals(before[0])
        for seed, files in ((4, 4), (5, 3)):
            write(results, make_cell(seed=seed))
            place.merge([make_cell(seed=seed).id], notes.append)
            assert len(contents(results)) == files
    assert len(results.finished()) == 7
    assert notes == []


def test_a_study_goes_on_with_small_files_where_they_cannot_be_merged(results, monkeypatch):
    monkeypatch.setattr(merging, "MOST_SMALL_FILES", 1)
    notes: list[str] = []
    with opened(requested(["digits", "--results", results.url])) as place:
        place.prepare()
        cells = [write(results, make_cell(seed=seed)) for seed in range(2)]

        def fail(*_: object) -> None:
            raise ResultsError("the disk is full")

        monkeypatch.setattr(Results, "write", fail)
        for cell in cells:
            place.merge([cell.id], notes.append)
    assert notes == ["files of results are not merged: the disk is full"] * 2
    assert len(results.survey().small) == 2


@pytest.mark.usefixtures("without_ray", "no_pictures")
def test_nothing_is_merged_while_its_trial_may_be_tried_again(results, monkeypatch):
    """It would train what it does not find in a file of its own once more."""
    monkeypatch.setattr(merging, "MOST_SMALL_FILES", 1)
    running: list[Job] = []
    merged: list[str] = []

    def do(job: Job, *rest: Any) -> dict[str, str]:
        running.append(job)
        try:
            return run_job(job, *rest)
        finally:
            running.remove(job)

    def merge(_: Results, ids: Sequence[str]) -> None:
        assert not running
        merged.extend(ids)

    monkeypatch.setattr("study.launch.tune.run_job", do)
    monkeypatch.setattr(merging, "merge", merge)
    words = f"{TINY} --tracking none --results".split()
    assert run.main([*words, results.url]) == DONE
    assert set(merged) == results.finished()


def ended(results: Results, cell: Cell) -> tuple[Workplace, Watch, Any]:
    """A stage of one cell that has been recorded, before the driver looks at what is listed."""
    watch = Watch(Progress(1))
    watch.statuses[cell.id] = "done"
    return looked_at(results.url), watch, SimpleNamespace(to_run=[cell])


def test_what_a_file_system_does_not_list_yet_is_waited_for_and_then_lost(
    results, capsys, monkeypatch
):
    """As nodes see what another one wrote, with some options of NFS."""
    before, cell = results.survey(), write(results, make_cell())
    surveys = [before, before, before, results.survey()]
    place, *of_stage = ended(results, cell)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(Results, "survey", lambda _: surveys.pop(0))
    with telling():
        driver._look(place, *of_stage)
    assert (place.survey.statuses, surveys) == ({cell.id: "done"}, [])
    assert capsys.readouterr().err == "waiting up to 60 s until the disk lists 1 cell\n"
    monkeypatch.setattr(Results, "survey", lambda _: before)
    monkeypatch.setattr(driver, "RECORD_SECONDS", 0.0)
    with pytest.raises(ResultsError, match=f"has lost cell {cell.id}"):
        driver._look(place, *of_stage)


def test_a_file_that_is_damaged_while_a_study_runs_is_named_at_once(results, monkeypatch):
    of_stage = ended(results, make_cell())
    write(results, make_cell())
    (name,) = contents(results)
    put(results, {name: b"damaged"})
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    with pytest.raises(ResultsError, match=name):
        driver._look(*of_stage)
    assert not any(slept)


def test_who_only_looks_changes_nothing_and_who_trains_sets_damage_aside(results, capsys):
    cell = write(results, make_cell())
    (name,) = contents(results)
    put(results, {name: b"damaged"})
    assert len(looked_at(results.url).survey.damaged) == 1
    status, printed, _ = called(run.main, capsys, "digits", "--plan", "--results", results.url)
    assert (status, f"{name} is damaged" in printed) == (DONE, True)
    assert list(contents(results)) == [name]
    place = Workplace(results, shared=True)
    place.prepare()
    assert f"set aside damaged files ({results.url}/damaged/{name})" in capsys.readouterr().err
    assert contents(results) == {}
    assert cell.id not in place.finished
