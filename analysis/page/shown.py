"""A comparison by itself, as `print` and a notebook show it: the answer and its table."""

from __future__ import annotations

from typing import Any

from analysis.digest.compare import Comparison
from analysis.page.sentences import answer, setting_text
from analysis.page.tables import comparison_cells
from analysis.section.templates import Table, printed


def as_text(comparison: Comparison) -> str:
    """As the terminal prints it."""
    return printed("alone.txt.j2", **_facts(comparison))


def as_html(comparison: Comparison) -> str:
    """With a table of HTML; what is text is escaped."""
    return printed("alone.html.j2", **_facts(comparison))


def _facts(comparison: Comparison) -> dict[str, Any]:
    facts = {"answer": answer([comparison]), "table": None, "setting": ""}
    if comparison.summary.empty:
        return facts
    table = Table(*comparison_cells(comparison))
    return facts | {"table": table, "setting": setting_text(comparison)}
