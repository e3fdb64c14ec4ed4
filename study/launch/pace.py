"""How long packs of cells take: as estimated, then as packs like them took."""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from study.cell import AnyCell
from study.errors import RequestError
from study.kinds import kind_of
from study.train.steps import packs

MARGIN = 1.1
"""What a pack may take over its estimate."""


class Pace:
    """Says whether a pack would end in time.

    Packs are alike if their cells differ in seed and learning rates only.

    Args:
        estimates: cell id -> seconds of the cell alone.
        seconds: until the end; infinite: there is no hurry.
        clock: in seconds.
    """

    def __init__(
        self,
        estimates: Mapping[str, float],
        seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._estimates = estimates
        self._clock = clock
        self._end = clock() + seconds
        self._known: defaultdict[str, dict[int, float]] = defaultdict(dict)
        self._slowness = 1.0

    def learn(self, cells: pd.DataFrame) -> None:
        """Learns from cells that trained to their end, on this device and with as many threads.

        Args:
            cells: rows of `study.results.CELLS_SCHEMA`, of any study. Their times include what
                they took before a checkpoint.
        """
        for row in cells[(cells["status"] == "done") & ~cells["shared_prefix"]].to_dict("records"):
            try:
                cell = kind_of(row).cell.from_dict(json.loads(row["cell"]))
            except (ValueError, RequestError):  # of a paradigm not given, or trained elsewhere
                continue
            seconds, of_size = row["total_seconds"], self._known[_key(cell)]
            of_size[row["pack"]] = max(seconds, of_size.get(row["pack"], 0.0))
            if cell.id in self._estimates:
                slowness = seconds / row["pack"] / self._estimates[cell.id]
                self._slowness = max(self._slowness, slowness)

    def seconds(self, pack: Sequence[AnyCell]) -> float:
        """What a pack takes at most: its cells one after the other, or as packs like it took."""
        of_size = self._known.get(_key(pack[0]), {})
        if len(pack) in of_size:
            return MARGIN * of_size[len(pack)]
        scaled = (took * max(1, len(pack) / size) for size, took in of_size.items())
        return MARGIN * min([self._slowness * self._alone(pack), *scaled])

    def in_time(self, pack: Sequence[AnyCell]) -> int:
        """How many cells of a pack, the first ones, would end in time as one pack."""
        left = self._end - self._clock()
        sizes = range(len(pack), 0, -1)
        return next((size for size in sizes if self.seconds(pack[:size]) <= left), 0)

    def _alone(self, pack: Sequence[AnyCell]) -> float:
        return sum(self._estimates[cell.id] for cell in pack)


def _key(cell: AnyCell) -> str:
    return packs.key(cell, packs.AXES["seed,lr"])
