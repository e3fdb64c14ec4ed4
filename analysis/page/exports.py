"""The files beside a report: tables for other programs (CSV) and for papers (Markdown, LaTeX).

`cells.csv` and `claims.csv` hold the cells and claims of all sections, `claim_matrix.csv` the
verdicts of all claims side by side where several sections have them; each chapter has tables of
its own.

CSV holds fractions at full precision and, in every row of a comparison, the axis made equal and
the threshold of SAIF; tables for papers are in per cent. An empty field is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.groups import GROUP, OPTION, stacked, with_chosen
from analysis.page import latex
from analysis.page.sentences import (
    conditions,
    over_what,
    pair_notes,
    said,
    table_one_notes,
)
from analysis.page.table_one import names_of, table_one, table_one_cells, table_one_rows
from analysis.page.tables import paired_cells
from analysis.section.section import Section, by_chapter
from analysis.section.templates import Table, paragraphs, printed
from study import tasks
from study.results import FOUND, FURTHER, METRICS, OF_DATA, SET_UP

LONG_COLUMNS = ["cell", "package_versions", "data_notes", "network_digest", "declared"]
"""Long columns of cells, nearly the same in every row."""

_AT_THE_CUT = ("cut", "step", "mosaics_seen", "budget_fraction", "compute_flops", "train_seconds")

_MARKS = {"holds": "holds", "does not hold": "fails", "undecided": "open", "not run": "-"}
"""Verdict -> a short word, so that all claims stand side by side."""


def exports(sections: Sequence[Section]) -> dict[str, bytes]:
    """Every table file of a report: name -> content.

    Args:
        sections: as `analysis.kinds.find` gives them, at least one.
    """
    tables: dict[str, pd.DataFrame] = {}
    files: dict[str, str] = {}
    for chapter, mine in by_chapter(sections):
        tables |= chapter.tables(mine)
        files |= chapter.papers(mine)
    tables["cells"] = pd.concat([each.cell_rows().astype(object) for each in sections])
    claims = claim_rows(sections)
    if len(claims):
        tables["claims"] = claims
    if len(matrix := claim_matrix(claims)):
        tables["claim_matrix"] = matrix.reset_index()
    files |= {f"{name}.csv": table.to_csv(index=False) for name, table in tables.items()}
    return {name: text.encode() for name, text in files.items()}


# --- claims


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


def claim_matrix(claims: pd.DataFrame) -> pd.DataFrame:
    """The verdict of every claim in every setting.

    Args:
        claims: as `claim_rows` gives them.

    Returns:
        One row per setting, indexed by `chapter`, `section` and `setting`, and one column per
        claim with its verdict; missing where the claim does not speak of the setting. Empty where
        fewer than two sections have claims.
    """
    if claims.empty or claims["section"].nunique() < 2:
        return pd.DataFrame()
    settings = claims.set_index(["chapter", "section", "setting", "claim"])["verdict"]
    return settings.unstack(sort=False)


def claim_counts(matrix: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and rows for print: in how many settings a claim got each verdict."""
    counts = matrix.apply(pd.Series.value_counts).reindex([*_MARKS]).fillna(0).astype(int).T
    counts = counts.sort_index(key=lambda names: names.map(lambda name: (len(name), name)))
    return ["claim", *counts], counts.reset_index().astype(str).to_numpy().tolist()


def matrix_tables(matrix: pd.DataFrame) -> dict[str, Table]:
    """Chapter -> the matrix for the page; none where it is empty."""
    tables = {}
    for chapter, verdicts in matrix.groupby("chapter", sort=False) if len(matrix) else ():
        marks = verdicts.dropna(axis="columns", how="all").replace(_MARKS).fillna("")
        rows = marks.reset_index("setting")
        tables[str(chapter)] = Table(
            [*rows],
            rows.to_numpy().tolist(),
            left=range(rows.shape[1]),
            wrap=(0,),
            csv="claim_matrix.csv",
        )
    return tables


# --- cells


def without_long_columns(cells: pd.DataFrame, task: str = "") -> pd.DataFrame:
    """Trained cells without long columns, and without those that are of other modalities only.

    Args:
        cells: rows of `cells`, maybe with their metrics.
        task: of all of them; empty: of mosaics.
    """
    modality = tasks.modality(task)
    own = {measure.column for measure in modality.measures}
    own |= {*modality.own_columns} | ({"foreground_share"} if modality.partly else set())
    if task in tasks.TASKS:
        own |= tasks.TASKS[task].options.keys()
    others = {*OF_DATA, *SET_UP, *FOUND, *FURTHER} - own
    return cells.drop(columns=[*LONG_COLUMNS, *others], errors="ignore")


# --- comparisons


def comparison_tables(found: Sequence[Comparison]) -> dict[str, pd.DataFrame]:
    """The tables of all comparisons: stem of a file -> table."""
    tables = {
        "comparison": [each.summary for each in found],
        "paired": [each.paired for each in found],
        "options": [with_chosen(each.options, each.choice, GROUP + OPTION) for each in found],
        "classes": [each.classes for each in found],
        "class_parts": [each.class_parts for each in found],
    }
    known = {name: of_each for name, of_each in tables.items() if any(map(len, of_each))}
    settings = [*map(_setting, found)]
    return {"table1": table_one(found)} | {
        name: stacked([each.assign(**own) for each, own in zip(of_each, settings, strict=True)])
        for name, of_each in known.items()
    }


def for_papers(found: Sequence[Comparison]) -> dict[str, str]:
    """Tables in Markdown and LaTeX: name -> text."""
    named = {"names": names_of(found), "conditions": conditions(found)}
    (caption,), notes = paragraphs("caption_table_one.j2", **named), table_one_notes(found)
    paired = [_paired(comparison) for comparison in found]
    return {
        "table1.md": _markdown(Table(*table_one_rows(found)), caption, notes),
        "table1.tex": latex.table(table_one_cells(found), caption, "tab:table1", notes),
        "paired.md": "\n".join(text for text, _ in paired),
        "paired.tex": "\n".join(text for _, text in paired),
    }


def _paired(comparison: Comparison) -> tuple[str, str]:
    """The paired differences in Markdown and in LaTeX."""
    paired = comparison.paired
    facts = {"conditions": conditions([comparison]), "over": over_what(comparison)}
    (caption,) = paragraphs("caption_paired.j2", c=comparison, **facts)
    notes = [*said("tuned", comparison), *said("stages", comparison), *pair_notes(paired)]
    header, rows = paired_cells(comparison)
    cells, label = pd.DataFrame(rows, columns=header), f"tab:paired-{comparison.key}"
    return (
        _markdown(Table(header, rows, range(3)), caption, notes),
        latex.table(cells, caption, label, notes, left=3),
    )


def _markdown(table: Table, caption: str, notes: Sequence[str]) -> str:
    """A table for a paper, between its caption and what must be said beside it."""
    return printed("for_paper.j2", table=table, caption=caption, notes=notes) + "\n"


def cell_rows(comparison: Comparison) -> pd.DataFrame:
    """Every cell with its end state and its numbers at the cut on the test split.

    Args:
        comparison: one comparison.

    Returns:
        One row per cell, none left out: the columns of `CELLS_SCHEMA` but the long ones and those
        of other modalities; where the cut was; the metrics that `at_budget` holds (fractions,
        `loss` in nats; missing where the cell recorded none within the cut);
        `counted_as_diverged`; `chosen`, whether the numbers of its paradigm are of it; what tells
        the comparison from others.
    """
    test = comparison.at_budget[comparison.at_budget["split"] == "test"]
    metrics = dict.fromkeys([*METRICS, *FURTHER, *comparison.metrics])
    numbers = test.filter(["cell_id", *_AT_THE_CUT, *metrics, "diverged"])
    numbers = numbers.rename(columns={"diverged": "counted_as_diverged"})
    table = comparison.cells.merge(numbers, on="cell_id", how="left")
    table = without_long_columns(table, comparison.task)
    table["chosen"] = table["cell_id"].isin(comparison.chosen["cell_id"])
    by = ["task", "m", "paradigm", *OPTION, "seed", "cell_id"]
    return table.sort_values(by, ignore_index=True).assign(**_setting(comparison))


def _setting(comparison: Comparison) -> dict[str, Any]:
    """What tells a comparison from others, in each row."""
    return {
        "comparison_id": comparison.id,
        "architecture": comparison.architecture,
        "setting": comparison.name,
        "axis": comparison.axis,
        "threshold": comparison.threshold,
    }
