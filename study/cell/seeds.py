"""Seeds of random streams, from named components."""

from __future__ import annotations

import hashlib


def stream_seed(*components: object) -> int:
    """A 63-bit seed from named components, e.g. ``stream_seed("order", seed, epoch)``.

    Different names give independent streams; equal names give equal streams on every machine.
    """
    digest = hashlib.sha256("\x1f".join(map(str, components)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
