"""The files beside a report: tables for other programs (CSV) and for papers (Markdown, LaTeX).

`cells.csv` and `claims.csv` hold the cells and claims of all sections, `claim_matrix.csv` the
verdicts of all claims side by side where several sections have them; each chapter has tables of
its own.

CSV holds fractions at full precision and, in every row of a comparison, the axis made equal and
the threshold of SAIF; tables for papers are in per cent. An empty field is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analysis.page.claim_matrix import claim_matrix
from analysis.section.section import Section, by_chapter


def exports(sections: Sequence[Section]) -> dict[str, bytes]:
    """Every table file of a report: name -> content.

    Args:
        sections: as `analysis.kinds.find` gives them, at least one.
    """
    csv: dict[str, pd.DataFrame] = {}
    files: dict[str, str] = {}
    for chapter, mine in by_chapter(sections):
        csv |= chapter.tables(mine)
        files |= chapter.papers(mine)
    csv["cells"] = _joined([section.cell_rows() for section in sections])
    claims = claim_rows(sections)
    csv |= {} if claims.empty else {"claims": claims}
    matrix = claim_matrix(claims)
    csv |= {} if matrix.empty else {"claim_matrix": matrix.reset_index()}
    files |= {f"{name}.csv": table.to_csv(index=False) for name, table in csv.items()}
    return {name: text.encode() for name, text in files.items()}


def claim_rows(sections: Sequence[Section]) -> pd.DataFrame:
    """One row per claim: where it was tested, the labels of its section, and what `Claim` holds.

    Where is `chapter`, `section` (its key) and `setting`. Labels that a section lacks are missing
    values.
    """
    rows = [
        {
            "chapter": chapter.name,
            "section": section.key,
            "setting": claim.setting or name,
            **section.labels,
            "claim": claim.name,
            "statement": claim.statement,
            "verdict": claim.verdict,
            "measured": claim.measured,
            "test": claim.test,
        }
        for chapter, mine in by_chapter(sections)
        for section, name in chapter.names(mine).items()
        for claim in section.claims
    ]
    return pd.DataFrame(rows, dtype=object)


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables stacked, with the columns of all."""
    if len(tables) == 1:
        return tables[0]
    return pd.concat([table.astype(object) for table in tables], ignore_index=True)
