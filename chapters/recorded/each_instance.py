"""What runs got on each test instance: a measure whose value is a list of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.results import Instances, ResultsError, as_seen

_BITS = {"accuracy": "right", "saif": "saif"}
"""Measure -> the name of what each instance got, where it is not that of the measure."""


def apart(table: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Takes the lists out of the columns of measures, in place; their means stay there.

    Returns:
        The lists, (n,) float64, in these columns and rows; None where a value is none.

    Raises:
        ResultsError: a list holds what is no finite number, none at all, or, on the test split,
            another number of values than others; the message names the row.
    """
    found: dict[str, dict[Any, NDArray[np.float64]]] = {name: {} for name in measures}
    count = 0
    for name in measures:
        means: dict[Any, float] = {}
        for row in table.index[[_is_list(value) for value in table[name]]]:
            values = _numbers(table.loc[row, name])
            where = f"row {row}: {name}"
            if values is None or not len(values) or not np.isfinite(values).all():
                raise ResultsError(
                    f"{where} is a list of other things than a number for each test instance. "
                    "Leave out what is not known of all."
                )
            if table["split"][row] == "test":
                count = count or len(values)
                if len(values) != count:
                    raise ResultsError(
                        f"{where} has {len(values)} values, another has {count}: all runs are "
                        "tested on the same instances, in one order."
                    )
                found[name][row] = values
            means[row] = float(values.mean())
        if means:
            table[name] = [means.get(row, value) for row, value in table[name].items()]
    of_each = {
        name: pd.Series([mine.get(row) for row in table.index], table.index, dtype=object)
        for name, mine in found.items()
    }
    return pd.DataFrame(of_each, table.index)


def instances_of(
    lists: pd.DataFrame, given: Mapping[str, Sequence[Any]] | None
) -> tuple[Instances | None, str | None]:
    """The instances of a table of runs, and what they are of; None: not known.

    Args:
        lists: as `apart` gives them.
        given: what each test instance belongs to, by what people call these, in the plural; None:
            each stands for itself.

    Raises:
        ResultsError: it is no such mapping, there are no lists, or they are of another length.
    """
    found = lists.stack().dropna()
    if given is None:
        if found.empty:
            return None, None
        return Instances(np.arange(len(found.iloc[0]), dtype=np.int64)[:, None]), None
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ResultsError(
            "instances says what each test instance belongs to, by what these are, such as "
            f"instances={{'users': [...]}}, got {given!r:.60}."
        )
    ((draws, names),) = given.items()
    if found.empty:
        raise ResultsError(
            "instances are given, but no measure has a list of what each test instance got."
        )
    ids = [hashlib.sha256(str(name).encode()).digest()[:8] for name in names]
    if len(ids) != len(found.iloc[0]):
        raise ResultsError(
            f"instances has {len(ids)} {draws}, the lists of measures {len(found.iloc[0])} values."
        )
    held = np.frombuffer(b"".join(ids), "<i8")
    return Instances(held[:, None]), as_seen(str(draws))


def columns_of(lists: Mapping[Any, Any], graded: Sequence[str]) -> dict[str, Any]:
    """The columns of `study.results.INSTANCES` of one evaluation; empty: it has no lists.

    Args:
        lists: measure -> what each instance got, or None.
        graded: measures that are more than true or false of some instance.
    """
    known = {_BITS.get(name, name): each for name, each in lists.items() if each is not None}
    if not known:
        return {}
    numbers = {_BITS.get(name, name) for name in graded}
    count = len(next(iter(known.values())))
    bits = {name: _packed(each > 0) for name, each in known.items() if name not in numbers}
    own = {f"instance_{name}": bits.pop(name) for name in _BITS.values() if name in bits}
    return own | {
        "num_evaluated": count,
        "instance_known": _packed(np.ones(count, bool)),
        "instance_bits": bits or None,
        "instance_numbers": {name: known[name] for name in numbers.intersection(known)} or None,
    }


def graded(lists: pd.DataFrame) -> list[str]:
    """The measures that are more than true or false of some instance."""
    return [
        str(name)
        for name, column in lists.items()
        if any(not np.isin(each, (0, 1)).all() for each in column.dropna())
    ]


def _is_list(value: Any) -> bool:
    return np.ndim(value) > 0 if not isinstance(value, str | bytes) else False


def _numbers(value: Any) -> NDArray[np.float64] | None:
    """(n,) of a list, array or tensor; None: it is none of numbers."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def _packed(bits: NDArray[np.bool_]) -> bytes:
    return np.packbits(bits).tobytes()
