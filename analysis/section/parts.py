"""Blocks that sections of all kinds share."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pandas as pd

from analysis.groups import paradigm_order
from analysis.section.blocks import Block, Code, Heading, Table, Text
from analysis.section.claim import Claim
from study.results import RATIONALES

LONG_COLUMNS = ["cell", "package_versions", "data_notes"]
"""Long columns of cells, nearly the same in every row."""

TEXT_COLUMNS = ["label_rule", "rationale_rule", "min_count", *RATIONALES]
"""Columns of cells that apply to text only."""

_WRAPPED = ("claim of the paper", "where", "measured")  # columns of claims


def without_long_columns(cells: pd.DataFrame, is_text: bool = False) -> pd.DataFrame:
    """The cells without long columns, for tables; columns of text only if `is_text`."""
    dropped = LONG_COLUMNS if is_text else [*LONG_COLUMNS, *TEXT_COLUMNS]
    return cells.drop(columns=dropped, errors="ignore")


def stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of the same columns stacked; empty ones do not change the types of others."""
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]


def claim_blocks(claims: Sequence[Claim]) -> list[Block]:
    """Every claim with its verdict and numbers, and how each is tested; none without claims."""
    if not claims:
        return []
    where = len({claim.setting for claim in claims}) > 1  # the heading names a single one
    columns = {
        "": [claim.name for claim in claims],
        "claim of the paper": [statement for _, statement in named_once(claims)],
        "where": [claim.setting for claim in claims],
        "on this data": [claim.verdict for claim in claims],
        "measured": [claim.measured for claim in claims],
    }
    blocks: list[Block] = [Heading("Claims of the paper")]
    if not where:
        del columns["where"]
    elif len({claim.statement for claim in claims}) == 1:  # said once, above the table
        blocks.append(Text(f"{claims[0].name}: {claims[0].statement}"))
        del columns[""], columns["claim of the paper"]
    wrap = [i for i, name in enumerate(columns) if name in _WRAPPED]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    tests = dict.fromkeys(f"{claim.name}: {claim.test}" for claim in claims)
    return [
        *blocks,
        Table(list(columns), rows, left=range(len(columns)), wrap=wrap),
        Text("How each of them is tested:"),
        *(Text(test, "quiet") for test in tests),
    ]


def named_once(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    """Name and statement of each claim; the statement is empty where the one before has it."""
    before = ["", *(claim.statement for claim in claims)]
    return [
        (claim.name, "" if claim.statement == last else claim.statement)
        for claim, last in zip(claims, before, strict=False)
    ]


def end_states(cells: pd.DataFrame) -> list[Block]:
    """How the cells of each paradigm ended, counted, and why some ended early."""
    rows = []
    for name in paradigm_order(cells["paradigm"]):
        counts = cells.loc[cells["paradigm"] == name, "status"].value_counts().sort_index()
        rows += [[name, str(status), str(count)] for status, count in counts.items()]
    blocks: list[Block] = [
        Heading("Cells by end state"),
        Table(["paradigm", "ended as", "cells"], rows, left=(0, 1)),
    ]
    early = cells[cells["status"] != "done"]
    if len(early):
        names = ["cell_id", "paradigm", "m", "seed", "status", "status_reason"]
        rows = [[str(value or "-") for value in row] for row in early[names].to_numpy()]
        header = ["cell", "paradigm", "m", "seed", "ended as", "reason"]
        blocks.append(Table(header, rows, left=(0, 1, 4, 5), wrap=(5,)))
    return blocks


def repeat_blocks(
    cell_id: str, results: str, text: str = "Every cell is in cells.csv."
) -> list[Block]:
    """The command that trains a cell again; `text` says where the others are."""
    return [
        Heading("Repeat any cell"),
        Text(
            "Trains the cell again and compares it with what is recorded; with --data-dir DIR "
            f"where the study had it. {text}"
        ),
        Code(f"uv run python -m study.repeat {shlex.quote(results)} {cell_id}"),
    ]
