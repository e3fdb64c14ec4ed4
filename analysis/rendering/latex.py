r"""Tables for a paper: LaTeX with `\usepackage{booktabs}`. Everything that is text is escaped."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_ESCAPES = {
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
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "\u2212": "$-$",
    "\u00b1": r"$\pm$",
    "\u2265": r"$\geq$",
    "\u2264": r"$\leq$",
    "\u00d7": r"$\times$",
}
_SPECIAL = re.compile("[" + "".join(map(re.escape, _ESCAPES)) + "]")


def escape(text: str) -> str:
    """Plain text that LaTeX sets as it is."""
    return _SPECIAL.sub(lambda found: _ESCAPES[found.group()], " ".join(text.split()))


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    label: str,
    *,
    left: Collection[int] = (0,),
    groups: Sequence[tuple[str, int]] = (),
    notes: Sequence[str] = (),
) -> str:
    """A `table*` environment.

    Args:
        header: (columns,) text.
        rows: (rows, columns) text.
        caption: one sentence or more, above the table.
        label: for `\\ref`, e.g. `tab:paired`; letters, digits, colon and hyphen.
        left: left-aligned columns; the others are right-aligned.
        groups: a line above the header: texts, and the columns each spans, adding up to all.
        notes: small print below the table.

    Returns:
        LaTeX that is no wider than the page (`\\usepackage{booktabs,graphicx}`).
    """
    sides = "".join("l" if i in left else "r" for i in range(len(header)))
    lines = [_row(map(escape, header)), r"\midrule", *(_row(map(escape, row)) for row in rows)]
    if groups:
        lines = [*_group_lines(groups), *lines]
    return "\n".join(
        [
            r"% \usepackage{booktabs,graphicx}",
            r"\begin{table*}",
            r"\centering",
            rf"\caption{{{escape(caption)}}}",
            rf"\label{{{label}}}",
            r"\small",
            # As wide as it is, or as the page where that is narrower.
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            *(rf"\par\smallskip\footnotesize {escape(note)}" for note in notes),
            r"\end{table*}",
            "",
        ]
    )


def _row(cells: Sequence[str] | map[str]) -> str:
    return " & ".join(cells) + r" \\"


def _group_lines(groups: Sequence[tuple[str, int]]) -> list[str]:
    cells, rules, column = [], [], 1
    for text, span in groups:
        cells.append(
            rf"\multicolumn{{{span}}}{{c}}{{{escape(text)}}}" if text else " &" * (span - 1)
        )
        if text:
            rules.append(rf"\cmidrule(lr){{{column}-{column + span - 1}}}")
        column += span
    return [_row(cells), "".join(rules)]
