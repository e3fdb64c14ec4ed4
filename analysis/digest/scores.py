"""Scores by seed and image: what the tests of a comparison are made of."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.digest.measures import measures_of
from analysis.rules.backgrounds import Backgrounds
from analysis.rules.crossed import CrossedMean, Part, crossed_mean, image_df
from analysis.rules.statistics import CONFIDENCE, ROUNDING
from study.results import ResultsError

_DIGITS = 12  # as in the choice: scores that differ in the last bit are equal

FEWEST_DF = 4.0
"""Degrees of freedom that a spread over images takes, at least: those of five equal images. With
fewer, what is measured of it is too often next to nothing, and verdicts are false too often."""

Floats = NDArray[np.float64]

_NONE = np.zeros((0, 0), bool)


class Instances(NamedTuple):
    """The instances of which a score is a share, all of the test split or those with a foreground.

    Attributes:
        image: (n,) the foreground image of each, in [0, I); 0 where they are not told apart.
        weights: (I,) how many instances each image has, >= 1.
        backgrounds: their background images; None: they have none, or are `lacking`.
        lacking: why nothing can be said of other images, with ``{draws}`` for what people call
            them; empty: it can.
    """

    image: NDArray[np.int64]
    weights: Floats
    backgrounds: Backgrounds | None = None
    lacking: str = ""

    def __bool__(self) -> bool:
        """Whether their images are told apart."""
        return len(self.weights) > 1


TOGETHER = Instances(np.zeros(1, np.int64), np.ones(1))
"""Where a score is known of all instances together."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One metric of some cells: of each instance where images are known, else of all together.

    Attributes:
        values: (S, n) score of each instance; (S, 1) of all together.
        instances: which images they hold.
        held: (n, k) these images; None: not known.
        labels: (n,) names of their classes; None: not known, or they have none.
    """

    values: Floats
    instances: Instances = TOGETHER
    held: NDArray[np.int64] | None = None
    labels: NDArray[np.str_] | None = None

    def __getitem__(self, cells: NDArray[np.bool_]) -> Scores:
        """Those of some cells, (S,)."""
        return replace(self, values=self.values[cells])

    def __sub__(self, other: Scores) -> Scores:
        return self.with_values(self.values - other.values)

    def with_values(self, values: Floats) -> Scores:
        """Other scores of the same instances."""
        return replace(self, values=values)

    def where(self, mine: NDArray[np.bool_]) -> Scores:
        """Those of some instances, (n,), whose images and labels are known."""
        assert self.held is not None
        assert self.labels is not None
        held = self.held[mine]
        return Scores(self.values[:, mine], instances_of(held), held, self.labels[mine])

    @property
    def by_seed(self) -> Floats:
        """(S,) the scores of the seeds."""
        return self.values.mean(axis=1)

    @functools.cached_property
    def shares(self) -> Floats:
        """(S, I) the mean score of the instances of each image."""
        sums = [np.bincount(self.instances.image, each) for each in self.values]
        return np.reshape(sums, (-1, len(self.instances.weights))) / self.instances.weights

    @property
    def of_backgrounds(self) -> Part | None:
        """What background images add to the variance of the mean; None: not known."""
        backgrounds = self.instances.backgrounds
        return backgrounds.part(self.values) if backgrounds and len(self.values) > 1 else None

    def mean(self, confidence: float = CONFIDENCE) -> CrossedMean:
        """Over seeds and, where they are known, images."""
        weights = self.instances.weights
        return crossed_mean(self.shares, weights, confidence, self.of_backgrounds)

    @property
    def of_one_image(self) -> float:
        """The largest share that one image has in what is wrong, or right if that is rarer.

        Where it is large, the images at hand may lack those that matter as much: an interval of
        the mean for other images is too short, whatever its scale. NaN: images are not known, or
        scores are no shares.
        """
        if np.any((self.values < 0) | (self.values > 1)):
            return math.nan
        right = self.instances.weights * self.shares.mean(axis=0)
        parts = min(self.instances.weights - right, right, key=np.sum)
        known = self.instances and parts.sum() > 0
        return float(parts.max() / parts.sum()) if known else math.nan


def scores(rows: pd.DataFrame, metric: str) -> Scores:
    """The scores of cells on one split.

    A diverged cell has the same score on every instance. Images are known where the bits, or
    numbers, of all other cells are there and average to the scores: not at an earlier cut, at
    another threshold of SAIF, between evaluations, of Bleu, which is no share of instances, or of
    other measures, nor of most runs trained elsewhere.
    Where images are few, or few have most of the instances, they cannot say how much images vary.

    Args:
        rows: (S,) one a cell of one comparison, with `task`, `diverged`, the metric, and perhaps
            the columns `study.results.INSTANCES`, `base_images` and `labels`, see
            `analysis.digest.read.load`.
        metric: a measure, see `analysis.digest.measures`.

    Raises:
        ResultsError: the base images of recorded instances are not at hand, or cells have others.
    """
    score = np.round(rows[metric].to_numpy(np.float64, na_value=np.nan), _DIGITS)
    lost = rows["diverged"].to_numpy(bool)
    there, together = rows[~lost], Scores(score[:, None])
    if there.empty:
        return together
    bits = measures_of(there, [metric])[metric].bits
    known = there.reindex(columns=["instances", "instance_known"]).notna().all(axis=None)
    if not (known and bits):
        return together
    _refuse_unusable(there)
    recorded = of_instances(there, bits)
    if len(recorded) < len(there):
        return together
    count = int(there["num_evaluated"].iloc[0])
    counted = flags(there.head(1), "known")[0] | (metric != "saif")
    right = recorded[:, counted]
    off = ROUNDING * np.maximum(1, np.abs(score[~lost]))
    if not counted.any() or (np.abs(right.mean(axis=1) - score[~lost]) > off).any():
        return together
    values = np.repeat(score[:, None], right.shape[1], axis=1)
    values[~lost] = right
    images = np.asarray(there["base_images"].iloc[0], np.int64)
    labels = there.get("labels", pd.Series(dtype=object)).dropna()
    return Scores(
        values,
        _instances(images.tobytes(), counted.tobytes()),
        images.reshape(count, -1)[counted],
        labels.iloc[0][counted] if len(labels) else None,
    )


def of_instances(rows: pd.DataFrame, name: str) -> NDArray[Any]:
    """What each instance got: (S, n) numbers, or the bits of `flags`, of rows that have any."""
    told = rows.get("instance_numbers", pd.Series(dtype=object)).dropna().map(dict)
    numbers = {row: np.asarray(of[name], float) for row, of in told.items() if name in of}
    if not numbers:
        return flags(rows, name)
    others = rows.drop(index=[*numbers])  # where what others got in part is true or false
    bits = flags(others, name) if len(others) else _NONE
    if len(bits) == len(others):
        numbers |= dict(zip(others.index, bits.astype(float), strict=True))
    return np.array([numbers[row] for row in rows.index if row in numbers])


def flags(rows: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    """What is true of each instance.

    Args:
        rows: as of `scores`, of the same instances.
        name: `known`, `saif`, `right`, or one of the bits in `instance_bits`.

    Returns:
        (S, n), of the rows that have recorded it.
    """
    column = f"instance_{name}"
    if column not in rows:
        by_name = rows.get("instance_bits", pd.Series(dtype=object)).dropna().map(dict)
        rows = rows.loc[by_name.index].assign(**{column: by_name.map(lambda of: of.get(name))})
    there = rows.dropna(subset=column)
    return _unpacked(there[column], int(there["num_evaluated"].iloc[0])) if len(there) else _NONE


def instances_of(held: NDArray[np.int64]) -> Instances:
    """Instances by the base images that they hold.

    Args:
        held: (n, k) that of the foreground first, n >= 1.
    """
    _, image, weights = np.unique(held[:, 0], return_inverse=True, return_counts=True)
    if image_df(weights) < FEWEST_DF:
        together = np.zeros_like(image), np.array([float(len(image))])
        return Instances(*together, lacking="too few test {draws}")
    backgrounds = Backgrounds(image, held[:, 1:]) if held.shape[1] > 1 else None
    lacking = ""
    if backgrounds and backgrounds.df < FEWEST_DF:
        lacking = "too few background images"
    elif backgrounds and not backgrounds.is_known:
        lacking = "background images are not told apart: all instances have as many in common"
    return Instances(image, weights.astype(float), None if lacking else backgrounds, lacking)


def _refuse_unusable(rows: pd.DataFrame) -> None:
    """Refuses what would make verdicts easier if images then counted as not known."""
    if "base_images" not in rows or rows["base_images"].isna().any():
        raise ResultsError(
            f"the base images of the test instances are not at hand: instances/"
            f"{rows['instances'].iloc[0]}.parquet is missing or damaged. Copy it from where its "
            "cells were trained, or train one of them again: move its file out of cells/ and run "
            "its study. (A table has to be what analysis.load returns.)"
        )
    first = rows.iloc[0]
    # Of other names, those with classes and those from before these were recorded are the same.
    alike = {
        name: np.array_equal(of["base_images"].iloc[0], first["base_images"])
        for name, of in rows.groupby("instances")
    }
    told = rows["instances"].map(alike) & rows["instance_known"].eq(first["instance_known"])
    others = rows.loc[~told, "cell_id"]
    if len(others):
        raise ResultsError(
            "cells of one comparison were tested on other instances than the rest "
            f"({', '.join(others.head(3))}). Train these again, or record them with the same."
        )


def _unpacked(bits: Iterable[bytes], count: int) -> NDArray[np.bool_]:
    """(S, n) the first `count` of each."""
    packed = [np.frombuffer(each, np.uint8) for each in bits]
    return np.unpackbits(packed, axis=1, count=count).astype(bool)


@functools.lru_cache(maxsize=8)  # for all pairs and metrics of a comparison
def _instances(images: bytes, counted: bytes) -> Instances:
    """Those of which a score is a share.

    Args:
        images: (n k) int64, the base images of each instance, one after another.
        counted: (n,) bool, which of them; at least one.
    """
    of_each = np.frombuffer(images, np.int64).reshape(len(counted), -1)
    return instances_of(of_each[np.frombuffer(counted, bool)])
