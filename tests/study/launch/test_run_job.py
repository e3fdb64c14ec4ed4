"""The runner of a job, and the results directory that it writes. No Ray."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
import torch

from study.cell import Cell, Schedule
from study.cell.events import Report
from study.cell.version import source_digest
from study.cell.work import Job
from study.errors import RequestError
from study.launch.run_job import record_failure, run_job
from study.results import Results
from study.train.steps.loop import train_pack
from tests.chapters.texts.post_files import load, text_cell, write_posts
from tests.conftest import tiny_cell
from tests.made_up.comparisons import write
from tests.made_up.jobs import table, work_in
from tests.made_up.tables import contents


def side_by_side(cells: Sequence[Cell], results: Results, report: Report | None = None) -> Any:
    return run_job(Job((tuple(cells),)), work_in(results), report)


def test_how_a_cell_was_run_is_recorded_beside_it(digits, results):
    cells = [tiny_cell(digits, precision="bfloat16", seed=seed) for seed in (0, 1)]
    run_job(Job((tuple(cells),)), work_in(results, micro_batch=7, confirm=(1, 2)))
    rows = results.cells().sort_values("seed")
    for name, values in {
        "precision": ["bfloat16"] * 2,
        "micro_batch": [7, 7],
        "pack": [2, 2],
        "threads": [1, 1],
        "stage": ["tune", "confirm"],
    }.items():
        assert rows[name].tolist() == values, name
    assert rows["planned_seeds"].dropna().tolist() == [2]
    assert (rows["total_seconds"] > rows["total_train_seconds"]).all()
    assert (rows["total_train_seconds"] > 0).all()
    side_by_side([tiny_cell(digits)], results)
    assert results.cells([tiny_cell(digits).id])["micro_batch"].item() == 16  # the whole batch


def test_a_cell_that_was_given_up_is_tried_again_and_said_to_be_late(digits, results):
    cell, work = tiny_cell(digits, seed=1), work_in(results, confirm=(1, 2))
    record_failure(cell, "out of memory", work)
    assert results.survey().statuses == {cell.id: "failed"}
    at = results.cells()["finished_at"].item()
    record_failure(cell, "once more", work)
    run_job(Job(((cell,),)), work)
    (row,) = results.cells().to_dict("records")
    assert (row["status"], row["planned_seeds"], row["given_up_at"]) == ("done", 2, at)


@pytest.mark.parametrize(
    ("asked", "seed", "count"), [(None, 1, 12), (3, 1, 3), (0, 1, 0), (None, 0, 0)]
)
def test_a_cell_records_as_many_examples_as_asked_unless_it_tunes(
    digits, results, asked, seed, count
):
    cell = tiny_cell(digits, seed=seed)
    run_job(Job(((cell,),)), work_in(results, examples=asked, confirm=(1,)))
    recorded = results.evaluations()["examples"].dropna()
    assert [len(json.loads(text)) for text in recorded] == [count] * bool(count)
    assert max(map(len, contents(results).values())) < 30_000


def test_posts_of_hate_speech_are_recorded_only_where_asked(tmp_path, results):
    folder = write_posts(tmp_path / "posts")
    for seed, asked in enumerate((None, 12)):
        cell = text_cell(load(folder), seed=seed)
        run_job(Job(((cell,),)), work_in(results, examples=asked, places=(str(folder),)))
        assert results.evaluations([cell.id])["examples"].notna().sum() == bool(asked)


def test_nothing_trains_on_other_data_by_another_version_or_into_another_directory(
    digits, results
):
    """As on a node that joins later."""
    job, other = Job(((tiny_cell(digits),),)), tiny_cell(digits, data_digest="of another copy")
    mine = work_in(results, source=source_digest(), origin=results.origin())
    for refused, work, reason in (
        (Job(((other,),)), work_in(results), "data changed"),
        (job, work_in(results, source="0" * 16), "another version"),
        (job, work_in(results, origin="host:/elsewhere 01234567"), "another results directory"),
    ):
        with pytest.raises(RequestError, match=reason):
            run_job(refused, work)
    assert results.finished() == set()
    assert set(run_job(job, mine).values()) == {"done"}


def test_a_repeated_trial_leaves_recorded_cells_alone(digits, results):
    """But goes on with those that a scheduler stopped."""
    recorded, stopped, new = (tiny_cell(digits, seed=seed) for seed in range(3))
    side_by_side([recorded], results)
    write(results, stopped, status="censored", points=(0.25,))
    for trained in ({stopped.id, new.id}, set()):
        before, told = contents(results), []
        found = side_by_side([recorded, stopped, new], results, told.append)
        assert found == dict.fromkeys([recorded.id, stopped.id, new.id], "done")
        assert {cell_id for event in told for cell_id in event.get("cells", ())} == trained
        assert contents(results).items() >= before.items()
        assert bool(trained) == (contents(results) != before)
    assert set(results.survey().statuses.values()) == {"done"}


def test_a_job_equals_its_cells_alone(digits, results, tmp_path):
    """A family that forks in memory beside another one, and a pack of which one diverges."""
    schedules = [
        Schedule.single("soft", 0.1),
        Schedule.hybrid(0.1, 0.05, 0.6),
        Schedule.hybrid(0.1, 0.1, 0.3),
        Schedule.hybrid(0.05, 0.1, 0.3),
    ]
    family = [tiny_cell(digits, schedule) for schedule in schedules]
    pack = [tiny_cell(digits, Schedule.single("hard-sampled", lr)) for lr in (0.1, 1e20)]
    job = Job((*((cell,) for cell in family), tuple(pack)), share=True)
    again = Job.of_config(json.loads(json.dumps(job.to_config())), Cell)
    assert again == job
    ends = run_job(again, work_in(results))
    assert [*ends.values()] == ["done"] * 5 + ["diverged"]
    straight = Results(tmp_path / "straight")
    straight.prepare()
    for cell in job.cells:
        side_by_side([cell], straight)
    pd.testing.assert_frame_equal(table(results), table(straight), check_exact=True)
    shared = results.cells().set_index("cell_id")["shared_prefix"]
    assert [bool(shared[cell.id]) for cell in family] == [False, True, True, False]
    assert not straight.cells()["shared_prefix"].any()
    assert results.storage.names("checkpoints") == []


def test_a_pack_that_runs_out_of_memory_is_tried_in_halves(digits, results, monkeypatch):
    """A cell that does not fit alone has failed, and stops no other."""
    cells = [tiny_cell(digits, seed=seed) for seed in range(4)]
    large, tried, real = cells[1], [], train_pack

    def train(some: Sequence[Cell], *how: Any) -> Any:
        tried.append([cell.seed for cell in some])
        if large in some:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate much")
        return real(some, *how)

    monkeypatch.setattr("study.train.run_training.train_pack", train)
    events: list[dict] = []
    ends = side_by_side(cells, results, events.append)
    assert tried == [[0, 1, 2, 3], [0, 1], [0], [1], [2, 3]]
    assert ends == {cell.id: "failed" if cell is large else "done" for cell in cells}
    assert results.finished() == ends.keys() - {large.id}
    failed = {event["cell_id"]: event["kind"] for event in events if "kind" in event}
    assert failed == {large.id: "out of memory"}


@pytest.mark.parametrize(("device", "tries"), [("cuda", 2), ("cpu", 1)])
def test_on_a_gpu_a_cell_whose_neighbour_had_the_memory_is_tried_once_more(
    device, tries, digits, results, monkeypatch
):
    cells, tried, real = [tiny_cell(digits, seed=seed) for seed in range(2)], [], train_pack

    def train(some: Sequence[Cell], task: Any, _: Any, *how: Any) -> Any:
        tried.append(some[0].seed)
        if some[0].seed == 0 or len(tried) == tries + 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate much")
        return real(some, task, "cpu", *how)

    monkeypatch.setattr("study.train.run_training.train_pack", train)
    monkeypatch.setattr("study.hardware.set_up", lambda threads, gpu: torch.device(device))
    monkeypatch.setattr("study.hardware.device_name", lambda _: device)
    ends = run_job(Job(tuple((cell,) for cell in cells)), work_in(results))
    assert tried == [0] * tries + [1] * tries
    assert ends[cells[0].id] == "failed"
    assert ends[cells[1].id] == ("done" if device == "cuda" else "failed")


def test_seeds_side_by_side_tell_their_mean(digits, results):
    """In which a diverged one counts as a guess; all stop where the answer says so."""
    cells = [tiny_cell(digits, Schedule.single("soft", lr)) for lr in (0.1, 0.05, 1e20)]
    events: list[dict] = []

    def judge(event: dict[str, Any]) -> bool:
        events.append(event)
        return event["event"] == "evaluation" and event["budget_fraction"] >= 0.5

    ends = side_by_side(cells, results, judge)
    assert [*ends.values()] == ["censored", "censored", "diverged"]
    last = [event for event in events if event["event"] == "evaluation"][-1]
    rows = results.evaluations()
    rows = rows[(rows["split"] == "validation") & (rows["budget_fraction"] == 0.5)]
    assert set(last["cells"]) == set(rows["cell_id"]) == {cells[0].id, cells[1].id}
    assert last["accuracy"] == pytest.approx((rows["accuracy"].sum() + 1 / 3) / 3)
    assert last["saif"] == pytest.approx(rows["saif"].sum() / 3)
    assert results.evaluations()["budget_fraction"].max() == 0.5
