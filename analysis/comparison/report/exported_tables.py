"""The tables of comparisons as files: CSV at full precision, Markdown and LaTeX for papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.comparison.report.table_one import (
    names_of,
    table_one,
    table_one_cells,
    table_one_rows,
)
from analysis.comparison.report.verdicts import paired_cells
from analysis.digest.compare import Comparison
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.page.sentences import (
    conditions,
    of_stages,
    over_what,
    pair_notes,
    table_one_notes,
    tuned,
)
from analysis.rendering import latex, markdown
from analysis.section.blocks import Table
from analysis.section.parts import stacked, without_long_columns
from analysis.words import capital, listed
from study.results import FURTHER, METRICS

_AT_THE_CUT = ["cut", "step", "mosaics_seen", "budget_fraction", "compute_flops", "train_seconds"]


def comparison_tables(found: Sequence[Comparison]) -> dict[str, pd.DataFrame]:
    """The tables of all comparisons: stem of a file -> table."""
    tried = [with_chosen(c.options, c.choice, GROUP + OPTION) for c in found]
    return {
        "table1": table_one(found),
        "comparison": with_setting(found, [c.summary for c in found]),
        "paired": with_setting(found, [c.paired for c in found]),
        "options": with_setting(found, tried),
    }


def for_papers(found: Sequence[Comparison]) -> dict[str, str]:
    """Tables in Markdown and LaTeX: name -> text."""
    caption = f"{capital(listed(names_of(found)))} by paradigm {conditions(found)}."
    notes = table_one_notes(found)
    paired_markdown, paired_latex = zip(*map(_paired, found), strict=True)
    return {
        "table1.md": markdown.captioned(caption, Table(*table_one_rows(found)), notes),
        "table1.tex": latex.table(table_one_cells(found), caption, "tab:table1", notes),
        "paired.md": "\n".join(paired_markdown),
        "paired.tex": "\n".join(paired_latex),
    }


def _paired(comparison: Comparison) -> tuple[str, str]:
    """The paired differences in Markdown and in LaTeX."""
    caption = (
        f"Paired differences, {comparison.name} ({comparison.key}): first minus second paradigm "
        f"on the same seeds, {conditions([comparison])}. {over_what(comparison.paired)}"
    )
    notes = [*tuned(comparison), *of_stages(comparison), *pair_notes(comparison.paired)]
    header, rows = paired_cells(comparison.paired)
    cells = pd.DataFrame(rows, columns=header)
    return (
        markdown.captioned(caption, Table(header, rows, left=range(3)), notes),
        latex.table(cells, caption, f"tab:paired-{comparison.key}", notes, left=3),
    )


def cell_rows(comparison: Comparison) -> pd.DataFrame:
    """Every cell with its end state and its numbers at the cut on the test split.

    Args:
        comparison: one comparison.

    Returns:
        One row a cell, none left out: the columns of `CELLS_SCHEMA` but the long ones and those of
        other modalities; where the cut was; the metrics that
        `at_budget` holds (fractions, `loss` in nats; missing where the cell recorded none within
        the cut); `counted_as_diverged`; `chosen`, whether the numbers of its paradigm are of it;
        what tells the comparison from others.
    """
    test = comparison.at_budget[comparison.at_budget["split"] == "test"]
    names = dict.fromkeys([*_AT_THE_CUT, *METRICS, *FURTHER, *comparison.metrics])
    columns = [name for name in names if name in test]
    numbers = test[["cell_id", *columns, "diverged"]].rename(
        columns={"diverged": "counted_as_diverged"}
    )
    table = comparison.cells.merge(numbers, on="cell_id", how="left")
    table = without_long_columns(table, comparison.task)
    table["chosen"] = table["cell_id"].isin(set(comparison.chosen["cell_id"]))
    by = ["task", "m", "paradigm", *OPTION, "seed", "cell_id"]
    return table.sort_values(by, ignore_index=True).assign(**_setting(comparison))


def with_setting(found: Sequence[Comparison], tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The tables stacked, each row with what tells its comparison from others."""
    return stacked([t.assign(**_setting(c)) for t, c in zip(tables, found, strict=True)])


def _setting(comparison: Comparison) -> dict[str, Any]:
    return {
        "comparison_id": comparison.id,
        "architecture": comparison.architecture,
        "setting": comparison.name,
        "axis": comparison.axis,
        "threshold": comparison.threshold,
    }
