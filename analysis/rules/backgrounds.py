"""What background images add to the variance of a mean over instances.

An instance holds a foreground image and further ones, its background. Instances that share a
background image succeed and fail together beyond what their foregrounds and the seed explain. The
model of the score of instance t with seed s is

    y[s, t] = mu + A_s + B_f(t) + sum_{b in t} C_b + (interactions with s) + E_st,

with independent terms, of which `analysis.rules.crossed` takes A and B from the shares of
foreground images. With o_tu background images in common, two instances of *other* foregrounds have
the covariance o_tu var(C). The sum over such pairs of the products of their residuals,

    Q = sum_{f(t) != f(u)} (o_tu - o) r_t r_u,    o the mean of o_tu over these pairs,

has the expectation X var(C), where X follows from the o_tu alone: residuals are taken from the
mean over all instances, which takes the means of row and column off each o_tu. So o Q / X is
without bias the mean covariance of two instances of other foregrounds, whatever backgrounds the
instances hold. That is what they add to the variance of the mean: the spread over foregrounds is
one of foregrounds that have this covariance in common, and what is common does not spread.

Nothing is counted twice: the spread over foregrounds has what backgrounds add to instances of one
foreground, so such pairs are left out; that over seeds has what each seed makes of a background,
so residuals of one seed are multiplied with those of another.

Clusters in several dimensions: Cameron, Gelbach & Miller, Journal of Business & Economic
Statistics 29 (2011); variance components from quadratic forms: Searle, Casella & McCulloch (1992).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from analysis.rules.crossed import Part, image_df

_ROUNDING = 1e-9

Floats = NDArray[np.float64]


class Backgrounds:
    """The background images of the instances of a split.

    Args:
        foreground: (n,) the foreground image of each instance.
        background: (n, k) its background images, k >= 1; one may be there several times.

    Attributes:
        is_known: whether they tell their part: not where all instances of other foregrounds have
            as many in common.
        df: degrees of freedom of a spread over background images.
    """

    def __init__(self, foreground: NDArray[np.int64], background: NDArray[np.int64]) -> None:
        n, k = background.shape
        instance = np.repeat(np.arange(n), k)
        image = np.unique(background, return_inverse=True)[1].ravel()
        source = np.unique(foreground, return_inverse=True)[1]
        both = source[instance] * (image.max() + 1) + image
        self._of_image = _sums(image, instance)
        self._of_both = _sums(np.unique(both, return_inverse=True)[1], instance)
        self._of_foreground = _sums(source, np.arange(n))
        held = self._of_image.sum(axis=1)
        # Of each instance t: sums of o_tu over all u, over those of other foregrounds, their count
        of_all = self._of_image.T @ held
        of_others = of_all - self._of_both.T @ self._of_both.sum(axis=1)
        others = n - self._of_foreground.T @ self._of_foreground.sum(axis=1)
        self._in_common = of_others.sum() / others.sum() if others.any() else 0.0
        squares = _squares(self._of_image @ self._of_image.T)
        squares -= _squares(self._of_both.T @ self._of_both)
        centred = squares - 2 * of_all @ of_others / n + of_all.mean() / n * of_others.sum()
        centred -= self._in_common * (
            of_others.sum() - 2 * of_all @ others / n + of_all.mean() / n * others.sum()
        )
        alone = self._in_common == 0  # each varies with the one foreground that it stands beside
        self.is_known = alone or bool(centred > _ROUNDING * squares)
        self._expected = 1.0 if alone else centred
        self.df = image_df(held)
        self._images = len(held)

    def part(self, values: Floats) -> Part:
        """What they add to the variance of the mean over seeds and instances.

        Args:
            values: (S, n) score of each instance with each seed, S >= 2.

        Returns:
            An estimate without bias, so it may be below 0.
        """
        residuals = (values - values.mean(axis=1, keepdims=True)).T
        products = (
            _between_seeds(self._of_image @ residuals)
            - _between_seeds(self._of_both @ residuals)
            + self._in_common * _between_seeds(self._of_foreground @ residuals)
        )
        return Part(self._in_common * products / self._expected, self.df, self._images)


def _sums(group: NDArray[np.int64], instance: NDArray[np.int64]) -> csr_array:
    """(groups, n) by which a product sums over the instances of each group."""
    return csr_array((np.ones(len(group)), (group, instance)))


def _squares(matrix: csr_array) -> float:
    return float((matrix.data**2).sum())


def _between_seeds(sums: Floats) -> float:
    """Mean over pairs of unlike seeds, summed over groups, of products of sums (groups, S)."""
    seeds = sums.shape[1]
    return float((sums.sum(axis=1) ** 2).sum() - (sums**2).sum()) / (seeds * (seeds - 1))
