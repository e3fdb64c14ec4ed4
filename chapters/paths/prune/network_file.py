"""The arrays of a file by their roles, checked once, here.

`attention-study prune --help` says what a file holds. Indices in messages count from 0, as they do
in NumPy and PyTorch.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chapters.paths.attention_paths import arguments
from chapters.paths.prune.prune_options import NPZ
from study.errors import RequestError
from study.tasks.sources.reading import reading

TOLERANCE = 1e-2
"""How far the sum of a row may be from 1, as in half precision; the row is divided by it."""

Arrays = dict[str, list[np.ndarray]]
"""Role -> its arrays in float32 or float64, the first layer first; none: not in the file.

Outputs and gradients are (samples, heads, numbers).
"""

_HEADS = "heads of layer {}"

_AXES = {
    "attention": ("samples", _HEADS, "tokens", "tokens"),
    "inputs": ("samples", "tokens", "features"),
    "labels": ("samples",),
    "held_out": ("samples",),
    "outputs": ("samples", _HEADS),
    "gradients": ("samples", _HEADS),
}
"""Role -> axes; those of one name are of one length. Outputs and gradients may have more."""


def read(file: Path) -> tuple[Arrays, list[str]]:
    """Reads a file and checks all that has a role; what is held out becomes bool.

    Returns:
        The arrays, and the names of those without a role, of which nothing is read.

    Raises:
        RequestError: the file cannot be read, or an array is missing, of a wrong shape or of wrong
            values; the message names it and says what to do.
    """
    arrays = {}
    try:
        with reading(file, "See `python -m chapters.paths.prune --help`."):
            arguments.fits(file.stat().st_size, "reading it")
            stored = _opened(file)
            for name in sorted(stored):
                if name.partition(".")[0] in _AXES:
                    with reading(f"{name} in {file}", "Save it again, as an array of numbers."):
                        arrays[name] = np.asarray(stored[name])
            return _by_role(arrays, sorted(stored)), sorted(stored.keys() - arrays.keys())
    except MemoryError as error:
        raise RequestError(f"{file}: {error}") from error


def _opened(file: Path) -> Mapping[str, Any]:
    """What is stored by name, but nothing pickled; bfloat16, which NumPy lacks, as float32."""
    if file.suffix.lower() == NPZ:
        zipfile.ZipFile(file).close()  # NumPy takes a lone array, and leaves broken files open
        return np.load(file, allow_pickle=False)
    import torch
    from safetensors.torch import load_file

    tensors = load_file(file).items()
    return {name: t.float() if t.dtype == torch.bfloat16 else t for name, t in tensors}


def _by_role(loaded: Mapping[str, np.ndarray], names: Sequence[str]) -> Arrays:
    """Checks all arrays; each tells lengths of axes that the next must have.

    Args:
        loaded: by name.
        names: of all arrays of the file, for messages.

    Raises:
        ValueError: one is not as `--help` says.
    """
    layers = range(1, 1 + max(1, sum(name.startswith("attention.") for name in loaded)))
    arrays: Arrays = {}
    lengths: dict[str, int] = {}
    for role, axes in _AXES.items():
        own = {f"{role}.{layer}": layer for layer in layers} if _HEADS in axes else {role: 0}
        found = {name for name in loaded if name.partition(".")[0] == role}
        if found != own.keys() and (found or role == "attention"):
            raise ValueError(
                f"{role} must be named {', '.join(own)}; the file holds "
                f"{', '.join(names) or 'nothing'}"
            )
        arrays[role] = []
        for name in own if found else ():
            array, axes_of_layer = loaded[name], [axis.format(own[name]) for axis in axes]
            if role in ("outputs", "gradients"):
                dimensions = loaded.get(f"outputs.{own[name]}", array).ndim
                axes_of_layer += [f"axis {axis} of {own[name]}" for axis in range(2, dimensions)]
            lengths = arguments.require_finite(name, array, axes_of_layer, **lengths)
            array = array.astype(np.result_type(array, np.float32), copy=False)
            if role == "attention":
                sums = arguments.require_shares(name, array, 3, "sample, head, query", TOLERANCE)
                array /= sums[..., None]
            elif _HEADS in axes:
                array = array.reshape(*array.shape[:2], -1)
            arrays[role].append(array)
    samples = lengths["samples"]
    if min(samples, lengths["tokens"]) < 2:
        raise ValueError("attention must have at least 2 samples and 2 tokens")
    last_quarter = np.arange(samples) >= samples - max(1, samples // 4)
    (held_out,) = arrays["held_out"] or [last_quarter]
    if set(np.unique(held_out)) != {0, 1}:
        raise ValueError("held_out must be true of some samples and false of the others")
    return arrays | {"held_out": [held_out.astype(bool)]}
