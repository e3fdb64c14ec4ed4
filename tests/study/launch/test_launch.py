"""Trials on a real Ray Tune: what they record, and what becomes of those that fail."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from ray.tune.schedulers import FIFOScheduler, TrialScheduler

from study.cell import Cell, Schedule
from study.cell.work import Job
from study.launch.failures import Failure, failure_of_trial
from study.launch.watching import Watch
from study.parts import PartFile
from study.results import Results
from study.tasks.mosaics.mosaics import MosaicTask
from study.terminal.progress import Progress
from study.terminal.working import telling
from tests.conftest import tiny_cell
from tests.made_up.comparisons import make_results
from tests.made_up.jobs import table, work_in
from tests.made_up.trials import trial_here

FAILING = '''
"""A job whose first cell is {which} fails, as long as it can make a file for each attempt."""
import os, torch
from search_spaces.base import Preset, SearchSpace
from study.launch import tune
from study.parts import register_study

register_study(SearchSpace("failing", "digits", "", {{"quick": Preset("", {{}})}}))

real = getattr(tune, "real_run_job", tune.run_job)
tune.real_run_job = real

def run_job(job, work, report):
    for attempt, how in enumerate({how!r}):
        mark = f"{folder}/{{attempt}}-{{how}}"
        if {which!r} in job.ids and not os.path.exists(mark):
            with open(mark, "w") as file:
                file.write(str(os.getpid()))
            if how == "lost":
                os._exit(1)
            if how == "GPU":
                raise torch.AcceleratorError("CUDA error: uncorrectable ECC error")
    return real(job, work, report)

tune.run_job = run_job
'''


class Launched:
    """Trials that have ended, with what they told."""

    def __init__(self, jobs: Sequence[Job], results: Results, **how: Any) -> None:
        from study.launch.tune import run_trials

        self.recorded: list[str] = []
        self.completed: list[str] = []
        work = work_in(results, parts=how.pop("parts", ()))
        watch = watch_of(
            jobs, lambda cell_id, _: self.recorded.append(cell_id), self.completed.extend
        )
        with contextlib.redirect_stderr(io.StringIO()) as errors, telling():
            run_trials(jobs, work, watch, gpus_per_trial=0, **how)
        self.failures = watch.failures
        self.line, self.printed = watch.progress.line(), errors.getvalue()


def watch_of(jobs: Sequence[Job], *told: Any) -> Watch:
    """Of jobs that are about to begin."""
    watch = Watch(Progress(2), *told)
    cells = [cell for job in jobs for cell in job.cells]
    watch.progress.expect(cells, {cell.id: 1.0 for cell in cells})
    return watch


@pytest.fixture
def cells(digits: MosaicTask) -> list[Cell]:
    return [tiny_cell(digits, Schedule.single("soft", 0.1), seed=seed) for seed in range(4)]


def alone(cells: Sequence[Cell]) -> list[Job]:
    return [Job(((cell,),)) for cell in cells]


def failing(tmp_path: Path, which: Cell, *how: str) -> dict[str, Any]:
    """A part with which workers fail at a cell, in each of these ways once."""
    folder = tmp_path / "attempts"
    folder.mkdir()
    text = FAILING.format(which=which.id, how=how, folder=folder)
    return {"parts": (PartFile(f"{tmp_path.name}.py", text),)}


class Strict(FIFOScheduler):
    """Stops what is watched in the middle."""

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict) -> str:
        stops = trial.config["job"]["watched"] and result.get("budget_percent", 0) >= 50
        return TrialScheduler.STOP if stops else TrialScheduler.CONTINUE


@pytest.mark.usefixtures("ray_instance")
def test_trials_equal_jobs_done_without_ray(digits, cells, results, tmp_path):
    """Packs, families and batches; a member that diverges, and an option that is stopped."""
    pack = tuple(tiny_cell(digits, Schedule.single("hard-sampled", lr)) for lr in (0.1, 1e20))
    hybrid = tiny_cell(digits, Schedule.hybrid(0.1, 0.1, 0.5))
    option = tuple(tiny_cell(digits, Schedule.single("lvml", 0.1), seed=seed) for seed in (0, 1))
    jobs = [
        Job((option,), watched=True),
        Job((pack,)),
        Job(((cells[0],), (hybrid,)), share=True),
        Job(tuple((cell,) for cell in cells[1:])),
    ]
    launched = Launched(jobs, results, scheduler=Strict())
    assert launched.failures == []
    ended = {cell.id for job in jobs[1:] for cell in job.cells}
    assert {*launched.recorded} == {*launched.completed} == ended
    assert len(launched.recorded) == len(launched.completed) == len(ended)
    assert launched.line.startswith("9/9 cells done, 1 diverged, 2 censored")
    direct = make_results(tmp_path / "direct")
    for number, job in enumerate(jobs):
        trial_here(job, work_in(direct), watch_of([job]), str(number), Strict())
    pd.testing.assert_frame_equal(table(results), table(direct), check_exact=True)
    for name in ("status", "shared_prefix"):
        one, other = (
            each.cells().set_index("cell_id")[name].to_dict() for each in (results, direct)
        )
        assert one == other


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance")
@pytest.mark.parametrize(
    ("how", "max_retries", "given_up"), [(("GPU", "lost"), 2, False), (("lost",) * 3, 1, True)]
)
def test_a_lost_worker_is_tried_again_in_another_process_and_stops_no_other(
    cells,
    results,
    tmp_path,
    how,
    max_retries,
    given_up,
):
    """Lost is also one whose GPU takes no more calls."""
    parts = failing(tmp_path, cells[0], *how)
    launched = Launched(alone(cells), results, **parts, max_retries=max_retries)
    failures = [(failure.kind, failure.cell_ids) for failure in launched.failures]
    assert failures == [("worker lost", (cells[0].id,))] * given_up
    assert results.finished() == {cell.id for cell in cells[given_up:]}
    assert ("1 failed" in launched.line) == given_up
    attempts = [file.read_text() for file in (tmp_path / "attempts").iterdir()]
    assert len(set(attempts)) == len(attempts) == 2
    tried_again = f"cell {cells[0].id}: worker lost; tried again"
    assert launched.printed.count(tried_again) == max_retries


@pytest.mark.usefixtures("ray_instance")
def test_workers_have_this_interpreter_and_keep_memory():
    """Under `uv run`, Ray would start each through `uv run`, in a copy of the project.

    What the setting of memory does, tests/study/test_hardware.py shows.
    """
    import ray
    from ray._private import ray_constants

    @ray.remote
    def worker() -> tuple[str, str, bool]:
        parent = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
        began_with = Path("/proc/self/environ").read_bytes().split(b"\0")  # as glibc reads it
        return parent, sys.executable, b"MALLOC_ARENA_MAX=1" in began_with

    assert ray.get(worker.remote()) == ("raylet", sys.executable, True)
    assert not ray_constants.RAY_ENABLE_UV_RUN_RUNTIME_ENV  # however these tests were started


def test_a_trial_shows_by_name_what_it_trains(digits):
    """One value where all its cells have it, else all values."""
    hybrids = [tiny_cell(digits, Schedule.hybrid(0.1, 0.2, s), seed=4) for s in (0.3, 0.6)]
    config = Job(tuple((cell,) for cell in hybrids)).to_config()
    shown = {name: config[name] for name in ("paradigm", "lr", "switch_point", "seed")}
    assert shown == {"paradigm": "hybrid", "lr": 0.1, "switch_point": "0.3, 0.6", "seed": 4}


@pytest.mark.parametrize("watched", [False, True])
def test_the_driver_is_told_of_an_evaluation_a_second_and_of_the_last(monkeypatch, watched):
    """But of every one of an option that is watched."""
    from study.launch.tune import Report

    told: list[dict] = []
    monkeypatch.setattr("ray.tune.report", told.append)
    report = Report({"watched": watched})
    for now, fraction in ((0, 0.1), (0.5, 0.2), (1.2, 0.3), (1.3, 0.4), (1.4, 0.5)):
        monkeypatch.setattr(time, "monotonic", lambda now=now: now)
        report({"event": "evaluation", "budget_fraction": fraction})
    report({"event": "ended", "cell_id": "a", "status": "done"})
    expected = [0.1, 0.2, 0.3, 0.4, 0.5] if watched else [0.1, 0.3, 0.5]
    assert [event.get("budget_fraction") for event in told] == [*expected, None]
    assert told[0]["budget_percent"] == 10


def test_a_worker_that_is_lost_after_its_last_cell_is_no_failure(cells):
    watch = watch_of(alone(cells))
    ids = [cell.id for cell in cells]
    for number, failed in ((4, ()), (3, (ids[3],))):
        watch.statuses.clear()
        for cell_id in ids[:number]:
            watch.told(ids, {"event": "ended", "cell_id": cell_id, "status": "done"})
        watch.failed(ids, Failure("worker lost", "its node died"))
        assert [each.cell_ids for each in watch.failures] == [failed] * bool(failed)


def test_a_node_without_the_project_that_joins_later_is_named(tmp_path):
    """Tune tells of its worker as of a lost one; the text is Ray's."""
    said = tmp_path / "error.txt"
    said.write_text(
        "The actor died unexpectedly before finishing this task.\n\tip: 10.0.0.7\n"
        "RuntimeError: The actor with name ImplicitFunc failed to import on the worker. This may "
        "be because\n\nTraceback (most recent call last):\n"
        "ModuleNotFoundError: No module named 'study'\n"
    )
    failure = failure_of_trial(SimpleNamespace(error_file=str(said)))
    assert failure.kind == "request"
    assert failure.text.startswith(
        "node 10.0.0.7 cannot import this project (No module named 'study'). Install it there"
    )
