"""Real Ray Tune: launched equals called, failures stay with their cell."""

from __future__ import annotations

import gc
import io
import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest
import torch

from study.cell import Cell, Options, Schedule
from study.cell.work import Work
from study.errors import RequestError
from study.launch.cluster import join
from study.launch.failures import failure_of_trial
from study.launch.job_queue import Job
from study.launch.trial import train_cells
from study.launch.tune import Sparing, _scheduler, _search_algorithm, _silence, launch
from study.plan.axes import resolve
from study.plan.plan import Plan
from study.results import Results, ResultsError
from study.tasks.mosaics.mosaics import MosaicTask
from study.terminal.progress import Progress
from study.train.steps.packs import Packing
from tests.conftest import tiny_cell, tiny_flops

TIMES = ["train_seconds"]


def make_plan(
    cells: list[Cell], finished: frozenset[str] = frozenset(), packing: Packing | None = None
) -> Plan:
    packing = packing or Packing()
    return Plan(
        "digits", "training", "tiny", tuple(cells), finished, (), {}, {}, packing, 2, threads=1
    )


def work_in(results: Results, **changes: Any) -> Work:
    return Work(study="digits", results=results.url, code_version="test", **changes)


def train_alone(cells: list[Cell], results: Results) -> None:
    """Without Ray."""
    for cell in cells:
        train_cells(work_in(results, cells=(cell,)))


class Later:
    """A source whose jobs are found one by one while others train."""

    def __init__(self, cells: tuple[Cell, ...]) -> None:
        self._cells = list(cells)
        self.told: dict[str, str] = {}

    def more(self) -> list[Job]:
        return [Job((self._cells.pop(0),))] if self._cells else []

    def ended(self, cell_id: str, status: str) -> None:
        self.told[cell_id] = status

    @property
    def exhausted(self) -> bool:
        return not self._cells


class Launched:
    """A launch with what it told."""

    def __init__(
        self, plan: Plan, results: Results, later: tuple[Cell, ...] = (), **how: Any
    ) -> None:
        self.recorded: list[str] = []
        self.stream = io.StringIO()
        cells = [*plan.to_run, *later]
        seconds = {cell.id: 1.0 for cell in cells}
        progress = Progress(cells, seconds, 2, len(plan.finished), self.stream)
        self.source = Later(later) if later else None

        def on_cell(cell_id: str) -> str:
            self.recorded.append(cell_id)
            return str(results.cells([cell_id])["status"].iloc[0])

        self.failures = launch(
            *(plan.jobs, work_in(results, share=plan.share, threads=plan.threads), plan.resources),
            *(progress, on_cell),
            source=self.source,
            **how,
        )
        self.line = progress.line()
        self.printed = self.stream.getvalue()


@pytest.fixture
def cells(digits: MosaicTask) -> list[Cell]:
    return [
        tiny_cell(digits, Schedule.single("soft", 0.1)),
        tiny_cell(digits, Schedule.hybrid(0.1, 0.1, 0.5)),
        tiny_cell(digits, Schedule.single("lvml", 1e20)),
        tiny_cell(digits, Schedule.single("hard-sampled", 0.1), seed=3),
    ]


def table(results: Results) -> pd.DataFrame:
    keys = ["cell_id", "budget_fraction", "split"]
    return results.evaluations().drop(columns=TIMES).sort_values(keys, ignore_index=True)


@pytest.mark.usefixtures("ray_instance")
def test_launched_cells_and_packs_equal_cells_trained_without_ray(
    digits: MosaicTask, cells: list[Cell], results: Results, tmp_path: Path
) -> None:
    """Also a pack of which one member diverges, a done and a diverging cell, one of a source.

    One cell is stopped by a judge, and is recorded as that until it is trained to its end.
    """

    class Strict:
        def verdict(self, event: dict[str, Any]) -> bool:
            return event["paradigm"] == "soft" and event["budget_fraction"] >= 0.5

    packed = [
        tiny_cell(digits, Schedule.single("hard-sampled", lr), seed=seed)
        for seed in (0, 1)
        for lr in (0.1, 1e20)
    ]
    train_alone(packed[:1], results)
    stopped, found_later = cells[:2]
    every = [*packed, stopped, found_later]
    plan = make_plan([*packed, stopped], frozenset({packed[0].id}), Packing("seed,lr"))
    assert [job.cells for job in plan.jobs] == [
        tuple(packed[1:3]), tuple(packed[3:]), (stopped,)
    ]  # fmt: skip
    launched = Launched(plan, results, later=(found_later,), judge=Strict())
    assert launched.failures == []
    assert sorted(launched.recorded) == sorted(cell.id for cell in every[1:])
    assert launched.line.startswith("6/6 cells done, 0 running, 0 left, 2 diverged, 1 censored")
    assert launched.source.told[found_later.id] == "done"
    rows = results.cells().set_index("cell_id")
    assert rows["status"].value_counts().to_dict() == {"done": 3, "diverged": 2, "censored": 1}
    diverged = {packed[1].id, packed[3].id}
    assert set(rows.index[rows["status"] == "diverged"]) == diverged
    assert rows["status"][stopped.id] == "censored"
    assert "stopped by the scheduler at 0.5 of the budget" in rows["status_reason"][stopped.id]
    assert [rows["pack"][cell.id] for cell in packed] == [1, 2, 2, 1]
    evaluations = results.evaluations([stopped.id])
    assert evaluations["budget_fraction"].max() == 0.5
    assert set(evaluations["split"]) == {"train", "validation", "test"}
    train_alone([stopped], results)
    assert set(results.cells()["status"]) == {"done", "diverged"}
    direct = Results(tmp_path / "direct")
    direct.prepare()
    train_alone(every, direct)
    pd.testing.assert_frame_equal(table(results), table(direct))


def failing(attempts: Path, which: str, times: int, *how: str) -> Callable[..., object]:
    """Trains as ever, but cell `which` fails that many times, in these ways in turn."""

    def train(work: Work, report: Callable[..., object]) -> object:
        ids = [cell.id for cell in work.cells]
        with open(attempts, "a") as file:
            file.write(f"{time.time()} {len(ids)} {os.getpid()} {' '.join(ids)}\n")
        attempt = attempts.read_text().count(which)
        if which in ids and attempt <= times:
            match how[(attempt - 1) % len(how)]:
                case "lost":
                    os._exit(1)
                case "GPU lost":
                    raise torch.AcceleratorError("CUDA error: uncorrectable ECC error")
                case "memory":
                    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate much")
                case "bug":
                    raise ZeroDivisionError("a bug of the paradigm")
                case "request":
                    raise ResultsError("cannot write here (no space left). Free some.")
        return train_cells(work, report)

    return train


def attempts_of(attempts: Path, cell_id: str) -> list[tuple[float, int, str]]:
    """(time, size of the pack, process) of every attempt at a cell."""
    lines = [line.split() for line in attempts.read_text().splitlines()]
    return [(float(line[0]), int(line[1]), line[2]) for line in lines if cell_id in line[3:]]


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance")
def test_a_lost_worker_is_tried_again_with_pauses(
    cells: list[Cell], results: Results, tmp_path: Path
) -> None:
    """Lost is also one whose GPU takes no more calls; another process goes on."""
    attempts = tmp_path / "attempts"
    train = failing(attempts, cells[0].id, 2, "GPU lost", "lost")
    launched = Launched(make_plan(cells), results, train=train)
    assert launched.failures == []
    assert results.finished() == {cell.id for cell in cells}
    times, _, processes = zip(*attempts_of(attempts, cells[0].id), strict=True)
    assert len(set(processes)) == 3
    assert times[1] - times[0] >= 1
    assert times[2] - times[1] >= 2
    why = "torch.AcceleratorError: CUDA error: uncorrectable ECC error"
    assert f"cell {cells[0].id}: worker lost ({why}); tried again in 1 s" in launched.printed
    assert f"cell {cells[0].id}: worker lost (its process or its node died)" in launched.printed
    assert "tried again in 2 s (retry 2 of 3)" in launched.printed


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance")
def test_a_cell_that_always_loses_its_worker_is_given_up_and_stops_no_other(
    cells: list[Cell], results: Results, tmp_path: Path
) -> None:
    train = failing(tmp_path / "attempts", cells[0].id, 99, "lost")
    launched = Launched(make_plan(cells), results, train=train, max_retries=1)
    (failure,) = launched.failures
    assert (failure.kind, failure.cell_ids) == ("worker lost", (cells[0].id,))
    assert len(attempts_of(tmp_path / "attempts", cells[0].id)) == 2
    assert results.finished() == {cell.id for cell in cells[1:]}
    assert "1 failed" in launched.line


@pytest.mark.usefixtures("without_ray")
def test_out_of_memory_is_tried_in_smaller_packs_then_alone(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cells = [tiny_cell(digits, seed=seed) for seed in range(4)]
    attempts = tmp_path / "attempts"
    train = failing(attempts, cells[1].id, 3, "memory")
    plan = replace(make_plan(cells, packing=Packing("seed")), concurrent=1)
    launched = Launched(plan, results, train=train)
    assert launched.failures == []
    assert [size for _, size, _ in attempts_of(attempts, cells[1].id)] == [4, 2, 1, 1]
    assert results.finished() == {cell.id for cell in cells}
    assert "out of memory (torch.OutOfMemoryError: CUDA out of memory" in launched.printed


@pytest.mark.faults
@pytest.mark.usefixtures("ray_instance")
def test_a_bug_stops_the_study_at_once_with_its_traceback(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    cells = [tiny_cell(digits, seed=seed) for seed in range(5)]
    attempts = tmp_path / "attempts"
    plan = replace(make_plan(cells), max_concurrent=1)
    launched = Launched(plan, results, train=failing(attempts, cells[1].id, 99, "bug"))
    (failure,) = launched.failures
    assert (failure.kind, failure.cell_ids) == ("bug", (cells[1].id,))
    assert "Traceback" in failure.text
    assert "ZeroDivisionError: a bug of the paradigm" in failure.text
    assert len(attempts_of(attempts, cells[1].id)) == 1
    assert not attempts_of(attempts, cells[4].id)
    done = results.finished()
    assert {cells[0].id} <= done < {cell.id for cell in cells}


@pytest.mark.usefixtures("without_ray")
def test_a_request_that_turns_out_unusable_stops_the_study_with_its_line(
    cells: list[Cell], results: Results, tmp_path: Path
) -> None:
    train = failing(tmp_path / "attempts", cells[1].id, 99, "request")
    with pytest.raises(RequestError, match=r"^cannot write here \(no space left\). Free some.$"):
        Launched(make_plan(cells), results, train=train)


@pytest.mark.usefixtures("without_ray")
def test_launched_forks_equal_cells_alone(
    digits: MosaicTask, results: Results, tmp_path: Path
) -> None:
    """Shared and straight; the fork points go when nothing needs them."""
    schedules = [
        Schedule.hybrid(0.1, 0.1, 0.3),
        Schedule.hybrid(0.1, 0.05, 0.6),
        Schedule.single("soft", 0.1),
        Schedule.hybrid(0.05, 0.1, 0.3),
    ]
    cells = [tiny_cell(digits, schedule) for schedule in schedules]
    flops = dict.fromkeys((cell.id for cell in cells), tiny_flops())
    launched = Launched(replace(make_plan(cells), share=True, flops=flops), results)
    assert launched.failures == []
    straight = Results(tmp_path / "straight")
    straight.prepare()
    train_alone(cells, straight)
    pd.testing.assert_frame_equal(table(results), table(straight), check_exact=True)
    shared = results.cells().set_index("cell_id")["shared_prefix"]
    assert [bool(shared[cell.id]) for cell in cells] == [True, True, False, False]
    assert not straight.cells()["shared_prefix"].any()
    for opened in (results, straight):
        assert opened.storage.names("forks") == opened.storage.names("checkpoints") == []


@pytest.mark.usefixtures("ray_instance")
def test_workers_have_this_interpreter_and_keep_memory() -> None:
    """Under `uv run`, Ray would start each through `uv run`, in a copy of the project.

    What the setting of memory does, tests/study/train/test_execution.py shows.
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


def test_an_address_without_ray_is_named() -> None:
    with (
        pytest.raises(RequestError, match=r"no Ray cluster at --address 127.0.0.1:1 \(.*refused"),
        join("127.0.0.1:1"),
    ):
        pass


def test_axes_reach_the_trial() -> None:
    """What `--set` says is what cells hold; nothing is lost on the way to a worker."""
    from search_spaces import all_studies
    from study import tasks
    from study.plan.grid import make_plan as lay_out
    from study.tasks.base import Facts

    space = all_studies()["digits"]
    axes = resolve(
        space, "quick", ["momentum=0.5", "width=0.5", "evaluations=4", "split=shared-base"]
    )

    def nominal(task: str, options: Options) -> Facts:
        return tasks.info(task, options).nominal

    for cell in lay_out(space, "quick", axes, nominal).cells:
        again = Cell.from_dict(cell.to_dict())
        assert (again.momentum, again.width, again.split) == (0.5, 0.5, "shared-base")
        assert again.evaluation_points == (0.0, 0.25, 0.5, 0.75, 1.0)


def test_the_scheduler_looks_at_no_trial_that_has_ended() -> None:
    """So that an event costs the same after 100,000 trials as after ten."""
    from ray.tune.schedulers import FIFOScheduler

    states = {"b": "PENDING", "c": "RUNNING", "a": "PENDING"}
    live = [SimpleNamespace(trial_id=name, status=status) for name, status in states.items()]
    controller = SimpleNamespace(get_live_trials=lambda: live[::-1])  # has no `get_trials`
    running = SimpleNamespace(job=dict.fromkeys(["c", "b", "a"]))  # in the order of their starts
    scheduler = _scheduler(FIFOScheduler, running)
    assert scheduler.choose_trial_to_run(controller).trial_id == "b"
    running.job = {"c": None}
    assert scheduler.choose_trial_to_run(controller) is None


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tune's loop as `launch` has it made, without a Ray."""
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.progress_reporter import TrialProgressCallback
    from ray.tune.schedulers import FIFOScheduler
    from ray.tune.search import Searcher, SearchGenerator
    from ray.tune.utils.callback import _create_default_callbacks

    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    running = SimpleNamespace(job={})
    return TuneController(
        search_alg=SearchGenerator(_search_algorithm(Searcher, running, None)),
        scheduler=_scheduler(FIFOScheduler, running),
        callbacks=_create_default_callbacks([_silence(TrialProgressCallback)]),
        resource_manager_factory=Mock,
    )


def add_trial(controller: Any) -> Any:
    from ray.tune.experiment import Trial

    trial = Trial("cell", config={"cells": []}, stub=True)
    controller.add_trial(trial)
    controller._set_trial_status(trial, Trial.RUNNING)
    event = {"event": "evaluation", "accuracy": 0.5}
    controller._callbacks.on_trial_result(iteration=0, trials=[], trial=trial, result=event)
    trial.update_last_result(event)
    return trial


def test_the_driver_is_told_of_an_evaluation_a_second_and_of_the_last() -> None:
    now, told = 0.0, []
    tell = Sparing(told.append, clock=lambda: now)
    events = []
    for now in (0.0, 0.5, 1.2, 1.3, 1.4):
        for cell_id in ("a", "b"):
            events.append({"event": "evaluation", "cell_id": cell_id, "at": now})
            tell(events[-1])
    fork = {"event": "fork", "cell_id": "a", "steps": 3}
    tell(fork)
    tell.the_last()
    assert told[:5] == [*events[:2], *events[4:6], fork]  # at 0.0 and 1.2
    assert told[5:] == events[-2:]


@pytest.mark.parametrize("error", [None, RuntimeError("its worker was lost")])
def test_tune_keeps_no_trial_that_has_ended(controller: Any, error: Exception | None) -> None:
    """The memory of the driver would grow with the cells that have ended."""
    goes_on, ends = add_trial(controller), add_trial(controller)
    if error:
        controller._schedule_trial_stop(ends, exception=error)
    else:
        controller.stop_trial(ends)
    ended = weakref.ref(ends)
    del ends
    last = add_trial(controller)
    gc.collect()
    assert ended() is None
    assert controller.get_trials() == [goes_on, last]


def test_tune_keeps_no_worker_that_was_not_needed(controller: Any) -> None:
    """One is asked for with each trial, and told to stop where another is reused."""
    from ray.tune import PlacementGroupFactory

    workers = controller._actor_manager
    first, second = (
        workers.add_actor(object, {}, PlacementGroupFactory([{"CPU": 1}])) for _ in range(2)
    )
    for worker in (first, second):
        workers.schedule_actor_task(worker, "stop")
    workers.remove_actor(first)
    asked = weakref.ref(first)
    del first, worker
    add_trial(controller)
    gc.collect()
    assert asked() is None
    assert workers.pending_actors == [second]


def test_a_node_without_the_project_that_joins_later_is_named(tmp_path: Path) -> None:
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
