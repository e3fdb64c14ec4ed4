"""What stands above and below the sections of a report: what it is about, the answer, the method.

A page of comparisons asks a question and answers it. A page of learning dynamics has no winner to
name: it says what it shows, and which of the paper's claims hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from analysis.comparison.compare import Comparison
from analysis.comparison.report.frame import question
from analysis.section.base import Dynamics
from analysis.section.blocks import Block, Heading, Table, Text
from analysis.section.claim import Claim
from analysis.section.parts import named_once

_DYNAMICS = (
    "How the paradigms learn, not which one is better: nothing in these sections is compared at "
    "equal compute."
)
RUNNING = (
    "A command is running with these results: where it is a study, the numbers are partial, of "
    "the cells that have ended so far. Make the report again when it has ended."
)
_VERBS = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "undecided": ("is undecided", "are undecided"),
    "not run": ("was not run", "were not run"),
}


def title(
    found: Sequence[Comparison], dynamics: Sequence[Dynamics], study: str | None = None
) -> str:
    """Of the page: what it is about, and the studies whose cells it shows."""
    tables = _cells(found, dynamics)
    names = [study] if study else sorted({name for cells in tables for name in cells["study"]})
    about = ["Attention at equal compute"] * bool(found) + ["learning dynamics"] * bool(dynamics)
    text = " and ".join(about) if found else "Learning dynamics of attention"
    return f"{text}: {', '.join(names)}"


def missing(
    found: Sequence[Comparison],
    dynamics: Sequence[Dynamics],
    cell_ids: Collection[str] | None,
) -> list[str]:
    """Says how many of the cells that were asked for have no result."""
    wanted = set(cell_ids or ())
    present = {cell_id for cells in _cells(found, dynamics) for cell_id in cells["cell_id"]}
    lost = len(wanted - present)
    if not lost:
        return []
    return [f"{lost} of {len(wanted)} planned cells have no result: they failed or have not run."]


def head(
    found: Sequence[Comparison],
    dynamics: Sequence[Dynamics],
    notes: Sequence[str],
    running: bool = False,
) -> list[Block]:
    """What the page answers, and what has to be known to understand it."""
    blocks: list[Block] = [Text(RUNNING, "warning")] if running else []
    blocks += [*question(found), *_shown(dynamics)]
    return [*blocks, *(Text(note, "quiet") for note in notes)]


def _cells(found: Sequence[Comparison], dynamics: Sequence[Dynamics]) -> list[pd.DataFrame]:
    return [*(each.cells for each in found), *(each.cells for each in dynamics)]


def _shown(dynamics: Sequence[Dynamics]) -> list[Block]:
    if not dynamics:
        return []
    claims = [claim for each in dynamics for claim in each.claims()]
    rows = [
        [*name_and_statement, claim.setting, claim.verdict]
        for claim, name_and_statement in zip(claims, named_once(claims), strict=True)
    ]
    table = Table(["", "claim of the paper", "where", "on this data"], rows, range(4), wrap=(1, 2))
    blocks: list[Block] = [Heading("Learning dynamics", 2), Text(_DYNAMICS, "lead")]
    blocks += [Text(f"{each.title} ({len(each.cells)} cells).") for each in dynamics]
    return [*blocks, Text(_count(claims), "lead"), table] if claims else blocks


def _count(claims: Sequence[Claim]) -> str:
    """``Of 12 tests of the paper's claims 5 hold (C7, C8), 2 ...``"""
    parts = []
    for verdict in _VERBS:
        mine = [claim.name for claim in claims if claim.verdict == verdict]
        if mine:
            names = ", ".join(dict.fromkeys(mine))
            parts.append(f"{len(mine)} {_VERBS[verdict][len(mine) > 1]} ({names})")
    tests = "1 test" if len(claims) == 1 else f"{len(claims)} tests"
    return f"Of {tests} of the paper's claims, {', '.join(parts)}."
