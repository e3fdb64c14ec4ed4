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

_time, _time_ns = time.time, time.time_ns


@functools.lru_cache(maxsize=1)
def _shift(interval: int, pid: int) -> float:
    return random.Random(f"{os.environ['SOAK_SEED']} {interval} {pid}").uniform(-1, 1) * FARTHEST


def _shift_now() -> float:
    return _shift(int(time.monotonic() / EVERY), os.getpid())


time.time = lambda: _time() + _shift_now()
time.time_ns = lambda: _time_ns() + int(1e9 * _shift_now())
