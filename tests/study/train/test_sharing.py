"""Prefix sharing as a plan: who forks from whom, what it saves, and when fork points go."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.cell import Cell, Schedule
from study.launch.fork_points import ForkPoints
from study.launch.job_queue import Job
from study.models.flops import ModelFlops
from study.plan.prefixes import first_phase, saved_flops, shared_jobs
from study.storage.storage import Storage
from study.train.budget.timeline import timeline
from study.train.steps.checkpoints import fork_name
from tests.made_up.comparisons import make_cell

FLOPS = ModelFlops(2, 3)


def jobs_of(cells: list[Cell]) -> list[Job]:
    return shared_jobs(cells, dict.fromkeys((cell.id for cell in cells), FLOPS))


def test_hybrids_fork_from_the_soft_cell_of_their_seed_and_rate() -> None:
    hybrids = [make_cell("hybrid", 0.1, switch_point=point) for point in (0.2, 0.7)]
    soft, lvml, other = make_cell("soft", 0.1), make_cell("lvml", 0.1), make_cell("soft", 0.2)
    jobs = {job.cells[0]: job for job in jobs_of([hybrids[0], soft, lvml, hybrids[1], other])}
    steps = [first_phase(cell, FLOPS)[0] for cell in hybrids]
    assert jobs[soft].fork_steps == tuple(steps)
    assert [jobs[cell].waits_for for cell in hybrids] == [(soft.id, step) for step in steps]
    for cell in (lvml, other):
        assert jobs[cell] == Job((cell,))


def test_without_a_soft_cell_the_longest_hybrid_is_the_trunk() -> None:
    cells = [
        make_cell("hybrid", 0.1, switch_point=point, last_lr=rate)
        for point, rate in ((0.2, 0.1), (0.7, 0.1), (0.7, 0.05))
    ]
    short, trunk, twin = jobs_of(cells)[1], jobs_of(cells)[0], jobs_of(cells)[2]
    assert trunk.cells == (cells[1],)
    long = first_phase(cells[1], FLOPS)[0]
    assert twin.waits_for == (cells[1].id, long)
    assert short.waits_for == (cells[1].id, first_phase(cells[0], FLOPS)[0])
    assert trunk.fork_steps == (short.waits_for[1], long)


points = st.sampled_from([0.1, 0.3, 0.5, 0.9])
schedules = st.one_of(
    st.builds(Schedule.single, st.sampled_from(["soft", "lvml"]), st.sampled_from([0.1, 0.2])),
    st.builds(Schedule.hybrid, st.sampled_from([0.1, 0.2]), st.sampled_from([0.1, 0.2]), points),
)


@given(st.lists(st.tuples(schedules, st.integers(0, 1)), min_size=1, max_size=12))
def test_every_cell_is_one_job_and_what_it_saves_is_what_is_not_trained(
    drawn: list[tuple[Schedule, int]],
) -> None:
    made = [
        Cell(**{**vars_of(make_cell()), "schedule": schedule, "seed": seed})
        for schedule, seed in drawn
    ]
    cells = list(dict.fromkeys(made))
    jobs = jobs_of(cells)
    assert sorted(cell.id for job in jobs for cell in job.cells) == sorted(c.id for c in cells)
    by_id = {job.cells[0].id: job for job in jobs}
    total = saved = 0
    for job in jobs:
        (cell,) = job.cells
        total += timeline(cell, FLOPS)[-1].compute_flops
        if job.waits_for:
            trunk_id, steps = job.waits_for
            trunk = by_id[trunk_id]
            assert jobs.index(trunk) < jobs.index(job)
            assert trunk.waits_for is None  # none waits for what waits itself
            assert steps in trunk.fork_steps
            assert trunk.cells[0].first_phase_id == cell.first_phase_id
            assert trunk.cells[0].schedule.phases[0].until >= cell.schedule.phases[0].until
            saved += first_phase(cell, FLOPS)[1]
    # One trunk a first phase trains its steps once: no more could be saved by first phases alone.
    assert saved_flops(jobs, dict.fromkeys(by_id, FLOPS)) == saved
    phases = {cell.first_phase_id for cell in cells}
    assert sum(job.waits_for is None for job in jobs) == len(phases)


def vars_of(cell: Cell) -> dict:
    return {each.name: getattr(cell, each.name) for each in fields(cell)}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    storage = Storage(tmp_path / "results")
    storage.make("forks")
    return storage


def test_a_fork_point_goes_with_the_last_cell_that_needs_it(storage: Storage) -> None:
    soft = make_cell("soft", 0.1)
    hybrids = [make_cell("hybrid", 0.1, last_lr=rate) for rate in (0.1, 0.05)]
    name = fork_name(hybrids[0], first_phase(hybrids[0], FLOPS)[0])
    forks = ForkPoints(storage)
    forks.expect(jobs_of([soft, *hybrids]))
    storage.write(name, b"")
    for cell, left in ((soft, [name]), (hybrids[0], [name]), (hybrids[1], [])):
        forks.ended(cell.id)
        assert storage.names("forks") == left
