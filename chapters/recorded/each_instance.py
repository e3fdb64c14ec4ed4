"""What runs got on each test instance: a measure whose value is a list of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.results import Instances, ResultsError, as_seen

_BITS = {"accuracy": "right", "saif": "saif"}
"""Measure -> what each instance got, where that has a column."""


def apart(table: pd.DataFrame, shares: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """Takes the lists out of the columns of measures, in place; their means stay there.

    Args:
        table: of runs.
        shares: measures that are fractions, of each instance, too.
        others: all others.

    Returns:
        The lists of the test split, (n,) float64, in these rows; missing where a value is none. A
        column is called as what each instance got.

    Raises:
        ResultsError: a list holds what is no finite number, or no fraction, none at all, or, on
            the test split, another number of values than others; the message names the row.
    """
    lists = table[[*shares, *others]].map(_listed)
    every: Any = lists.stack().dropna()
    for (row, name), values in every.items():
        if not (values.ndim == 1 and len(values) and np.isfinite(values).all()):
            raise ResultsError(
                f"row {row}: {name} is a list of other things than a number for each test "
                "instance. Leave out what is not known of all."
            )
        if name in shares and not ((values >= 0) & (values <= 1)).all():
            raise ResultsError(f"row {row}: {name} is a list of others than fractions in [0, 1].")
    for name in lists.columns[lists.notna().any()]:
        means = lists[name].map(np.mean, na_action="ignore")
        table[name] = means.where(means.notna(), table[name])
    lists = lists.where(table["split"].eq("test"))
    counts: Any = lists.stack().dropna().map(len)
    for (row, name), count in counts[counts != counts.max()].items():
        raise ResultsError(
            f"row {row}: {name} has {count} values, another has {counts.max()}: all runs are "
            "tested on the same instances, in one order."
        )
    return lists.rename(columns=_BITS)


def instances_of(
    lists: pd.DataFrame, given: Mapping[str, Sequence[Any]] | None
) -> tuple[Instances | None, dict[str, str]]:
    """The instances of a table of runs; and, of those that are known, `of` and `digest`.

    Args:
        lists: as `apart` gives them.
        given: what each test instance belongs to, by what people call these, in the plural; None:
            each stands for itself.

    Raises:
        ResultsError: it is no such mapping, or not as long as the lists.
    """
    count = max(lists.stack().dropna().map(len), default=0)
    if given is None and not count:
        return None, {}
    if given is None:
        given = {"": range(count)}
    if not isinstance(given, Mapping) or len(given) != 1 or not _are_names(*given.values()):
        raise ResultsError(
            "instances says what each test instance belongs to, by what these are, such as "
            f"instances={{'users': [...]}}, each a number or text, got {given!r:.60}."
        )
    ((draws, names),) = given.items()
    if len(names) != count:
        raise ResultsError(
            f"instances has {len(names)} {draws}, the lists of measures {count} values: a measure "
            "has a list of what each test instance got."
        )
    texts = [f"{name:g}" if isinstance(name, Real) else as_seen(name) for name in names]
    ids = b"".join(hashlib.sha256(text.encode()).digest()[:8] for text in texts)
    digest = hashlib.sha256(ids).hexdigest()[:16]
    held = Instances(np.frombuffer(ids, "<i8")[:, None].copy())
    return held, {"of": as_seen(str(draws)), "digest": digest}


def _are_names(names: Any) -> bool:
    """Whether it is a list of numbers and text, of which none is missing."""
    is_list = hasattr(names, "__len__") and not isinstance(names, str | Mapping)
    return is_list and all(isinstance(n, str) or (isinstance(n, Real) and n == n) for n in names)


def columns_of(lists: Mapping[Any, Any], graded: Sequence[str]) -> dict[str, Any]:
    """The columns of `study.results.INSTANCES` of one evaluation; empty: it has no lists.

    Args:
        lists: measure -> what each instance got, or what is missing.
        graded: measures that are more than true or false of some instance.
    """
    known = {name: each for name, each in lists.items() if isinstance(each, np.ndarray)}
    if not known:
        return {}
    count = len(next(iter(known.values())))
    bits = {name: _packed(each > 0) for name, each in known.items() if name not in graded}
    numbers = {name: each for name, each in known.items() if name in graded}
    own = {f"instance_{name}": bits.pop(name) for name in _BITS.values() if name in bits}
    return own | {
        "num_evaluated": count,
        "instance_known": _packed(np.ones(count, bool)),
        "instance_bits": bits or None,
        "instance_numbers": numbers or None,
    }


def graded(lists: pd.DataFrame) -> list[str]:
    """The measures that are more than true or false of some instance."""
    beyond = lists.map(lambda each: not np.isin(each, (0, 1)).all(), na_action="ignore")
    return [str(name) for name in beyond if beyond[name].eq(True).any()]


def _listed(value: Any) -> NDArray[np.float64] | None:
    """A list, array or tensor as numbers, of which what is none is NaN; None: it is no list."""
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return None
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return np.array([np.nan])


def _packed(bits: NDArray[np.bool_]) -> bytes:
    return np.packbits(bits).tobytes()
