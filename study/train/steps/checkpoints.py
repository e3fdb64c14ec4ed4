"""Checkpoints: the states from which cells in training go on, in this process or another.

A results directory keeps one for each cell in training, `checkpoints/<cell_id>.ckpt`. A file is
written whole and begins with a checksum of the rest (SHA-256). It is read with PyTorch's
`weights_only`, so that it runs no code. A damaged file is set aside, and its cell begins anew.

Cells with a common first phase share it in memory: hybrids with switch points s1 < s2 < ... and
the soft cell of the same seed and learning rate take the same steps until the first one leaves its
first phase. The cell that trains first keeps its state wherever a later one leaves it; that one
starts there. Every cell reports what it would report alone, its compute included.
"""

from __future__ import annotations

import copy
import hashlib
import io
import pickle
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from study.cell import Cell
from study.cell.work import DEFAULT_INTERVAL
from study.storage.storage import Storage

if TYPE_CHECKING:
    from study.train.steps.pack_member import Member

_FORMAT = b"attention-study checkpoint 1"
"""Part of the checksum; raise the number when `Member.state` changes."""

_DIGEST_BYTES = hashlib.sha256().digest_size


class Checkpoints:
    """Saves the states of cells in training, and resumes cells from them.

    Args:
        storage: the results directory.
        interval: seconds between the checkpoints of a cell, >= 0.
        note: called with notes for people on what was found.
    """

    def __init__(
        self,
        storage: Storage,
        interval: float = DEFAULT_INTERVAL,
        note: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._storage = storage
        self._interval = interval
        self._note = note
        self._saved = time.monotonic()
        self._later: Sequence[Cell] = ()
        self._fork_steps: Collection[int] = ()
        self._forks: dict[tuple[Hashable, int], dict[str, Any]] = {}

    def expect(self, cells: Sequence[Cell], later: Sequence[Cell]) -> None:
        """Names the cells that train now, and those that will with these checkpoints."""
        self._later = later
        shared = {cell.first_phase for cell in (*cells, *later)}
        self._forks = {key: state for key, state in self._forks.items() if key[0] in shared}

    def resume(self, member: Member) -> None:
        """Restores a member from its cell's checkpoint, or from another one's, if there is one."""
        cell = member.cell
        self._fork_steps = member.fork_steps(self._later)
        state = self._load(_checkpoint(cell.id), member.device.type)
        if state is not None:
            member.restore(state)
            of = member.stops[-1].steps_done
            self._note(
                f"cell {cell.id} goes on from its checkpoint at step {member.steps:,} of {of:,}"
            )
            return
        for steps in member.fork_steps([cell]):
            if shared := self._forks.get((cell.first_phase, steps)):
                member.restore(shared, fork=True)

    def due(self, members: Sequence[Member]) -> bool:
        """Whether to save now, between two steps, for a checkpoint or for later cells."""
        return self._forks_here(members[0]) or self._is_overdue()

    def save(self, members: Sequence[Member]) -> None:
        """Saves the members' checkpoints if they are due, and keeps what later cells start from.

        Raises:
            ResultsError: a file cannot be written.
        """
        for member in members:
            if self._forks_here(member):
                key = member.cell.first_phase, member.steps
                self._forks[key] = copy.deepcopy(member.state())
        if self._is_overdue():
            for member in members:
                name = _checkpoint(member.cell.id)
                self._storage.write(name, _packed(name, member.state()))
            self._saved = time.monotonic()

    def _forks_here(self, member: Member) -> bool:
        return member.phase == 0 and member.steps in self._fork_steps

    def _is_overdue(self) -> bool:
        return time.monotonic() - self._saved >= self._interval

    def _load(self, name: str, device: str) -> dict[str, Any] | None:
        try:
            state = _unpacked(name, self._storage.read(name))
        except FileNotFoundError:
            return None
        except ValueError as error:
            where = self._storage.move(name, f"damaged/{name}")
            self._note(f"{name} is damaged ({error}); set aside as {where}, its cell begins anew")
            return None
        # A CPU's random state is of no use on a GPU, and the reverse.
        return state if state["device"] == device else None


def discard(storage: Storage, cell_id: str) -> None:
    """Removes the checkpoint of a cell that has ended."""
    storage.remove(_checkpoint(cell_id))


def sweep(storage: Storage, finished: Collection[str]) -> None:
    """Removes the checkpoints that killed processes left of cells that have ended since."""
    for name in storage.names("checkpoints"):
        if name.removeprefix("checkpoints/").removesuffix(".ckpt") in finished:
            storage.remove(name)


def _checkpoint(cell_id: str) -> str:
    return f"checkpoints/{cell_id}.ckpt"


def _packed(name: str, state: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    import torch

    torch.save(state, sink)
    data = sink.getvalue()
    return _digest(name, data) + data


def _unpacked(name: str, data: bytes) -> dict[str, Any]:
    """The state in a file; ValueError for anything that `_packed` did not make for this name."""
    digest, data = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if _digest(name, data) != digest:
        raise ValueError("its content does not have its checksum")
    try:
        import torch

        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError) as error:
        raise ValueError("it holds more than tensors and plain values") from error


def _digest(name: str, data: bytes) -> bytes:
    return hashlib.sha256(_FORMAT + name.encode() + data).digest()
