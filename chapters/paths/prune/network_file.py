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
from study.errors import RequestError, ResultsError
from study.storage.stand_ins import refuse_stand_in

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
        The arrays, and the names of those without a role.

    Raises:
        RequestError: the file cannot be read, or an array is missing, of a wrong shape or of wrong
            values; the message names it and says what to do.
    """
    loaded, others = _loaded(file)
    try:
        return _by_role(loaded, others), others
    except ValueError as error:
        raise RequestError(f"{error} See `python -m chapters.paths.prune --help`.") from error


def _loaded(file: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays that have a role, and the names of the others; nothing pickled is loaded."""
    stored: Mapping[str, Any]
    arrays, name = {}, "its start"
    try:
        refuse_stand_in(file)
        arguments.fits(file.stat().st_size, "reading it")
        if file.suffix.lower() == NPZ:
            zipfile.ZipFile(file).close()  # NumPy takes a lone array, and leaves broken files open
            stored = np.load(file, allow_pickle=False)
        else:
            from safetensors.torch import load_file

            stored = load_file(file)
        for name in sorted(stored):
            if name.partition(".")[0] in _AXES:
                array = stored[name]
                if str(array.dtype) == "torch.bfloat16":  # which NumPy does not have
                    array = array.float()
                array = np.asarray(array)
                if array.dtype.kind in "biuf":
                    array = array.astype(np.result_type(array, np.float32), copy=False)
                arrays[name] = array
    except ResultsError:
        raise
    except Exception as error:  # of many types: by the file system, zipfile, zlib, safetensors
        raise RequestError(
            f"{file} cannot be read (at {name}: {error}). Save it again, as arrays of numbers."
        ) from error
    return arrays, sorted(set(stored) - set(arrays))


def _by_role(loaded: Mapping[str, np.ndarray], others: Sequence[str]) -> Arrays:
    """Checks all arrays; each tells lengths of axes that the next must have.

    Raises:
        ValueError: one is not as `--help` says.
    """
    layers = range(1, 1 + max(1, sum(name.startswith("attention.") for name in loaded)))
    arrays: Arrays = {}
    lengths: dict[str, int] = {}
    for role, axes in _AXES.items():
        names = [f"{role}.{layer}" for layer in layers] if _HEADS in axes else [role]
        found = {name for name in loaded if name.partition(".")[0] == role}
        if found != set(names) and (found or role == "attention"):
            raise ValueError(
                f"{role} must be named {', '.join(names)}; the file holds "
                f"{', '.join([*loaded, *others]) or 'nothing'}."
            )
        arrays[role] = []
        for layer, name in enumerate(names if found else [], 1):
            array = loaded[name]
            own = [axis.format(layer) for axis in axes]
            if role in ("outputs", "gradients"):
                axes_of_outputs = loaded.get(f"outputs.{layer}", array).ndim
                own += [f"axis {axis} of layer {layer}" for axis in range(2, axes_of_outputs)]
            arguments.require_finite(name, array, own, **lengths)
            lengths |= dict(zip(own, array.shape, strict=True))
            if role == "attention":
                _divide_by_sums(name, array)
            elif _HEADS in axes:
                array = array.reshape(*array.shape[:2], -1)
            arrays[role].append(array)
    samples = lengths["samples"]
    if min(samples, lengths["tokens"]) < 2:
        raise ValueError("attention must have at least 2 samples and 2 tokens.")
    last_quarter = np.arange(samples) >= samples - max(1, samples // 4)
    (held_out,) = arrays["held_out"] or [last_quarter]
    if set(np.unique(held_out)) != {0, 1}:
        raise ValueError("held_out must be true of some samples and false of the others.")
    arrays["held_out"] = [held_out.astype(bool)]
    return arrays


def _divide_by_sums(name: str, maps: np.ndarray) -> None:
    """Divides the rows [sample, head, query] by their sums, in place."""
    sums, least = maps.sum(axis=3, dtype=np.float64), maps.min(axis=3)
    wrong = np.argwhere((np.abs(sums - 1) > TOLERANCE) | (least < 0)).tolist()
    if wrong:
        where = tuple(wrong[0])
        advice = "Save what the softmax over the last axis gives, before dropout."
        if np.allclose(maps.sum(axis=2), 1, atol=TOLERANCE):
            advice = "Columns sum to 1 instead: transpose the last two axes."
        raise ValueError(
            f"{name}: every row must be >= 0 and sum to 1 (to {TOLERANCE}), got the sum "
            f"{sums[where]:.6g} and the least entry {least[where]:.3g} in [sample, head, query] "
            f"{wrong[0]}. {advice}"
        )
    maps /= sums[..., None]
