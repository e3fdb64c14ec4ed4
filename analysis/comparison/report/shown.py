"""A comparison by itself, as `print` and a notebook show it: the answer and its table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from analysis.comparison.report.answer import answer
from analysis.comparison.report.tables import comparison_cells, setting_text
from analysis.digest.compare import Comparison
from analysis.words import aligned
from study import terminal


def as_text(comparison: Comparison) -> str:
    """As the terminal prints it."""
    said = answer([comparison])
    if comparison.summary.empty:
        return "\n".join(map(terminal.sentence, said))
    said = [*map(terminal.sentence, [*said, setting_text(comparison)])]
    header, rows = comparison_cells(comparison)
    return "\n".join([*said, "", *aligned(header, rows)])


def as_html(comparison: Comparison) -> str:
    """With a table of HTML; what is text is escaped."""
    said = answer([comparison])
    if comparison.summary.empty:
        return _paragraphs(said)
    header, rows = comparison_cells(comparison)
    table = pd.DataFrame(rows, columns=header).to_html(index=False, border=0)
    return _paragraphs([*said, setting_text(comparison)]) + table


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>\n" for text in texts)
