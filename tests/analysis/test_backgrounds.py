"""What background images add to a variance: pair by pair, and in simulated studies."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.backgrounds import Backgrounds
from analysis.crossed import Part, crossed_mean, needed

SEEDS, FOREGROUNDS, BACKGROUNDS, HELD = 6, 20, 60, 5


def drawn(
    generator: np.random.Generator, instances: int = 400
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The foreground and the background images of instances."""
    return (
        generator.integers(FOREGROUNDS, size=instances),
        generator.integers(BACKGROUNDS, size=(instances, HELD)),
    )


def test_it_is_the_sum_over_pairs_of_other_foregrounds_and_seeds() -> None:
    generator = np.random.default_rng(0)
    foreground, background = drawn(generator, 30)
    values = generator.standard_normal((3, 30))
    in_common = np.array([[(a[:, None] == b).sum() for b in background] for a in background])
    other = foreground[:, None] != foreground
    residuals = values - values.mean(axis=1, keepdims=True)
    excess = np.where(other, in_common - in_common[other].mean(), 0)
    pairs = [*itertools.permutations(residuals, 2)]
    expected = np.mean([first @ excess @ second for first, second in pairs]) / 30**2
    found = Backgrounds(foreground, background).part(values)
    assert found.variance == pytest.approx(max(expected, 0), rel=1e-10)
    assert found.images == len(np.unique(background))
    # the order of instances and the names of images are arbitrary
    order = generator.permutation(30)
    renamed = Backgrounds(-foreground[order], 7 - 2 * background[order]).part(values[:, order])
    assert renamed.variance == pytest.approx(found.variance, rel=1e-10)


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_it_is_what_new_backgrounds_move_a_mean_by(spread: float) -> None:
    """And neither what foregrounds, seeds and each seed's own backgrounds do, nor chance."""
    generator, estimates, moves = np.random.default_rng(1), [], []
    for _ in range(400):
        foreground, background = drawn(generator)
        of_background = generator.normal(0, spread, BACKGROUNDS)[background].sum(axis=1)
        of_each_seed = generator.normal(0, 0.2, (SEEDS, BACKGROUNDS))[:, background].sum(axis=2)
        others = (
            generator.normal(0, 0.5, (SEEDS, 1))
            + generator.normal(0, 0.5, FOREGROUNDS)[foreground]
            + generator.normal(0, 0.5, (SEEDS, len(foreground)))
        )
        found = Backgrounds(foreground, background).part(of_background + of_each_seed + others)
        estimates.append(found.variance)
        moves.append(of_background.mean())
    error = np.std(estimates) / math.sqrt(len(estimates))
    # instances of one foreground are counted with it, one pair in twenty
    expected = np.var(moves) * (1 - 1 / FOREGROUNDS)
    assert np.mean(estimates) == pytest.approx(expected, abs=3 * error + 0.1 * expected)


def test_it_widens_an_interval_and_is_asked_for() -> None:
    values = np.random.default_rng(2).normal(0.1, 0.2, (6, 40))
    plain, part = crossed_mean(values), Part(0.03**2, 59.0, 60)
    found = crossed_mean(values, backgrounds=part)
    assert found.standard_error == pytest.approx(math.hypot(plain.standard_error, 0.03))
    assert (found.seed_se, found.image_se) == (plain.seed_se, plain.image_se)
    assert (found.background_se, found.num_backgrounds) == (pytest.approx(0.03), 60)
    assert found.high - found.low > plain.high - plain.low
    again = crossed_mean(values, confidence=1 - found.p, backgrounds=part)
    assert min(abs(again.low), abs(again.high)) < 1e-6
    assert needed(found, 0.09, 0.05).seeds > needed(plain, 0.09, 0.05).seeds
    none = crossed_mean(values, backgrounds=Part(0.0, 59.0, 60))
    assert (none.low, none.high, none.p) == (plain.low, plain.high, plain.p)
