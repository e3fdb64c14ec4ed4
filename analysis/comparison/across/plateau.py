"""How much sooner lvml leaves the plateau at the start of training than soft and hard do.

In the linear orthogonal setting all three start with loss log C and one gradient, and lvml reaches
half of log C sooner than soft and hard, by a factor that tends to 1.745 for large m and C
(docs/dynamics.md). Here the same is measured of any comparison whose paradigms share one learning
rate, in training mosaics, on the mean loss of the train split.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.comparison.compare import Comparison
from analysis.section.blocks import Block, Heading, Table, Text
from analysis.section.claim import LEVEL, evidence
from analysis.section.columns import by_columns, plain
from analysis.statistics import t_interval
from analysis.words import between, number
from study.tasks import MOSAICS
from study.theory.linear_orthogonal import time_to

FEWEST_POINTS = 20
"""Evaluations of a curve: with fewer, the gap between two would decide where it crosses."""

HALF = 0.5
"""Share of log C to which the loss has to fall."""

_OTHERS = ("soft", "hard")


def half_time(mosaics: ArrayLike, loss: ArrayLike, num_classes: int) -> float:
    """When a loss curve first falls to half of log C, by linear interpolation.

    Args:
        mosaics: (n,) increasing.
        loss: (n,) nats.
        num_classes: C.

    Returns:
        In mosaics; infinity if it never does.
    """
    x, y = np.asarray(mosaics, np.float64), np.asarray(loss, np.float64)
    goal = HALF * math.log(num_classes)
    below = np.flatnonzero(y <= goal)
    if not len(below):
        return math.inf
    i = int(below[0])
    if i == 0:
        return float(x[0])
    return float(x[i - 1] + (x[i] - x[i - 1]) * (y[i - 1] - goal) / (y[i - 1] - y[i]))


def plateaus(found: Iterable[Comparison]) -> pd.DataFrame:
    """How many times as long soft and hard take as lvml to halve their loss, seed by seed.

    A seed in which only lvml does so counts with the last evaluation of the other, the earliest
    that it can be; one in which lvml does not, or one of them diverged before, is lost.

    Args:
        found: comparisons; left out are those of other inputs than mosaics, without lvml, with
            other learning rates, or of recorded runs.

    Returns:
        One row a (comparison, paradigm): `setting`, `m`, `num_classes`, `paradigm`; `ratio` with
        `low` and `high` (the geometric mean and its 95 % t interval over seeds), `num_seeds`,
        `num_late` of them in which the paradigm was not seen to halve its loss, `num_lost`;
        `theory`, the ratio in the linear orthogonal setting at this m and C, NaN of mosaics with
        several foreground segments; and `verdict`: later, sooner or undecided than lvml.
    """
    rows = [row for each in found for row in _rows(each)]
    names = [
        "setting", "m", "num_classes", "paradigm", "ratio", "low", "high", "num_seeds",
        "num_late", "num_lost", "theory", "verdict",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=names)


def plateau_blocks(found: Sequence[Comparison]) -> list[Block]:
    """The part of the page; none where no comparison can tell."""
    table = plateaus(found)
    if table.empty:
        return []
    columns = [
        plain("setting"),
        plain("C", "num_classes"),
        plain("paradigm"),
        ("times as long as lvml", lambda row: number(row["ratio"])),
        ("95 % interval", lambda row: between(row["low"], row["high"], number)),
        ("theory", lambda row: number(row["theory"])),
        plain("verdict"),
        plain("n", "num_seeds"),
        ("not halved", lambda row: str(row["num_late"])),
        ("lost", lambda row: str(row["num_lost"])),
    ]
    return [
        Heading("Leaving the plateau", 2, "plateau"),
        Text(
            "How many times as many training mosaics a paradigm takes as lvml, at the same "
            "learning rate, until its own loss on the train split is half of log C: the geometric "
            "mean over seeds. Where a seed never gets there, the end counts, so the ratio is at "
            "least that; where lvml does not, or either diverges before, the seed is lost. Theory "
            "is the linear orthogonal setting at this m and C, where the ratio tends to 1.745. "
            "Each verdict is by itself, without a correction for the others."
        ),
        Table(*by_columns(columns, table), left=(0, 2, 6)),
    ]


def _rows(comparison: Comparison) -> list[dict[str, object]]:
    if comparison.modality is not MOSAICS or comparison.recorded:
        return []
    choice = comparison.choice.set_index("paradigm")
    others = [name for name in _OTHERS if name in choice.index]
    if "lvml" not in choice.index or not others:
        return []
    rates = choice.loc[["lvml", *others], ["lr", "last_lr"]]
    if np.ptp(rates.to_numpy(np.float64)):
        return []
    num_classes = int(comparison.cells["num_classes"].iloc[0])
    times = {name: _half_times(comparison, name, num_classes) for name in ("lvml", *others)}
    if any(each.empty for each in times.values()):
        return []
    return [_row(comparison, num_classes, name, times[name], times["lvml"]) for name in others]


def _half_times(comparison: Comparison, paradigm: str, num_classes: int) -> pd.DataFrame:
    """Per seed `half`, and `end`, the last evaluation; empty if curves have too few points.

    `half` is NaN where a seed diverged before.
    """
    rows = comparison.evaluations
    of_train = (rows["paradigm"] == paradigm) & (rows["split"] == "train")
    mine = rows.loc[of_train, ["seed", "mosaics_seen", "loss", "status"]]
    found = {}
    curves = dict(tuple(mine.sort_values("mosaics_seen").groupby("seed")))
    if max(map(len, curves.values()), default=0) < FEWEST_POINTS:
        return pd.DataFrame()
    for seed, curve in curves.items():
        half = half_time(curve["mosaics_seen"], curve["loss"], num_classes)
        if math.isinf(half) and curve["status"].iloc[0] != "done":
            half = math.nan
        found[seed] = {"half": half, "end": float(curve["mosaics_seen"].iloc[-1])}
    return pd.DataFrame.from_dict(found, orient="index")


def _row(
    comparison: Comparison, num_classes: int, name: str, own: pd.DataFrame, lvml: pd.DataFrame
) -> dict[str, object]:
    both = own.join(lvml.add_suffix("_lvml"), how="inner")
    known = both[np.isfinite(both["half_lvml"]) & both["half"].notna()]
    late = np.isinf(known["half"])
    logs = np.log(known["half"].where(~late, known["end"]) / known["half_lvml"])
    mean, low, high = (math.exp(each) for each in t_interval(logs))
    lost = len(own.index.union(lvml.index)) - len(known)
    test = evidence(logs, 0.0, "above", lost)
    goal = [HALF * math.log(num_classes)]
    theory = [math.nan, math.nan]
    if not {"foregrounds", "distractors"} & comparison.settings.keys():
        names = (name, "lvml")
        theory = [time_to(each, comparison.m, num_classes, "loss", goal)[0] for each in names]
    return {
        "setting": comparison.name,
        "m": comparison.m,
        "num_classes": num_classes,
        "paradigm": name,
        "ratio": mean,
        "low": low,
        "high": high,
        "num_seeds": len(known),
        "num_late": int(late.sum()),
        "num_lost": lost,
        "theory": theory[0] / theory[1],
        "verdict": ("later" if test.so else "sooner") if test.p < LEVEL else "undecided",
    }
