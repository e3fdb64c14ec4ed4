"""Does a claim hold in every setting? Claims C1 to C17 beside all settings of a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pandas as pd

from analysis.section.blocks import Block, Heading, Table, Text
from analysis.section.claim import Claim, Verdict
from analysis.section.section import Section, by_chapter
from study.terminal import counted

_NUMBERED = re.compile(r"C[0-9]+")
_MARKS: dict[Verdict, str] = {
    "holds": "holds",
    "does not hold": "fails",
    "undecided": "open",
    "not run": "-",
}
"""Short, so that all claims stand side by side."""


def claim_matrix(sections: Sequence[Section]) -> pd.DataFrame:
    """The verdict of every claim in every setting.

    Args:
        sections: of the page, of any chapters.

    Returns:
        One row a setting: `chapter`, `setting` and `key` (of its
        section), then one column a claim that occurs, C1 first, with its verdict; missing where
        the claim does not speak of the setting. Empty with fewer than two sections that have
        such claims.
    """
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for chapter, name, section in _named(sections):
        for claim in _numbered(section):
            key = (chapter, claim.setting or name, section.key)
            rows.setdefault(key, {})[claim.name] = claim.verdict
    if len({key for _, _, key in rows}) < 2:
        return pd.DataFrame()
    claims = sorted(
        {name for row in rows.values() for name in row}, key=lambda name: int(name[1:])
    )
    heads = (dict(zip(("chapter", "setting", "key"), key, strict=True)) for key in rows)
    table = [head | row for head, row in zip(heads, rows.values(), strict=True)]
    return pd.DataFrame(table, columns=["chapter", "setting", "key", *claims], dtype=object)


def matrix_blocks(sections: Sequence[Section]) -> list[Block]:
    """The matrix on the page, a table a chapter, with a count below; none where it is empty."""
    matrix = claim_matrix(sections)
    if matrix.empty:
        return []
    blocks: list[Block] = [
        Heading("Do the claims of the paper generalise?", 2),
        Text(
            "Every claim in every setting: it holds, fails (does not hold), is open (undecided) "
            "or was not run (-). The last row counts: holds / fails / open."
        ),
    ]
    titles = {(section.key, name): section.title for _, name, section in _named(sections)}
    places = zip(matrix["key"], matrix["setting"], strict=True)
    matrix["setting"] = [titles.get(place, place[1]) for place in places]
    chapters = matrix["chapter"].unique()
    for chapter in chapters:
        rows = matrix[matrix["chapter"] == chapter]
        blocks += [Text(f"{chapter}:")] * (len(chapters) > 1)
        blocks.append(_table(rows.dropna(axis="columns", how="all")))
    return blocks


def matrix_lines(sections: Sequence[Section]) -> list[str]:
    """``C6 holds in 9, fails in 0, undecided in 7 of 16 settings``, a line a claim."""
    matrix = claim_matrix(sections)
    lines = []
    for name in _claims(matrix):
        counts = Counter(matrix[name].dropna())
        not_run = f", not run in {counts['not run']}" if counts["not run"] else ""
        lines.append(
            f"{name} holds in {counts['holds']}, fails in {counts['does not hold']}, undecided in "
            f"{counts['undecided']}{not_run} of {counted(counts.total(), 'setting')}"
        )
    return lines


def _table(rows: pd.DataFrame) -> Table:
    claims = _claims(rows)
    marks = rows[claims].replace(_MARKS).fillna("")
    cells = [[name, *row] for name, row in zip(rows["setting"], marks.to_numpy(), strict=True)]
    counts = ["holds / fails / open"]
    for name in claims:
        found = Counter(marks[name])
        counts.append(" / ".join(str(found[mark]) for mark in ("holds", "fails", "open")))
    columns = range(len(claims) + 1)
    return Table(
        ["setting", *claims],
        [*cells, counts],
        left=columns,
        marked=[len(cells)],
        wrap=(0,),
        csv="claim_matrix.csv",
    )


def _claims(matrix: pd.DataFrame) -> list[str]:
    """The columns that are claims."""
    return [str(name) for name in matrix if _NUMBERED.fullmatch(str(name))]


def _named(sections: Sequence[Section]) -> Iterator[tuple[str, str, Section]]:
    """Name of the chapter, short name and section, of each."""
    for chapter, mine in by_chapter(sections):
        for section, name in chapter.names(mine).items():
            yield chapter.name, name, section


def _numbered(section: Section) -> list[Claim]:
    return [claim for claim in section.claims if _NUMBERED.fullmatch(claim.name)]
