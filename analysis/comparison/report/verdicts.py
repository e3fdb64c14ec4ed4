"""Paired verdicts in print: the table of the report, and that of the terminal.

Fractions become points (hundredths) here and nowhere earlier.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import pandas as pd

from analysis.comparison.paired import SCREENING
from analysis.section.columns import Row, by_columns, plain
from analysis.statistics import MIN_SEEDS
from analysis.words import (
    MANY,
    SPREADS,
    aligned,
    interval_of_pair,
    known,
    level,
    metric_name,
    of_draws,
    points,
    span,
)
from study import tasks, terminal

WOULD_DECIDE = (
    "The last columns say what a study of its own needs, with a power of 80 % after Holm, to find "
    "a difference as large as the far end of the interval, and one as large as was seen. Where "
    "more seeds alone would not do, images of the foreground are said, with these seeds, and "
    "background images in proportion, if there are any."
)

IMAGES_FIXED = "images fixed"
"""In place of a spread over images: the test is over seeds alone."""


def paired_cells(paired: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the verdict table of one comparison, one row a metric and pair.

    Args:
        paired: as `analysis.comparison.paired` gives it.
    """
    task, factors = str(paired["task"].iloc[0]) if len(paired) else "", sampled(paired)
    columns = [
        ("metric", _metric),
        ("pair", lambda row: f"{row['first']} vs {row['second']}"),
        ("verdict", _verdict),
        ("difference (points)", lambda row: points(row["difference"])),
        (f"{_level(paired)} interval", interval_of_pair),
        (
            of_draws(f"± over {' / '.join(factors)}", task),
            lambda row: " / ".join(_spread(row, factor) for factor in factors),
        ),
        ("Holm p", lambda row: p_value(row["p_holm"])),
        plain("n", "num_pairs"),
        ("seeds, far end", lambda row: of_draws(would_decide(row)[0], task)),
        ("seeds, as seen", lambda row: of_draws(would_decide(row)[1], task)),
    ]
    return by_columns(columns, paired)


def pair_text(paired: pd.DataFrame, paradigms: Collection[str]) -> str:
    """The verdicts of one comparison for the terminal: one row a pair, and what must be said.

    Args:
        paired: as `analysis.comparison.paired` gives it.
        paradigms: those that have numbers; what the others lack is said elsewhere.
    """
    said = [*_overstated(paired), *_later(paired), over_what(paired)]
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
    notes = [*_undecided(paired), *said]
    return "\n".join([*aligned(header, list(rows.values())), *map(terminal.sentence, notes)])


def sampled(rows: pd.DataFrame) -> list[str]:
    """What tests or means are over: seeds, images, backgrounds, as far as they are known."""
    others = ("images", "backgrounds")
    return ["seeds", *(name for name in others if rows[f"num_{name}"].notna().any())]


def over_what(paired: pd.DataFrame) -> str:
    """What the intervals and tests are over, and what is fixed."""
    task = str(paired["task"].iloc[0]) if len(paired) else ""
    of, paired = len(paired), paired[paired["num_pairs"] > 0]
    by_image = paired[paired["num_images"].notna()]
    text = f"Intervals and verdicts are over seeds{_and_images(by_image, task)}"
    if 0 < len(by_image) < len(paired):
        alone = len(paired) - len(by_image)
        text += f"; {alone} of {len(paired)} over seeds alone ({IMAGES_FIXED})"
    if len(paired):
        family = "this table" if (tests := paired["num_tests"].iloc[0]) == of else "the study"
        text += (
            ". Intervals are of one pair, verdicts corrected for the "
            f"{terminal.counted(int(tests), 'test')} of {family}"
        )
    return of_draws(f"{text}.", task)


def _and_images(by_image: pd.DataFrame, task: str) -> str:
    """Over what else than seeds, and what is fixed."""
    if by_image.empty:
        return " alone, with these test images"
    images, backgrounds = (
        " or ".join(f"{count:,.0f}" for count in sorted(by_image[name].dropna().unique()))
        for name in ("num_images", "num_backgrounds")
    )
    noun = tasks.modality(task).backgrounds
    if not noun:
        return f" and {images} test images; those to train on are the same for all seeds"
    if backgrounds:
        return f", {images} foreground and {backgrounds} {noun}"
    return f" and {images} foreground images, with these {noun}"


def pair_notes(paired: pd.DataFrame) -> list[str]:
    """What must be said beside the verdicts of one comparison.

    Why pairs are undecided, where their row does not show it (too few seeds, no number), and that
    few seeds are a screening, or later ones were added.

    Args:
        paired: as `analysis.comparison.paired` gives it, of one comparison.
    """
    return [*_undecided(paired), *_overstated(paired), *_later(paired)]


def _overstated(paired: pd.DataFrame) -> list[str]:
    """That few seeds are a screening."""
    n = paired.loc[paired["num_pairs"] >= MIN_SEEDS, "num_pairs"].min()
    if not n < SCREENING:
        return []
    return [
        f"With n={n:g} seeds this is a screening study: only lucky estimates of small differences "
        "are decided, so those that it decides are overstated."
    ]


def _later(paired: pd.DataFrame) -> list[str]:
    """That seeds were added after a look."""
    later = paired[paired["later_seeds"] > 0] if "later_seeds" in paired else paired[:0]
    if later.empty:
        return []
    return [
        f"Seeds were added after a look at the first {span(later['num_pairs'])}: differences and "
        "verdicts stay those of the first, which spent the 5 false ones in 100 studies. For "
        "another verdict, run fresh seeds into a directory of their own."
    ]


def _undecided(paired: pd.DataFrame) -> list[str]:
    rest = paired[paired["verdict"] == "undecided"]
    level = 1 - rest["confidence"]
    against = rest["reason"].str.startswith("who learns")
    untested = (rest["num_pairs"] < MIN_SEEDS) | rest["p_holm"].isna()
    hidden = rest[untested | (rest["p_holm"] < level) | against]
    return [
        f"Undecided: {'every pair' if len(rows) == len(paired) else _named(rows)}: {reason}."
        for reason, rows in hidden.groupby("reason", sort=False)
    ]


def would_decide(row: Row) -> tuple[str, str]:
    """What the far end of the interval takes, and the difference seen; see `WOULD_DECIDE`.

    ``-`` of a decided row, and where only one of the two is known.
    """
    if row["verdict"] != "undecided":
        return "-", "-"
    if pd.isna(row["seen_seeds"]):
        few = row["num_pairs"] < MIN_SEEDS
        return f"{MIN_SEEDS} or more" if few else "more", "-"
    seen = _needed(row["seen_seeds"], row.get("seen_images", math.nan))
    if pd.isna(row["needed_seeds"]):
        return "-", seen
    return _needed(row["needed_seeds"], row.get("needed_images", math.nan)), seen


def _needed(seeds: float, images: float) -> str:
    """``340`` seeds, ``3,400 images``; ``> 10,000`` where neither is enough."""
    if math.isinf(seeds) and images <= MANY:
        return f"{math.ceil(images):,d} images"
    return f"> {MANY:,d}" if seeds > MANY else f"{math.ceil(seeds):,d}"


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
    if row["verdict"] == "undecided":
        return "undecided"
    often = ", learns more often" if row["verdict"] == "better" else ", learns less often"
    return f"{row['first']} {row['verdict']}{often * known(row.get('above', math.nan))}"


def _winner(row: Row) -> str:
    winner = {"better": "first", "worse": "second"}.get(str(row["verdict"]))
    often = ", more often" * known(row.get("above", math.nan))
    return f"{row[winner]}{often}" if winner else "undecided"


def _named(rows: pd.DataFrame) -> str:
    """``SAIF soft/hard, lvml/soft; accuracy soft/hard``."""
    texts: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        texts.setdefault(_metric(row), []).append(f"{row['first']}/{row['second']}")
    return "; ".join(f"{metric} {', '.join(pairs)}" for metric, pairs in texts.items())


def _metric(row: Row) -> str:
    return metric_name(str(row["metric"]), task=str(row["task"]))


def _spread(row: Row, factor: str) -> str:
    """A standard error of one pair."""
    if factor == "images" and row["num_pairs"] and pd.isna(row["num_images"]):
        return of_draws(IMAGES_FIXED, str(row["task"]))
    return standard_error(row[SPREADS[factor]])
