"""URLs of databases: SQLAlchemy finds the file that was meant, whatever its name."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import example, given
from hypothesis import strategies as st

from study.storage.urls import sqlite_url

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
