"""Cells that are interrupted and go on, and cells that fork, end with the same bits."""

from __future__ import annotations

import dataclasses
import functools
import io
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from study.cell import Cell, NetworkSettings, Phase, Schedule
from study.storage.storage import Storage
from study.tasks.mosaics.mosaics import MosaicTask
from study.train.budget import cost
from study.train.budget.timeline import steps_by_phase, timeline
from study.train.steps import checkpoints
from study.train.steps.checkpoints import Checkpoints, discard, sweep
from study.train.steps.loop import train
from study.train.steps.pack_member import Member, Outcome
from tests.conftest import tiny_cell, tiny_flops
from tests.made_up.training import Killed, Killing, make_storage, numbers

FLOPS = tiny_flops()


@functools.cache
def straight(cell: Cell, task: MosaicTask) -> Outcome:
    """The cell as it ends without a checkpoint; tests only read it."""
    return train(cell, task)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return make_storage(tmp_path / "results")


def in_turn(cells: Sequence[Cell], task: MosaicTask, kept: Checkpoints) -> list[Outcome]:
    """Cells one after the other in one process, as those of a job."""
    outcomes = []
    for number, cell in enumerate(cells):
        kept.expect([cell], cells[number + 1 :])
        outcomes.append(train(cell, task, checkpoints=kept))
    return outcomes


NETWORKS = [NetworkSettings(normalisation=name) for name in (None, "batch")]


def hybrids(task: MosaicTask, **changes: Any) -> list[Cell]:
    """Soft, hybrids that leave it at and between evaluations, one with another hard rate."""
    schedules = [
        Schedule.single("soft", 0.1),
        Schedule.hybrid(0.1, 0.1, 0.25),
        Schedule.hybrid(0.1, 0.1, 0.61),
        Schedule.hybrid(0.1, 0.02, 0.61),
        Schedule((Phase("soft", 0.1, 0.4), Phase("lvml", 0.1, 0.7), Phase("hard", 0.1))),
    ]
    return [tiny_cell(task, schedule, **changes) for schedule in schedules]


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: str(network.normalisation))
@pytest.mark.parametrize(("lost", "of"), [(None, 0), (9, 0), (13, 0), (20, 2)])
def test_forked_equals_straight(digits, storage, lost, of, network):
    """Where the trunk was lost and went on from a checkpoint, only what it then passes forks.

    A fork that was lost itself goes on from its own checkpoint.
    """
    cells = hybrids(digits, network=network)
    if lost:
        with pytest.raises(Killed):
            in_turn(cells, digits, Killing(storage, [lost], cells[of].id))
        if of:
            resumed = train(cells[of], digits, checkpoints=Checkpoints(storage, 1e9))
            assert resumed.shared_prefix
            assert numbers(resumed) == numbers(straight(cells[of], digits))
            return
    outcomes = in_turn(cells, digits, Checkpoints(storage, 1e9))
    soft = numbers(straight(cells[0], digits))["evaluations"]
    for cell, outcome in zip(cells, outcomes, strict=True):
        whole = straight(cell, digits)
        assert not whole.shared_prefix
        assert numbers(outcome) == numbers(whole)
        switch, *_ = steps_by_phase(cell, timeline(cell, cost.cell_flops(cell, FLOPS)))
        assert outcome.shared_prefix == (cell is not cells[0] and switch > (lost or 0))
        of_soft = sum(row["step"] <= switch for row in numbers(whole)["evaluations"]) // 3 * 3
        assert numbers(whole)["evaluations"][: of_soft - 3] == soft[: of_soft - 3]


def test_a_diverged_trunk_gives_diverged_forks(digits, storage):
    schedules = Schedule.single("soft", 1e20), Schedule.hybrid(1e20, 0.1, 0.5)
    cells = [tiny_cell(digits, schedule) for schedule in schedules]
    outcome = in_turn(cells, digits, Checkpoints(storage, 1e9))[1]
    assert outcome.status == "diverged"
    assert numbers(outcome) == numbers(straight(cells[1], digits))


def test_a_trunk_is_saved_at_its_interval_however_close_its_forks_are(
    digits, storage, monkeypatch
):
    """An interval of 3 s, by a clock that counts steps; no number is another one for it."""
    cell, steps, saved = tiny_cell(digits), list[None](), list[int]()
    clock = SimpleNamespace(monotonic=lambda: len(steps))
    monkeypatch.setattr(checkpoints, "time", clock)
    watched = Checkpoints(storage, 3)
    due = watched.due
    monkeypatch.setattr(watched, "due", lambda members: steps.append(None) or due(members))
    monkeypatch.setattr(storage, "write", lambda *_: saved.append(len(steps)))
    points = [Schedule.hybrid(0.1, 0.1, until) for until in (0.2, 0.4, 0.6, 0.8)]
    watched.expect([cell], [tiny_cell(digits, schedule) for schedule in points])
    whole = train(cell, digits, checkpoints=watched)
    assert saved == list(range(3, whole.steps + 1, 3))
    assert len(watched._forks) == len(points)
    assert numbers(whole) == numbers(straight(cell, digits))


def test_checkpoints_of_ended_cells_are_swept(digits, storage):
    cells = [tiny_cell(digits, seed=seed) for seed in range(3)]
    for cell in cells:
        train(cell, digits, checkpoints=Checkpoints(storage, interval=0))
    discard(storage, cells[0].id)
    sweep(storage, {cells[1].id})
    assert storage.names("checkpoints") == [f"checkpoints/{cells[2].id}.ckpt"]


def test_only_what_a_later_cell_needs_is_kept(digits, storage):
    """Of another seed, or with another first phase, it starts from nothing."""
    trunk, fork, *_ = hybrids(digits)
    others = [dataclasses.replace(fork, seed=1), tiny_cell(digits, Schedule.hybrid(0.2, 0.1, 0.5))]
    kept = Checkpoints(storage, 1e9)
    outcomes = in_turn([trunk, *others, fork], digits, kept)
    assert [outcome.shared_prefix for outcome in outcomes] == [False, False, False, True]
    kept.expect(others, [])
    assert not kept._forks


class Evil:
    """Runs code where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("a checkpoint ran code",)


def test_a_damaged_file_is_set_aside_and_its_cell_begins_anew(digits, storage):
    """Flipped, empty, another cell's, and one with code, though its checksum is right."""
    cells = [tiny_cell(digits, seed=seed) for seed in (0, 5)]
    for cell in cells:
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [3]))
    name, of_other = (f"checkpoints/{cell.id}.ckpt" for cell in cells)
    torch.save(Evil(), sink := io.BytesIO())
    whole, code = storage.read(name), sink.getvalue()
    for bad, why in (
        (whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:], "checksum"),
        (b"", "checksum"),
        (storage.read(of_other), "checksum"),
        (checkpoints._digest(name, code) + code, "more than tensors and plain values"),
    ):
        storage.write(name, bad)
        notes: list[str] = []
        kept = Checkpoints(storage, 1e9, note=notes.append)
        assert numbers(train(cells[0], digits, checkpoints=kept)) == numbers(
            straight(cells[0], digits)
        )
        assert name in notes[0]
        assert why in notes[0]
        assert storage.read(f"damaged/{name}") == bad
        storage.remove(f"damaged/{name}")


def test_a_checkpoint_of_another_kind_of_device_is_left(digits, storage, monkeypatch):
    """Random states of a CPU and a GPU have nothing in common."""
    cell = tiny_cell(digits)
    real = Member.state
    with monkeypatch.context() as patch:
        patch.setattr(Member, "state", lambda self: {**real(self), "device": "cuda"})
        with pytest.raises(Killed):
            train(cell, digits, checkpoints=Killing(storage, [5]))
    assert train(cell, digits, checkpoints=Checkpoints(storage)).earlier_seconds == 0
