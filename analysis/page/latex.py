"""Tables for a paper: LaTeX with `booktabs` and `graphicx`. Everything that is text is escaped."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        # Others in LaTeX's usual font, or not known to each version of it.
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "\u00b1": r"$\pm$",
    }
)

_FLOAT = r"""% \usepackage{{booktabs,graphicx}}
\begin{{table*}}
\centering
\caption{{{caption}}}
\label{{{label}}}
\small
\resizebox{{\ifdim\width>\textwidth\textwidth\else\width\fi}}{{!}}{{%
{tabular}}}
{notes}\end{{table*}}
"""
"""As wide as the table is, or as the page where that is narrower."""


def escape(text: str) -> str:
    """Plain text that LaTeX sets as it is, on one line."""
    return " ".join(text.split()).translate(_ESCAPES)


def table(
    cells: pd.DataFrame, caption: str, label: str, notes: Sequence[str] = (), left: int = 1
) -> str:
    r"""A `table*` environment.

    Args:
        cells: text; of two levels of columns, the first stands above those that share it.
        caption: one sentence or more, above the table.
        label: for `\ref`, e.g. `tab:paired`; letters, digits, colon and hyphen.
        notes: small print below the table.
        left: how many columns, from the first, are left-aligned; the others are right-aligned.

    Returns:
        LaTeX that is no wider than the page.
    """
    styled = cells.map(escape).rename(columns=escape).style.hide(axis="index")
    sides = "l" * left + "r" * (cells.shape[1] - left)
    tabular = styled.to_latex(column_format=sides, hrules=True, multicol_align="c")
    return _FLOAT.format(
        caption=escape(caption),
        label=label,
        tabular=tabular.rstrip(),
        notes="".join(rf"\par\smallskip\footnotesize {escape(note)}" + "\n" for note in notes),
    )
