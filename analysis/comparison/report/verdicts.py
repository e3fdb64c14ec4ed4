"""Paired verdicts in print: a table, and the lines that a command prints.

Fractions become points (hundredths) here and nowhere earlier.
"""

from __future__ import annotations

import math
import re

import pandas as pd

from analysis.section.columns import Row, by_columns, plain
from analysis.statistics import MIN_SEEDS
from analysis.words import MANY_SEEDS, metric_name, percent, points

_P_OF_A_PAIR = re.compile(r"p=\S+ after Holm, not below")


def paired_cells(paired: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the verdict table of one comparison, one row a metric and pair.

    Args:
        paired: as `analysis.comparison.paired` gives it.
    """
    level = f"{(paired['confidence'].iloc[0] if len(paired) else 0.95) * 100:g} %"
    columns = [
        ("metric", _metric),
        ("pair", lambda row: f"{row['first']} vs {row['second']}"),
        ("verdict", _verdict),
        ("difference (points)", lambda row: points(row["difference"])),
        (f"{level} t interval", lambda row: _interval(row, "low", "high")),
        ("Holm p", lambda row: p_value(row["p_holm"])),
        (f"{level} bootstrap", lambda row: _interval(row, "boot_low", "boot_high")),
        ("P(first higher) %", lambda row: percent(row["probability"], 0)),
        plain("n", "num_pairs"),
        ("seeds to decide", _seeds_to_decide),
    ]
    return by_columns(columns, paired)


def _verdict(row: Row) -> str:
    undecided = row["verdict"] == "undecided"
    return "undecided" if undecided else f"{row['first']} {row['verdict']}"


def _seeds_to_decide(row: Row) -> str:
    return seeds_to_decide(row["seeds_to_decide"]) if row["verdict"] == "undecided" else "-"


def undecided_notes(paired: pd.DataFrame) -> list[str]:
    """Why pairs are undecided, where their row does not show it: too few seeds, no number.

    Args:
        paired: as `analysis.comparison.paired` gives it, of one comparison.
    """
    rest = paired[paired["verdict"] == "undecided"]
    hidden = rest[(rest["num_pairs"] < MIN_SEEDS) | rest["p_holm"].isna()]
    return [
        f"Undecided: {'every pair' if len(rows) == len(paired) else _named(rows)}: {reason}."
        for reason, rows in hidden.groupby("reason", sort=False)
    ]


def verdict_lines(paired: pd.DataFrame) -> list[str]:
    """One line a decided pair, the better paradigm first, and one line that names the rest.

    Where nothing is decided, one line a reason.

    Args:
        paired: as `analysis.comparison.paired` gives it, of one comparison.

    Returns:
        Lines without a line break; one that says so where there is no pair.
    """
    if paired.empty:
        return ["verdicts: none, for fewer than two paradigms can be compared"]
    decided = paired[paired["verdict"] != "undecided"]
    rest = paired[paired["verdict"] == "undecided"]
    lines = [_decided_line(row) for row in decided.to_dict("records")]
    if len(rest):
        reasons = set(rest["reason"])
        why = f" ({reasons.pop()})" if len(reasons) == 1 else ""
        if len(decided):
            lines.append(f"undecided: {_named(rest)}{why}")
        else:
            lines += _reason_lines(rest)
    return lines


def _reason_lines(undecided: pd.DataFrame) -> list[str]:
    """A line a reason, pairs together that differ in nothing but the number p."""
    reasons = undecided["reason"].map(
        lambda text: _P_OF_A_PAIR.sub("p after Holm not below", text)
    )
    if undecided["reason"].nunique() == 1:
        reasons = undecided["reason"]
    return [
        f"undecided: {'every pair' if len(rows) == len(undecided) else _named(rows)} ({reason})"
        for reason, rows in undecided.groupby(reasons, sort=False)
    ]


def _named(rows: pd.DataFrame) -> str:
    """``SAIF soft/hard, lvml/soft; accuracy soft/hard``."""
    texts: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        texts.setdefault(_metric(row), []).append(f"{row['first']}/{row['second']}")
    return "; ".join(f"{metric} {', '.join(pairs)}" for metric, pairs in texts.items())


def _metric(row: Row) -> str:
    return metric_name(str(row["metric"]), task=str(row["task"]))


def _decided_line(row: Row) -> str:
    better, other, sign = row["first"], row["second"], 1.0
    low, high = row["low"], row["high"]
    if row["verdict"] == "worse":
        better, other, sign = other, better, -1.0
        low, high = -high, -low
    size, span = 100 * sign * row["difference"], f"{100 * low:.1f} to {100 * high:.1f}"
    return (
        f"{_metric(row)}: {better} better than {other} by "
        f"{size:.1f} points ({span}; Holm p {p_value(row['p_holm'])}, n={row['num_pairs']})"
    )


def p_value(p: float) -> str:
    """Two significant digits; below a thousandth ``< 0.001``; a missing value is ``-``."""
    if pd.isna(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def seeds_to_decide(seeds: float) -> str:
    """A whole number; ``no effect`` where no number would do; else ``not known``."""
    if pd.isna(seeds):
        return "not known"
    if math.isinf(seeds):
        return "no effect"
    return f"> {MANY_SEEDS:,d}" if seeds > MANY_SEEDS else f"{math.ceil(seeds):,d}"


def _interval(row: Row, low: str, high: str) -> str:
    if row["num_pairs"] < 2:
        return f"no interval (n={row['num_pairs']})"
    return "-" if pd.isna(row[low]) else f"{points(row[low])} to {points(row[high])}"
