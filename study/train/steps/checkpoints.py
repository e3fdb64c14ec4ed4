"""Checkpoints: the states from which cells in training go on, in this process or another.

A results directory keeps one checkpoint for each cell in training, and one for each fork point:

    checkpoints/<cell_id>.ckpt
    forks/<first_phase_id>-<steps>.ckpt

A file is written whole and begins with a checksum of the rest (SHA-256). It is read with PyTorch's
`weights_only`, so that it runs no code. A damaged file is set aside, and its cell begins anew.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import time
from collections.abc import Callable, Collection, Sequence
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
        fork_steps: steps after which the state is kept for other cells, see `study.plan.prefixes`.
        share: whether cells may start from fork points of other cells.
        note: called with notes for people on what was found.
        on_fork: called with the steps of every fork point that exists.
    """

    def __init__(
        self,
        storage: Storage,
        interval: float = DEFAULT_INTERVAL,
        fork_steps: Collection[int] = (),
        share: bool = True,
        note: Callable[[str], object] = lambda _: None,
        on_fork: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._storage = storage
        self._interval = interval
        self._fork_steps = frozenset(fork_steps)
        self._share = share
        self._note = note
        self._on_fork = on_fork
        self._saved = time.monotonic()

    def resume(self, member: Member) -> None:
        """Restores a member from its cell's checkpoint, or from a fork point, if there is one."""
        device, cell = member.device.type, member.cell
        state = self._load(_checkpoint(cell.id), device)
        if state is not None:
            member.restore(state)
            of = member.stops[-1].steps_done
            self._note(
                f"cell {cell.id} goes on from its checkpoint at step {member.steps:,} of {of:,}"
            )
            for steps in self._fork_steps:
                if steps <= member.steps:
                    self._on_fork(steps)
        elif self._share and member.fork_step is not None:
            state = self._load(fork_name(cell, member.fork_step), device)
            if state is not None:
                member.restore(state, fork=True)

    def due(self, members: Sequence[Member]) -> bool:
        """Whether to save now, between two steps, for a checkpoint or a fork point."""
        return self._is_fork_point(members) or self._is_overdue(members)

    def save(self, members: Sequence[Member]) -> None:
        """Saves the members' checkpoints if they are due, and a fork point if this is one.

        Raises:
            ResultsError: a file cannot be written.
        """
        if self._is_fork_point(members):
            (member,) = members
            self._write(fork_name(member.cell, member.steps), member)
            self._on_fork(member.steps)
        if self._is_overdue(members):
            for member in members:
                self._write(_checkpoint(member.cell.id), member)
            self._saved = time.monotonic()

    def _is_overdue(self, members: Sequence[Member]) -> bool:
        return time.monotonic() - self._saved >= self._interval

    def _is_fork_point(self, members: Sequence[Member]) -> bool:
        return bool(self._fork_steps) and members[0].steps in self._fork_steps

    def _write(self, name: str, member: Member) -> None:
        self._storage.write(name, _packed(name, member.state()))

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


def sweep(storage: Storage, finished: Collection[str], first_phases: Collection[str]) -> None:
    """Removes files that killed processes left of cells that have ended since.

    Args:
        storage: the results directory.
        finished: ids of the cells that need no checkpoint any more.
        first_phases: `first_phase_id` of the cells that need no fork point any more.
    """
    for name in [*storage.names("checkpoints"), *storage.names("forks")]:
        owner = name.rsplit("/", 1)[-1].removesuffix(".ckpt").rsplit("-", 1)[0]
        if owner in (finished if name.startswith("checkpoints/") else first_phases):
            storage.remove(name)


def fork_name(cell: Cell, steps: int) -> str:
    """The file of a cell's state after that many steps of its first phase."""
    return f"forks/{cell.first_phase_id}-{steps}.ckpt"


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
