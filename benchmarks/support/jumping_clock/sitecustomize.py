"""A wall clock that jumps: every Python process that has this folder on its PYTHONPATH reads it.

`time.time` is up to an hour before or after the truth, by another amount in each process, and
jumps every few seconds. Other clocks go on as they are: `time.monotonic`, that of the file system,
and `datetime.now`, by which the platform says when a cell ended.
"""

from __future__ import annotations

import functools
import os
import random
import time

FARTHEST = 3600.0
EVERY = 15.0

_time = time.time


@functools.lru_cache(maxsize=1)
def _shift(interval: int, pid: int) -> float:
    random_shift = random.Random(f"{os.environ['SOAK_SEED']} {interval} {pid}")
    return random_shift.uniform(-FARTHEST, FARTHEST)


def _jumping() -> float:
    return _time() + _shift(int(time.monotonic() / EVERY), os.getpid())


time.time = _jumping
time.time_ns = lambda: int(1e9 * _jumping())
