"""Blocks that sections of all kinds share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.groups import paradigm_order
from analysis.rules.claim import RULES, Claim
from analysis.section.blocks import Block, Code, Details, Heading, Points, Table, Text
from analysis.section.picture import Picture


def claim_blocks(claims: Sequence[Claim]) -> list[Block]:
    """Every claim with its verdict, a line each; none without claims."""
    if not claims:
        return []
    where = len({claim.setting for claim in claims}) > 1  # the page names a single one
    rows = [
        [claim.name, claim.verdict, *[claim.setting] * where, statement]
        for claim, statement in zip(claims, _said_once(claims), strict=True)
    ]
    header = ["claim", "on this data", *["where"] * where, "of the paper"]
    columns = range(len(header))
    return [
        Heading("Claims of the paper"),
        Table(header, rows, columns, wrap=columns[2:], csv="claims.csv"),
    ]


def claim_details(claims: Sequence[Claim]) -> list[Block]:
    """What was measured of every claim and how it was tested, folded; none without claims."""
    if not claims:
        return []
    columns = {
        "claim": [claim.name for claim in claims],
        "where": [claim.setting for claim in claims],
        "measured": [claim.measured for claim in claims],
    }
    if not any(columns["where"]):
        del columns["where"]
    rows = [*zip(*columns.values(), strict=True)]
    tests = dict.fromkeys(f"{claim.name}: {claim.test}" for claim in claims)
    left = range(len(columns))
    table = Table([*columns], rows, left, wrap=left[1:], csv="claims.csv")
    return [Details("How the claims were tested", [table, Text(RULES), Points([*tests])])]


def _said_once(claims: Sequence[Claim]) -> list[str]:
    """The statement of each claim; empty where the one before has it."""
    texts = [claim.statement for claim in claims]
    return ["" if text == last else text for text, last in zip(texts, ["", *texts], strict=False)]


def end_states(cells: pd.DataFrame, name: str = "paradigm", size: str = "m") -> list[Block]:
    """How the cells of each paradigm ended, counted, and why some ended early.

    Args:
        cells: rows of `cells`.
        name: the column whose values are counted.
        size: the column that is shown beside it where a cell ended early.
    """
    rows = []
    for value in paradigm_order(cells[name]):
        counts = cells.loc[cells[name] == value, "status"].value_counts().sort_index()
        rows += [[value, str(status), str(count)] for status, count in counts.items()]
    header = [name, "ended as", "cells"]
    blocks: list[Block] = [Table(header, rows, left=(0, 1), csv="cells.csv")]
    early = cells[cells["status"] != "done"]
    if len(early):
        names = ["cell_id", name, size, "seed", "status", "status_reason"]
        rows = [[_text(value) for value in row] for row in early[names].to_numpy()]
        header = ["cell", name, size.replace("_", " "), "seed", "ended as", "reason"]
        blocks.append(Table(header, rows, left=(0, 1, 4, 5), wrap=(5,), csv="cells.csv"))
    return blocks


def _text(value: Any) -> str:
    """``10``, ``done``; ``-`` where it is missing."""
    if pd.isna(value) or value == "":
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def again_blocks(cell: pd.Series, results: str) -> list[Block]:
    """The command that runs a cell again; `cell` is its row of `study.results.CELLS_SCHEMA`."""
    return [
        Text(
            "Runs the cell again and compares it with what is recorded; with --data-dir DIR and "
            "--with FILE where the study had them. Every cell is in cells.csv."
        ),
        Code(
            f"uv run python -m study.run {shlex.quote(cell['study'])} --again {cell['cell_id']} "
            f"--results {shlex.quote(results)}"
        ),
    ]


def run_files(tables: Mapping[str, pd.DataFrame], drawn: Sequence[Picture]) -> dict[str, bytes]:
    """Path -> content of pictures (PNG), where runs are compared, and tables (CSV)."""
    files = {f"{picture.name}.png": picture.png for picture in drawn}
    return files | {
        f"tables/{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()
    }
