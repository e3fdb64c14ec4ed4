"""The comparisons of `tests.made_up.settings`, which several files of tests read."""

from __future__ import annotations

import pytest

from analysis.conclude import Conclusions, conclude
from analysis.digest.compare import Comparison
from analysis.page.comparisons import Compared
from tests.made_up.comparisons import make_results
from tests.made_up.settings import write_settings


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Conclusions:
    """Of all three settings."""
    results = make_results(tmp_path_factory.mktemp("three"))
    write_settings(results)
    return conclude(results)


@pytest.fixture(scope="session")
def compared(three: Conclusions) -> list[Comparison]:
    """In the order of m."""
    return [each.comparison for each in three.sections if isinstance(each, Compared)]
