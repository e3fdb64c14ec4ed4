"""What runs next, and what becomes of what failed: every cell ends exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from study.cell import Cell, Schedule
from study.errors import RequestError
from study.launch.failures import Failure, failure_of
from study.launch.job_queue import FIRST_PAUSE, LONGEST_PAUSE, Job, Jobs
from tests.made_up.comparisons import make_cell

LOST = Failure("worker lost", "killed")
OUT = Failure("out of memory", "too large")
BUG = Failure("bug", "Traceback ...\nZeroDivisionError: division by zero")


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def cells(count: int) -> list[Cell]:
    return [make_cell(seed=seed) for seed in range(count)]


def test_job_queue_start_in_order_and_end_once() -> None:
    alone = [Job((cell,)) for cell in cells(3)]
    jobs = Jobs(alone)
    taken = [jobs.take() for _ in range(3)]
    assert taken == alone
    assert jobs.take() is None
    for job in taken:
        assert not jobs.over
        jobs.ended(job)
    assert jobs.over
    assert jobs.failures == []


def test_a_lost_worker_is_tried_again_after_pauses_that_grow() -> None:
    clock = Clock()
    (cell,) = cells(1)
    jobs = Jobs([Job((cell,))], max_retries=3, clock=clock)
    for retry in range(3):
        job = jobs.take()
        assert job.retries == retry
        pause = FIRST_PAUSE * 2**retry
        assert f"in {pause:g} s (retry {retry + 1} of 3)" in jobs.failed(job, LOST)
        clock.time += pause - 0.01
        assert jobs.take() is None
        assert not jobs.over
        clock.time += 0.01
    assert jobs.failed(jobs.take(), LOST) is None
    assert jobs.over
    assert not jobs.stopped
    assert jobs.failures == [Failure("worker lost", "killed", (cell.id,))]


def test_the_pause_has_an_end() -> None:
    clock = Clock()
    jobs = Jobs([Job(tuple(cells(1)))], max_retries=1000, clock=clock)
    for _ in range(50):
        before = clock.time
        jobs.failed(jobs.take(), LOST)
        clock.time += LONGEST_PAUSE
        assert clock.time - before <= LONGEST_PAUSE


def test_out_of_memory_is_tried_in_smaller_packs_and_then_alone() -> None:
    pack = Job(tuple(cells(3)))
    other = Job((make_cell(seed=9),))
    jobs = Jobs([pack, other])
    assert jobs.failed(jobs.take(), OUT) == "tried again in packs of 2"
    smaller = [jobs.take(), jobs.take()]
    assert sorted(len(job.cells) for job in smaller) == [1, 2]
    assert {cell for job in smaller for cell in job.cells} == set(pack.cells)
    single = next(job for job in smaller if len(job.cells) == 1)
    assert jobs.failed(single, OUT) == "tried again when nothing else trains"
    running = jobs.take()
    assert running == other
    assert jobs.take() is None  # nothing else may train beside it
    jobs.ended(running)
    jobs.ended(next(job for job in smaller if job is not single))
    alone = jobs.take()
    assert alone.cells == single.cells
    assert alone.alone
    assert jobs.take() is None
    assert jobs.failed(alone, OUT) is None
    assert jobs.over
    assert [failure.cell_ids for failure in jobs.failures] == [single.ids]


@pytest.mark.parametrize("failure", [BUG, Failure("request", "the disk is full")])
def test_a_bug_or_a_lost_directory_stops_the_study_at_once(failure: Failure) -> None:
    jobs = Jobs([Job((cell,)) for cell in cells(3)])
    first, second = jobs.take(), jobs.take()
    assert jobs.failed(first, failure) is None
    assert jobs.stopped
    assert jobs.over
    assert jobs.take() is None
    jobs.ended(second)
    assert jobs.failures == [Failure(failure.kind, failure.text, first.ids)]


def test_forks_wait_for_their_point_and_come_first_then() -> None:
    trunk, one, other, rest = cells(4)
    jobs = Jobs(
        [
            Job((trunk,), fork_steps=(5, 9)),
            Job((one,), waits_for=(trunk.id, 5)),
            Job((other,), waits_for=(trunk.id, 9)),
            Job((rest,)),
        ]
    )
    first = jobs.take()
    assert first.cells == (trunk,)
    jobs.forked(trunk.id, 5)
    assert jobs.take().cells == (one,)
    assert jobs.take().cells == (rest,)
    assert jobs.take() is None
    jobs.forked(trunk.id, 5)  # told again by a trunk that went on from a checkpoint
    assert jobs.take() is None
    jobs.ended(first)
    assert jobs.take().cells == (other,)


def test_what_waited_for_a_trunk_that_is_given_up_starts_anyway() -> None:
    trunk, fork = cells(2)
    jobs = Jobs(
        [Job((trunk,), fork_steps=(5,)), Job((fork,), waits_for=(trunk.id, 5))], max_retries=0
    )
    assert jobs.failed(jobs.take(), LOST) is None
    job = jobs.take()
    assert job.cells == (fork,)
    jobs.ended(job)
    assert jobs.over


class Listed:
    """A source that gives lists of jobs, one a call."""

    def __init__(self, lists: Sequence[Sequence[Job]]) -> None:
        self._lists = list(lists)

    def more(self) -> Sequence[Job]:
        return self._lists.pop(0) if self._lists else ()

    @property
    def exhausted(self) -> bool:
        return not self._lists


def test_a_source_gives_more_until_it_is_exhausted() -> None:
    one, two, three, fork = (Job((cell,)) for cell in cells(4))
    fork = replace(fork, waits_for=(three.ids[0], 5))
    told: list[Job] = []
    jobs = Jobs([], source=Listed([[one, two], [], [three, fork]]), on_jobs=told.extend)
    assert [jobs.take(), jobs.take()] == [one, two]
    assert jobs.take() is None  # nothing for now
    assert not jobs.over
    assert jobs.take() == three
    assert jobs.take() is None  # what a source gives may wait for a fork point, too
    for job in (one, two, three):
        jobs.ended(job)
    jobs.ended(jobs.take())
    assert jobs.over
    assert told == [one, two, three, fork]


@given(
    packs=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    fates=st.lists(st.sampled_from(["end", "lost", "out"]), max_size=60),
    workers=st.integers(1, 4),
    forks=st.booleans(),
)
@example(
    packs=[1, 3],
    fates=["out", "out", "end", "lost", "out", "end", "out", "lost", "lost"],
    workers=2,
    forks=True,
)
def test_every_cell_ends_or_is_given_up_exactly_once(
    packs: list[int], fates: list[str], workers: int, forks: bool
) -> None:
    """Whatever fails and however often; and no job waits for ever."""
    every = iter(cells(sum(packs) + 2))
    plan = [Job(tuple(next(every) for _ in range(size))) for size in packs]
    if forks:
        trunk = plan[0].cells[0]
        plan += [Job((cell,), waits_for=(trunk.id, step)) for step, cell in enumerate(every)]
    clock = Clock()
    jobs = Jobs(plan, max_retries=2, clock=clock)
    ended: list[str] = []
    running: list[Job] = []
    queue = iter(fates)
    for _ in range(10_000):
        if jobs.over:
            break
        while len(running) < workers and (job := jobs.take()) is not None:
            assert not (job.alone and running)
            running.append(job)
        if running:
            job = running.pop(0)
            match next(queue, "end"):
                case "end":
                    jobs.ended(job)
                    ended += job.ids
                case "lost":
                    jobs.failed(job, LOST)
                case "out":
                    jobs.failed(job, OUT)
        clock.time += 1
    assert jobs.over
    given_up = [cell_id for failure in jobs.failures for cell_id in failure.cell_ids]
    assert sorted(ended + given_up) == sorted(cell_id for job in plan for cell_id in job.ids)


def test_exceptions_are_told_apart() -> None:
    import torch

    def of(error: Exception) -> str:
        return failure_of(error).kind

    assert of(MemoryError()) == "out of memory"
    assert of(torch.OutOfMemoryError("CUDA out of memory")) == "out of memory"
    for text in (
        "CUDA error: out of memory\nCUDA kernel errors might be reported later",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    ):
        assert of(torch.AcceleratorError(text)) == of(RuntimeError(text)) == "out of memory"
    for text in (
        "CUDA error: uncorrectable ECC error encountered",
        "CUDA error: an illegal memory access was encountered",
        "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm`",
        "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
        "CUDA driver error: unspecified launch failure",
    ):
        assert of(torch.AcceleratorError(text)) == of(RuntimeError(text)) == "worker lost"
    assert of(RequestError("the disk is full")) == "request"
    assert of(RuntimeError("shape mismatch")) == "bug"
    assert of(RuntimeError("GET was unable to find an engine to execute this computation")) == (
        "out of memory"
    )
    with pytest.raises(RuntimeError) as error:
        torch.empty(2**55)
    assert of(error.value) == "out of memory"
    of_recording = torch.AcceleratorError(
        "CUDA error: operation failed due to a previous error during capture"
    )
    assert of(of_recording) == "bug"
    assert failure_of(of_recording).ends_process
    of_recording.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    assert of(of_recording) == "out of memory"
    try:
        raise KeyError("x")
    except KeyError as raised:
        failure = failure_of(raised)
    assert "Traceback" in failure.text
    assert failure.reason == "KeyError: 'x'"
    assert not failure.ends_process
    try:
        raise torch.AcceleratorError("CUDA error: illegal access\nSearch for it.\n\nCompile with")
    except torch.AcceleratorError as raised:
        failure = failure_of(raised)
    assert failure.reason == "torch.AcceleratorError: CUDA error: illegal access"
    assert failure.ends_process
    assert Failure("worker lost", "its process died").reason == "its process died"
    assert Failure("worker lost", "").reason == "worker lost"


def test_hybrids_are_their_own_group() -> None:
    """Cells share a first phase exactly where all that determines its steps is equal."""
    soft = make_cell("soft", 0.1)
    assert soft.first_phase_id == make_cell("hybrid", 0.1, switch_point=0.3).first_phase_id
    assert soft.first_phase_id == make_cell("hybrid", 0.1, last_lr=0.01).first_phase_id
    for other in (
        make_cell("hybrid", 0.2),
        make_cell("hybrid", 0.1, seed=1),
        make_cell("lvml", 0.1),
        make_cell("hybrid", 0.1, n=100),
        make_cell("hybrid", 0.1, evaluation_points=(0.5, 1.0)),
    ):
        assert soft.first_phase_id != other.first_phase_id
    assert Schedule.hybrid(0.1, 0.1, 0.3).phases[0].paradigm == "soft"
