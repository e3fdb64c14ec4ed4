"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(
    holds: Callable[[], object],
    told: Callable[[], str] = lambda: "it never came",
    seconds: float = 300.0,
) -> None:
    """Waits until something holds.

    Args:
        holds: asked again and again.
        told: why it may not hold; the text of the failure.
        seconds: after which it fails.
    """
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, told()
        time.sleep(0.1)
