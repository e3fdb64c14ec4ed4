"""The chapter of learning dynamics: how the paradigms learn, not which one is better.

Cells whose attention is held (fixed focus) and cells of the linear orthogonal setting are in no
comparison; they share this chapter of the report, and show the same things in the same order.
What is printed stands in the templates of this folder.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from typing import Any, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from analysis.page.exports import without_long_columns
from analysis.rules.claim import LOST
from analysis.section.picture import Picture
from analysis.section.section import Chapter, Section
from analysis.section.templates import paragraphs

PLACE = "chapters.dynamics.section"
"""Of the templates."""

LEARNING_DYNAMICS = Chapter(
    "learning dynamics",
    "Learning dynamics of attention",
    "How the paradigms learn, not which one is better: nothing in these sections is compared at "
    "equal compute.",
)

S = TypeVar("S")


def section_of(
    subject: S, cells: pd.DataFrame, ids: Iterable[str], template: str, **what: Any
) -> Section[S]:
    """A section of the chapter.

    Args:
        subject: what it is of.
        cells: the rows of `cells` that it rests on.
        ids: ids of what it shows; its key is a hash of them.
        template: name of its template in this folder, without its end.
        what: the other attributes of `analysis.section.section.Section`.
    """
    key = hashlib.sha256("".join(ids).encode()).hexdigest()[:8]
    # Missing where its cells have several.
    shared = {
        name: cells[name].iloc[0] if cells[name].nunique() == 1 else None for name in ("task", "m")
    }
    return Section(
        chapter=LEARNING_DYNAMICS,
        template=f"{PLACE}:{template}",
        key=key,
        cells=cells,
        labels={**shared, "key": key},
        subject=subject,
        list_cells=lambda _: without_long_columns(cells),
        **what,
    )


def picture(kind: str, figure: Figure, suffix: str = "", **facts: Any) -> Picture:
    """A figure with the title and caption that `captions.j2` has for its kind, which names it."""
    title, caption = paragraphs(f"{PLACE}:captions.j2", kind=kind, **facts)
    return Picture(kind + suffix, title, caption, figure)


@functools.cache
def claim_words(claim: str, **numbers: float) -> tuple[str, str]:
    """Statement and test of a claim, as `claim_words.j2` has them; `numbers` stand in the test."""
    statement, test = paragraphs(f"{PLACE}:claim_words.j2", claim=claim, lost=LOST, **numbers)
    return statement, test
