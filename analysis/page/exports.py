"""The files beside a report: tables for other programs (CSV) and for papers (Markdown, LaTeX).

`cells.csv` and `claims.csv` hold the cells and claims of all sections, `claim_matrix.csv` the
verdicts of claims C1 to C17 side by side where several sections have them; each chapter has tables
of its own.

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
    matrix = claim_matrix(sections)
    csv |= {} if matrix.empty else {"claim_matrix": matrix}
    files |= {f"{name}.csv": table.to_csv(index=False) for name, table in csv.items()}
    return {name: text.encode() for name, text in files.items()}


def claim_rows(sections: Sequence[Section]) -> pd.DataFrame:
    """One row a claim: the labels of its section, and what `Claim` holds.

    Labels that a section lacks are missing values. The column `setting`, where a claim was tested,
    is absent if no claim has one.
    """
    rows = [
        {
            **section.labels,
            "claim": claim.name,
            **({"setting": claim.setting} if claim.setting else {}),
            "statement": claim.statement,
            "verdict": claim.verdict,
            "measured": claim.measured,
            "test": claim.test,
        }
        for section in sections
        for claim in section.claims
    ]
    return pd.DataFrame(rows, dtype=object)


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables stacked, with the columns of all."""
    if len(tables) == 1:
        return tables[0]
    return pd.concat([table.astype(object) for table in tables], ignore_index=True)
