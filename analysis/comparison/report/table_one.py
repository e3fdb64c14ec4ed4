"""The layout of the paper's Table 1: a row a task and m, SAIF and accuracy by paradigm.

The accuracy of captions is their Bleu-4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.digest.compare import Comparison, metrics_of
from analysis.digest.published import (
    Row,
    of,
    row_of,
)
from analysis.groups import paradigm_order
from analysis.words import (
    METRICS,
    metric_name,
    percent,
    points,
    score_name,
    setting_words,
)


def table_one(found: Sequence[Comparison]) -> pd.DataFrame:
    """Ours, the published number and the difference, as numbers.

    Args:
        found: as `analysis.digest.compare.compare` gives them.

    Returns:
        One row a comparison: `task`, `m`, `n`, `architecture`, `comparison_id`, `cut`, `axis`,
        `threshold` (of SAIF); for each metric and paradigm `<metric>_<paradigm>` (fraction, mean
        over seeds on test), the same with `_published` (Table 1 of the paper, whose SAIF is at
        the task's own threshold) and with `_difference` (ours minus published). NaN where there
        is none. The paper's paradigms always have their columns.
    """
    paradigms = _paradigms(found)
    metrics = metrics_of(found)
    return pd.DataFrame([_numbers(comparison, metrics, paradigms) for comparison in found])


def table_one_cells(found: Sequence[Comparison]) -> pd.DataFrame:
    """The same for print: in a cell ours, and in brackets the paper's and the difference.

    Args:
        found: as `analysis.digest.compare.compare` gives them.

    Returns:
        One row a comparison, of text, with two levels of columns: ``task`` and ``m`` below
        nothing, then the paradigms below each metric; ``62.5 (62.0, +0.5)`` are per cent, per
        cent and points. Of text, the task says which of the paper's models a row is.
    """
    paradigms = _paradigms(found)
    columns = [("", "task"), ("", "m")]
    columns += [(f"{name} %", paradigm) for name in names_of(found) for paradigm in paradigms]
    numbers = [f"{metric}_{name}" for metric in metrics_of(found) for name in paradigms]
    rows = [
        [_label(comparison), str(row["m"] or "-"), *(_cell(row, name) for name in numbers)]
        for comparison, row in zip(found, table_one(found).to_dict("records"), strict=True)
    ]
    return pd.DataFrame(rows, columns=pd.MultiIndex.from_tuples(columns))


def table_one_rows(found: Sequence[Comparison]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of `table_one_cells` with one line of header."""
    cells = table_one_cells(found)
    return [" ".join(names).strip() for names in cells.columns], cells.to_numpy().tolist()


def names_of(found: Sequence[Comparison]) -> list[str]:
    """What the metrics of the table are called."""
    score = score_name(*(comparison.task for comparison in found))
    return [score if name == "accuracy" else metric_name(name) for name in metrics_of(found)]


def _is_unusual(comparison: Comparison) -> bool:
    """Whether its SAIF is not at the task's own threshold."""
    return comparison.threshold != comparison.modality.saif_threshold


def _row_of(comparison: Comparison) -> Row:
    return row_of(comparison.task, comparison.m, comparison.architecture)


def _label(comparison: Comparison) -> str:
    words = setting_words(comparison.settings, ["inference", *comparison.differs])
    return ", ".join([_row_of(comparison).label, *words])


def _numbers(
    comparison: Comparison, metrics: Sequence[str], paradigms: Sequence[str]
) -> dict[str, Any]:
    first = comparison.cells.iloc[0]
    shared = ("n", "architecture", "comparison_id")
    row: dict[str, Any] = {"task": comparison.task, "m": comparison.m}
    row |= {name: first[name] for name in shared} | {"cut": comparison.cut}
    row |= {"axis": comparison.axis, "threshold": comparison.threshold}
    comparable = {"saif": not _is_unusual(comparison), "accuracy": True}
    ours = {summary["paradigm"]: summary for summary in comparison.summary.to_dict("records")}
    paper = _row_of(comparison).scores
    for metric in metrics:
        for paradigm in paradigms:
            value = float(ours[paradigm].get(metric, math.nan)) if paradigm in ours else math.nan
            there = paradigm in paper and comparable.get(metric, False)
            published = paper[paradigm][METRICS.index(metric)] if there else math.nan
            name = f"{metric}_{paradigm}"
            row |= {name: value, f"{name}_published": published}
            row[f"{name}_difference"] = value - published
    return row


def _paradigms(found: Sequence[Comparison]) -> list[str]:
    """Those that have numbers, and the paper's."""
    present = {name for comparison in found for name in comparison.summary["paradigm"]}
    of_paper = {
        name
        for comparison in found
        if not comparison.recorded
        for name in of(comparison.task).paradigms
    }
    return paradigm_order({*of_paper, *present})


def _cell(row: dict[Any, Any], name: str) -> str:
    ours, published = percent(row[name]), row[f"{name}_published"]
    if pd.isna(published):
        return ours
    difference = row[f"{name}_difference"]
    return f"{ours} ({percent(published)}, {points(difference)})"
