"""Does a claim hold in every setting? The rows of `claims.csv`, pivoted."""

from __future__ import annotations

import pandas as pd

from analysis.section.blocks import Block, Heading, Table, Text

_MARKS = {"holds": "holds", "does not hold": "fails", "undecided": "open", "not run": "-"}
"""Verdict -> a short word, so that all claims stand side by side."""


def claim_matrix(claims: pd.DataFrame) -> pd.DataFrame:
    """The verdict of every claim in every setting.

    Args:
        claims: as `analysis.page.exports.claim_rows` gives them.

    Returns:
        One row per setting, indexed by `chapter`, `section` and `setting`, and one column per
        claim with its verdict; missing where the claim does not speak of the setting. Empty where
        fewer than two sections have claims.
    """
    if claims.empty or claims["section"].nunique() < 2:
        return pd.DataFrame()
    settings = claims.set_index(["chapter", "section", "setting", "claim"])["verdict"]
    return settings.unstack(sort=False)


def claim_counts(matrix: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and rows for print: in how many settings a claim got each verdict."""
    counts = matrix.apply(pd.Series.value_counts).reindex([*_MARKS]).fillna(0).astype(int).T
    return ["claim", *counts], counts.reset_index().astype(str).to_numpy().tolist()


def matrix_blocks(matrix: pd.DataFrame) -> list[Block]:
    """The matrix on the page, a table per chapter, and its counts; none where it is empty."""
    if matrix.empty:
        return []
    blocks: list[Block] = [
        Heading("Do the claims of the paper generalise?", 2),
        Text(
            "Every claim in every setting: it holds, fails (does not hold), is open (undecided) "
            "or was not run (-). Below, in how many settings."
        ),
    ]
    for chapter, verdicts in matrix.groupby(level="chapter", sort=False):
        marks = verdicts.dropna(axis="columns", how="all").replace(_MARKS).fillna("")
        rows = marks.reset_index("setting").to_numpy().tolist()
        columns = range(len(marks.columns) + 1)
        table = Table(["setting", *marks], rows, columns, wrap=(0,), csv="claim_matrix.csv")
        blocks += [Text(f"{chapter}:"), table]
    return [*blocks, Table(*claim_counts(matrix), csv="claims.csv")]
