"""A directory with cells of every end, and what is read from it."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pandas as pd
import pytest

from study.cell import Cell
from study.results import Results, Survey
from tests.made_up.comparisons import make_results
from tests.made_up.tables import frames, write_some


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, list[Cell]]:
    """A directory with cells of every kind; directories of tests lie in it, too."""
    results = make_results(tmp_path_factory.mktemp("some"))
    return results, write_some(results)


@pytest.fixture(scope="module")
def read_from_some(
    some: tuple[Results, list[Cell]],
) -> Callable[..., tuple[list[pd.DataFrame], Survey]]:
    """All that is read of given cells, or of all; each once."""
    results, _ = some

    @functools.cache
    def read(*ids: str) -> tuple[list[pd.DataFrame], Survey]:
        return frames(results, ids or None), results.survey()

    return read
