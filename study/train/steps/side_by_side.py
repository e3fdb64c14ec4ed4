"""How the members of a pack take their steps: in turns on a CPU, as one CUDA graph on a GPU."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Protocol

import torch
from torch import Tensor

from study import hardware
from study.train.steps.pack_member import Member, now

FED_STEPS = 64
"""Most steps whose rows go to a GPU with one copy."""

_RECORDER = ThreadPoolExecutor(1, "recorder")
"""Records all graphs of this process: cuDNN remembers by thread which kernels were fastest, and
each trial of Tune's has a thread of its own."""


class Stepping(Protocol):
    """Takes steps of members, some or all of those of a pack."""

    def prepare(self, members: Sequence[Member]) -> None:
        """Does what is due once, before the first step of these members in their phases."""
        ...

    def steps(self, members: Sequence[Member], count: int) -> Iterator[None]:
        """Takes so many steps of each member; yields after each, maybe before it is done."""
        ...

    def take_idle_seconds(self) -> float:
        """Seconds of the steps, since their start or the last call, in which nothing trained."""
        ...


def stepping_on(device: torch.device) -> Stepping:
    """The way in which members step on a device."""
    return Captured(device) if device.type == "cuda" else InTurns()


class InTurns:
    """Members that step one after the other."""

    def __init__(self) -> None:
        self._prepared: object = None

    def prepare(self, members: Sequence[Member]) -> None:
        """Runs a step of each on copies."""
        if self._prepared != (group := _group(members)):
            self._prepared = group
            for member in members:
                member.warm_up()

    def steps(self, members: Sequence[Member], count: int) -> Iterator[None]:
        """See `Stepping`."""
        for _ in range(count):
            for member in members:
                member.step()
            yield

    def take_idle_seconds(self) -> float:
        """See `Stepping`."""
        return 0.0


class Captured:
    """Members whose steps are one CUDA graph: one launch replays all their kernels.

    In the graph each member has a branch of its own, so that kernels of several members run at the
    same time. A graph is recorded for each width of a batch (`study.tasks.task.Split.widths`). All
    of a pack use the same memory, since one is replayed at a time, and what outlives a step lies
    outside of them.

    The graphs refer to memory, not to tensors. So this object keeps the members, with their
    weights and data, as long as their graphs.

    Args:
        device: a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._of: object = None
        self._members: tuple[Member, ...] = ()
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._main = _stream(device, -1)
        self._idle = 0.0

    def prepare(self, members: Sequence[Member]) -> None:
        """Records the graph of the largest width; drops those of other members and phases."""
        if self._of == (group := _group(members)):
            return
        self._graphs.clear()
        self._pool = torch.cuda.graph_pool_handle()
        self._of, self._members = group, tuple(members)
        self._feed = _Feed(members, self._device)
        self._branches = [_stream(self._device, number) for number in range(len(members))]
        self._record(max(member.widest for member in members))

    def steps(self, members: Sequence[Member], count: int) -> Iterator[None]:
        """See `Stepping`. The host draws the rows of further steps while the GPU works."""
        self._idle = 0.0
        while count:
            widths = self._feed.fill(min(count, FED_STEPS))
            count -= len(widths)
            for width in widths:
                if width not in self._graphs:
                    self._record(width)
                self._graphs[width].replay()
                for member in members:
                    member.steps += 1
                yield

    def take_idle_seconds(self) -> float:
        """See `Stepping`: the time of recordings."""
        seconds, self._idle = self._idle, 0.0
        return seconds

    def _record(self, width: int) -> None:
        started = now(self._device)  # the copies are made of what other streams wrote
        recording = _RECORDER.submit(self._recorded, width)
        try:
            self._graphs[width] = recording.result()
        finally:
            wait([recording])  # Ctrl-C ends neither it nor the memory that it uses
        self._idle += now(self._device) - started

    def _recorded(self, width: int) -> torch.cuda.CUDAGraph:
        """The graph of a step, recorded after some steps on copies.

        The libraries set themselves up on first use, which must not happen in a recording.
        """
        with hardware.autotuned():
            for member, branch in zip(self._members, self._branches, strict=True):
                with torch.cuda.stream(branch):
                    member.warm_up(width)
        graph = torch.cuda.CUDAGraph()
        for member in self._members:
            for generator in member.random_streams:
                _register(graph, generator)
        # The graph's context leaves its stream current if the recording cannot be ended.
        of_graph = torch.cuda.graph(graph, pool=self._pool, stream=self._main)
        with torch.cuda.stream(self._main), of_graph:
            self._take_all(width)
        return graph

    def _take_all(self, width: int) -> None:
        """Takes the next step of every member on its branch.

        The branches join also if memory runs out on one: with open branches no recording ends,
        and PyTorch would go on as if it still recorded.
        """
        rows = self._feed.next()
        for branch in self._branches:
            branch.wait_stream(self._main)
        try:
            for member, branch, own in zip(self._members, self._branches, rows, strict=True):
                with torch.cuda.stream(branch):
                    member.take(own, width)
        finally:
            for branch in self._branches:
                self._main.wait_stream(branch)


class _Feed:
    """The rows of the members' coming steps, on a GPU.

    Args:
        members: whose rows it takes.
        device: the GPU.
    """

    def __init__(self, members: Sequence[Member], device: torch.device) -> None:
        self._members = members
        shape = FED_STEPS, len(members), members[0].cell.batch_size
        self._rows = torch.zeros(shape, dtype=torch.int64, device=device)
        self._step = torch.zeros(1, dtype=torch.int64, device=device)

    def fill(self, count: int) -> list[int]:
        """Draws the rows of so many steps; returns the width of each step."""
        drawn = [member.next_rows(count) for member in self._members]
        # A copy from pinned memory does not wait for the replays before it.
        rows = torch.stack(drawn, dim=1).pin_memory()
        self._rows[:count].copy_(rows, non_blocking=True)
        self._step.zero_()
        widths = (m.widths(own) for m, own in zip(self._members, drawn, strict=True))
        return [max(of_step) for of_step in zip(*widths, strict=True)]

    def next(self) -> Tensor:
        """The members' rows (k, B) of the next step. In a graph, each replay goes a step on."""
        rows = self._rows.index_select(0, self._step)[0]
        self._step += 1
        return rows


@functools.cache
def _stream(device: torch.device, number: int) -> torch.cuda.Stream:
    """The same streams for all packs: cuBLAS keeps memory for each, which is never freed."""
    return torch.cuda.Stream(device)


def _register(graph: torch.cuda.CUDAGraph, generator: torch.Generator) -> None:
    """Lets each replay draw further numbers; newer versions of PyTorch do so by themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they call this deprecated
        graph.register_generator_state(generator)


def _group(members: Sequence[Member]) -> object:
    """Equal for the same members in the same phases."""
    return [(member, member.phase) for member in members]
