"""Cells as jobs: what belongs together, what is split so that nobody idles, what is batched."""

from __future__ import annotations

import heapq
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.cell import Cell, Schedule
from study.cell.work import Job
from study.plan.jobs import MOST_TRIALS, Seconds, forks, jobs_of, option_jobs
from study.train.steps.packs import Packing
from tests.made_up.comparisons import make_cell

ALONE = Packing()


def seconds_of(cells: list[Cell], each: float = 10.0) -> dict[str, Seconds]:
    """A cell that forks saves half."""
    return {cell.id: Seconds(each, each / 2) for cell in cells}


def family(seed: int = 0) -> list[Cell]:
    """Soft, and hybrids that leave it."""
    hybrids = [make_cell("hybrid", 0.1, seed, switch_point=point) for point in (0.2, 0.7)]
    return [hybrids[0], make_cell("soft", 0.1, seed), hybrids[1]]


def test_hybrids_train_after_the_soft_cell_of_their_seed_and_rate():
    """The one that leaves it last comes first, as it passes where the others leave."""
    (short, soft, long), others = family(), [make_cell("lvml", 0.1), make_cell("soft", 0.2)]
    cells = [short, soft, others[0], long, others[1]]
    jobs = jobs_of(cells, seconds_of(cells), ALONE, 1, share=True)
    assert [job.cells for job in jobs] == [(soft, long, short), (others[0],), (others[1],)]
    assert list(forks(jobs[0])) == [long, short]
    alone = jobs_of(cells, seconds_of(cells), ALONE, 1)
    assert [job.cells for job in alone] == [(cell,) for cell in cells]
    assert not [cell for job in alone for cell in forks(job)]


@pytest.mark.parametrize(("seeds", "workers"), [(1, 1), (1, 3), (4, 3), (12, 8), (7, 2)])
def test_the_last_families_are_split_where_that_ends_the_whole_earlier(seeds, workers):
    """So that no worker idles while another one has a family left."""
    cells = [cell for seed in range(seeds) for cell in family(seed)]
    seconds = seconds_of(cells)
    jobs = jobs_of(cells, seconds, ALONE, workers, share=True)
    whole = jobs_of(cells, seconds, ALONE, 1, share=True)
    alone = jobs_of(cells, seconds, ALONE, workers)
    end, *others = (end_of(each, seconds, workers) for each in (jobs, whole, alone))
    assert end <= min(others)
    sizes = [len(job.packs) for job in jobs]
    assert sizes == sorted(sizes, reverse=True)  # those that start last


def end_of(jobs: list[Job], seconds: dict[str, Seconds], workers: int) -> float:
    """When the last worker has ended."""
    free = [0.0] * workers
    for job in jobs:
        saved = sum(seconds[cell.id].forked for cell in forks(job))
        took = sum(seconds[cell.id].alone for cell in job.cells) - saved
        heapq.heapreplace(free, free[0] + took)
    return max(free)


points = st.sampled_from([0.1, 0.3, 0.5, 0.9])
schedules = st.one_of(
    st.builds(Schedule.single, st.sampled_from(["soft", "lvml"]), st.sampled_from([0.1, 0.2])),
    st.builds(Schedule.hybrid, st.sampled_from([0.1, 0.2]), st.sampled_from([0.1, 0.2]), points),
)


@given(
    st.lists(st.tuples(schedules, st.integers(0, 1)), min_size=1, max_size=12, unique=True),
    st.integers(1, 4),
    st.booleans(),
)
def test_every_cell_is_in_one_job(drawn, workers, share):
    made = (make_cell(schedule=schedule, seed=seed) for schedule, seed in drawn)
    cells = list(dict.fromkeys(made))
    jobs = jobs_of(cells, seconds_of(cells), ALONE, workers, share)
    assert Counter(cell.id for job in jobs for cell in job.cells) == Counter(c.id for c in cells)
    for job in jobs:
        for cell in forks(job):
            assert cell.first_phase == job.cells[0].first_phase


def test_packs_train_seed_by_seed_and_the_seeds_of_an_option_are_one_job():
    """All paradigms of the first seeds come first."""
    cells = [make_cell(name, 0.1, seed) for seed in range(4) for name in ("soft", "hard")]
    jobs = jobs_of(cells, {}, Packing("seed", most=2), 1)
    options = option_jobs(cells)
    assert [[f"{cell.label} {cell.seed}" for cell in job.cells] for job in (*jobs, *options)] == [
        ["soft 0", "soft 1"],
        ["hard 0", "hard 1"],
        ["soft 2", "soft 3"],
        ["hard 2", "hard 3"],
        ["soft 0", "soft 1", "soft 2", "soft 3"],
        ["hard 0", "hard 1", "hard 2", "hard 3"],
    ]
    assert all(job.watched for job in options)
    assert all(len(job.packs) == 1 for job in (*jobs, *options))


def test_short_cells_train_in_batches_and_long_ones_do_not():
    """At most some 1,000 trials, whatever the number of cells; none much longer than the rest."""
    short = [make_cell("soft", 0.1, seed) for seed in range(9_000)]
    long = [make_cell("hard", 0.1, seed) for seed in range(50)]
    seconds = seconds_of(short, 1.0) | seconds_of(long, 100.0)
    jobs = jobs_of([*short, *long], seconds, ALONE, 2)
    assert len(jobs) <= 2 * MOST_TRIALS
    assert [cell for job in jobs for cell in job.cells] == [*short, *long]
    assert max(len(job.packs) for job in jobs) <= 15
    assert all(len(job.packs) == 1 for job in jobs if job.cells[0] in long)
    few = jobs_of(short[:MOST_TRIALS], seconds, ALONE, 2)
    assert all(len(job.cells) == 1 for job in few)


def test_cells_share_a_first_phase_where_all_that_determines_its_steps_is_equal():
    soft = make_cell("soft", 0.1)
    for same in ({"switch_point": 0.3}, {"last_lr": 0.01}):
        assert soft.first_phase == make_cell("hybrid", 0.1, **same).first_phase
    for other in (
        {"lr": 0.2}, {"seed": 1}, {"paradigm": "lvml"}, {"n": 100}, {"evaluation_points": (1.0,)},
    ):  # fmt: skip
        assert soft.first_phase != make_cell(**{"lr": 0.1, **other}).first_phase
