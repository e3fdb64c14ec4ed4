"""Two tables of docs/open-questions.md: what training longer changes, and how soon lvml begins.

Pure functions of comparisons, as `analysis.compare_results` gives them. All intervals are 95 % t
intervals over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.comparison.compare import Comparison
from analysis.comparison.paired import decided, of_seeds
from analysis.groups import paradigm_order
from analysis.section.claim import evidence
from analysis.statistics import LEVEL, t_interval
from analysis.words import METRICS
from study.theory.linear_orthogonal import time_to

STARTS, END = (0.1, 0.5), 1.0
"""Fractions of the budget from which changes are counted, and to which."""

_GAPS = {"accuracy_gap": "accuracy", "loss_gap": "loss"}
_CASES = [(metric, start) for metric in METRICS for start in STARTS]
_CASES += [(gap, STARTS[0]) for gap in _GAPS]
_VERDICTS = {"better": "rises", "worse": "falls"}
_COLUMNS = [
    "paradigm", "metric", "first", "second", "num_pairs", "mean_first", "mean_second",
    "difference", "low", "high", "p", "p_holm", "verdict",
]  # fmt: skip


def changes(comparison: Comparison) -> pd.DataFrame:
    """How the chosen options change with further training, seed by seed.

    The test images are held fixed. A diverged cell counts from its first missing evaluation on as
    SAIF 0 and accuracy 1/C on both splits; its loss is not known. A seed that was not evaluated
    at all of these times is no pair. Holm's correction is over all rows.

    Args:
        comparison: with evaluations at `STARTS` and `END`.

    Returns:
        One row a (paradigm, metric, second): `metric` is saif or accuracy on the test split, or
        accuracy_gap or loss_gap, train minus test; `first` and `second` are fractions of the
        budget, `END` and one of `STARTS`; `num_pairs` seeds have the means `mean_first` and
        `mean_second`, whose `difference` has the interval `low` to `high`; `p`, `p_holm` and
        `verdict`: rises, falls or undecided. Fractions, but of losses nats.
    """
    records = []
    for paradigm in paradigm_order(comparison.summary["paradigm"]):
        scores = _scores(comparison, paradigm)
        for metric, start in _CASES:
            late, early = (scores[metric, time] for time in (END, start))
            records.append(
                {
                    **of_seeds(late - early),
                    "paradigm": paradigm,
                    "metric": metric,
                    "first": END,
                    "second": start,
                    "mean_first": late.mean(),
                    "mean_second": early.mean(),
                }
            )
    table = pd.DataFrame(decided(records)[0], columns=_COLUMNS)
    return table.assign(verdict=table["verdict"].replace(_VERDICTS))


def _scores(comparison: Comparison, paradigm: str) -> pd.DataFrame:
    """One row a seed that was evaluated at every time, one column a (metric, time)."""
    rows = comparison.evaluations
    rows = rows[rows["paradigm"] == paradigm]
    diverged = rows[rows["status"] == "diverged"].drop_duplicates("seed").set_index("seed")
    guess = comparison.modality.guess(diverged["num_classes"].astype(float))
    lost = pd.DataFrame({**guess, "loss": math.nan})

    def at(split: str, time: float) -> pd.DataFrame:
        there = (rows["split"] == split) & np.isclose(rows["budget_fraction"].astype(float), time)
        recorded = rows.loc[there, ["seed", *lost]].set_index("seed").astype(float)
        return pd.concat([recorded, lost.drop(recorded.index, errors="ignore")])

    columns: dict[tuple[str, float], pd.Series] = {}
    for time in (*STARTS, END):
        train, test = at("train", time), at("test", time)
        columns |= {(metric, time): test[metric] for metric in METRICS}
        gap = train.reindex(test.index) - test
        columns |= {(name, time): gap[metric] for name, metric in _GAPS.items()}
    return pd.concat(columns, axis=1, join="inner").sort_index()


def plateaus(found: Iterable[Comparison]) -> pd.DataFrame:
    """How many times as many mosaics as lvml soft and hard take to halve their loss.

    In the linear orthogonal setting all three start with loss log C and one gradient, and lvml
    reaches half of log C sooner, by a factor that tends to 1.745 for large m and C
    (docs/dynamics.md). A seed in which only lvml does so counts with the last evaluation of the
    other, the earliest that it can be; one in which lvml does not, or one of them diverged
    before, is lost.

    Args:
        found: comparisons of mosaics with one foreground, at one learning rate, evaluated often.

    Returns:
        One row a (comparison, paradigm): `setting`, `m`, `num_classes`, `paradigm`; `ratio` with
        `low` and `high` (the geometric mean over seeds and its interval), `num_seeds`, `num_late`
        of them in which the paradigm was not seen to halve its loss on the train split,
        `num_lost`; `theory`, the ratio in the linear orthogonal setting at this m and C; and
        `verdict`, without a correction for the others: later, sooner or undecided.
    """
    return pd.DataFrame(
        [_plateau(comparison, name) for comparison in found for name in ("soft", "hard")]
    )


def _plateau(comparison: Comparison, paradigm: str) -> dict[str, object]:
    num_classes = int(comparison.cells["num_classes"].iloc[0])
    own, lvml = (_half_times(comparison, name, num_classes) for name in (paradigm, "lvml"))
    both = own.join(lvml.add_suffix("_lvml"), how="inner")
    known = both[np.isfinite(both["half_lvml"]) & both["half"].notna()]
    late = np.isinf(known["half"])
    logs = np.log(known["half"].where(~late, known["end"]) / known["half_lvml"])
    ratio, low, high = np.exp(t_interval(logs))
    lost = len(own.index.union(lvml.index)) - len(known)
    test = evidence(logs, 0.0, "above", lost)
    theory, theory_lvml = (
        float(time_to(name, comparison.m, num_classes, "loss", math.log(num_classes) / 2))
        for name in (paradigm, "lvml")
    )
    return {
        "setting": comparison.name,
        "m": comparison.m,
        "num_classes": num_classes,
        "paradigm": paradigm,
        "ratio": ratio,
        "low": low,
        "high": high,
        "num_seeds": len(known),
        "num_late": int(late.sum()),
        "num_lost": lost,
        "theory": theory / theory_lvml,
        "verdict": ("later" if test.so else "sooner") if test.p < LEVEL else "undecided",
    }


def _half_times(comparison: Comparison, paradigm: str, num_classes: int) -> pd.DataFrame:
    """Per seed `half`, NaN where it diverged before, and `end`, the last evaluation."""
    rows = comparison.evaluations
    rows = rows[(rows["paradigm"] == paradigm) & (rows["split"] == "train")]
    found = {}
    for seed, curve in rows.sort_values("mosaics_seen").groupby("seed"):
        half = half_time(curve["mosaics_seen"], curve["loss"], num_classes)
        if math.isinf(half) and curve["status"].iloc[0] != "done":
            half = math.nan
        found[seed] = half, float(curve["mosaics_seen"].iloc[-1])
    return pd.DataFrame.from_dict(found, orient="index", columns=["half", "end"], dtype=float)


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
    goal = math.log(num_classes) / 2
    below = np.flatnonzero(y <= goal)
    if not len(below):
        return math.inf
    around = [below[0], max(below[0] - 1, 0)]
    return float(np.interp(goal, y[around], x[around]))
