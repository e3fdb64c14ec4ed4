"""Scores by seed and image: what the tests of a comparison are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.crossed import image_df

_COUNTS = {"accuracy": ("image_right", "image_count"), "saif": ("image_saif", "image_known")}
_DIGITS = 12  # as in the choice: scores that differ in the last bit are equal
_ROUNDING = 1e-9

FEWEST_DF = 1.0
"""Degrees of freedom that a spread over images takes, at least: those of two equal images."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One metric of some cells, image by image where that is known.

    Attributes:
        values: (S, I) the share of the instances of each image; (S, 1) the score where images
            are not known.
        weights: (I,) instances of each image, > 0; (1,) one.
        by_image: whether images are known.
    """

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    by_image: bool


def scores(rows: pd.DataFrame, metric: str) -> Scores:
    """The scores of cells on one split.

    A diverged cell has the same score on every image. Images are known where the counts of all
    other cells are there and average to the scores: not of runs trained elsewhere, at an earlier
    cut, at another threshold of SAIF, between evaluations, of Bleu, which is no share of
    instances, or of other measures.
    Where one image has most of the instances, the others cannot say how much images vary: they
    count as not known.

    Args:
        rows: (S,) one a cell of one comparison, with `diverged`, the metric, and perhaps the
            columns `study.results.IMAGES`.
        metric: saif, accuracy or another column of fractions.
    """
    score = np.round(rows[metric].to_numpy(np.float64, na_value=np.nan), _DIGITS)
    kept = ~rows["diverged"].to_numpy(bool)
    found = _shares(rows[kept], metric)
    if found is None:
        return Scores(score[:, None], np.ones(1), False)
    shares, weights = found
    values = np.repeat(score[:, None], len(weights), axis=1)
    values[kept] = shares
    return Scores(values, weights, True)


def of_one_image(found: Scores) -> float:
    """The largest share that one image has in what is wrong, or right if that is rarer; NaN: none.

    Where it is large, the images at hand may lack those that matter as much: an interval of the
    mean for other images is too short, whatever its scale.
    """
    shares = found.values.mean(axis=0)
    rare = shares if shares @ found.weights < 0.5 * found.weights.sum() else 1 - shares
    parts = found.weights * rare
    return float(parts.max() / parts.sum()) if found.by_image and parts.sum() > 0 else math.nan


def _shares(
    rows: pd.DataFrame, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """(S, I) shares and (I,) instances; None where they are not known."""
    if metric not in _COUNTS:
        return None
    part, whole = _COUNTS[metric]
    if part not in rows or rows.empty or rows[[part, whole]].isna().any(axis=None):
        return None
    lists = [*rows[whole], *rows[part]]
    if len({len(each) for each in lists}) > 1:
        return None
    counts, hits = np.split(np.array(lists, np.float64), 2)
    if (counts != counts[0]).any() or not counts[0].any():
        return None
    score = rows[metric].to_numpy(np.float64, na_value=np.nan)
    if not (np.abs(hits.sum(axis=1) / counts[0].sum() - score) <= _ROUNDING).all():
        return None
    there = counts[0] > 0
    if image_df(counts[0, there]) < FEWEST_DF:
        return None
    return hits[:, there] / counts[0, there], counts[0, there]
