"""Checks the arrays of a brought network, some samples at a time; a wrong one is refused.

Indices in messages count from 0, as they do in NumPy and PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from study.errors import RequestError
from study.theory.attention_paths.checks import COLUMN_TOLERANCE, Floats

if TYPE_CHECKING:
    from study.prune.arrays import Stored

Bools = NDArray[np.bool_]

HALF_TOLERANCE = 1e-2
"""How far the sum of a row of attention in half precision may be from 1; it is divided by it."""

_BYTES_AT_ONCE = 2**26
"""Of an array in float64."""

_MAPS = "(samples, heads, queries, keys)"


def attention(name: str, stored: Stored, first: np.ndarray) -> None:
    """Attention of a layer, (P, H, T, T), >= 0; every row [p, h, t] sums to 1.

    Args:
        name: of the array.
        stored: with its precision.
        first: the attention of the first layer, which has equally many samples and tokens.

    Raises:
        RequestError: it is not.
    """
    array = stored.values
    _shaped(name, array, 4, _MAPS)
    samples, _, queries, keys = array.shape
    if queries != keys:
        raise RequestError(
            f"{name} must have as many queries as keys, got {queries} and {keys}: save the "
            "attention of all tokens to all tokens, without a cut or a cache."
        )
    if samples < 2:
        raise RequestError(f"{name} must have at least 2 samples, got 1. Save more of them.")
    if keys < 2:
        raise RequestError(f"{name} must have at least 2 tokens, got 1: there is no choice.")
    if (samples, keys) != (len(first), first.shape[-1]):
        raise RequestError(
            f"{name} has {samples} samples of {keys} tokens, but attention.1 has {len(first)} of "
            f"{first.shape[-1]}. Save the same samples and tokens of every layer."
        )
    tolerance = HALF_TOLERANCE if stored.half else COLUMN_TOLERANCE
    for start, part in _parts(array):
        _finite(name, part, start, array)
        if part.min() < 0:
            where = _place(part < 0, start)
            raise RequestError(
                f"{name} must be >= 0, got {array[where]:g} at {list(where)} of {_MAPS}. Save the "
                "attention after the softmax."
            )
        sums = part.sum(axis=3)
        wrong = np.abs(sums - 1) > tolerance
        if wrong.any():
            sample, head, query = _place(wrong, start)
            of_one = sums[sample - start, head, query]
            columns = np.abs(part.sum(axis=2) - 1) <= tolerance
            raise RequestError(
                f"{name}: every row must sum to 1 (to {tolerance:g}), got {of_one:.6g} in sample "
                f"{sample}, head {head}, query {query}. "
                + (
                    "Columns sum to 1 instead: transpose the last two axes."
                    if columns.all()
                    else f"The axes are {_MAPS}, with the softmax over the last one, before "
                    "dropout. Divide attention that was cast from half precision by its sums."
                )
            )


def rows(stored: Stored, part: slice) -> Floats:
    """Attention (p, H, T, T) of some samples; its rows sum to 1.

    Args:
        stored: of a layer, checked.
        part: of the samples.
    """
    maps = stored.values[part].astype(np.float64)
    return maps / maps.sum(axis=3, keepdims=True) if stored.half else maps


def inputs(name: str, array: np.ndarray, samples: int, tokens: int) -> None:
    """(P, T, F), finite.

    Raises:
        RequestError: it is not.
    """
    axes = "(samples, tokens, features)"
    _shaped(name, array, 3, axes)
    _same(name, array, {"samples": samples, "tokens": tokens}, axes)
    _all_finite(name, array)


def of_heads(name: str, array: np.ndarray, maps: Sequence[int]) -> None:
    """What heads put out, or its gradients: (P, H, ...), finite.

    Args:
        name: of the array.
        array: its values.
        maps: the shape of the layer's attention.

    Raises:
        RequestError: it is not.
    """
    axes = "(samples, heads, ...)"
    if array.ndim < 3:
        raise RequestError(f"{name} must have the axes {axes}, got the shape {array.shape}.")
    _shaped(name, array, array.ndim, axes)
    _same(name, array, {"samples": maps[0], "heads": maps[1]}, axes)
    _all_finite(name, array)


def labels(name: str, array: np.ndarray, samples: int) -> Floats:
    """Labels as -1 and +1, (P,).

    Raises:
        RequestError: they are neither -1 and +1 nor 0 and 1.
    """
    found = _flat(name, array, samples)
    values = set(np.unique(found).tolist())
    if values <= {-1.0, 1.0}:
        return found
    if values <= {0.0, 1.0}:
        return 2 * found - 1
    some = ", ".join(f"{value:g}" for value in sorted(values)[:4])
    raise RequestError(
        f"{name} must be -1 and +1, or 0 and 1, got {some}{', ...' if len(values) > 4 else ''}: "
        "the theory is of two classes."
    )


def held_out(name: str, array: np.ndarray | None, samples: int) -> Bools:
    """The samples that choose the temperature, (P,): as given, or the last quarter.

    Raises:
        RequestError: they are not booleans, or all samples or none.
    """
    if array is None:
        return np.arange(samples) >= samples - max(1, samples // 4)
    found = _flat(name, array, samples)
    if not set(np.unique(found).tolist()) <= {0.0, 1.0}:
        raise RequestError(f"{name} must be true or false. Save it as bool.")
    if found.all() or not found.any():
        which = "all" if found.all() else "none"
        raise RequestError(f"{name} must be true of some samples, got {which}.")
    return found.astype(bool)


def _flat(name: str, array: np.ndarray, samples: int) -> Floats:
    """(P,) finite; booleans as 0 and 1."""
    axes = "(samples,)"
    values = array.astype(np.float64) if array.dtype == bool else array
    _shaped(name, values, 1, axes, "iuf")
    _same(name, values, {"samples": samples}, axes)
    _all_finite(name, values)
    return values.astype(np.float64)


def _shaped(name: str, array: np.ndarray, count: int, axes: str, kinds: str = "f") -> None:
    if array.dtype.kind not in kinds or array.dtype.itemsize > 8:
        raise RequestError(
            f"{name} must be float16, bfloat16 (.safetensors), float32 or float64"
            f"{' or whole numbers' if 'i' in kinds else ''}, got {array.dtype}. Cast it."
        )
    if array.ndim != count or not array.size:
        raise RequestError(
            f"{name} must have the axes {axes}, none empty, got the shape {array.shape}."
        )


def _same(name: str, array: np.ndarray, counts: Mapping[str, int], axes: str) -> None:
    """Refuses an array whose first axes are not as long as those of attention."""
    if array.shape[: len(counts)] != tuple(counts.values()):
        expected = " and ".join(f"{count} {word}" for word, count in counts.items())
        raise RequestError(
            f"{name} must have {expected}, as attention has, got the shape {array.shape} of the "
            f"axes {axes}. Save the same ones."
        )


def _all_finite(name: str, array: np.ndarray) -> None:
    for start, part in _parts(array):
        _finite(name, part, start, array)


def _finite(name: str, part: Floats, start: int, array: np.ndarray) -> None:
    wrong = ~np.isfinite(part)
    if wrong.any():
        where = _place(wrong, start)
        raise RequestError(
            f"{name} must be finite, got {array[where]:g} at {list(where)} of the shape "
            f"{array.shape}. Leave such samples out, or save what came before the NaN."
        )


def _place(wrong: Bools, start: int) -> tuple[int, ...]:
    """The first index of what is wrong, in the whole array."""
    sample, *others = (int(index) for index in np.argwhere(wrong)[0])
    return (sample + start, *others)


def parts(samples: int, values_a_sample: int) -> list[slice]:
    """Samples that are converted to float64 at once."""
    step = max(1, _BYTES_AT_ONCE // (8 * values_a_sample))
    return [slice(start, min(start + step, samples)) for start in range(0, samples, step)]


def _parts(array: np.ndarray) -> Iterator[tuple[int, Floats]]:
    for part in parts(len(array), array[0].size):
        yield part.start, array[part].astype(np.float64)
