"""The digest that names what is content-addressed: cells, files, folders of a cache."""

from __future__ import annotations

import hashlib


def hashed(content: bytes) -> str:
    """16 hexadecimal digits that stand for some bytes."""
    return hashlib.sha256(content).hexdigest()[:16]
