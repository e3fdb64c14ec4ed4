"""Networks that are kept when their cell has trained, for cells that take them apart.

A results directory keeps one file a network, `networks/<cell_id>.npz`: its weights by their names
in the model's state, as NumPy arrays.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from study.errors import RequestError
from study.storage.storage import Storage

FOLDER = "networks"


def file_of(cell_id: str) -> str:
    """The file of a network in its results directory."""
    return f"{FOLDER}/{cell_id}.npz"


def keep(storage: Storage, cell_id: str, weights: Mapping[str, Tensor]) -> None:
    """Writes a network.

    Raises:
        ResultsError: it cannot be written.
    """
    buffer = io.BytesIO()
    arrays = {name: weight.detach().cpu().numpy() for name, weight in weights.items()}
    np.savez(buffer, allow_pickle=False, **arrays)
    storage.write(file_of(cell_id), buffer.getvalue())


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
    name = file_of(cell_id)
    mend = (
        "Copy it from where the cell was trained, or train in another directory (--results DIR)."
    )
    try:
        with np.load(io.BytesIO(storage.read(name)), allow_pickle=False) as arrays:
            return {key: torch.from_numpy(arrays[key]) for key in arrays.files}
    except FileNotFoundError as error:
        raise RequestError(f"{storage.url} lacks the network {name}. {mend}") from error
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        where = storage.path(name)
        raise RequestError(f"{where} is damaged ({error}). {mend}") from error
