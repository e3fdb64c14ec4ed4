"""What background images add to the variance of a mean over instances.

An instance holds a foreground image and further ones, its background. Instances that share a
background image succeed and fail together beyond what their foregrounds and the seed explain. The
model of the score of instance t with seed s is

    y[s, t] = mu + A_s + B_f(t) + sum_{b in t} C_b + (interactions with s) + E_st,

with independent terms, of which `analysis.crossed` takes A and B from the shares of foreground
images. The products of the residuals of two instances of *other* foregrounds estimate C: with
o_tu background images in common, they are

    1/n^2 sum_{f(t) != f(u)} (o_tu - mean of o) r_t r_u,

what C adds to the variance of the mean over instances. Residuals sum to 0, which takes the mean of
o off its expectation; of backgrounds that are drawn independently, o has a Poisson distribution,
whose variance is its mean, so nothing is left over. Products of instances of one foreground are
left out, since the spread over foregrounds has what backgrounds add to these. Residuals of one
seed are multiplied with those of another, since the spread over seeds has what each seed makes of
a background. So nothing is counted twice.

The method is that of clusters in several dimensions (Cameron, Gelbach & Miller, Journal of
Business & Economic Statistics 29, 2011), without the pairs that other parts have counted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from analysis.crossed import Part, image_df

Floats = NDArray[np.float64]


class Backgrounds:
    """The background images of the instances of a split.

    Args:
        foreground: (n,) the foreground image of each instance.
        background: (n, k) its background images, k >= 1; one may be there several times.

    Attributes:
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
        held, shared, instances = (
            each.sum(axis=1) for each in (self._of_image, self._of_both, self._of_foreground)
        )
        pairs = n**2 - (instances**2).sum()
        self._in_common = ((held**2).sum() - (shared**2).sum()) / pairs if pairs else 0.0
        self.df = image_df(held)
        self._images = len(held)

    def part(self, values: Floats) -> Part:
        """What they add to the variance of the mean over seeds and instances.

        Args:
            values: (S, n) score of each instance with each seed, S >= 2.
        """
        residuals = (values - values.mean(axis=1, keepdims=True)).T
        products = (
            _between_seeds(self._of_image @ residuals)
            - _between_seeds(self._of_both @ residuals)
            + self._in_common * _between_seeds(self._of_foreground @ residuals)
        )
        return Part(max(products, 0.0) / len(residuals) ** 2, self.df, self._images)


def _sums(group: NDArray[np.int64], instance: NDArray[np.int64]) -> csr_array:
    """(groups, n) by which a product sums over the instances of each group."""
    return csr_array((np.ones(len(group)), (group, instance)))


def _between_seeds(sums: Floats) -> float:
    """Mean over pairs of unlike seeds, summed over groups, of products of sums (groups, S)."""
    seeds = sums.shape[1]
    return float((sums.sum(axis=1) ** 2).sum() - (sums**2).sum()) / (seeds * (seeds - 1))
