"""Tables of one-shot images for people."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from analysis.attention_paths.networks import LIMIT, THEORY
from analysis.comparison.report.verdicts import p_value
from analysis.heads.means import REMOVAL
from analysis.heads.methods import REVERSE, SOLVED, scorer_text
from analysis.heads.paired import would_decide
from analysis.section.blocks import Table
from analysis.section.columns import Column, Row, by_columns, measured, plain
from analysis.statistics import CONFIDENCE
from analysis.words import (
    interval,
    interval_of_pair,
    known,
    level,
    percent,
    points,
    three_decimals,
)

Cells = tuple[list[str], list[list[str]]]
"""Header and rows."""

_BOUNDS = f"{level(CONFIDENCE)} interval"
_MOST_COUNTS = 9
"""Numbers of removed heads side by side, so that a page has room for their intervals."""

_SCORE_AND_DROP = [
    *measured("score", "score", _BOUNDS, three_decimals),
    *measured("lost accuracy (points)", "drop", _BOUNDS),
]
_SPACIOUS = {_BOUNDS, "accuracy %, diagonal of U", "Holm p", "stopped", "loss"}


def trained_cells(trained: pd.DataFrame) -> Cells:
    """What gradient descent reached, by split."""
    columns: list[Column] = [
        ("learning rate", lambda row: f"{row['lr']:g}"),
        *measured("test accuracy %", "accuracy_test", _BOUNDS),
        ("validation %", lambda row: percent(row["accuracy_validation"])),
        ("train %", lambda row: percent(row["accuracy_train"])),
        ("loss", lambda row: three_decimals(row["loss_test"])),
        plain("n", "num_seeds"),
        plain("diverged", "num_diverged"),
        plain("stopped", "num_censored"),
    ]
    return by_columns(columns, trained)


def network_cells(networks: pd.DataFrame) -> Cells:
    """Accuracy of theory and limit, what finite width brings, and the temperature."""
    columns: list[Column] = [
        ("network", _scorer),
        *measured("accuracy %", "accuracy", _BOUNDS),
        *map(_but_of_the_limit, measured("minus limit", "gain", _BOUNDS, points)),
        _but_of_the_limit(
            ("accuracy %, diagonal of U", lambda row: percent(row["accuracy_diagonal"]))
        ),
        ("temperature", _temperature),
        plain("n", "num_seeds"),
        plain("diverged", "num_diverged"),
    ]
    return by_columns(columns, networks)


def paired_cells(paired: pd.DataFrame) -> Cells:
    """Theory against every order: difference in area, verdict, and what would decide it."""
    columns: list[Column] = [
        ("against", plain("second")[1]),
        ("verdict", _verdict),
        ("difference (points)", lambda row: points(row["difference"])),
        (_BOUNDS, interval_of_pair),
        ("Holm p", lambda row: p_value(row["p_holm"])),
        plain("n", "num_pairs"),
        plain("lost", "num_lost"),
        ("would decide it", would_decide),
    ]
    return by_columns(columns, paired)


def pruning_cells(pruning: pd.DataFrame, reference: float, brief: bool = False) -> Cells:
    """Accuracy without 0, 1, ..., K heads, a row an order.

    Args:
        pruning: as `analysis.heads.means.pruning` gives it.
        reference: the width of theory that is shown.
        brief: without intervals.
    """
    shown = shown_orders(at_reference(pruning, reference))
    counts = shown_counts(shown["removed"])
    form = _mean if brief else _mean_and_interval
    rows = []
    for (method, width, order), curve in shown.groupby(
        ["method", "network_width", "order"], sort=False
    ):
        by_count = {row["removed"]: row for row in curve.to_dict("records")}
        name = order_text(method, width, order)
        seeds = str(curve["num_seeds"].iloc[0])
        rows.append([name, *(form(by_count[count]) for count in counts), seeds])
    return ["removed heads", *map(str, counts), "n"], rows


def position_cells(positions: pd.DataFrame) -> Cells:
    """Score and drop of each head by its place."""
    columns: list[Column] = [
        ("head", lambda row: f"layer {row['layer']}, head {row['head']}"),
        *_SCORE_AND_DROP,
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, positions)


def rank_cells(ranks: pd.DataFrame) -> Cells:
    """The same by rank of the score."""
    columns: list[Column] = [
        ("rank of score", plain("rank")[1]),
        *_SCORE_AND_DROP,
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, ranks)


def published_cells(beside: pd.DataFrame) -> Cells:
    """The paper's numbers beside ours."""
    columns: list[Column] = [
        ("measure", _published_measure),
        ("ours", lambda row: percent(row["ours"])),
        (_BOUNDS, lambda row: interval(row, "ours") if row["num_seeds"] else "-"),
        ("published", lambda row: percent(row["published"])),
        plain("n", "num_seeds"),
    ]
    return by_columns(columns, beside)


def in_terminal(table: Table) -> Cells:
    """The table without the columns that a terminal has no room for."""
    kept = [i for i, name in enumerate(table.header) if name not in _SPACIOUS]
    return [table.header[i] for i in kept], [[row[i] for i in kept] for row in table.rows]


def at_reference(table: pd.DataFrame, reference: float) -> pd.DataFrame:
    """The rows of the rules, and of theory at the reference width; others have tables of data."""
    rule = ~table["method"].isin(SOLVED)
    theory = (table["method"] == THEORY) & (table["network_width"] == reference)
    return table[rule | theory].reset_index(drop=True)


def shown_counts(removed: pd.Series) -> list[int]:
    """The numbers of removed heads that have room, both ends among them, the others evenly."""
    counts = sorted({int(count) for count in removed})
    places = np.linspace(0, len(counts) - 1, min(_MOST_COUNTS, len(counts))).round().astype(int)
    return [counts[place] for place in np.unique(places)] if counts else []


def order_text(method: Any, width: Any, order: Any) -> str:
    """``theory N=10``, ``theory N=10 reversed``, ``weight-norm``."""
    name = scorer_text(method, width)
    return f"{name} reversed" if order == REVERSE else name


def shown_orders(pruning: pd.DataFrame) -> pd.DataFrame:
    """Of theory both orders, of the rules only that which removes low scores first."""
    kept = (pruning["order"] == REMOVAL) | (pruning["method"] == THEORY)
    return pruning[kept].reset_index(drop=True)


def _scorer(row: Row) -> str:
    return scorer_text(row["method"], row["network_width"])


def _but_of_the_limit(column: Column) -> Column:
    """The column; ``-`` in the limit, from which it is measured and whose U is diagonal."""
    header, show = column
    return header, lambda row: "-" if row["method"] == LIMIT else show(row)


def _temperature(row: Row) -> str:
    """``0.1``, ``0.1 (0.05 to 0.3)``: the median and the range over seeds."""
    middle, *ends = (row[f"temperature_{end}"] for end in ("median", "least", "most"))
    if not known(middle):
        return "-"
    return f"{middle:g}" + (f" ({ends[0]:g} to {ends[1]:g})" if ends[0] != ends[1] else "")


def _verdict(row: Row) -> str:
    return str(row["verdict"] if row["verdict"] == "undecided" else f"theory {row['verdict']}")


def _mean(row: Row) -> str:
    return percent(row["accuracy"])


def _mean_and_interval(row: Row) -> str:
    """``83.8 (82.1 to 85.5)``."""
    mean = _mean(row)
    return f"{mean} ({interval(row, 'accuracy')})" if known(row["accuracy_low"]) else mean


def _published_measure(row: Row) -> str:
    if row["measure"] == "accuracy":
        return "accuracy before pruning %"
    return f"lost without the head of rank {row['rank']:g} (points)"
