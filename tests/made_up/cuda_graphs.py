"""CUDA graphs without CUDA: operations on a CPU are recorded, and replayed on the same memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Graph:
    """As `torch.cuda.CUDAGraph`: it holds what was recorded, and no weights or data by itself.

    (The emulation has to hold tensors, a real graph holds addresses.)
    """

    def __init__(self) -> None:
        self.generators: list[torch.Generator] = []
        self.operations: list[Callable[[], None]] = []
        self.replays = 0

    def register_generator_state(self, generator: torch.Generator) -> None:
        assert not self.operations, "a generator is registered before the recording"
        self.generators.append(generator)

    def replay(self) -> None:
        self.replays += 1
        with torch.no_grad():
            for operation in self.operations:
                operation()


class _Recording(TorchDispatchMode):
    """Notes operations; at the end, what existed before is as it was, as if nothing had run."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._graph = graph
        self._before: dict[int, tuple[Tensor, Tensor]] = {}
        self._made: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for generator in (each for each in kwargs.values() if isinstance(each, torch.Generator)):
            registered = [each.initial_seed() for each in self._graph.generators]
            assert generator.initial_seed() in registered, "its generator is not registered"
        for tensor in _tensors((args, kwargs)):
            if _memory(tensor) not in (*self._made, *self._before):
                self._before[_memory(tensor)] = tensor, _whole(tensor).clone()
        out = func(*args, **kwargs)
        aliased = {t.untyped_storage().data_ptr() for t in _tensors((args, kwargs))}
        results = _tensors(out)
        self._made |= (
            {t.untyped_storage().data_ptr() for t in results} - aliased - set(self._before)
        )

        def again() -> None:
            for old, new in zip(results, _tensors(func(*args, **kwargs)), strict=True):
                if old.untyped_storage().data_ptr() not in aliased:
                    old.copy_(new)

        self._graph.operations.append(again)
        return out

    def undo(self) -> None:
        for tensor, content in self._before.values():
            _whole(tensor).copy_(content)


def _tensors(tree: Any) -> list[Tensor]:
    return [each for each in tree_leaves(tree) if isinstance(each, Tensor)]


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _whole(tensor: Tensor) -> Tensor:
    """All of a tensor's memory."""
    return torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())


class Stream:
    """Notes which stream waits for which."""

    waits: list[tuple[Stream, Stream]]

    def __init__(self, *_: object) -> None:
        pass

    def wait_stream(self, other: Stream) -> None:
        Stream.waits.append((self, other))


@contextlib.contextmanager
def _graph(graph: Graph, pool: object, stream: Stream) -> Iterator[None]:
    states = [generator.get_state() for generator in graph.generators]
    recording = _Recording(graph)
    with recording:
        yield
    recording.undo()
    for generator, state in zip(graph.generators, states, strict=True):
        generator.set_state(state)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `torch.cuda` record and replay on a CPU."""
    Stream.waits = []
    for name, stand_in in {
        "CUDAGraph": Graph,
        "graph": _graph,
        "graph_pool_handle": object,
        "Stream": Stream,
        "stream": lambda _: contextlib.nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: tensor)
