"""What stands above and below the sections of a report: what it is about, the answer, the method.

A page of comparisons asks a question and answers it. A page of learning dynamics has no winner to
name: it says what it shows, and which of the paper's claims hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from analysis.answer import QUESTION, answer
from analysis.claims import Claim
from analysis.comparison import Comparison
from analysis.dynamics import Dynamics
from analysis.labels import instances, made_equal
from analysis.page import Block, Heading, Table, Text
from analysis.rationales import data_notes, share_notes
from analysis.sections import named_once
from analysis.table_one import flat_header, table_one_cells, table_one_notes

_METHOD = (
    "Equal compute: all cells of a comparison are cut at one fraction of their budget, where "
    "their compute differs by less than a step. Where something else is made equal, values are "
    "taken between the evaluations around one amount of it. A diverged cell counts as SAIF 0 and "
    "accuracy 1/C.",
    "Choice: learning rate and switch point of each paradigm by the mean over seeds on "
    "validation {noun}; all numbers are of the test {noun}.",
    "Intervals: over seeds, 95 %. Means have t intervals, interquartile means a bootstrap over "
    "seeds.",
    "Verdicts: paired by seed. A pair is decided if the paired t test holds after Holm's "
    "correction over the table (p < 0.05), a bootstrap that repeats the choice of learning rate "
    "and switch point agrees, and there are at least 6 common seeds; else it is undecided. "
    "'Seeds to decide' is the number at which the test would have 80 % power for the difference "
    "seen. P(first higher) is the share of all pairs of seeds in which the first paradigm scores "
    "higher, a tie counting half.",
)
_FOREGROUND = {
    "mosaics": "",
    "posts": ", the tokens of the rationale",
    "instances": ", of posts the tokens of the rationale",
}
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
    blocks += [*_question(found), *_shown(dynamics)]
    return [*blocks, *(Text(note, "quiet") for note in notes)]


def tail(found: Sequence[Comparison]) -> list[Block]:
    """What concerns all comparisons: the paper's table, the data, how all was computed."""
    if not found:
        return []
    header, rows = table_one_cells(found)
    data = data_notes(found)
    noun = _noun(found)
    return [
        Heading("In the layout of the paper's Table 1", 2, "table-1"),
        Table(flat_header(header), rows),
        *(Text(note, "quiet") for note in table_one_notes(found)),
        *([Heading("Data", 2, "data")] if data else []),
        *(Text(text) for text in data),
        Heading("How this was computed", 2, "method"),
        *(Text(text.replace("{noun}", noun)) for text in _METHOD),
    ]


def _cells(found: Sequence[Comparison], dynamics: Sequence[Dynamics]) -> list[pd.DataFrame]:
    return [*(each.cells for each in found), *(each.cells for each in dynamics)]


def _question(found: Sequence[Comparison]) -> list[Block]:
    if not found:
        return []
    threshold, noun = found[0].threshold, _noun(found)
    explanation = (
        f"SAIF is the share of test {noun} that are classified rightly and confidently while "
        f"attention rests confidently on the true foreground{_FOREGROUND[noun]}: attention on "
        f"the foreground a_z \u2265 {threshold:g} and score of the true class "
        f"s_y \u2265 {threshold:g}. The paradigms are compared at "
        f"{made_equal(found[0].axis, noun)}; intervals are over seeds."
    )
    return [
        Heading("Question", 2),
        Text(QUESTION, "lead"),
        Heading("Answer", 2),
        *(Text(sentence, "lead") for sentence in answer(found)),
        *(Text(text, "quiet") for text in (explanation, *share_notes(found))),
    ]


def _noun(found: Sequence[Comparison]) -> str:
    return instances(*(comparison.task for comparison in found))


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
