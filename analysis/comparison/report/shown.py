"""A comparison by itself, as `print` and a notebook show it: the answer and its table."""

from __future__ import annotations

from html import escape

import pandas as pd

from analysis.comparison.compare import Comparison
from analysis.comparison.report.answer import answer
from analysis.comparison.report.tables import (
    comparison_cells,
    comparison_text,
    footnotes,
    heading,
)
from study import terminal


def as_text(comparison: Comparison) -> str:
    """The answer, and the table as the terminal prints it."""
    sentences = "\n".join(map(terminal.sentence, answer([comparison])))
    if comparison.summary.empty:
        return sentences
    shown = comparison.summary, False, comparison.threshold, comparison.name
    return f"{sentences}\n\n{comparison_text(*shown)}"


def as_html(comparison: Comparison) -> str:
    """The same for a notebook."""
    texts, table, notes = answer([comparison]), "", []
    if not comparison.summary.empty:
        header, rows = comparison_cells(comparison.summary, threshold=comparison.threshold)
        table = pd.DataFrame(rows, columns=header).to_html(index=False, border=0)
        texts.append(heading(comparison.summary, comparison.name))
        notes = footnotes(comparison.summary)
    before, after = ("".join(f"<p>{escape(text)}</p>" for text in each) for each in (texts, notes))
    return before + table + after
