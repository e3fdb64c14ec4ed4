"""What background images add to a variance: pair by pair, and in simulated studies."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from analysis.backgrounds import Backgrounds
from analysis.crossed import Part, crossed_mean, needed

SEEDS, FOREGROUNDS, BACKGROUNDS, HELD, SIZE = 6, 20, 60, 5, 200


def test_it_is_the_sum_over_pairs_of_other_foregrounds_and_seeds() -> None:
    generator = np.random.default_rng(0)
    foreground, background = (
        generator.integers(FOREGROUNDS, size=30),
        generator.integers(BACKGROUNDS, size=(30, HELD)),
    )
    values = generator.standard_normal((3, 30))
    in_common = np.array([[(a[:, None] == b).sum() for b in background] for a in background])
    other = foreground[:, None] != foreground
    residuals = values - values.mean(axis=1, keepdims=True)
    excess = np.where(other, in_common - in_common[other].mean(), 0)
    pairs = [*itertools.permutations(residuals, 2)]
    products = np.mean([first @ excess @ second for first, second in pairs])
    centre = np.eye(30) - 1 / 30
    of_one = (excess * (centre @ in_common @ centre)).sum()  # what a variance of 1 would give
    expected = in_common[other].mean() * products / of_one
    found = Backgrounds(foreground, background).part(values)
    assert found.variance == pytest.approx(expected, rel=1e-10)
    assert found.images == len(np.unique(background))
    # the order of instances and the names of images are arbitrary
    order = generator.permutation(30)
    renamed = Backgrounds(-foreground[order], 7 - 2 * background[order]).part(values[:, order])
    assert renamed.variance == pytest.approx(found.variance, rel=1e-10)


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_it_is_the_covariance_through_new_backgrounds(spread: float) -> None:
    """And neither what foregrounds, seeds and each seed's own backgrounds do, nor chance.

    Some backgrounds are more frequent than others.
    """
    generator, found = np.random.default_rng(1), []
    normal, rank = generator.normal, np.arange(1, BACKGROUNDS + 1)
    frequency = 1 / rank / (1 / rank).sum()
    for _ in range(600):
        foreground = generator.integers(FOREGROUNDS, size=SIZE)
        background = generator.choice(BACKGROUNDS, (SIZE, HELD), p=frequency)
        of_background = normal(0, spread, BACKGROUNDS)[background].sum(axis=1)
        of_each_seed = normal(0, 0.1, (SEEDS, BACKGROUNDS))[:, background].sum(axis=2)
        of_foreground = normal(0, 0.3, FOREGROUNDS)[foreground]
        others = normal(0, 0.5, (SEEDS, 1)) + of_foreground + normal(0, 0.3, (SEEDS, SIZE))
        part = Backgrounds(foreground, background).part(of_background + of_each_seed + others)
        held = np.stack([np.bincount(each, minlength=BACKGROUNDS) for each in background])
        in_common = (held @ held.T)[foreground[:, None] != foreground].mean()
        found.append(part.variance - spread**2 * in_common)
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found)) < 3 * error
    assert spread == 0 or error < 0.1 * spread**2 * in_common


def test_instances_with_the_same_backgrounds_do_not_tell_them_apart() -> None:
    foreground, background = np.arange(12) % 4, np.tile([1, 2, 3], (12, 1))
    assert not Backgrounds(foreground, background).is_known


def test_it_widens_an_interval_and_is_asked_for() -> None:
    values = np.random.default_rng(2).normal(0.1, 0.2, (6, 40))
    plain, none, found = (
        crossed_mean(values, backgrounds=part)
        for part in (None, Part(0.0, 59.0, 60), Part(0.03**2, 59.0, 60))
    )
    assert (none.low, none.high, none.p) == (plain.low, plain.high, plain.p)
    assert found.standard_error == pytest.approx(math.hypot(plain.standard_error, 0.03))
    assert (found.seed_se, found.image_se) == (plain.seed_se, plain.image_se)
    assert (found.background_se, found.num_backgrounds) == (pytest.approx(0.03), 60)
    assert found.high - found.low > plain.high - plain.low
    again = crossed_mean(values, confidence=1 - found.p, backgrounds=Part(0.03**2, 59.0, 60))
    assert min(abs(again.low), abs(again.high)) < 1e-6
    assert needed(found, 0.09, 0.05).seeds > needed(plain, 0.09, 0.05).seeds
