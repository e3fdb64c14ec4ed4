"""The files beside a report: tables for other programs (CSV) and for papers (Markdown, LaTeX).

`cells.csv` and `claims.csv` hold those of comparisons and of learning dynamics; each of the
latter has tables of its own, with its key in their names.

CSV carries fractions at full precision, and in every row which axis was made equal and the
threshold of SAIF; print carries per cent. An empty field is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from analysis.comparison.compare import Comparison
from analysis.comparison.report.claims import claims_frame
from analysis.comparison.report.exports import (
    LONG_COLUMNS,
    TEXT_COLUMNS,
    cell_rows,
    comparison_tables,
    for_papers,
    with_setting,
)

if TYPE_CHECKING:
    from analysis.section.base import Dynamics


def exports(found: Sequence[Comparison], dynamics: Sequence[Dynamics] = ()) -> dict[str, bytes]:
    """Every table file of a report: name -> content.

    Args:
        found: as `analysis.comparison.compare.compare` gives them.
        dynamics: as `analysis.kinds.find` gives them.
    """
    csv = comparison_tables(found) if found else {}
    csv["cells"] = _joined(
        [
            *([with_setting(found, [cell_rows(c) for c in found])] if found else []),
            *(
                each.cells.drop(columns=[*LONG_COLUMNS, *TEXT_COLUMNS], errors="ignore")
                for each in dynamics
            ),
        ]
    )
    csv["claims"] = _joined([claims_frame(found), *map(dynamics_claims, dynamics)])
    for each in dynamics:
        csv |= {f"{stem}-{each.key}": table for stem, table in each.tables().items()}
    files = {f"{name}.csv": table.to_csv(index=False) for name, table in csv.items()}
    if found:
        files |= for_papers(found)
    return {name: text.encode() for name, text in files.items()}


def dynamics_claims(dynamics: Dynamics) -> pd.DataFrame:
    """One row a claim, with the columns of `claims_frame`; `comparison_id` is missing.

    `task` and `m` are missing where the cells have several; `setting` says where it was tested.
    """
    cells = dynamics.cells

    def only(column: str) -> object:
        values = cells[column].unique()
        return values[0] if len(values) == 1 else None

    return pd.DataFrame(
        [
            {
                "task": only("task"),
                "m": only("m"),
                "key": dynamics.key,
                "claim": claim.name,
                "setting": claim.setting,
                "statement": claim.statement,
                "verdict": claim.verdict,
                "measured": claim.measured,
                "test": claim.test,
            }
            for claim in dynamics.claims()
        ]
    )


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables below each other, with the columns of all; those that have no row add none."""
    filled = [table for table in tables if len(table)]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    return pd.concat([table.astype(object) for table in filled], ignore_index=True)
