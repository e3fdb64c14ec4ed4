"""What the page says of further training: what rises, what falls, and what over-fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pandas as pd

from analysis.comparison.compare import Comparison
from analysis.comparison.later.changes import END, GAPS, STARTS, changes
from analysis.section.blocks import Block, Heading, Table, Text
from analysis.section.columns import Row, by_columns, plain
from analysis.statistics import CONFIDENCE
from analysis.words import (
    METRICS,
    between,
    known,
    level,
    lost_scores,
    percent,
    points,
    span,
)

_EARLY, _HALF = STARTS
_AT = {time: f"{percent(time, 0)} %" for time in (*STARTS, END)}
_INTERVAL = f"{level(CONFIDENCE)} interval"
_ACCURACY_GAP, _LOSS_GAP = GAPS


def longer_blocks(comparison: Comparison) -> list[Block]:
    """The part of a comparison's section; none where it was not evaluated at these times."""
    table = changes(comparison)
    if table.empty:
        return []
    scores = table[table["metric"].isin(METRICS)]
    gaps = table[table["metric"].isin(GAPS)]
    seeds = span(table["num_pairs"])
    score = comparison.modality.score
    return [
        Heading("Trained longer"),
        Text(
            f"The chosen options on the test split from {_AT[_EARLY]} and from {_AT[_HALF]} of "
            f"the budget to its end, seed by seed (n={seeds}). Intervals are t intervals over "
            "seeds, with the test images held fixed; verdicts hold after Holm's correction over "
            "both tables. A hybrid that switches between two of these times is soft at the first: "
            "its change is the switch's, too. A diverged seed counts as "
            f"{lost_scores(comparison.task, metrics=comparison.metrics)}."
        ),
        _score_table(scores, comparison.names),
        Text(
            f"Train minus test, in points of {score} and in nats of loss. A network over-fits "
            "where the first rises or the second falls:"
        ),
        _gap_table(gaps, score),
        *(Text(sentence) for sentence in _over_fitting(gaps, score)),
    ]


def _score_table(scores: pd.DataFrame, names: Mapping[str, str]) -> Table:
    """One row a (paradigm, metric), with both changes side by side."""
    early, half = (scores[scores["second"] == start] for start in STARTS)
    rows = early.merge(half, on=["paradigm", "metric"], suffixes=("", "_half"))
    columns = [
        plain("paradigm"),
        ("measure", lambda row: names[row["metric"]]),
        (f"% at {_AT[_EARLY]}", lambda row: percent(row["mean_second"])),
        (f"at {_AT[_HALF]}", lambda row: percent(row["mean_second_half"])),
        (f"at {_AT[END]}", lambda row: percent(row["mean_first"])),
        (f"points from {_AT[_EARLY]}", lambda row: points(row["difference"])),
        (_INTERVAL, lambda row: between(row["low"], row["high"])),
        plain("verdict"),
        (f"points from {_AT[_HALF]}", lambda row: points(row["difference_half"])),
        (_INTERVAL, lambda row: between(row["low_half"], row["high_half"])),
        plain("verdict", "verdict_half"),
        plain("n", "num_pairs"),
    ]
    return Table(*by_columns(columns, rows), left=(0, 1, 7, 10))


def _gap_table(gaps: pd.DataFrame, score: str) -> Table:
    """One row a (paradigm, gap)."""
    names = {_ACCURACY_GAP: score, _LOSS_GAP: "loss"}
    columns = [
        plain("paradigm"),
        ("train minus test", lambda row: names[row["metric"]]),
        (f"at {_AT[_EARLY]}", lambda row: _form(row)(row["mean_second"])),
        (_INTERVAL, lambda row: _between(row, "mean_second_low", "mean_second_high")),
        (f"at {_AT[END]}", lambda row: _form(row)(row["mean_first"])),
        (_INTERVAL, lambda row: _between(row, "mean_first_low", "mean_first_high")),
        ("change", lambda row: _form(row)(row["difference"])),
        (_INTERVAL, lambda row: _between(row, "low", "high")),
        plain("verdict"),
        plain("n", "num_pairs"),
    ]
    return Table(*by_columns(columns, gaps), left=(0, 1, 8))


def _over_fitting(gaps: pd.DataFrame, score: str) -> list[str]:
    """``lvml over-fits: ... the gap of train to test grows, accuracy by +3.1 points (...).``"""
    grows = {
        _ACCURACY_GAP: ("rises", 1, f"{score} by {{}} points"),
        _LOSS_GAP: ("falls", -1, "loss by {} nats"),
    }
    found: dict[str, list[str]] = {}
    for row in gaps.to_dict("records"):
        verdict, sign, text = grows[row["metric"]]
        if row["verdict"] == verdict:
            growth = text.format(_form(row)(sign * row["difference"]))
            low, high = sorted(sign * row[end] for end in ("low", "high"))
            interval = f"({between(low, high, _form(row))})"
            found.setdefault(row["paradigm"], []).append(f"{growth} {interval}")
    since = f"from {_AT[_EARLY]} to {_AT[END]} of the budget"
    if not found:
        return [f"No paradigm is shown to over-fit {since}."]
    return [
        f"{name} over-fits: {since} the gap of train to test grows, {' and '.join(texts)}."
        for name, texts in found.items()
    ]


def _form(row: Row) -> Callable[[float], str]:
    return points if row["metric"] != _LOSS_GAP else _nats


def _nats(difference: float) -> str:
    return f"{difference:+.3f}" if known(difference) else "-"


def _between(row: Row, low: str, high: str) -> str:
    return between(row[low], row[high], _form(row))
