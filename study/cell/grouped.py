"""Cells, or whatever else, by what some of them have in common."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def grouped(
    items: Iterable[T], by: Callable[[T], Any] = operator.attrgetter("group")
) -> dict[Any, list[T]]:
    """What items have in common -> those that have it, in their order.

    Args:
        items: cells, say.
        by: gives it; of cells, by default their group.
    """
    groups: dict[Any, list[T]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return groups
