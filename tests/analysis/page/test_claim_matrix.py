"""The matrix of claims holds each section's verdicts, whatever chapters they are of."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.conclude import conclude
from analysis.page.exports import claim_counts, claim_matrix, claim_rows, matrix_tables
from tests.made_up.chapters import brought
from tests.made_up.comparisons import make_results


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Of sections of every kind."""
    results = make_results(tmp_path_factory.mktemp("claims"))
    for each in brought().results.values():
        each.write(results)
    return claim_rows(conclude(results).sections)


def test_every_verdict_is_there_and_no_other(claims: pd.DataFrame) -> None:
    there = claim_matrix(claims).stack().dropna()
    where = ["chapter", "section", "setting", "claim"]
    rows = there.rename("verdict").reset_index()[[*where, "verdict"]]
    assert sorted(rows.to_numpy().tolist()) == sorted(claims[rows.columns].to_numpy().tolist())


def test_the_page_has_every_verdict_and_how_many_settings_have_it(claims: pd.DataFrame) -> None:
    matrix = claim_matrix(claims)
    rows = [row for table in matrix_tables(matrix).values() for row in table.rows]
    assert sum(mark != "" for _, *marks in rows for mark in marks) == len(claims)
    header, counts = claim_counts(matrix)
    for name, *numbers in counts:
        verdicts = [*claims.loc[claims["claim"] == name, "verdict"]]
        assert numbers == [str(verdicts.count(verdict)) for verdict in header[1:]]
