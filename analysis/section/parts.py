"""Blocks that sections of all kinds share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.groups import paradigm_order
from analysis.section.blocks import Block, Code, Heading, Table, Text
from analysis.section.claim import RULES, Claim, tallied
from study import tasks
from study.results import CAPTIONING, FURTHER, HEADS, NETWORK, OF_DATA, SOLUTION

LONG_COLUMNS = ["cell", "package_versions", "data_notes"]
"""Long columns of cells, nearly the same in every row."""

_WRAPPED = ("claim of the paper", "where", "measured")  # columns of claims


def without_long_columns(cells: pd.DataFrame, task: str = "") -> pd.DataFrame:
    """Trained cells without long columns, and without those that are of other modalities only.

    Args:
        cells: rows of `cells`, maybe with their metrics.
        task: of all of them; empty: of mosaics.
    """
    modality = tasks.modality(task)
    own = {measure.column for measure in modality.measures}
    own |= {tasks.POSTS: {"foreground_share"}, tasks.CAPTIONS: {*CAPTIONING}}.get(modality, set())
    if task in tasks.TASKS:
        own |= tasks.TASKS[task].options.keys()
    others = {*OF_DATA, *CAPTIONING, *FURTHER} - own
    return cells.drop(
        columns=[*LONG_COLUMNS, *NETWORK, *SOLUTION, *HEADS, *others], errors="ignore"
    )


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
        Text(f"{RULES} How each of them is tested:"),
        *(Text(test, "quiet") for test in tests),
    ]


def chapter_head(
    heading: str, lead: str, found: Mapping[str, str], claims: Sequence[Claim]
) -> list[Block]:
    """The head of a chapter: what is asked, what was found in each section, and every verdict.

    Args:
        heading: of the chapter.
        lead: what is asked, or what theory says.
        found: title of a section -> one paragraph; empty ones are left out.
        claims: of all sections.
    """
    return [
        Heading(heading, 2),
        Text(lead, "lead"),
        *(Text(f"{title}. {text}") for title, text in found.items() if text),
        *verdict_blocks(sorted(claims, key=lambda claim: claim.name)),
    ]


def verdict_blocks(claims: Sequence[Claim]) -> list[Block]:
    """What stands above the sections of a chapter: every claim with its verdict, and a count."""
    if not claims:
        return []
    rows = [
        [*name_and_statement, claim.setting, claim.verdict]
        for claim, name_and_statement in zip(claims, named_once(claims), strict=True)
    ]
    header = ["", "claim of the paper", "where", "on this data"]
    return [Text(tallied(claims), "lead"), Table(header, rows, range(4), wrap=(1, 2))]


def named_once(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    """Name and statement of each claim; the statement is empty where the one before has it."""
    before = ["", *(claim.statement for claim in claims)]
    return [
        (claim.name, "" if claim.statement == last else claim.statement)
        for claim, last in zip(claims, before, strict=False)
    ]


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
    blocks: list[Block] = [
        Heading("Cells by end state"),
        Table([name, "ended as", "cells"], rows, left=(0, 1)),
    ]
    early = cells[cells["status"] != "done"]
    if len(early):
        names = ["cell_id", name, size, "seed", "status", "status_reason"]
        rows = [[_text(value) for value in row] for row in early[names].to_numpy()]
        header = ["cell", name, size.replace("_", " "), "seed", "ended as", "reason"]
        blocks.append(Table(header, rows, left=(0, 1, 4, 5), wrap=(5,)))
    return blocks


def _text(value: Any) -> str:
    """``10``, ``done``; ``-`` where it is missing."""
    if pd.isna(value) or value == "":
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def repeat_blocks(
    cell_id: str, results: str, text: str = "Every cell is in cells.csv."
) -> list[Block]:
    """The command that runs a cell again; `text` says where the others are."""
    return [
        Heading("Repeat any cell"),
        Text(
            "Runs the cell again and compares it with what is recorded; with --data-dir DIR "
            f"where the study had it. {text}"
        ),
        Code(f"uv run python -m study.repeat {shlex.quote(results)} {cell_id}"),
    ]
