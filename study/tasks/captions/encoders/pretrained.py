"""Reads a file of pretrained weights and checks that they are those of an encoder."""

from __future__ import annotations

import hashlib
import pickle
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from study.errors import RequestError
from study.tasks.sources.reading import reading


def read_checked(
    file: Path, name: str, layers: Callable[[], nn.Module], prefix: str
) -> dict[str, Tensor]:
    """The weights of an encoder, as its `load_state_dict` takes them.

    The file may hold further entries, such as those of a classifier. Nothing is unpickled but
    tensors.

    Args:
        file: a state dict that `torch.save` wrote.
        name: of the encoder.
        layers: makes the layers of the encoder, for names and shapes.
        prefix: of their entries in a file that holds the whole network.

    Raises:
        RequestError: the file cannot be read, is damaged, or lacks an entry of the encoder.
    """
    stored = _stored(file)
    with torch.device("meta"):  # no values
        own = layers().state_dict()
    if next(iter(own)) in stored:
        prefix = ""
    for key, value in own.items():
        if fault := _fault(prefix + key, stored.get(prefix + key), value.shape):
            raise RequestError(
                f"{file} holds no weights of {name}: {fault}. Pass another file with --weights, "
                "or leave the option out."
            )
    # Copies, which outlive the file.
    return {
        f"layers.{key}": stored[prefix + key].to(value.dtype, copy=True)
        for key, value in own.items()
    }


def _fault(entry: str, value: Any, shape: torch.Size) -> str | None:
    if not isinstance(value, Tensor):
        return f"it lacks {entry}"
    if value.shape != shape:
        return f"its {entry} has shape {tuple(value.shape)}, not {tuple(shape)}"
    return None


def _stored(file: Path) -> Mapping[str, Any]:
    with (
        reading(file, "Pass a state dict of tensors with --weights, or leave the option out."),
        open(file, "rb") as opened,
        warnings.catch_warnings(action="ignore"),  # about a pickle that is refused anyway
    ):
        can_be_mapped = zipfile.is_zipfile(opened)  # files of the older format are read whole
        try:
            stored = torch.load(file, map_location="cpu", weights_only=True, mmap=can_be_mapped)
        except pickle.UnpicklingError as error:  # it advises to unpickle the file all the same
            raise ValueError("it is damaged, or holds more than tensors") from error
        return dict(stored)


def digest(weights: Mapping[str, Tensor]) -> str:
    """16 hexadecimal digits of names, shapes and values."""
    hashed = hashlib.sha256()
    for name, value in weights.items():
        hashed.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        hashed.update(value.numpy().tobytes())
    return hashed.hexdigest()[:16]
