"""What each class shows: scores by class, and how much of a difference is one class.

A class that is answered by default, such as the one animal among backgrounds of animals, is right
without being looked at. It may make most of what one paradigm is better by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd

from analysis.digest.scores import Scores, flags, scores
from analysis.groups import in_order
from analysis.rules.learning import seed_mean
from analysis.rules.statistics import interval_columns

OUTCOMES = {
    "ftpt": (True, True),
    "ffpt": (False, True),
    "ftpf": (True, False),
    "ffpf": (False, False),
}
"""Of an instance: whether the focus, and whether the prediction is true."""

UNSEEN = "right_unseen"
"""Right, but not in SAIF."""

_OF_CLASS = ["paradigm", "class", "num_instances", "num_seeds", "saif", "accuracy", UNSEEN]
_OF_PAIR = ["metric", "first", "second", "verdict"]
_PART = ["class", "difference", "part", "low", "high", "rest", "rest_low", "rest_high", "rest_p"]


def class_rows(chosen: pd.DataFrame) -> pd.DataFrame:
    """Scores of each class on the test split, over the seeds and images that numbers are of.

    Args:
        chosen: as `analysis.digest.compare.Comparison` has it.

    Returns:
        One row per paradigm and class: `paradigm`, `class`,
        `num_instances`, `num_seeds`; `saif`, `accuracy`, `right_unseen` (the share that is right,
        but not in SAIF) and, where recorded, `ftpt`, `ffpt`, `ftpf` and `ffpf` (focus true or
        false, prediction true or false), fractions of the instances whose foreground is known,
        each with `<name>_low` and `<name>_high` over seeds, images and background images. Empty
        where classes are not known, as are instances (`analysis.digest.scores.scores`).
    """
    test = in_order(chosen[chosen["split"] == "test"], ["paradigm", "seed"])
    groups = test.groupby("paradigm", sort=False)
    rows = [row for name, cells in groups for row in _rows_of(str(name), cells)]
    return pd.DataFrame(rows, columns=None if rows else _OF_CLASS)


def _rows_of(paradigm: str, cells: pd.DataFrame) -> Iterator[dict[str, object]]:
    known = _known_scores(cells)
    labels = known["saif"].labels if known else None
    for label in np.unique(labels) if labels is not None else ():
        of_class = labels == label
        instances = known["saif"].where(of_class)
        row: dict[str, object] = {"paradigm": paradigm, "class": label}
        row |= {"num_instances": int(of_class.sum()), "num_seeds": len(cells)}
        for name, every in known.items():
            mine = instances.with_values(every.values[:, of_class])
            found = seed_mean(mine.mean(), mine.by_seed)
            numbers = found.mean, found.low, found.high
            row |= dict(zip(interval_columns(name), numbers, strict=True))
        yield row


def _known_scores(cells: pd.DataFrame) -> Mapping[str, Scores]:
    """SAIF, and what else is true of the instances that it is a share of; empty: not known."""
    saif, right = scores(cells, "saif"), scores(cells, "accuracy")
    if saif.labels is None or right.labels is None:
        return {}
    known = flags(cells, "known")[0]
    right = saif.with_values(right.values[:, known])
    of_each = {"saif": saif, "accuracy": right, UNSEEN: right - saif}
    if len(focus := flags(cells, "focus")) == len(cells):
        looked, correct = focus[:, known], right.values == 1
        for name, (focus_true, prediction_true) in OUTCOMES.items():
            both = (looked == focus_true) & (correct == prediction_true)
            of_each[name] = saif.with_values(both.astype(float))
    return of_each


def class_parts(paired: pd.DataFrame, tested: Callable[[str, str], pd.DataFrame]) -> pd.DataFrame:
    """How much of each decided difference each class carries, all classes weighing the same.

    Args:
        paired: as `analysis.digest.pairs.paired_table` gives it, of one comparison.
        tested: two paradigms -> the cells that their verdicts rest on.

    Returns:
        One row per decided row of `paired` and class: `metric`, `first`, `second`, `verdict`,
        `class`, its mean `difference` as a fraction, and its `part` of the sum over classes, with
        `low` and `high`, its 95 % interval over seeds, images and background images; of a part
        above 1 / C also `rest`, the mean difference of the other classes, which weigh the same,
        with `rest_low`, `rest_high` and its two-sided `rest_p`. No row where classes are not
        known, there is one, or the difference is another if classes weigh the same.
    """
    decided = paired[paired["verdict"] != "undecided"]
    rows = [
        {**pair, **part}
        for pair in decided[_OF_PAIR].to_dict("records")
        for part in _parts(tested(pair["first"], pair["second"]), pair["metric"], pair["first"])
    ]
    return pd.DataFrame(rows, columns=[*_OF_PAIR, *_PART])


def carried(parts: pd.DataFrame) -> pd.DataFrame:
    """The class that carries half of a decided difference or more: one row of each.

    Of C classes an even part is 1 / C. A class carries the difference if its part, to the nearest
    tenth, is a half or more, of two classes three quarters, and its interval lies above 1 / C.

    Args:
        parts: as `class_parts` gives them.

    Returns:
        Some of these rows, with `winner` and `loser`.
    """
    pair = ["metric", "first", "second"]
    classes = parts.groupby(pair)["class"].transform("size").astype(float)
    part = parts["part"].astype(float).round(1)
    heavy = (parts["low"] > 1 / classes) & (part >= np.maximum(0.5, 1.5 / classes))
    found = parts[heavy].sort_values("part", ascending=False).drop_duplicates(pair).sort_index()
    is_first = found["verdict"] == "better"
    return found.assign(
        winner=found["first"].where(is_first, found["second"]),
        loser=found["second"].where(is_first, found["first"]),
    )


def _parts(cells: pd.DataFrame, metric: str, first: str) -> Iterator[dict[str, object]]:
    """The parts of the classes in one difference of two paradigms.

    None where the difference is not on the same side if classes weigh the same, or not surely on
    one: a part would then be of next to nothing.
    """
    tested = cells[cells["split"] == "test"].sort_values("seed")
    tested = tested[tested["seed"].duplicated(keep=False)]
    both, is_first = scores(tested, metric), tested["paradigm"].eq(first).to_numpy()
    classes = np.unique(both.labels) if both.labels is not None else np.array([])
    if len(classes) < 2:
        return
    difference = both[is_first] - both[~is_first]
    mine = np.array([both.labels == label for label in classes])
    means = np.array([difference.values[:, each].mean() for each in mine])
    even = len(mine.T) / mine.sum(axis=1) / len(classes)  # so that classes weigh the same
    evenly = difference.with_values(difference.values * (even @ mine)).mean()
    side = np.sign(difference.values.mean())
    if not min(side * evenly.low, side * evenly.high) > 0:
        return
    parts = means / means.sum()
    # The part of a class to first order in what seeds and images change, about the means of the
    # classes: so its spread is that of a mean of instances.
    left = difference.values - means @ mine
    for label, mean, part in zip(classes, means, parts, strict=True):
        weights = (even * ((classes == label) - part)) @ mine / evenly.mean
        spread = difference.with_values(left * weights).mean()
        row = {"class": label, "difference": mean, "part": part}
        row |= {"low": part + spread.low, "high": part + spread.high}
        if part > 1 / len(classes):  # of the others nobody asks what is left without them
            kept = both.labels != label
            rest, share = difference.where(kept), kept.mean() * len(classes) / (len(classes) - 1)
            found = rest.with_values(rest.values * (even @ mine)[kept] * share).mean()
            row |= {"rest": found.mean, "rest_low": found.low, "rest_high": found.high}
            row["rest_p"] = found.p
        yield row
