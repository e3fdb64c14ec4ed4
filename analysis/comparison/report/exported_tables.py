"""The tables of comparisons as files: CSV at full precision, Markdown and LaTeX for papers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.comparison.across.effects import effects
from analysis.comparison.across.factors import Family, families
from analysis.comparison.compare import Comparison
from analysis.comparison.report.limits import of_stages, pair_notes, tuned
from analysis.comparison.report.table_one import (
    conditions,
    flat_header,
    group_header,
    names_of,
    table_one,
    table_one_cells,
    table_one_notes,
)
from analysis.comparison.report.verdicts import over_what, paired_cells
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.rendering import latex, markdown
from analysis.section.blocks import Table
from analysis.section.parts import stacked, without_long_columns
from analysis.words import capital, listed
from study.results import FURTHER, METRICS

_PAIRED_LEFT = (0, 1, 2)
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


def across_tables(found: Sequence[Comparison]) -> dict[str, pd.DataFrame]:
    """Stem of a file -> table; none where no setting varies.

    Returns:
        ``across-settings``: one row a setting, `task`, `comparison_id`, `setting` (its name),
        `base` (whether it is the base), `differs` (the factors in which it differs from that,
        comma-separated), then one column a factor. ``across-effects``: the rows of
        `analysis.comparison.across.effects.effects` of all factors, absent where none varies
        alone.
    """
    varied = [family for family in families(found) if family.factors]
    if not varied:
        return {}
    settings = pd.DataFrame([row for family in varied for row in _settings(family)])
    tables = [effects(family, factor) for family in varied for factor in family.factors]
    filled = [table for table in tables if len(table)]
    if not filled:
        return {"across-settings": settings}
    return {"across-settings": settings, "across-effects": pd.concat(filled, ignore_index=True)}


def for_papers(found: Sequence[Comparison]) -> dict[str, str]:
    """Tables in Markdown and LaTeX: name -> text."""
    files = {}
    header, rows = table_one_cells(found)
    notes = table_one_notes(found)
    caption = f"{capital(listed(names_of(found)))} by paradigm {conditions(found)}."
    files["table1.md"] = _markdown(caption, flat_header(header, found), rows, notes, (0,))
    files["table1.tex"] = latex.table(
        header, rows, caption, "tab:table1", groups=group_header(header, found), notes=notes
    )
    blocks = [_paired(comparison) for comparison in found]
    notes_of = [[*tuned(c), *of_stages(c), *pair_notes(c.paired)] for c in found]
    files["paired.md"] = "\n".join(
        _markdown(caption, header, rows, notes, _PAIRED_LEFT)
        for (caption, header, rows), notes in zip(blocks, notes_of, strict=True)
    )
    files["paired.tex"] = "\n".join(
        latex.table(
            *(header, rows, caption, f"tab:paired-{c.key}"), left=_PAIRED_LEFT, notes=notes
        )
        for c, (caption, header, rows), notes in zip(found, blocks, notes_of, strict=True)
    )
    return files


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


def _paired(comparison: Comparison) -> tuple[str, list[str], list[list[str]]]:
    caption = (
        f"Paired differences, {comparison.name} ({comparison.key}): first "
        f"minus second paradigm on the same seeds, {conditions([comparison])}. "
        + over_what(comparison.paired)
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


def _settings(family: Family) -> list[dict[str, object]]:
    return [
        {
            "task": family.task,
            "comparison_id": each.comparison.id,
            "setting": each.name,
            "base": each is family.base,
            "differs": ", ".join(each.differs),
            **each.values,
        }
        for each in family.settings
    ]
