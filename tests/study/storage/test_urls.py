"""Places by their names: databases as SQLAlchemy finds them, home directories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import example, given
from hypothesis import strategies as st

from study.errors import RequestError
from study.results import report_folder
from study.storage.storage import Storage
from study.storage.urls import absolute, sqlite_url
from study.tasks.sources.cache import CACHE_VARIABLE, cache_root, default_cache_dir

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1)


@given(NAMES)
@example("w?q=1&x")
@example("w%20x")
@example("a b#1@é:+")
def test_sqlalchemy_finds_the_file(name: str) -> None:
    path = Path("/results", name, "mlflow.db")
    assert sqlalchemy.make_url(sqlite_url(path)).database == str(path)


@pytest.mark.parametrize("name", ["results", "a b", "a&b", "résultats"])
def test_a_name_that_needs_no_quotes_stays_readable(name: str) -> None:
    assert sqlite_url(Path("/", name, "optuna.db")) == f"sqlite:////{name}/optuna.db"


@pytest.mark.parametrize("opens", [absolute, cache_root, report_folder, Storage])
def test_an_unknown_home_is_refused_and_no_folder_is_named_after_it(
    opens: Callable[[str], object],
) -> None:
    with pytest.raises(RequestError, match=r"^~nobody-of-this-name/results lies in a home"):
        opens("~nobody-of-this-name/results")


@pytest.mark.usefixtures("homeless")
def test_without_a_home_the_cache_has_no_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    with pytest.raises(RequestError, match="set HOME"):
        default_cache_dir()
