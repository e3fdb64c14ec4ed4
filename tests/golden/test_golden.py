"""Nothing has moved that the golden record holds; see `tests.golden`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import needs_data
from tests.golden import PARTS, rows


@pytest.mark.parametrize("name", [name for name in PARTS if name != rows.REAL.name])
def test_nothing_moved(name: str, tmp_path: Path) -> None:
    assert PARTS[name].differences(PARTS[name].made(tmp_path)) == []


@needs_data
def test_nothing_moved_on_real_data(tmp_path: Path) -> None:
    assert rows.REAL.differences(rows.REAL.made(tmp_path)) == []
