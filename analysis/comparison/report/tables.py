"""The tables of one comparison for people, and what their rows have in common.

Fractions become per cent here and nowhere earlier.
"""

from __future__ import annotations

import math

from analysis.digest import published as paper
from analysis.digest.choose import summarised_metrics
from analysis.digest.compare import Comparison
from analysis.digest.measures import measures
from analysis.section.columns import Column, Row, by_columns, measured, plain
from analysis.words import (
    level,
    metric_name,
    number,
    of_planned,
    percent,
    three_decimals,
)

_FORMS = {"loss": ("loss (nats)", three_decimals)}
_NAMES = {"foreground_attention_mean": "attention on the foreground"}
Cells = tuple[list[str], list[list[str]]]
"""Header and rows."""


def comparison_cells(comparison: Comparison, published: bool = False) -> Cells:
    """The answer's table: a row a paradigm, with each mean and its interval, in per cent.

    Args:
        comparison: with a summary.
        published: add the paper's Table 1 where it has such a row.
    """
    summary, threshold = comparison.summary, comparison.threshold
    bounds = f"{level(summary['confidence'].iloc[0])} interval"
    columns = [plain("paradigm")]
    for metric in summarised_metrics(summary):
        name = metric_name(metric, threshold, comparison.task)
        columns += measured(f"{name} %", metric, bounds)
    columns.append(("n", seeds))
    if published:
        columns += _published(comparison)
    return by_columns(columns, summary)


def _published(comparison: Comparison) -> list[Column]:
    """The paper's numbers: none where it has no such row, nor its SAIF beside another one."""
    scores = paper.row_of(comparison.task, comparison.m, comparison.architecture).scores

    def of(name: str, place: int) -> Column:
        nothing = (math.nan, math.nan)
        return f"paper {name} %", lambda row: percent(scores.get(row["paradigm"], nothing)[place])

    columns = [of("SAIF", 0), of(comparison.modality.score, 1)] if scores else []
    usual = comparison.threshold == comparison.modality.saif_threshold
    return columns if usual else columns[1:]


def further_cells(comparison: Comparison) -> list[Cells]:
    """A table of each further measure that is known: mean and interval over seeds."""
    summary, modality = comparison.summary, comparison.modality
    bounds = f"{level(summary['confidence'].iloc[0])} interval"
    shares = {each.column: (each.name, each.is_share) for each in modality.measures}
    found = []
    for column in measures(comparison.task):
        name, is_share = shares.get(column, (_NAMES.get(column, column), True))
        said = column in summarised_metrics(summary) or name == modality.score
        if said or column not in summary or summary[column].isna().all():
            continue
        usual = (f"{name} %", percent) if is_share else (name, number)
        header, form = _FORMS.get(column, usual)
        columns = [plain("paradigm"), *measured(header, column, bounds, form)]
        found.append(by_columns(columns, summary))
    return found


def option_columns(recorded: bool) -> list[Column]:
    """What tells options apart: learning rate and switch point; of recorded runs what they name.

    Args:
        recorded: whether the runs are such, see `Comparison.recorded`.
    """
    if recorded:
        return [("option", lambda row: row["schedule"] or "-")]
    return [("learning rate", rates), ("switch point", lambda row: number(row["switch_point"]))]


def seeds(row: Row) -> str:
    """``3``, ``2 of 3`` where seeds are missing, ``3, 1 diverged``."""
    return seeds_there(row) + (f", {row['num_diverged']} diverged" if row["num_diverged"] else "")


def seeds_there(row: Row) -> str:
    """``3``, ``2 of 3`` where seeds are missing."""
    return of_planned(str(row["num_seeds"]), row["most_seeds"])


def rates(row: Row) -> str:
    """The learning rate; of a schedule with phases the first and the last: ``0.1 then 0.05``."""
    first, last = number(row["lr"]), number(row["last_lr"])
    return first if first == last else f"{first} then {last}"
