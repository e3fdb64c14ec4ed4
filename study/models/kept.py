"""Trained networks that are kept: for cells that take them apart, and for whoever asks for them.

A results directory keeps one file a network, `networks/<cell_id>.safetensors`: its weights by
their names in the model's state, and as metadata what else it takes to ask it
(`study.tasks.task.carried`). Equal weights make equal files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from study.errors import RequestError
from study.storage.storage import Storage

FOLDER = "networks"

_CARRIED = "attention-study"
"""The one entry of the metadata: JSON."""


def file_of(cell_id: str) -> str:
    """The file of a network in its results directory."""
    return f"{FOLDER}/{cell_id}.safetensors"


def keep(
    storage: Storage, cell_id: str, weights: Mapping[str, Tensor], carried: Mapping[str, Any]
) -> str:
    """Writes a network, and what it carries, and returns the digest of its weights.

    Raises:
        ResultsError: it cannot be written.
    """
    from safetensors.torch import save  # of whoever keeps networks alone

    # The format takes neither weights that share memory nor another order of axes in memory.
    tensors = {
        name: weight.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, weight in weights.items()
    }
    metadata = {_CARRIED: json.dumps(carried, sort_keys=True)}
    storage.write(file_of(cell_id), save(tensors, metadata))
    return digest(tensors)


def digest(weights: Mapping[str, Tensor]) -> str:
    """16 hexadecimal digits that stand for the weights of a network."""
    found = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        found.update(f"{name}\0{tuple(weight.shape)}\0".encode())
        found.update(np.ascontiguousarray(weight.detach().cpu().numpy()).tobytes())
    return found.hexdigest()[:16]


def load(storage: Storage, cell_id: str) -> dict[str, Tensor]:
    """Reads the weights of a network; errors as of `read`."""
    return read(storage, cell_id)[0]


def read(storage: Storage, cell_id: str) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    """Reads a network: its weights, and what it carries; None: it was kept without that.

    Raises:
        RequestError: it is missing or damaged.
        ResultsError: it cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load as tensors_of

    name = file_of(cell_id)
    mend = "Copy it from where the cell was trained, or train in another results directory."
    try:
        data = storage.read(name)
        weights = tensors_of(data)
    except FileNotFoundError as error:
        raise RequestError(f"{storage.url} lacks the network {name}. {mend}") from error
    except SafetensorError as error:
        raise RequestError(f"{storage.path(name)} is damaged ({error}). {mend}") from error
    # Its length in 8 bytes, then JSON: of what is in memory safetensors gives no metadata.
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    carried = header.get("__metadata__", {}).get(_CARRIED)
    return weights, carried and json.loads(carried)
