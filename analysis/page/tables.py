"""The tables of one comparison for people, which templates print.

Fractions become per cent and points (hundredths) here and nowhere earlier.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from analysis.digest.classes import UNSEEN
from analysis.digest.compare import Comparison
from analysis.digest.means import SPREADS
from analysis.digest.measures import Measure
from analysis.forms import (
    MANY,
    Row,
    known,
    level,
    number,
    of_planned,
    percent,
    quantity,
    three_decimals,
)
from analysis.groups import GROUP, OPTION, with_chosen
from analysis.page.table_one import beside
from analysis.rules.statistics import CONFIDENCE, MIN_SEEDS, interval_columns
from analysis.section.templates import Table, table

Cells = tuple[list[str], list[list[str]]]
"""Header and rows."""


def comparison_cells(comparison: Comparison, published: bool = False) -> Cells:
    """The answer's table: one row per paradigm, with each mean and its interval, in per cent.

    Args:
        comparison: with a summary.
        published: add the paper's Table 1 where it has such a row.
    """
    paper = beside(comparison) if published else None
    return _means(comparison, _scores(comparison), paper)


def further_cells(comparison: Comparison) -> list[Cells]:
    """A table of each further measure that is known: mean and interval over seeds."""
    there, shown = comparison.summary.dropna(axis="columns", how="all"), _scores(comparison)
    further = [each for each in comparison.measures.values() if each not in shown]
    return [_means(comparison, [each]) for each in further if each.column in there]


def paired_cells(comparison: Comparison) -> Cells:
    """The verdicts of one comparison, one row per metric and pair."""
    paired = comparison.paired
    return table(
        "table_verdicts.j2",
        rows=paired.to_dict("records"),
        level=level(CONFIDENCE),
        c=comparison,
        spreads={
            factor: column
            for factor, column in SPREADS.items()
            if factor == "seeds" or paired[f"num_{factor}"].notna().any()
        },
        p_value=p_value,
        would_decide=would_decide,
    )


def pair_cells(comparison: Comparison) -> Cells:
    """The same for the terminal: one row per pair of the paradigms that have numbers."""
    return table("table_pairs.j2", c=comparison, level=level(CONFIDENCE))


def verdict_table(comparison: Comparison) -> Table:
    """`paired_cells` for the page, with what is decided marked."""
    decided = np.flatnonzero(comparison.paired["verdict"] != "undecided").tolist()
    return Table(*paired_cells(comparison), range(3), decided, csv="paired.csv")


def option_table(comparison: Comparison) -> Table:
    """Every option that was tried with its validation scores, the chosen ones marked."""
    options = with_chosen(comparison.options, comparison.choice, GROUP + OPTION)
    facts = {"c": comparison, "options": options, "rates": rates}
    header, rows = table("table_options.j2", **facts)
    marked = np.flatnonzero(options["chosen"]).tolist()
    return Table(header, rows, (0, len(header) - 1), marked, csv="options.csv")


def setting_table(comparison: Comparison) -> Table:
    """Name and value: what all cells share, where they ran, and when."""
    versions = comparison.cells["package_versions"].dropna().sort_values().unique()
    sorted_by_name = [dict(sorted(json.loads(each).items())) for each in versions]
    first, others = table("table_settings.j2", c=comparison, versions=sorted_by_name)
    return Table([], [first, *others], (0, 1), wrap=(1,))


def class_tables(comparison: Comparison) -> list[Table]:
    """Scores by class, what focus and prediction are, and the parts of each decided difference."""
    rows, parts = comparison.classes, comparison.class_parts
    if rows.empty:
        return []
    headings = [
        {
            "saif": "SAIF",
            "accuracy": comparison.measures["accuracy"].name,
            UNSEEN: "right outside SAIF",
        },
        {
            "ftpt": "both true",
            "ffpt": "prediction alone",
            "ftpf": "focus alone",
            "ffpf": "neither",
        },
    ]
    facts = {"rows": rows, "level": level(CONFIDENCE)}
    found = [
        Table(*table("table_classes.j2", **facts, shown=shown), range(2), csv="classes.csv")
        for shown in headings
        if {*rows}.issuperset(shown)
    ]
    if len(parts):
        of_parts = table("table_class_parts.j2", parts=parts, names=comparison.names)
        found.append(Table(*of_parts, range(2), csv="class_parts.csv"))
    return found


def would_decide(row: Row) -> tuple[str, str]:
    """How many seeds decide an undecided pair with the power of the report.

    Returns:
        Of a difference at the far end of its interval, and of the one that was seen; ``-`` of a
        row that is decided, or not yet to be decided.
    """
    if row["verdict"] != "undecided" or known(row.get("ended_seeds", math.nan)):
        return "-", "-"
    if pd.isna(row["seen_seeds"]):
        return f"{MIN_SEEDS} or more" if row["num_pairs"] < MIN_SEEDS else "more", "-"
    far, seen = (
        f"> {MANY:,d}" if row[name] > MANY else f"{math.ceil(row[name]):,d}"
        for name in ("needed_seeds", "seen_seeds")
    )
    return far, seen


def p_value(p: float) -> str:
    """Two significant digits; below a thousandth ``< 0.001``; a missing value is ``-``."""
    if pd.isna(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def seeds_there(row: Row) -> str:
    """``3``, ``2 of 3`` where seeds are missing."""
    return of_planned(str(row["num_seeds"]), row["most_seeds"])


def rates(row: Row) -> str:
    """The learning rate; of a schedule with phases the first and the last: ``0.1 then 0.05``."""
    first, last = number(row["lr"]), number(row["last_lr"])
    return first if first == last else f"{first} then {last}"


def _means(
    comparison: Comparison, shown: Sequence[Measure], paper: pd.DataFrame | None = None
) -> Cells:
    """Means with their intervals, and numbers of the paper: a row per paradigm, by metric."""
    return table(
        "table_means.j2",
        c=comparison,
        level=level(CONFIDENCE),
        measures=shown,
        forms={each.column: _form(comparison, each) for each in shown},
        paper={} if paper is None else paper.to_dict(),
        seeds=seeds_there,
    )


def _form(comparison: Comparison, measure: Measure) -> Callable[[float], str]:
    """How the values of a measure read beside each other."""
    if measure.name == "loss (nats)":
        return three_decimals
    if measure.is_share:
        return percent
    if measure not in comparison.tested_measures:
        return number
    ends = comparison.summary[interval_columns(measure.column)].to_numpy(float).ravel().tolist()
    return functools.partial(quantity, beside=ends)


def _scores(comparison: Comparison) -> list[Measure]:
    """The measures that its summary has spreads of."""
    tested = comparison.tested_measures
    every = [*tested, *(each for each in comparison.measures.values() if each not in tested)]
    return [each for each in every if f"{each.column}_seed_se" in comparison.summary]
