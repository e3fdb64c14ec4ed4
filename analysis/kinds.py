"""The kinds of sections that a results directory may hold."""

from __future__ import annotations

from analysis.digest.read import cells_of
from analysis.groups import claimed
from analysis.page import comparisons as comparison
from analysis.section.section import Kind, Question, Section
from study.door import imported
from study.reported import SECTIONS
from study.results import Results, ResultsError


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
    shown_by = claimed(cells)
    if lost := {*shown_by} - {"", *SECTIONS}:
        raise ResultsError(
            f"no section shows cells of the kind {', '.join(sorted(lost))}. Install the package "
            "that brings it, or name another study with --study."
        )
    for place in ("", *SECTIONS):
        ids = cells.loc[shown_by == place, "cell_id"]
        if len(ids):
            kind: Kind = imported(place) if place else comparison
            if not hasattr(kind, "find"):
                raise ResultsError(
                    f"{place} finds no sections: it must be an analysis.section.section.Kind."
                )
            found += kind.find(results, ids.tolist(), question)
    return found
