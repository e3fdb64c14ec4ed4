"""Where it looks: the same test inputs, with the attention of every paradigm on their segments."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.figures.style import by_paradigm
from analysis.groups import rows_of
from analysis.page.templates import paragraphs
from study import tasks
from study.evaluate.looks import Example, looks_html, looks_page


class Looks(NamedTuple):
    """What is shown of one comparison.

    Attributes:
        seed: the first of the seeds that most paradigms have recorded.
        examples: paradigm -> its inputs on that seed, the same in the same order; empty: no cell
            recorded any, or its modality has a gallery.
        warning: what readers are to be warned of; empty: of nothing.
        text: how to read it.
    """

    seed: int
    examples: dict[str, list[Example]]
    warning: str
    text: str

    @property
    def html(self) -> str:
        """A row per input, a column per paradigm; what is text is escaped."""
        return looks_html(self.examples)

    def page(self, paradigm: str) -> bytes:
        """A page of one of the paradigms."""
        title = f"{paradigm}, seed {self.seed}"
        return looks_page(self.examples[paradigm], title, self.warning).encode()


def looks(comparison: Comparison) -> Looks | None:
    """The inputs of a comparison; None where there is nothing to show."""
    rows = recorded(comparison)
    if rows.empty or comparison.modality.gallery:
        return None
    seed: Any = rows.groupby("seed")["paradigm"].nunique().idxmax()
    mine = by_paradigm(rows[rows["seed"] == seed])
    examples = {name: json.loads(each["examples"].iloc[0]) for name, each in mine.items()}
    known = tasks.TASKS.get(comparison.task)
    (text,) = paragraphs(
        "looks.j2",
        seed=seed,
        absent=[name for name in comparison.choice["paradigm"] if name not in examples],
        modality=comparison.modality,
    )
    return Looks(seed, examples, known.warning if known else "", text)


def recorded(comparison: Comparison) -> pd.DataFrame:
    """The rows of chosen options that hold examples, by seed."""
    rows = comparison.evaluations
    rows = rows[rows["examples"].notna()] if "examples" in rows else rows[:0]
    return rows_of(comparison.choice, rows).sort_values("seed")
