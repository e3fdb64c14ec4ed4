"""Nothing has moved that the golden record holds; see `tests.golden`.

A test of each piece, as xdist hands them out one by one, see tests/conftest.py.
"""

from __future__ import annotations

import pytest

from tests.conftest import needs_data
from tests.golden import PARTS, rows

PIECES = [
    pytest.param(
        part,
        piece,
        id=f"{part.name} {piece}".strip(),
        marks=needs_data if part is rows.REAL else (),
    )
    for part in PARTS.values()
    for piece in part.made
]


@pytest.mark.parametrize(("part", "piece"), PIECES)
def test_nothing_moved(part, piece, tmp_path):
    assert part.differences(piece, part.made[piece](tmp_path)) == []
