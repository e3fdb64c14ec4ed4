"""Seeds of random streams, from named components."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def stream_seed(*components: object) -> int:
    """A 63-bit seed from named components, e.g. ``stream_seed("order", seed, epoch)``.

    Different names give independent streams; equal names give equal streams on every machine.
    """
    digest = hashlib.sha256("\x1f".join(map(str, components)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def share_of_each(labels: Sequence[int], share: float, *components: object) -> list[int]:
    """Rows of a share of each class, drawn by hash, so by no library's random numbers.

    Args:
        labels: of all rows.
        share: of the rows of each class, rounded.
        components: names of the draw, see `stream_seed`.
    """
    rows: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        rows.setdefault(label, []).append(row)
    found = []
    for each in rows.values():
        drawn = sorted(each, key=lambda row: stream_seed(*components, row))
        found += drawn[: round(share * len(each))]
    return found
