"""The kinds of sections that a results directory may hold."""

from __future__ import annotations

from analysis.comparison.report import chapter as comparison
from analysis.dynamics import fixed_focus, trajectories
from analysis.paths import heads
from analysis.paths import theory as attention_paths
from analysis.reading import cells_of
from analysis.section.section import Kind, Question, Section
from study.results import Results

KINDS: tuple[Kind, ...] = (comparison, fixed_focus, trajectories, attention_paths, heads)
"""In the order of the report; every cell belongs to one of them."""


def find(results: Results, question: Question | None = None) -> list[Section]:
    """Every section of a results directory, in a fixed order.

    Args:
        results: the directory.
        question: what is asked, by default of all cells; ids without a result are ignored.

    Raises:
        ResultsError: unreadable results, no finished cell, an unknown study, or a cut that is not
            usable.
    """
    question = question or Question()
    cells = cells_of(results, question.study, question.cell_ids)
    found: list[Section] = []
    for kind in KINDS:
        ids = cells.loc[kind.mine(cells), "cell_id"]
        if len(ids):
            found += kind.find(results, ids.tolist(), question)
    return found
