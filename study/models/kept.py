"""Trained networks that are kept: for cells that take them apart, and for whoever asks for them.

A results directory keeps one file a network, `networks/<cell_id>.safetensors`: its weights by
their names in the model's state. Equal weights make equal files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from study.errors import RequestError
from study.storage.storage import Storage

FOLDER = "networks"


def file_of(cell_id: str) -> str:
    """The file of a network in its results directory."""
    return f"{FOLDER}/{cell_id}.safetensors"


def keep(storage: Storage, cell_id: str, weights: Mapping[str, Tensor]) -> str:
    """Writes a network and returns the digest of its weights.

    Raises:
        ResultsError: it cannot be written.
    """
    from safetensors.torch import save  # of whoever keeps networks alone

    # The format takes neither weights that share memory nor another order of axes in memory.
    tensors = {
        name: weight.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, weight in weights.items()
    }
    storage.write(file_of(cell_id), save(tensors))
    return digest(tensors)


def digest(weights: Mapping[str, Tensor]) -> str:
    """16 hexadecimal digits that stand for the weights of a network."""
    found = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        found.update(f"{name}\0{tuple(weight.shape)}\0".encode())
        found.update(np.ascontiguousarray(weight.detach().cpu().numpy()).tobytes())
    return found.hexdigest()[:16]


def load(storage: Storage, cell_id: str) -> dict[str, Tensor]:
    """Reads a network.

    Raises:
        RequestError: it is missing or damaged.
        ResultsError: it cannot be read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load as tensors_of

    name = file_of(cell_id)
    mend = (
        "Copy it from where the cell was trained, or train in another directory (--results DIR)."
    )
    try:
        return tensors_of(storage.read(name))
    except FileNotFoundError as error:
        raise RequestError(f"{storage.url} lacks the network {name}. {mend}") from error
    except SafetensorError as error:
        raise RequestError(f"{storage.path(name)} is damaged ({error}). {mend}") from error
