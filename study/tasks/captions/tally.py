"""Counts what was left out of a data set or mended in it, and names the first of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

NAMED = 3
"""How many of each sort are named."""

# Why something is left out, in the order of the report.
MISSING_IMAGES = "missing images"
DAMAGED_IMAGES = "damaged images"
BARE_IMAGES = "images without captions"
WORDLESS = "captions without words"
STRAY_CAPTIONS = "captions of unlisted images"
STRAY_BOXES = "boxes of unlisted images"
OUTSIDE = "boxes outside their images"
LEFT_OUT = (
    MISSING_IMAGES, DAMAGED_IMAGES, BARE_IMAGES, WORDLESS, STRAY_CAPTIONS, STRAY_BOXES, OUTSIDE,
)  # fmt: skip

# What is taken in spite of a fault.
CUT = "boxes cut at the edge of their images"
OTHER_SIZE = "images of another size than annotated, whose boxes are scaled"
MENDED = (CUT, OTHER_SIZE)


class Tally:
    """Counts by sort.

    Attributes:
        counts: sort -> how many.
        first: sort -> names of the first ones, at most `NAMED`.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, list[str]] = {}

    def add(self, sort: str, name: str) -> None:
        """Counts one of a sort, which has a name."""
        self.counts[sort] += 1
        named = self.first.setdefault(sort, [])
        if len(named) < NAMED:
            named.append(name)

    def listed(self, sorts: Sequence[str]) -> str:
        """Those of these sorts for people, such as "missing images: 2 (a.jpg, b.jpg)"."""
        return "; ".join(
            f"{sort}: {self.counts[sort]:,} ({self._named(sort)})"
            for sort in sorts
            if self.counts[sort]
        )

    def _named(self, sort: str) -> str:
        names = self.first[sort]
        return ", ".join([*names, "..."] if self.counts[sort] > len(names) else names)
