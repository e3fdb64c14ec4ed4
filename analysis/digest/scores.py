"""Scores by seed and image: what the tests of a comparison are made of."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.rules.backgrounds import Backgrounds
from analysis.rules.crossed import Part, image_df
from analysis.rules.statistics import ROUNDING
from study.results import ResultsError

_BITS = {"accuracy": "instance_right", "saif": "instance_saif"}
_DIGITS = 12  # as in the choice: scores that differ in the last bit are equal

FEWEST_DF = 4.0
"""Degrees of freedom that a spread over images takes, at least: those of five equal images. With
fewer, what is measured of it is too often next to nothing, and verdicts are false too often."""

Floats = NDArray[np.float64]


class Instances(NamedTuple):
    """The instances of which a score is a share, all of the test split or those with a foreground.

    Attributes:
        image: (n,) the foreground image of each, in [0, I).
        weights: (I,) how many instances each image has, >= 1.
        backgrounds: their background images; None: they have none, or are `lacking`.
        lacking: why nothing can be said of other images, ``too few test images``; empty: it can.
    """

    image: NDArray[np.int64]
    weights: Floats
    backgrounds: Backgrounds | None
    lacking: str = ""


@dataclass(frozen=True, eq=False)
class Scores:
    """One metric of some cells: of each instance where images are known, else of all together.

    Attributes:
        values: (S, n) score of each instance; (S, 1) where images are not known or too few.
        instances: which images they hold; None: not known, or too few.
        lacking: see `Instances`; a mean is then of these images alone, and no verdict holds.
    """

    values: Floats
    instances: Instances | None = None
    lacking: str = ""

    def __getitem__(self, seeds: slice) -> Scores:
        return replace(self, values=self.values[seeds])

    def __sub__(self, other: Scores) -> Scores:
        return replace(self, values=self.values - other.values)

    @property
    def by_seed(self) -> Floats:
        """(S,) the scores of the seeds."""
        return self.values.mean(axis=1)

    @functools.cached_property
    def shares(self) -> Floats:
        """(S, I) the mean score of the instances of each image."""
        if self.instances is None:
            return self.values
        image, weights = self.instances.image, self.instances.weights
        sums = [np.bincount(image, each, len(weights)) for each in self.values]
        return np.array(sums).reshape(-1, len(weights)) / weights

    @property
    def weights(self) -> Floats:
        """(I,) instances of each image."""
        return np.ones(1) if self.instances is None else self.instances.weights

    @property
    def of_backgrounds(self) -> Part | None:
        """What background images add to the variance of the mean; None: not known."""
        if self.instances is None or not self.instances.backgrounds or len(self.values) < 2:
            return None
        return self.instances.backgrounds.part(self.values)

    @property
    def of_one_image(self) -> float:
        """The largest share that one image has in what is wrong, or right if that is rarer.

        Where it is large, the images at hand may lack those that matter as much: an interval of
        the mean for other images is too short, whatever its scale. NaN: images are not known.
        """
        shares, weights = self.shares.mean(axis=0), self.weights
        rare = shares if shares @ weights < 0.5 * weights.sum() else 1 - shares
        parts = weights * rare
        known = self.instances is not None and parts.sum() > 0
        return float(parts.max() / parts.sum()) if known else math.nan


def scores(rows: pd.DataFrame, metric: str) -> Scores:
    """The scores of cells on one split.

    A diverged cell has the same score on every instance. Images are known where the bits of all
    other cells are there and average to the scores: not of runs trained elsewhere, at an earlier
    cut, at another threshold of SAIF, between evaluations, of Bleu, which is no share of
    instances, or of other measures.
    Where images are few, or few have most of the instances, they cannot say how much images vary.

    Args:
        rows: (S,) one a cell of one comparison, with `diverged`, the metric, and perhaps the
            columns `study.results.INSTANCES` and `base_images`, see
            `analysis.digest.reading.load`.
        metric: saif, accuracy or another column of fractions.

    Raises:
        ResultsError: the base images of recorded instances are not at hand, or cells have others.
    """
    score = np.round(rows[metric].to_numpy(np.float64, na_value=np.nan), _DIGITS)
    kept = ~rows["diverged"].to_numpy(bool)
    found = _by_instance(rows[kept], metric)
    if found is None:
        return Scores(score[:, None])
    values = np.repeat(score[:, None], found.values.shape[1], axis=1)
    values[kept] = found.values
    return replace(found, values=values)


def _by_instance(rows: pd.DataFrame, metric: str) -> Scores | None:
    """The scores of each instance; None where they are not known."""
    bits = ["instance_known", _BITS.get(metric, "")]
    if not {"instances", *bits} <= set(rows) or rows.empty:
        return None
    if rows[["instances", *bits]].isna().any(axis=None):
        return None
    _refuse_unusable(rows, bits)
    known, count = rows[bits[0]].iloc[0], int(rows["num_evaluated"].iloc[0])
    there = np.ones(count, bool) if metric == "accuracy" else _unpacked([known], count)[0]
    images = np.asarray(rows["base_images"].iloc[0], np.int64)
    instances = _instances(images.tobytes(), count, there.tobytes())
    if instances is None:
        return None
    values = _unpacked(rows[bits[1]], count)[:, there].astype(np.float64)
    score = rows[metric].to_numpy(np.float64, na_value=np.nan)
    if not (np.abs(values.mean(axis=1) - score) <= ROUNDING).all():
        return None
    return of_instances(values, instances)


def _refuse_unusable(rows: pd.DataFrame, bits: list[str]) -> None:
    """Refuses what would make verdicts easier if images then counted as not known."""
    if "base_images" not in rows or rows["base_images"].isna().any():
        raise ResultsError(
            f"the base images of the test instances are not at hand: instances/"
            f"{rows['instances'].iloc[0]}.parquet is missing or damaged. Copy it from where its "
            "cells were trained, or train one of them again: move its file out of cells/ and run "
            "its study. (A table has to be what analysis.load returns.)"
        )
    first, count = rows.iloc[0], rows["num_evaluated"].iloc[0]
    same = rows["instances"].eq(first["instances"]) & rows[bits[0]].eq(first[bits[0]])
    same &= rows[bits].map(len).eq(math.ceil(count / 8)).all(axis=1)
    if not same.all() or len(first["base_images"]) % count:
        wrong = rows if same.all() else rows[~same]
        cells = ", ".join(wrong["cell_id"].head(3))
        raise ResultsError(
            "cells of one comparison were tested on other instances than the rest, or their rows "
            f"are no longer as analysis.load returns them ({cells}). Train these again."
        )


def _unpacked(bits: Iterable[bytes], count: int) -> NDArray[np.bool_]:
    """(S, n) the first `count` of each."""
    packed = [np.frombuffer(each, np.uint8) for each in bits]
    return np.unpackbits(packed, axis=1, count=count).astype(bool)


def of_instances(values: Floats, instances: Instances) -> Scores:
    """The scores of instances; of all together where their images are too few.

    Args:
        values: (S, n) score of each instance.
        instances: which images they hold.
    """
    if image_df(instances.weights) >= FEWEST_DF:
        return Scores(values, instances, instances.lacking)
    return Scores(values.mean(axis=1, keepdims=True), lacking=instances.lacking)


@functools.lru_cache(maxsize=8)  # for all pairs and metrics of a comparison
def _instances(images: bytes, count: int, counted: bytes) -> Instances | None:
    """Those of which a score is a share; None where there are none.

    Args:
        images: (n k) int64, the base images of each instance, one after another.
        count: n.
        counted: (n,) bool, which of them.
    """
    held = np.frombuffer(images, np.int64).reshape(count, -1)[np.frombuffer(counted, bool)]
    return instances_of(held) if len(held) else None


def instances_of(held: NDArray[np.int64]) -> Instances:
    """Instances by the base images that they hold.

    Args:
        held: (n, k) that of the foreground first, n >= 1.
    """
    _, image, weights = np.unique(held[:, 0], return_inverse=True, return_counts=True)
    backgrounds = Backgrounds(image, held[:, 1:]) if held.shape[1] > 1 else None
    lacking = ""
    if image_df(weights) < FEWEST_DF:
        lacking = "too few test images"
    elif backgrounds and backgrounds.df < FEWEST_DF:
        lacking = "too few background images"
    elif backgrounds and not backgrounds.is_known:
        lacking = "background images are not told apart: all instances have as many in common"
    known = None if lacking else backgrounds
    return Instances(image, weights.astype(np.float64), known, lacking)
