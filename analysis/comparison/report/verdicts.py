"""Paired verdicts in print: the table of the report, and that of the terminal.

Fractions become points (hundredths) here and nowhere earlier.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import pandas as pd

from analysis.comparison.paired import SCREENING
from analysis.overstated import exaggeration
from analysis.section.columns import Row, by_columns, plain
from analysis.statistics import MIN_SEEDS
from analysis.words import (
    MANY,
    aligned,
    interval_of_pair,
    level,
    metric_name,
    of_draws,
    points,
)
from study import terminal

WOULD_DECIDE = (
    "'Would decide it', with a power of 80 %: seeds for a difference at the far end of the "
    "interval, to seeds for one at the other end, unless 0 is inside or images hide it; where "
    "images limit, images for a difference as large as was seen."
)

IMAGES_FIXED = "images fixed"
"""In place of a spread over images: the test is over seeds alone."""


def paired_cells(paired: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the verdict table of one comparison, one row a metric and pair.

    Args:
        paired: as `analysis.comparison.paired` gives it.
    """
    task = str(paired["task"].iloc[0]) if len(paired) else ""
    columns = [
        ("metric", _metric),
        ("pair", lambda row: f"{row['first']} vs {row['second']}"),
        ("verdict", _verdict),
        ("difference (points)", lambda row: points(row["difference"])),
        (f"{_level(paired)} interval", interval_of_pair),
        ("± over seeds", lambda row: standard_error(row["seed_se"])),
        (of_draws("± over images", task), _over_images),
        ("Holm p", lambda row: p_value(row["p_holm"])),
        plain("n", "num_pairs"),
        ("would decide it", lambda row: of_draws(would_decide(row), task)),
    ]
    return by_columns(columns, paired)


def pair_text(paired: pd.DataFrame, paradigms: Collection[str]) -> str:
    """The verdicts of one comparison for the terminal: one row a pair, and what must be said.

    Args:
        paired: as `analysis.comparison.paired` gives it.
        paradigms: those that have numbers; what the others lack is said elsewhere.
    """
    overstated = _overstated(paired)
    paired = paired[paired["first"].isin(paradigms) & paired["second"].isin(paradigms)]
    header = ["points"]
    rows: dict[str, list[str]] = {}
    for metric, mine in paired.groupby("metric", sort=False):
        name = metric_name(str(metric), task=str(paired["task"].iloc[0]))
        header += [name, f"{_level(paired)} interval", "better"]
        for row in mine.to_dict("records"):
            pair = f"{row['first']} - {row['second']}"
            found = [points(row["difference"]), interval_of_pair(row), _winner(row)]
            rows.setdefault(pair, [pair]).extend(found)
    notes = [*_undecided(paired), *overstated, over_what(paired)]
    return "\n".join([*aligned(header, list(rows.values())), *map(terminal.sentence, notes)])


def over_what(paired: pd.DataFrame) -> str:
    """What the intervals and tests are over: seeds and images, or seeds alone."""
    task = str(paired["task"].iloc[0]) if len(paired) else ""
    paired = paired[paired["num_pairs"] > 0]
    known = paired.loc[paired["num_images"].notna(), "num_images"]
    text = "Intervals and verdicts are over seeds alone, with these test images."
    if len(known):
        images = " or ".join(f"{count:,.0f}" for count in sorted(known.unique()))
        text = f"Intervals and verdicts are over seeds and {images} test images."
    if 0 < len(known) < len(paired):
        text = f"{text.removesuffix('.')}; where it says {IMAGES_FIXED!r}, over seeds alone."
    return of_draws(text, task)


def pair_notes(paired: pd.DataFrame) -> list[str]:
    """What must be said beside the verdicts of one comparison.

    Why pairs are undecided, where their row does not show it (too few seeds, no number), and by
    how much decided differences are overstated.

    Args:
        paired: as `analysis.comparison.paired` gives it, of one comparison.
    """
    return [*_undecided(paired), *_overstated(paired)]


def _overstated(paired: pd.DataFrame) -> list[str]:
    """By what factor, for the number of seeds and of tests; that few seeds are a screening."""
    testable = paired[paired["num_pairs"] >= MIN_SEEDS]
    decided = (testable["verdict"] != "undecided").any()
    fewest = testable["num_pairs"].min()
    screens = fewest < SCREENING
    if not (screens or decided):
        return []
    n = int(fewest)
    factor = exaggeration(n, (1 - paired["confidence"].iloc[0]) / len(paired))
    text = (
        f"are overstated, on average by a factor of {factor:.1f} where the true one is a standard "
        "deviation of a run over seeds."
    )
    if screens:
        return [f"With n={n} seeds this is a screening study: differences that it decides {text}"]
    return [f"With n={n} seeds, differences that are decided {text}"] if factor >= 1.05 else []


def _undecided(paired: pd.DataFrame) -> list[str]:
    rest = paired[paired["verdict"] == "undecided"]
    hidden = rest[(rest["num_pairs"] < MIN_SEEDS) | rest["p_holm"].isna()]
    return [
        f"Undecided: {'every pair' if len(rows) == len(paired) else _named(rows)}: {reason}."
        for reason, rows in hidden.groupby("reason", sort=False)
    ]


def would_decide(row: Row) -> str:
    """``22 to 340 seeds``: what the ends of the interval would take, see `WOULD_DECIDE`."""
    seeds, images, most = row["needed_seeds"], row["needed_images"], row["needed_seeds_most"]
    if row["verdict"] != "undecided" or pd.isna(seeds):
        return "-"
    if math.isinf(seeds):
        alone = "neither more seeds nor more images alone"
        return alone if math.isinf(images) else f"{_many(images)} images or more"
    enough = seeds <= row["num_pairs"]
    if math.isinf(most):
        return "-" if enough else f"{_many(seeds)} seeds or more"
    return f"up to {_many(most)} seeds" if enough else f"{_many(seeds)} to {_many(most)} seeds"


def _many(number: float) -> str:
    return f"> {MANY:,d}" if number > MANY else f"{math.ceil(number):,d}"


def standard_error(fraction: float) -> str:
    """In points; a missing value is ``-``."""
    return "-" if pd.isna(fraction) else f"{100 * fraction:.1f}"


def p_value(p: float) -> str:
    """Two significant digits; below a thousandth ``< 0.001``; a missing value is ``-``."""
    if pd.isna(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.2g}"


def _level(paired: pd.DataFrame) -> str:
    return level(paired["confidence"].iloc[0] if len(paired) else 0.95)


def _verdict(row: Row) -> str:
    undecided = row["verdict"] == "undecided"
    return "undecided" if undecided else f"{row['first']} {row['verdict']}"


def _winner(row: Row) -> str:
    winner = {"better": "first", "worse": "second"}.get(str(row["verdict"]))
    return str(row[winner]) if winner else "undecided"


def _named(rows: pd.DataFrame) -> str:
    """``SAIF soft/hard, lvml/soft; accuracy soft/hard``."""
    texts: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        texts.setdefault(_metric(row), []).append(f"{row['first']}/{row['second']}")
    return "; ".join(f"{metric} {', '.join(pairs)}" for metric, pairs in texts.items())


def _metric(row: Row) -> str:
    return metric_name(str(row["metric"]), task=str(row["task"]))


def _over_images(row: Row) -> str:
    if not row["num_pairs"]:
        return "-"
    known = pd.notna(row["num_images"])
    return standard_error(row["image_se"]) if known else of_draws(IMAGES_FIXED, str(row["task"]))
