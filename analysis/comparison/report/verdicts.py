"""Paired verdicts in print: the table of the report, and that of the terminal.

Fractions become points (hundredths) here and nowhere earlier.
"""

from __future__ import annotations

import math

import pandas as pd

from analysis.digest.compare import Comparison
from analysis.rules.statistics import MIN_SEEDS
from analysis.section.columns import Row, by_columns, plain
from analysis.words import (
    MANY,
    SPREADS,
    interval_of_pair,
    level,
    metric_name,
    of_draws,
    points,
)

WOULD_DECIDE = (
    "The last columns say how many seeds a study of its own needs, with a power of 80 % after "
    "Holm, to find a difference as large as the far end of the interval, and one as large as was "
    "seen, if spreads are as seen. Where none would do, the test images decide."
)

IMAGES_FIXED = "images fixed"
"""In place of a spread over images: the test is over seeds alone."""


def paired_cells(paired: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the verdict table of one comparison, one row a metric and pair.

    Args:
        paired: as `analysis.digest.pairs` gives it.
    """
    task, factors = str(paired["task"].iloc[0]) if len(paired) else "", sampled(paired)
    columns = [
        ("metric", lambda row: metric_name(row["metric"], task=row["task"])),
        ("pair", lambda row: f"{row['first']} vs {row['second']}"),
        ("verdict", _verdict),
        ("difference (points)", lambda row: points(row["difference"])),
        (f"{_level(paired)} interval", interval_of_pair),
        (
            of_draws(f"± over {' / '.join(factors)}", task),
            lambda row: " / ".join(_spread(row, factor) for factor in factors),
        ),
        ("Holm p", lambda row: p_value(math.nan if _is_interim(row) else row["p_holm"])),
        plain("n", "num_pairs"),
        ("seeds, far end", lambda row: would_decide(row)[0]),
        ("seeds, as seen", lambda row: would_decide(row)[1]),
    ]
    return by_columns(columns, paired)


def pair_cells(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """The same for the terminal: one row a pair, of the paradigms that have numbers."""
    paired, there = comparison.paired, set(comparison.summary["paradigm"])
    header = ["points"]
    rows: dict[str, list[str]] = {}
    for metric, mine in paired.groupby("metric", sort=False):
        name = metric_name(str(metric), task=comparison.task)
        header += [name, f"{_level(paired)} interval", "better"]
        for row in mine.to_dict("records"):
            if {row["first"], row["second"]} <= there:
                pair = f"{row['first']} - {row['second']}"
                cells = [points(row["difference"]), interval_of_pair(row), _winner(row)]
                rows.setdefault(pair, [pair]).extend(cells)
    return header, list(rows.values())


def sampled(rows: pd.DataFrame) -> list[str]:
    """What tests or means are over: seeds, images, backgrounds, as far as they are known."""
    others = ("images", "backgrounds")
    return ["seeds", *(name for name in others if rows[f"num_{name}"].notna().any())]


def would_decide(row: Row) -> tuple[str, str]:
    """What the far end of the interval takes, and the difference seen; see `WOULD_DECIDE`.

    ``-`` of a row that is decided, or not yet to be decided.
    """
    if row["verdict"] != "undecided" or _is_interim(row):
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


def _level(paired: pd.DataFrame) -> str:
    return level(paired["confidence"].iloc[0] if len(paired) else 0.95)


def _verdict(row: Row) -> str:
    if row["verdict"] == "undecided":
        return "interim" if _is_interim(row) else "undecided"
    return f"{row['first']} {row['verdict']}"


def _winner(row: Row) -> str:
    """Name of the better one; else whether it is undecided, or not yet to be decided."""
    winner = {"better": "first", "worse": "second"}.get(str(row["verdict"]))
    if winner:
        return str(row[winner])
    return "interim" if _is_interim(row) else "undecided"


def _is_interim(row: Row) -> bool:
    return not pd.isna(row.get("ended_seeds", math.nan))


def _spread(row: Row, factor: str) -> str:
    """A standard error of one pair, in points."""
    if factor == "images" and row["num_pairs"] and pd.isna(row["num_images"]):
        return of_draws(IMAGES_FIXED, str(row["task"]))
    error = row[SPREADS[factor]]
    return "-" if pd.isna(error) else f"{100 * error:.1f}"
