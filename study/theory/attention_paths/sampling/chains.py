"""What Markov chains say of an expectation, and how far to believe them.

The diagnostics are those of arviz-stats: rank-normalised split R-hat, the larger of location and
scale, and effective sample size (Vehtari, Gelman, Simpson, Carpenter and Bürkner, Bayesian
Analysis 16, 2021). They read the draws and nothing else; that the chains started far apart is the
sampler's business.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from arviz_stats.base import array_stats

from study.cell.checks import require
from study.theory.attention_paths.checks import Floats

CONVERGED = 1.01
"""Chains whose R-hat is below this count as converged (Vehtari et al., section 4)."""

LEAST_DRAWS = 8
"""A chain must have: its halves are compared, and one of fewer than four draws has no spread."""

_ROUNDING = 1e-12
"""A relative spread below this is rounding: the quantity is a constant."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Expectations of quantities of one shape, from chains.

    Attributes:
        mean: over all chains.
        error: Monte Carlo standard error of `mean`, 0 for a constant.
        r_hat: about 1 once all halves of all chains agree; NaN for a constant, of which chains
            say nothing.
        effective_sample_size: of `mean`, in independent draws; NaN for a constant.
        by_chain: (chains, ...) the mean of each chain.
    """

    mean: Floats
    error: Floats
    r_hat: Floats
    effective_sample_size: Floats
    by_chain: Floats

    def part(self, entries: slice) -> Estimate:
        """Of some entries of the first axis."""
        return Estimate(
            mean=self.mean[entries],
            error=self.error[entries],
            r_hat=self.r_hat[entries],
            effective_sample_size=self.effective_sample_size[entries],
            by_chain=self.by_chain[:, entries],
        )


def estimate(values: Floats) -> Estimate:
    """The expectation of each quantity of which chains hold draws.

    Args:
        values: (chains, draws, ...), in the order in which they were drawn.

    Raises:
        ValueError: fewer than 2 chains or `LEAST_DRAWS` draws, or a value that is not finite.
    """
    values = np.asarray(values, dtype=np.float64)
    require(values.ndim >= 2, "values", values.shape, "of shape (chains, draws, ...)")
    chains, draws, *shape = values.shape
    require(chains >= 2, "chains", chains, ">= 2, as R-hat compares them")
    require(draws >= LEAST_DRAWS, "draws", draws, f">= {LEAST_DRAWS} a chain")
    require(bool(np.isfinite(values).all()), "values", "NaN or infinity", "finite")
    flat = values.reshape(chains, draws, -1)
    mean = flat.mean(axis=(0, 1))
    largest = np.abs(flat).max(axis=(0, 1))
    moves = np.ptp(flat, axis=(0, 1)) > _ROUNDING * largest
    r_hat, size = (np.full(mean.shape, np.nan) for _ in range(2))
    if moves.any():
        axes = {"chain_axis": 0, "draw_axis": 1}
        with np.errstate(divide="ignore"):  # each chain stands still elsewhere: R-hat is inf
            r_hat[moves] = array_stats.rhat(flat[..., moves], **axes)
        size[moves] = array_stats.ess(flat[..., moves], method="mean", **axes)
    spread = flat.std(axis=(0, 1), ddof=1)
    error = np.where(moves, spread / np.sqrt(np.where(moves, size, 1.0)), 0.0)
    return Estimate(
        mean=mean.reshape(shape),
        error=error.reshape(shape),
        r_hat=r_hat.reshape(shape),
        effective_sample_size=size.reshape(shape),
        by_chain=flat.mean(axis=1).reshape(chains, *shape),
    )
