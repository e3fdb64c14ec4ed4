"""Seeds of random streams, from named components."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence

from study.cell.grouped import grouped


def stream_seed(*components: object) -> int:
    """A 63-bit seed from named components, e.g. ``stream_seed("order", seed, epoch)``.

    Different names give independent streams; equal names give equal streams on every machine.
    """
    digest = hashlib.sha256("\x1f".join(map(str, components)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def share_of_each(
    labels: Sequence[int],
    share: float,
    *components: object,
    contents: Iterable[Hashable] | None = None,
) -> list[int]:
    """Rows of a share of each class, drawn by hash, so by no library's random numbers.

    Args:
        labels: of all rows.
        share: of the rows of each class, rounded.
        components: names of the draw, see `stream_seed`.
        contents: of all rows; those of equal content count once and are drawn together. None: all
            differ.
    """
    first: dict[Hashable, int] = {}
    firsts = [
        first.setdefault(content, row)
        for row, content in enumerate(range(len(labels)) if contents is None else contents)
    ]
    drawn: set[int] = set()
    for each in grouped(first.values(), lambda row: labels[row]).values():
        in_order = sorted(each, key=lambda row: stream_seed(*components, row))
        drawn.update(in_order[: round(share * len(each))])
    return [row for row, one in enumerate(firsts) if one in drawn]
