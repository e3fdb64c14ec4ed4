"""What a GPU would do, seen on a CPU: where the host would wait for it, padding computed along."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_WAITING = {
    # A value decides what the host does next, or how large a tensor is.
    _aten._local_scalar_dense, _aten.equal, _aten.nonzero, _aten.masked_select, _aten._unique2,
    _aten.unique_dim, _aten.unique_consecutive, _aten.bincount, _aten.repeat_interleave,
    # Numbers of Python become a tensor, whose copy to a device waits.
    _aten.lift_fresh,
}  # fmt: skip
_INDEXING = {_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_}
_READING = ("cpu", "numpy", "tolist")  # on a CPU, they are no operations


class _Recorder(TorchDispatchMode):
    """Notes the waiting operations, those of a backward pass included."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self._found = found

    def __torch_dispatch__(
        self,
        op: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        packet = op.overloadpacket
        if packet in _WAITING or (packet in _INDEXING and any(map(_is_mask, args[1]))):
            self._found.append(str(op))
        return op(*args, **(kwargs or {}))


def _is_mask(index: Tensor | None) -> bool:
    """Whether an index is a mask, whose True places must be counted."""
    return index is not None and index.dtype in (torch.bool, torch.uint8)


@contextlib.contextmanager
def waits() -> Iterator[list[str]]:
    """The operations within that would wait for a device, as they are met."""
    found: list[str] = []

    def noted(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found.append(name)
            return method(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch, _Recorder(found):
        for name in _READING:
            patch.setattr(Tensor, name, noted(name, getattr(Tensor, name)))
        yield found


@contextlib.contextmanager
def waiting_refused() -> Iterator[None]:
    """In it, what makes this process wait for a GPU raises."""
    with warnings.catch_warnings():
        # Once a process, PyTorch warns that the mode does not see every wait.
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype feature")
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


@contextlib.contextmanager
def padding_computed() -> Iterator[None]:
    """Padding is computed along, see `study.paradigms.padding`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("study.paradigms.padding.is_left_out", lambda _: False)
        yield


Way = Callable[[], contextlib.AbstractContextManager[None]]
WAYS: Sequence[Way] = (contextlib.nullcontext, padding_computed)
"""Padding is left out of what is computed, as on a CPU, or computed along."""
