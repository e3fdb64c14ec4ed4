"""The digest of a whole Parquet file, kept in the file's own metadata.

Parquet's checksums are of the data of pages. A flipped bit in the header of a page, or in the
footer, may change what is read, unseen.
"""

from __future__ import annotations

import hashlib

KEY = b"attention_study_sha256"
BLANK = b"0" * 64
"""Stands for the digest while the file is written, and when it is digested."""


def with_digest(data: bytes) -> bytes:
    """A file that was written with `BLANK` under `KEY`, with its digest there instead."""
    return _replaced(data, BLANK, _digest(data))


def is_whole(data: bytes, digest: bytes) -> bool:
    """Whether a file is what was written, by the digest that its metadata have."""
    return _digest(_replaced(data, digest, BLANK)) == digest


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _replaced(data: bytes, there: bytes, by: bytes) -> bytes:
    """The file with another digest; metadata are at its end."""
    before, _, after = data.rpartition(there)
    return before + by + after
