"""Coverage in studies that are drawn from a real one: seeds and images, with replacement.

Backgrounds stay as they are: of mosaics that hold several, no draw with replacement is another
set of mosaics.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from analysis import compare_results
from analysis.comparison.by_image import Scores, scores
from analysis.crossed import crossed_mean
from analysis.learning import share_mean


def resampled(results: str, replicates: int) -> Iterator[tuple[str, ...]]:
    """Shares of studies whose 95 % interval contains what the whole study has.

    Args:
        results: a results directory with instances, such as that of the README.
        replicates: studies that are drawn.

    Yields:
        Setting; paradigm, or two of them; coverage of SAIF and of accuracy.
    """
    for comparison in compare_results(results):
        test = comparison.chosen[comparison.chosen["split"] == "test"].sort_values("seed")
        rows = {str(name): group for name, group in test.groupby("paradigm")}
        for names in [*((name,) for name in rows), *combinations(sorted(rows, reverse=True), 2)]:
            sides = ([scores(rows[n], metric) for n in names] for metric in comparison.metrics)
            shares = (f"{_coverage(*each, replicates=replicates):.3f}" for each in sides)
            yield comparison.name, " - ".join(names), *shares


def _coverage(first: Scores, second: Scores | None = None, *, replicates: int) -> float:
    """Of the mean of one paradigm, or of the difference of two."""
    values = first.shares if second is None else (first - second).shares
    truth = float((values @ first.weights / first.weights.sum()).mean())
    seeds, images = values.shape
    random = np.random.default_rng(0)
    covered = []
    for _ in range(replicates):
        row, column = random.integers(seeds, size=seeds), random.integers(images, size=images)
        drawn, weights = values[np.ix_(row, column)], first.weights[column]
        found = (crossed_mean if second is not None else share_mean)(drawn, weights)
        covered.append(found.low <= truth <= found.high)
    return float(np.mean(covered))
