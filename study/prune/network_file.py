"""A network as a file brings it: its arrays by their roles, checked once, here.

`python -m study.prune --help` says what a file holds. Indices in messages count from 0, as they do
in NumPy and PyTorch.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.errors import RequestError, ResultsError
from study.prune.names import NPZ
from study.storage.stand_ins import refuse_stand_in
from study.theory.attention_paths import arguments
from study.theory.attention_paths.arguments import Floats

TOLERANCE = 1e-2
"""How far the sum of a row may be from 1, as in half precision; the row is divided by it."""

_ROLE = re.compile(r"(attention|outputs|gradients)\..*|inputs|labels|held_out")


@dataclass(frozen=True, eq=False)
class Network:
    """What a file holds, in float32 or float64.

    Attributes:
        attention: one (P, H_l, T, T) a layer, [query, key]; its rows sum to 1.
        inputs: (P, T, F); None: not in the file.
        labels: (P,), of which the theory takes two classes; None: not in the file.
        held_out: (P,), the samples that choose the temperature.
        outputs: one (P, H_l, ...) a layer; None: not in the file.
        gradients: as outputs.
        ignored: names of arrays that have no role.
    """

    attention: list[Floats]
    inputs: Floats | None
    labels: Floats | None
    held_out: NDArray[np.bool_]
    outputs: list[Floats] | None
    gradients: list[Floats] | None
    ignored: list[str]

    @property
    def heads(self) -> tuple[int, ...]:
        """(H_1, ..., H_L)."""
        return tuple(layer.shape[1] for layer in self.attention)


def read(file: Path) -> Network:
    """Reads a file and checks all that has a role.

    Raises:
        RequestError: the file cannot be read, or an array is missing, of a wrong shape or of wrong
            values; the message names it and says what to do.
    """
    arrays, ignored = _loaded(file)
    if not (layers := sum(name.startswith("attention.") for name in arrays)):
        there = ", ".join([*arrays, *ignored]) or "nothing"
        raise RequestError(
            f"attention.1 is missing: the file holds {there}. "
            "Save the attention of each layer as attention.1, attention.2, ..."
        )
    attention, outputs, gradients = (
        _by_layer(group, arrays, layers) for group in ("attention", "outputs", "gradients")
    )
    _require_shape("attention.1", attention[0], "samples", "heads", "queries", "keys")
    samples, _, _, tokens = attention[0].shape
    if min(samples, tokens) < 2:
        raise RequestError(
            f"attention must have at least 2 samples and 2 tokens, got {attention[0].shape}."
        )
    for number, maps in enumerate(attention, start=1):
        _require_shape(f"attention.{number}", maps, samples, "heads", tokens, tokens)
        _divide_by_sums(f"attention.{number}", maps)
    for number, (output, maps) in enumerate(zip(outputs, attention, strict=False), start=1):
        _require_shape(f"outputs.{number}", output, samples, maps.shape[1], "...")
    for number, (gradient, output) in enumerate(zip(gradients, outputs, strict=False), start=1):
        _require_shape(f"gradients.{number}", gradient, *output.shape)
    if (inputs := arrays.get("inputs")) is not None:
        _require_shape("inputs", inputs, samples, tokens, "features")
    if (labels := arrays.get("labels")) is not None:
        _require_shape("labels", labels, samples)
    held_out = arrays.get("held_out", np.arange(samples) >= samples - max(1, samples // 4))
    _require_shape("held_out", held_out, samples)
    if set(np.unique(held_out)) != {0, 1}:
        raise RequestError("held_out must be true of some samples and false of the others.")
    return Network(
        attention=attention,
        inputs=inputs,
        labels=labels,
        held_out=held_out.astype(bool),
        outputs=outputs or None,
        gradients=gradients or None,
        ignored=ignored,
    )


def _loaded(file: Path) -> tuple[dict[str, Floats], list[str]]:
    """The arrays that have a role, and the names of the others; nothing pickled is loaded."""
    stored: Mapping[str, Any]
    try:
        refuse_stand_in(file)
        arguments.fits(file.stat().st_size, "reading it")
        if file.suffix.lower() == NPZ:
            zipfile.ZipFile(file).close()  # NumPy would take a lone array, too
            stored = np.load(file, allow_pickle=False)
        else:
            from safetensors.torch import load_file

            stored = load_file(file)
        names = sorted(stored)
        found = {name: _plain(stored, name) for name in names if _ROLE.fullmatch(name)}
    except ResultsError:
        raise
    except Exception as error:  # of many types: by the file system, zipfile, zlib, safetensors
        raise RequestError(
            f"{file} cannot be read ({error}). Save it again, as arrays of numbers."
        ) from error
    arrays = {name: _numbers(name, array) for name, array in found.items()}
    return arrays, [name for name in names if name not in found]


def _plain(stored: Mapping[str, Any], name: str) -> np.ndarray:
    """An array as NumPy has it; NumPy has no bfloat16."""
    try:
        array = stored[name]
    except ValueError as error:  # of Python objects, such as labels that are names
        raise ValueError(f"{name}: {error}") from error
    if isinstance(array, np.ndarray):
        return array
    return (array.float() if array.element_size() == 2 else array).numpy()


def _numbers(name: str, array: np.ndarray) -> Floats:
    """In float32, or in float64 if float32 does not hold it."""
    if array.dtype.kind not in "biuf" or not array.size:
        raise RequestError(
            f"{name} must be real numbers, got {array.size} of the type {array.dtype}. Cast it."
        )
    numbers = array.astype(np.result_type(array, np.float32), copy=False)
    if not (finite := np.isfinite(numbers)).all():
        where = tuple(map(int, np.argwhere(~finite)[0]))
        raise RequestError(
            f"{name} must be finite, got {numbers[where]:g} at {list(where)} of the shape "
            f"{array.shape}. Leave such samples out."
        )
    return numbers


def _by_layer(group: str, arrays: Mapping[str, Floats], layers: int) -> list[Floats]:
    """The arrays of a group, the first layer first; none if the file has none."""
    found = {name for name in arrays if name.startswith(f"{group}.")}
    names = [f"{group}.{number}" for number in range(1, layers + 1)]
    if found and found != set(names):
        raise RequestError(
            f"{group} must be named {names[0]} to {names[-1]}, one for each layer of attention, "
            f"got {', '.join(sorted(found))}."
        )
    return [arrays[name] for name in names if found]


def _require_shape(name: str, array: Floats, *expected: int | str) -> None:
    """A word stands for an axis of any length, "..." for one or more of them."""
    shape = array.shape[: len(expected)] if expected[-1] == "..." else array.shape
    pairs = zip(expected, shape, strict=False)
    fits = all(isinstance(length, str) or length == got for length, got in pairs)
    if len(shape) != len(expected) or not fits:
        wanted = str(expected).replace("'", "")
        raise RequestError(
            f"{name} must have the shape {wanted} to fit the attention, got {array.shape}."
        )


def _divide_by_sums(name: str, maps: Floats) -> None:
    """Divides the rows [p, h, t] by their sums, in place."""
    sums = maps.sum(axis=3, keepdims=True, dtype=np.float64)
    wrong = (np.abs(sums - 1) > TOLERANCE) | (maps.min(axis=3, keepdims=True) < 0)
    if wrong.any():
        sample, head, query, _ = where = tuple(map(int, np.argwhere(wrong)[0]))
        transposed = (np.abs(maps.sum(axis=2) - 1) <= TOLERANCE).all()
        raise RequestError(
            f"{name}: every row must be >= 0 and sum to 1 (to {TOLERANCE:g}), got the sum "
            f"{sums[where]:.6g} and the least entry {maps[where[:3]].min():.3g} in sample "
            f"{sample}, head {head}, query {query}. "
            + (
                "Columns sum to 1 instead: transpose the last two axes."
                if transposed
                else "Save what the softmax over the last axis gives, before dropout."
            )
        )
    maps /= sums
