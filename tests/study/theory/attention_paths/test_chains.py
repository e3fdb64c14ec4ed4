"""Means, errors, R-hat and effective sample size, on chains whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from study.theory.attention_paths.sampling.chains import LEAST_DRAWS, estimate
from tests.made_up.attention_paths import Floats


def autoregressive(memory: float, chains: int, draws: int, count: int, seed: int = 0) -> Floats:
    """(chains, draws, count) of variance 1, stationary: x_t = memory x_(t-1) + noise."""
    random = np.random.default_rng(seed)
    noise = random.normal(size=(chains, draws, count)) * math.sqrt(1 - memory**2)
    noise[:, 0] /= math.sqrt(1 - memory**2)
    return lfilter([1.0], [1.0, -memory], noise, axis=1)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9, -0.5])
def test_the_effective_size_and_error_of_an_autoregressive_chain(memory: float) -> None:
    """n (1 - memory) / (1 + memory), to 10 %, over 40 quantities."""
    chains, draws = 4, 2000
    found = estimate(autoregressive(memory, chains, draws, 40))
    size = chains * draws * (1 - memory) / (1 + memory)
    assert found.effective_sample_size.mean() == pytest.approx(size, rel=0.1)
    assert found.error.mean() == pytest.approx(1 / math.sqrt(size), rel=0.1)
    # 40 means in units of their errors: their root mean square is 1 +- .11
    assert math.sqrt(np.mean((found.mean / found.error) ** 2)) == pytest.approx(1, abs=0.35)
    assert found.r_hat.max() < 1.02


def test_chains_in_two_places_have_a_large_r_hat() -> None:
    values = autoregressive(0.0, 4, 500, 2)
    values[0, :, 1] += 3
    r_hat = estimate(values).r_hat
    assert r_hat[0] < 1.01 < 1.3 < r_hat[1]


def test_chains_of_two_widths_have_a_large_r_hat() -> None:
    values = autoregressive(0.0, 4, 500, 1)
    values[0] *= 4
    assert estimate(values).r_hat[0] > 1.05


def test_a_drift_within_chains_is_seen() -> None:
    values = autoregressive(0.0, 4, 500, 1) + np.linspace(0, 3, 500)[:, None]
    assert estimate(values).r_hat[0] > 1.2


def test_constants_are_known_exactly_and_have_no_r_hat() -> None:
    values = autoregressive(0.0, 3, 100, 2)
    values[..., 1] = 0.1
    found = estimate(values)
    assert found.mean[1] == pytest.approx(0.1)
    assert found.error[1] == 0
    assert np.isnan(found.r_hat[1])
    assert np.isnan(found.effective_sample_size[1])


def test_chains_that_stand_still_elsewhere_never_agree() -> None:
    still = np.broadcast_to(np.arange(4.0)[:, None, None], (4, 100, 1))
    assert estimate(still).r_hat[0] > 1e6


def test_shapes_are_those_of_the_quantity() -> None:
    values = autoregressive(0.3, 3, 50, 6).reshape(3, 50, 2, 3)
    found = estimate(values)
    for each in (found.mean, found.error, found.r_hat, found.effective_sample_size):
        assert each.shape == (2, 3)
    np.testing.assert_allclose(found.by_chain, values.mean(axis=1))
    np.testing.assert_allclose(found.mean, values.mean(axis=(0, 1)))
    assert found.part(slice(1, None)).by_chain.shape == (3, 1, 3)
    assert estimate(values[..., 0, 0]).mean.shape == ()
    assert estimate(values[..., :0]).mean.shape == (2, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((1, 50)), "chains must be >= 2"),
        (np.zeros((2, LEAST_DRAWS - 1)), "draws must be >= 8"),
        (np.full((2, 50), np.nan), "values must be finite"),
        (np.zeros(50), "of shape"),
    ],
)
def test_bad_chains_are_refused(values: Floats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(values)
