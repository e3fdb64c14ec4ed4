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
from study.plan.prefixes import first_phase
from study.storage.storage import ResultsError, Storage
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.steps import checkpoints
from study.train.steps.checkpoints import Checkpoints, discard, fork_name, sweep
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
    steps = [first_phase(cell, FLOPS)[0] for cell in cells]
    train(trunk, digits, checkpoints=Checkpoints(storage, 1e9, fork_steps=steps))
    forked = [train(cell, digits, checkpoints=Checkpoints(storage, 1e9)) for cell in cells[1:]]
    assert forked[0].shared_prefix
    assert numbers(forked[0]) == numbers(wholes[1])


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


@pytest.mark.parametrize("lost", [None, 9, 13])
def test_forked_equals_straight(digits: MosaicTask, storage: Storage, lost: int | None) -> None:
    """Also where the trunk was lost on its way and went on from a checkpoint."""
    trunk, *forks = hybrids(digits)
    steps = [first_phase(cell, FLOPS)[0] for cell in forks]
    assert len(set(steps)) == 3
    told: list[int] = []
    if lost:
        with pytest.raises(Killed):
            train(trunk, digits, checkpoints=Killing(storage, [lost], fork_steps=steps))
    outcome = train(
        trunk,
        digits,
        checkpoints=Checkpoints(storage, 1e9, fork_steps=steps, on_fork=told.append),
    )
    assert numbers(outcome) == numbers(straight(trunk, digits))
    assert sorted(told) == sorted(set(steps))
    for cell, at in zip(forks, steps, strict=True):
        assert storage.exists(fork_name(cell, at))
        taken: list[Cell] = []
        outcome = train(
            cell,
            digits,
            on_evaluation=lambda cell, row, taken=taken: taken.append(row["step"]),
            checkpoints=Checkpoints(storage, 1e9),
        )
        assert outcome.shared_prefix
        assert min(taken) >= at
        whole = straight(cell, digits)
        assert not whole.shared_prefix
        assert numbers(outcome) == numbers(whole)


def test_a_trunk_has_a_checkpoint_of_its_own_however_close_its_forks_are(
    digits: MosaicTask, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fork points every 2 s and an interval of 3 s, by a clock that counts steps."""
    cell = tiny_cell(digits)
    clock = [0.0]
    monkeypatch.setattr(checkpoints.time, "monotonic", lambda: clock[0])
    kept: list[int] = []

    class Watched(Checkpoints):
        def due(self, members: Sequence[Member]) -> bool:
            clock[0] += 1
            return super().due(members)

        def _write(self, name: str, member: Member) -> None:
            kept.append(member.steps) if name.startswith("checkpoints/") else None
            super()._write(name, member)

    whole = train(cell, digits, checkpoints=Watched(storage, 3, range(2, 100, 2)))
    assert kept == list(range(3, whole.steps + 1, 3))


def test_a_fork_is_killed_and_resumed_too(digits: MosaicTask, storage: Storage) -> None:
    trunk, fork, *_ = hybrids(digits)
    at = first_phase(fork, FLOPS)[0]
    train(trunk, digits, checkpoints=Checkpoints(storage, 1e9, fork_steps=[at]))
    with pytest.raises(Killed):
        train(fork, digits, checkpoints=Killing(storage, [at + 5]))
    storage.remove(fork_name(fork, at))
    outcome = train(fork, digits, checkpoints=Checkpoints(storage, 1e9))
    assert outcome.shared_prefix
    assert numbers(outcome) == numbers(straight(fork, digits))


def test_a_diverged_trunk_gives_diverged_forks(digits: MosaicTask, storage: Storage) -> None:
    trunk, fork = (
        tiny_cell(digits, schedule)
        for schedule in (Schedule.single("soft", 1e20), Schedule.hybrid(1e20, 0.1, 0.5))
    )
    at = first_phase(fork, FLOPS)[0]
    train(trunk, digits, checkpoints=Checkpoints(storage, 1e9, fork_steps=[at]))
    outcome = train(fork, digits, checkpoints=Checkpoints(storage, 1e9))
    assert outcome.status == "diverged"
    assert numbers(outcome) == numbers(straight(fork, digits))


def test_without_sharing_no_fork_point_is_used(digits: MosaicTask, storage: Storage) -> None:
    trunk, fork, *_ = hybrids(digits)
    at = first_phase(fork, FLOPS)[0]
    train(trunk, digits, checkpoints=Checkpoints(storage, 1e9, fork_steps=[at]))
    assert not train(fork, digits, checkpoints=Checkpoints(storage, share=False)).shared_prefix


def _of_another_cell(task: MosaicTask, storage: Storage, folder: str) -> bytes:
    trunk, fork, *_ = hybrids(task, seed=5)
    at = first_phase(fork, FLOPS)[0]
    before = set(storage.names(folder))
    with pytest.raises(Killed):
        train(trunk, task, checkpoints=Killing(storage, [at + 1], fork_steps=[at]))
    (name,) = set(storage.names(folder)) - before
    data = storage.read(name)
    storage.remove(name)
    return data


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "foreign", "another cell's"])
@pytest.mark.parametrize("folder", ["checkpoints", "forks"])
def test_a_damaged_file_is_set_aside_and_its_cell_begins_anew(
    digits: MosaicTask, storage: Storage, damage: str, folder: str
) -> None:
    trunk, fork, *_ = hybrids(digits)
    at = first_phase(fork, FLOPS)[0]
    train(trunk, digits, checkpoints=Checkpoints(storage, 1e9, fork_steps=[at]))
    if folder == "checkpoints":
        with pytest.raises(Killed):
            train(fork, digits, checkpoints=Killing(storage, [at + 3]))
        storage.remove(fork_name(fork, at))
    (name,) = storage.names(folder)
    data = storage.read(name)
    middle = len(data) // 2
    bad = {
        "cut": data[:middle],
        "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "empty": b"",
        "foreign": b"a file of something else" * 10,
        "another cell's": _of_another_cell(digits, storage, folder),
    }[damage]
    storage.write(name, bad)
    notes: list[str] = []
    outcome = train(fork, digits, checkpoints=Checkpoints(storage, 1e9, note=notes.append))
    assert numbers(outcome) == numbers(straight(fork, digits))
    assert not outcome.shared_prefix
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
    trunk, fork, *_ = hybrids(digits)
    other = dataclasses.replace(trunk, seed=1)
    at = first_phase(fork, FLOPS)[0]
    for cell in (trunk, other):
        train(cell, digits, checkpoints=Checkpoints(storage, 1e9, fork_steps=[at]))
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [3]))
    sweep(storage, {trunk.id}, {trunk.first_phase_id})
    assert storage.names("checkpoints") == [f"checkpoints/{other.id}.ckpt"]
    assert storage.names("forks") == [fork_name(other, at)]
