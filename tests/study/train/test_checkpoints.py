"""Cells that are interrupted and go on, and cells that fork, end with the same bits."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from study.cell import Cell, NetworkSettings, Phase, Schedule
from study.storage.storage import ResultsError, Storage
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.budget import cost
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps import checkpoints
from study.train.steps.checkpoints import Checkpoints, discard, sweep
from study.train.steps.loop import train, train_pack
from study.train.steps.pack_member import Member, Outcome
from tests.conftest import tiny_cell, tiny_flops
from tests.made_up.training import Killed, Killing, make_storage, numbers

FLOPS = tiny_flops()
SCHEDULES = [
    Schedule.single("soft", 0.1),
    Schedule.single("hard-sampled", 0.1),
    Schedule.hybrid(0.1, 0.05, 0.4),
    Schedule((Phase("lvml", 0.1, 0.3), Phase("hard-sampled", 0.05, 0.6), Phase("soft", 0.1))),
]


@functools.cache
def straight(cell: Cell, task: MosaicTask) -> Outcome:
    """The cell as it ends without a checkpoint; tests only read it."""
    return train(cell, task)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return make_storage(tmp_path / "results")


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.paradigm)
@given(data=st.data())
@settings(max_examples=8)
def test_resumed_equals_uninterrupted(
    schedule: Schedule, data: st.DataObject, digits: MosaicTask, tmp_path_factory: Any
) -> None:
    """Killed at any steps, any number of times; also where a phase or an evaluation begins."""
    cell = tiny_cell(digits, schedule)
    whole = straight(cell, digits)
    storage = make_storage(tmp_path_factory.mktemp("results"))
    kills = data.draw(st.lists(st.integers(1, whole.steps), min_size=1, max_size=3, unique=True))
    for steps in sorted(kills):
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [steps]))
    notes: list[str] = []
    outcome = train(cell, digits, checkpoints=Checkpoints(storage, 1e9, note=notes.append))
    assert numbers(outcome) == numbers(whole)
    assert notes == [
        f"cell {cell.id} goes on from its checkpoint at step {max(kills)} of {whole.steps}"
    ]
    assert outcome.train_seconds > 0
    assert outcome.earlier_seconds > 0


def test_statistics_of_batches_go_on(digits: MosaicTask, tmp_path: Path) -> None:
    """Those of batch normalisation are no parameters, but evaluations depend on them."""
    network = NetworkSettings(normalisation="batch")
    schedules = Schedule.hybrid(0.1, 0.05, 0.4), Schedule.hybrid(0.1, 0.1, 0.7)
    cells = [tiny_cell(digits, each, network=network) for each in schedules]
    wholes = [straight(cell, digits) for cell in cells]
    storage = make_storage(tmp_path / "results")
    for steps in (5, 17):
        with pytest.raises(Killed):
            train(cells[0], digits, checkpoints=Killing(storage, [steps]))
    resumed = train(cells[0], digits, checkpoints=Checkpoints(storage, 1e9))
    assert numbers(resumed) == numbers(wholes[0])
    packed = train_pack([dataclasses.replace(cells[0], seed=seed) for seed in (0, 1)], digits)
    assert numbers(packed[0]) == numbers(wholes[0])
    trunk = tiny_cell(digits, Schedule.single("soft", 0.1), network=network)
    _, forked = in_turn([trunk, cells[1]], digits, Checkpoints(storage, 1e9))
    assert forked.shared_prefix
    assert numbers(forked) == numbers(wholes[1])


def test_a_pack_whose_members_were_left_at_different_steps_equals_cells_alone(
    digits: MosaicTask, storage: Storage
) -> None:
    """Killed between the checkpoints of its members; one of them diverges."""
    cells = [tiny_cell(digits, Schedule.single("soft", lr)) for lr in (0.1, 1e20, 0.03)]
    for cell, steps in zip(cells, (3, 2, 11), strict=True):
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [steps]))
    outcomes = train_pack(cells, digits, checkpoints=Checkpoints(storage, interval=1e9))
    assert [outcome.status for outcome in outcomes] == ["done", "diverged", "done"]
    for cell, outcome in zip(cells, outcomes, strict=True):
        assert numbers(outcome) == numbers(straight(cell, digits))


def test_checkpoints_at_every_step_change_nothing(digits: MosaicTask, storage: Storage) -> None:
    cell = tiny_cell(digits, SCHEDULES[3])
    kept = train(cell, digits, checkpoints=Checkpoints(storage, interval=0))
    assert numbers(kept) == numbers(straight(cell, digits))
    assert storage.names("checkpoints") == [f"checkpoints/{cell.id}.ckpt"]
    discard(storage, cell.id)
    assert storage.names("checkpoints") == []


def hybrids(task: MosaicTask, **changes: Any) -> list[Cell]:
    """Soft, hybrids that leave it at and between evaluations, and one with another hard rate."""
    schedules = [
        Schedule.single("soft", 0.1),
        Schedule.hybrid(0.1, 0.1, 0.25),
        Schedule.hybrid(0.1, 0.1, 0.61),
        Schedule.hybrid(0.1, 0.02, 0.61),
        Schedule((Phase("soft", 0.1, 0.4), Phase("lvml", 0.1, 0.7), Phase("hard", 0.1))),
    ]
    return [tiny_cell(task, schedule, **changes) for schedule in schedules]


def in_turn(cells: Sequence[Cell], task: MosaicTask, kept: Checkpoints) -> list[Outcome]:
    """Cells one after the other in one process, as those of a job."""
    outcomes = []
    for number, cell in enumerate(cells):
        kept.expect([cell], cells[number + 1 :])
        outcomes.append(train(cell, task, checkpoints=kept))
    return outcomes


@pytest.mark.parametrize("lost", [None, 9, 13])
def test_forked_equals_straight(digits: MosaicTask, storage: Storage, lost: int | None) -> None:
    """Where the trunk was lost and went on from a checkpoint, only what it then passes forks."""
    cells = hybrids(digits)
    if lost:
        with pytest.raises(Killed):
            in_turn(cells, digits, Killing(storage, [lost]))
    outcomes = in_turn(cells, digits, Checkpoints(storage, 1e9))
    for cell, outcome in zip(cells, outcomes, strict=True):
        whole = straight(cell, digits)
        assert not whole.shared_prefix
        assert numbers(outcome) == numbers(whole)
        switch, *_ = steps_by_phase(cell, timeline(cell, cost.cell_flops(cell, FLOPS)))
        assert outcome.shared_prefix == (cell is not cells[0] and switch > (lost or 0))


def test_only_what_a_later_cell_needs_is_kept(digits: MosaicTask, storage: Storage) -> None:
    """Of another seed, or with another first phase, it starts from nothing."""
    trunk, fork, *_ = hybrids(digits)
    others = [dataclasses.replace(fork, seed=1), tiny_cell(digits, Schedule.hybrid(0.2, 0.1, 0.5))]
    kept = Checkpoints(storage, 1e9)
    outcomes = in_turn([trunk, *others, fork], digits, kept)
    assert [outcome.shared_prefix for outcome in outcomes] == [False, False, False, True]
    kept.expect(others, [])
    assert not kept._forks


def test_a_trunk_has_a_checkpoint_of_its_own_however_close_its_forks_are(
    digits: MosaicTask, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interval of 3 s, by a clock that counts steps."""
    cell = tiny_cell(digits)
    clock = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])
    kept: list[int] = []

    class Watched(Checkpoints):
        def due(self, members: Sequence[Member]) -> bool:
            clock[0] += 1
            return super().due(members)

    class Slow(Storage):
        def write(self, name: str, data: bytes) -> None:
            kept.append(int(clock[0]))
            super().write(name, data)

    watched = Watched(Slow(storage.url), 3)
    points = [Schedule.hybrid(0.1, 0.1, until) for until in (0.2, 0.4, 0.6, 0.8)]
    watched.expect([cell], [tiny_cell(digits, schedule) for schedule in points])
    whole = train(cell, digits, checkpoints=watched)
    assert kept == list(range(3, whole.steps + 1, 3))
    assert len(watched._forks) == len(points)


def test_a_fork_is_killed_and_resumed_too(digits: MosaicTask, storage: Storage) -> None:
    trunk, fork, *_ = hybrids(digits)
    with pytest.raises(Killed):
        in_turn(
            [trunk, fork], digits, Killing(storage, [straight(fork, digits).steps - 3], fork.id)
        )
    outcome = train(fork, digits, checkpoints=Checkpoints(storage, 1e9))
    assert outcome.shared_prefix
    assert numbers(outcome) == numbers(straight(fork, digits))


def test_a_diverged_trunk_gives_diverged_forks(digits: MosaicTask, storage: Storage) -> None:
    trunk, fork = (
        tiny_cell(digits, schedule)
        for schedule in (Schedule.single("soft", 1e20), Schedule.hybrid(1e20, 0.1, 0.5))
    )
    _, outcome = in_turn([trunk, fork], digits, Checkpoints(storage, 1e9))
    assert outcome.status == "diverged"
    assert numbers(outcome) == numbers(straight(fork, digits))


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign", "another cell's"])
def test_a_damaged_file_is_set_aside_and_its_cell_begins_anew(
    digits: MosaicTask, storage: Storage, damage: str
) -> None:
    cell, other = (tiny_cell(digits, SCHEDULES[2], seed=seed) for seed in (0, 5))
    for each in (cell, other):
        with pytest.raises(Killed):
            train(each, digits, checkpoints=Killing(storage, [3]))
    name, others = (f"checkpoints/{each.id}.ckpt" for each in (cell, other))
    data = storage.read(name)
    middle = len(data) // 2
    bad = {
        "cut": data[:middle],
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "empty": b"",
        "foreign": b"a file of something else" * 10,
        "another cell's": storage.read(others),
    }[damage]
    storage.write(name, bad)
    notes: list[str] = []
    outcome = train(cell, digits, checkpoints=Checkpoints(storage, 1e9, note=notes.append))
    assert numbers(outcome) == numbers(straight(cell, digits))
    assert len(notes) == 1
    assert name in notes[0]
    assert storage.read(f"damaged/{name}") == bad


def test_a_checkpoint_runs_no_code(digits: MosaicTask, storage: Storage, tmp_path: Path) -> None:
    """Not even one whose checksum is right."""

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    cell = tiny_cell(digits)
    sink = tmp_path / "evil.pt"
    torch.save({"device": "cpu", "steps": Evil()}, sink)
    data = sink.read_bytes()
    name = f"checkpoints/{cell.id}.ckpt"
    storage.write(name, checkpoints._digest(name, data) + data)
    notes: list[str] = []
    train(cell, digits, checkpoints=Checkpoints(storage, note=notes.append))
    assert "it holds more than tensors and plain values" in notes[0]
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_of_another_kind_of_device_is_left(
    digits: MosaicTask, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random states of a CPU and a GPU have nothing in common."""
    cell = tiny_cell(digits)
    real = Member.state
    with monkeypatch.context() as patch:
        patch.setattr(Member, "state", lambda self: {**real(self), "device": "cuda"})
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [5]))
    assert train(cell, digits, checkpoints=Checkpoints(storage)).earlier_seconds == 0


def test_a_lost_directory_is_said(digits: MosaicTask, tmp_path: Path) -> None:
    nowhere = Storage(tmp_path / "lost")
    with pytest.raises(ResultsError, match="cannot write to the results directory"):
        train(tiny_cell(digits), digits, checkpoints=Checkpoints(nowhere, interval=0))


def test_what_ended_cells_left_behind_is_swept(digits: MosaicTask, storage: Storage) -> None:
    ended, other = (tiny_cell(digits, seed=seed) for seed in (0, 1))
    for cell in (ended, other):
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [3]))
    sweep(storage, {ended.id})
    assert storage.names("checkpoints") == [f"checkpoints/{other.id}.ckpt"]
