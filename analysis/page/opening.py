"""What stands above the sections of a report: what it is about, and what each chapter says."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.section.section import Section, by_chapter
from study.results import Results

_RUNNING = (
    "A command is running with these results: where it is a study, the numbers are partial, of "
    "the cells that have ended so far. Make the report again when it has ended."
)


def partial_note(results: Results) -> str:
    """Why the results may not be all that there will be; empty where nothing says so.

    Ask before they are read: a study that ends meanwhile is partly seen.
    """
    return _RUNNING if results.is_running() else ""


def title(sections: Sequence[Section], study: str | None = None) -> str:
    """Title of the page: its subject, and the studies whose cells it shows."""
    found = {name for section in sections for name in section.cells["study"]}
    names = [study] if study else sorted(found)
    chapters = [chapter for chapter, _ in by_chapter(sections)]
    about = [chapters[0].about, *(chapter.name for chapter in chapters[1:])]
    return f"{' and '.join(about)}: {', '.join(names)}"


def shown_cells(sections: Sequence[Section]) -> set[str]:
    """Ids of the cells that the sections rest on."""
    return {cell_id for section in sections for cell_id in section.cells["cell_id"]}
