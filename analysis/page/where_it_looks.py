"""Where it looks: the same test inputs, with the attention of every paradigm on their segments."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.groups import in_order, rows_of
from analysis.section.templates import paragraphs
from study import tasks
from study.tracking.looks import Example, looks_html, looks_page


class Looks(NamedTuple):
    """What is shown of one comparison.

    Attributes:
        seed: the first of the seeds that most paradigms have recorded.
        examples: paradigm -> its inputs on that seed, the same in the same order.
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
    """The inputs of a comparison; None where no cell recorded any, or there is a gallery."""
    rows = recorded(comparison)
    if rows.empty or comparison.modality.gallery:
        return None
    seed: Any = rows.groupby("seed")["paradigm"].nunique().idxmax()
    examples = of_paradigms(rows[rows["seed"] == seed])
    known = tasks.TASKS.get(comparison.task)
    (text,) = paragraphs(
        "looks.j2",
        seed=seed,
        absent=[name for name in comparison.choice["paradigm"] if name not in examples],
        modality=comparison.modality,
    )
    return Looks(seed, examples, known.warning if known else "", text)


def recorded(comparison: Comparison) -> pd.DataFrame:
    """The rows of chosen options that hold examples, by paradigm and seed."""
    rows = comparison.evaluations
    rows = rows[rows["examples"].notna()] if "examples" in rows else rows[:0]
    return in_order(rows_of(comparison.choice, rows), ["paradigm", "seed"])


def of_paradigms(rows: pd.DataFrame) -> dict[str, list[Any]]:
    """Paradigm -> the inputs of the first of its rows, which are as `recorded` gives them."""
    first = rows.drop_duplicates("paradigm").set_index("paradigm")["examples"]
    return {str(name): json.loads(text) for name, text in first.items()}
