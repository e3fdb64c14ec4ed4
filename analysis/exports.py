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

from analysis.claims import claims_frame
from analysis.comparison import Comparison
from analysis.groups import GROUP, OPTION
from analysis.labels import is_text
from analysis.page import Table, latex, markdown
from analysis.table_one import (
    conditions,
    flat_header,
    group_header,
    table_one,
    table_one_cells,
    table_one_notes,
)
from analysis.verdicts import paired_cells, undecided_notes
from study.results import METRICS, RATIONALES

if TYPE_CHECKING:
    from analysis.dynamics import Dynamics

_LONG = ["cell", "package_versions", "data_notes"]  # nearly the same in every row
_OF_TEXT = ["label_rule", "rationale_rule", "min_count", *RATIONALES]  # say nothing of mosaics
_AT_THE_CUT = ["cut", "step", "mosaics_seen", "budget_fraction", "compute_flops", "train_seconds"]


def exports(found: Sequence[Comparison], dynamics: Sequence[Dynamics] = ()) -> dict[str, bytes]:
    """Every table file of a report: name -> content.

    Args:
        found: as `analysis.comparison.compare` gives them.
        dynamics: as `analysis.dynamics.find` gives them.
    """
    csv = _comparison_tables(found) if found else {}
    csv["cells"] = _joined(
        [
            *([_all(found, [cell_rows(c) for c in found])] if found else []),
            *(each.cells.drop(columns=[*_LONG, *_OF_TEXT], errors="ignore") for each in dynamics),
        ]
    )
    csv["claims"] = _joined([claims_frame(found), *map(dynamics_claims, dynamics)])
    for each in dynamics:
        csv |= {f"{stem}-{each.key}": table for stem, table in each.tables().items()}
    files = {f"{name}.csv": table.to_csv(index=False) for name, table in csv.items()}
    if found:
        files |= _for_papers(found)
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


def _comparison_tables(found: Sequence[Comparison]) -> dict[str, pd.DataFrame]:
    return {
        "table1": table_one(found),
        "comparison": _all(found, [c.summary for c in found]),
        "paired": _all(found, [c.paired for c in found]),
        "options": _all(found, [option_rows(c) for c in found]),
        "effort": _all(found, [c.effort for c in found]),
    }


def _for_papers(found: Sequence[Comparison]) -> dict[str, str]:
    """Tables in Markdown and LaTeX: name -> text."""
    files = {}
    header, rows = table_one_cells(found)
    notes = table_one_notes(found)
    caption = f"SAIF and accuracy by paradigm {conditions(found)}."
    files["table1.md"] = _markdown(caption, flat_header(header), rows, notes, (0,))
    files["table1.tex"] = latex.table(
        header, rows, caption, "tab:table1", groups=group_header(header), notes=notes
    )
    blocks = [_paired(comparison) for comparison in found]
    notes_of = [undecided_notes(comparison.paired) for comparison in found]
    files["paired.md"] = "\n".join(
        _markdown(caption, header, rows, notes, _PAIRED_LEFT)
        for (caption, header, rows), notes in zip(blocks, notes_of, strict=True)
    )
    files["paired.tex"] = "\n".join(
        latex.table(
            *(header, rows, caption, f"tab:paired-{short_id(c)}"), left=_PAIRED_LEFT, notes=notes
        )
        for c, (caption, header, rows), notes in zip(found, blocks, notes_of, strict=True)
    )
    return files


def cell_rows(comparison: Comparison) -> pd.DataFrame:
    """Every cell with its end state and its numbers at the cut on the test split.

    Args:
        comparison: one comparison.

    Returns:
        One row a cell, none left out: the columns of `CELLS_SCHEMA` but the long ones, of which
        those that are of text only where it is text; where the cut was; the metrics that
        `at_budget` holds (fractions, `loss` in nats; missing where the cell recorded none within
        the cut);
        `counted_as_diverged`; `chosen`, whether its option was.
    """
    test = comparison.at_budget[comparison.at_budget["split"] == "test"]
    columns = [name for name in (*_AT_THE_CUT, *METRICS, *RATIONALES) if name in test]
    numbers = test[["cell_id", *columns, "diverged"]].rename(
        columns={"diverged": "counted_as_diverged"}
    )
    dropped = _LONG if is_text(comparison.task) else [*_LONG, *_OF_TEXT]
    table = comparison.cells.merge(numbers, on="cell_id", how="left")
    table = table.drop(columns=dropped, errors="ignore")
    table["chosen"] = table["cell_id"].isin(set(comparison.chosen["cell_id"]))
    by = ["task", "m", "paradigm", *OPTION, "seed", "cell_id"]
    return table.sort_values(by, ignore_index=True)


def option_rows(comparison: Comparison) -> pd.DataFrame:
    """The options that were tried, and whether each was `chosen`."""
    picks = comparison.choice[GROUP + OPTION].assign(chosen=True)
    table = comparison.options.merge(picks, on=GROUP + OPTION, how="left")
    table["chosen"] = table["chosen"].eq(True)
    return table


def short_id(comparison: Comparison) -> str:
    """The first digits of the comparison's id, which tell it from others."""
    return str(comparison.cells["comparison_id"].iloc[0])[:8]


_PAIRED_LEFT = (0, 1, 2)


def _paired(comparison: Comparison) -> tuple[str, list[str], list[list[str]]]:
    caption = (
        f"Paired differences, {comparison.name} ({short_id(comparison)}): first "
        f"minus second paradigm on the same seeds, {conditions([comparison])}."
    )
    return (caption, *paired_cells(comparison.paired))


def _markdown(
    caption: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    left: Sequence[int],
) -> str:
    body = markdown.table(Table(header, rows, left=left))
    pieces = [f"**{markdown.escape(caption)}**", body, *map(markdown.escape, notes)]
    return "\n\n".join(pieces) + "\n"


def _all(found: Sequence[Comparison], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables below each other, each row with what tells its comparison from others."""
    parts = [
        table.assign(
            comparison_id=c.cells["comparison_id"].iloc[0],
            architecture=c.architecture,
            setting=c.name,
            axis=c.axis,
            threshold=c.threshold,
        )
        for table, c in zip(tables, found, strict=True)
    ]
    filled = [part for part in parts if len(part)]
    return pd.concat(filled, ignore_index=True) if filled else parts[0]


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables below each other, with the columns of all; those that have no row add none."""
    filled = [table for table in tables if len(table)]
    if len(filled) < 2:
        return filled[0] if filled else tables[0]
    return pd.concat([table.astype(object) for table in filled], ignore_index=True)
