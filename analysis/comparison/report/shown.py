"""A comparison by itself, as `print` and a notebook show it: the answer and its table."""

from __future__ import annotations

from collections.abc import Sequence
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
    """As the terminal prints it."""
    summary, said = comparison.summary, map(terminal.sentence, answer([comparison]))
    table = comparison_text(summary, threshold=comparison.threshold, name=comparison.name)
    return "\n".join([*said, "", table]).rstrip()


def as_html(comparison: Comparison) -> str:
    """With a table of HTML; what is text is escaped."""
    said, summary = answer([comparison]), comparison.summary
    if summary.empty:
        return _paragraphs(said)
    header, rows = comparison_cells(summary, threshold=comparison.threshold)
    table = pd.DataFrame(rows, columns=header).to_html(index=False, border=0)
    above = _paragraphs([*said, heading(summary, comparison.name)])
    return above + table + _paragraphs(footnotes(summary))


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>\n" for text in texts)
