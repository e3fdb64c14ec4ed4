"""What the paper claims of theory beside sampling: P1 to P6, see `path_claims`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.forms import listed, percent, three_decimals
from analysis.rules.claim import Claim, Finding, Side, inside, side
from chapters.paths.attention_paths import CONVERGED
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY
from chapters.paths.section.networks import GOOD, line, network_text, r_hat_text
from chapters.paths.section.path_claims import Need, Test, claims_of, points_text
from chapters.paths.section.settings import LEADING, LONGER_CHAINS, UNCONVERGED, Setting, Vector
from chapters.paths.section.theory.theory_settings import pairs

PREDICTOR_ERROR = 0.05
"""Share of the sampled mean predictor by which theory's may be off. Theory is exact for large N
and P; at the paper's size what it neglects is 1 to 2 % of the predictor, so three times as much
would be another theory."""

ACCURACY_ERROR = 0.01
"""Accuracy by which theory may be off: 10 of the 1,000 test sequences, a tenth of what the
finite width brings at the paper's size."""

EXPONENT_MARGIN = 0.25
"""How far an exponent may be from -1: half of the way to -1/2, the slowest other law that an
expansion in widths gives."""

LARGEST_WIDTHS = 3
"""Number of widths, the largest, between which the exponent is measured."""


def claims(setting: Setting) -> list[Claim]:
    """P1 to P6, as far as they are about the setting's variant."""
    return claims_of(setting, _TESTS)


def _p1(setting: Setting) -> list[Finding]:
    """Figure 2c and e: the samples (black dots) lie on theory's line (blue crosses)."""
    findings, cells = [], setting.cells
    left_out = [
        f"{network_text(row)} seed {row['seed']} (R-hat {r_hat_text(row['r_hat'])})"
        for row in cells[cells["status"] == UNCONVERGED].to_dict("records")
    ]
    if left_out:
        reason = f"chains that have not converged are left out: {', '.join(left_out)}"
        short = f"chains that have not converged: {LONGER_CHAINS}"
        findings.append(Finding("", (), reason, short))
    by_width, sampled = pairs(setting), line(cells, SLICE)["seed"].nunique()
    for width in setting.widths_of(SLICE):
        both, name = by_width[by_width["network_width"] == width], f"{SLICE} N={width:g}"
        lost = sampled - len(both)
        error, difference = both["predictor_error"], both["accuracy_difference"]
        findings += [
            side(f"{name}, error of the mean predictor", error, PREDICTOR_ERROR, "below", lost),
            inside(
                f"{name}, accuracy of theory minus sampled",
                difference, -ACCURACY_ERROR, ACCURACY_ERROR, points_text, lost,
            ),
        ]  # fmt: skip
    return findings


def _p2(setting: Setting) -> list[Finding]:
    """Figure 2c and e: accuracy is above the limit's (red line) and falls towards it with N."""
    widths = setting.widths_of(THEORY)
    gains = _values(setting, "gain", *((THEORY, width) for width in widths)).dropna()
    first = _side(setting, f"accuracy at N={widths[0]:g} minus the limit's", gains[0])
    if len(widths) < 2:
        return [first, Finding("", reason="one width has no trend")]
    name = f"change of the gain for ten times the width, N={_listed(widths)}"
    return [first, _side(setting, name, _slopes(np.log10(widths), gains), "below")]


def _p3(setting: Setting) -> list[Finding]:
    """Figure 2c and e: theory's line tends to the limit's. The expansion of theory in 1/N, derived
    for this project, begins with U - I of order 1/N.
    """
    widths = setting.widths_of(THEORY)[-LARGEST_WIDTHS:]
    if len(widths) < 2:
        return [Finding("", reason="one width has no exponent")]
    distances = _values(setting, "distance", *((THEORY, width) for width in widths)).dropna()
    logs = distances.where(distances > 0).map(np.log)
    exponents = _slopes(np.log(widths), logs)
    low, high = -1 - EXPONENT_MARGIN, -1 + EXPONENT_MARGIN
    name, lost = f"exponent between N={_listed(widths)}", _lost(setting, distances)
    found = inside(name, exponents, low, high, "{:.2f}".format, lost)
    if not len(distances):
        return [found]
    shares = ", ".join(map(percent, distances.mean()))
    return [found, Finding(f"distance from the limit there {shares} % of its predictor")]


def _p4(setting: Setting) -> list[Finding]:
    """Figure 2d: the largest overlap at N = 10 (blue) is far above the limit's (orange)."""
    width = setting.reference
    both = _values(setting, "largest_overlap", (THEORY, width), (LIMIT,))
    name = f"largest overlap at N={width:g} minus the limit's"
    found = _side(setting, name, both[0] - both[1], form="{:+.3f}".format)
    return [found, _means(both, three_decimals, f"{{}} at N={width:g}, {{}} in the limit")]


def _p5(setting: Setting) -> list[Finding]:
    """Figure 2e: with strong noise the good and the denoising path together are accurate at small
    width; that their cross kernel does it shows when it is dropped.
    """
    rows = setting.of(THEORY, setting.reference)
    name = f"accuracy at N={setting.reference:g} with minus without the off-diagonal of U"
    both = rows[["accuracy", "accuracy_diagonal"]]
    found = _side(setting, name, rows["interplay"])
    return [found, _means(both, percent, "{} % with, {} % without")]


def _p6(setting: Setting, claimed: Side) -> list[Finding]:
    """Figure 2c and e: the limit of all paths (solid red) lies below that of the good one (dashed)
    without strong noise, and above it with.
    """
    both = _values(setting, "accuracy", (LIMIT,), (LIMIT, math.inf, GOOD))
    name = "accuracy of the limit with all paths minus with the good one"
    found = _side(setting, name, both[0] - both[1], claimed)
    return [found, _means(both, percent, "{} % with all, {} % with the good one")]


def _means(values: pd.DataFrame, form: Callable[[float], str], text: str) -> Finding:
    """Only shown: the mean over seeds of each column, in a text."""
    return Finding(text.format(*map(form, values.mean(skipna=False))))


def _values(setting: Setting, measure: str, *networks: tuple[Any, ...]) -> pd.DataFrame:
    """(seeds, networks) a measure of networks, of the seeds that all of them have."""
    found = [setting.of(*network)[measure] for network in networks]
    return pd.concat(found, axis="columns", join="inner", keys=range(len(found)))


def _side(
    setting: Setting,
    name: str,
    values: pd.Series,
    claimed: Side = "above",
    form: Callable[[float], str] = points_text,
) -> Finding:
    """On which side of 0 the values of theory or its limit lie, one a seed."""
    return side(name, values, 0, claimed, _lost(setting, values), form)


def _lost(setting: Setting, values: pd.Series | pd.DataFrame) -> int:
    """How many seeds of theory and its limit have no such value."""
    of_both = setting.cells["method"].isin([THEORY, LIMIT])
    return setting.cells.loc[of_both, "seed"].nunique() - len(values)


def _slopes(x: Vector, values: pd.DataFrame) -> pd.Series:
    """(seeds,) slope of the least-squares line through each row (seeds, len(x)); NaN with NaN."""
    centred = x - np.mean(x)
    return values @ centred / np.sum(centred**2)


def _listed(widths: Sequence[float]) -> str:
    return listed([f"{width:g}" for width in widths])


_THEORY = Need([THEORY], "theory")
_SAMPLED = Need([SLICE], "sampling")
_LIMIT = Need([LIMIT], "the limit with all paths")
_GOOD_LIMIT = Need([LIMIT], "the limit with the good path alone", GOOD)

_TESTS = (
    Test(
        "P1",
        "Theory predicts the accuracy and the mean predictor of sampled networks at every width.",
        "At every sampled width, seed by seed: (1) root mean square distance of theory's mean "
        "predictor from the sampled one over the test split, as a share of the latter; (2) "
        "accuracy of theory minus sampled. Holds where all 95 % intervals over seeds lie below "
        f"{100 * PREDICTOR_ERROR:g} % and within {100 * ACCURACY_ERROR:g} point of 0. What theory "
        "neglects is 1 to 2 % of the predictor at the paper's size; a point is a tenth of what "
        "the finite width brings there. The sampled mean's own Monte Carlo error is part of (1). "
        f"Chains with an R-hat of {CONVERGED:g} or more are left out, and where nothing else "
        "contradicts the claim, they leave it undecided.",
        [_THEORY, _SAMPLED],
        _p1,
    ),
    Test(
        "P2",
        "At finite width the network is more accurate than in the limit of infinite width, and "
        "the gain falls as the width grows.",
        "Accuracy of theory minus that of the limit with all paths, seed by seed: (1) at the "
        "smallest width; (2) the slope of a straight line through all widths against log N. Holds "
        "where the 95 % interval over seeds of (1) lies above 0 and that of (2) below.",
        [_THEORY, _LIMIT],
        _p2,
    ),
    Test(
        "P3",
        "With growing width the network tends to its limit as 1/N.",
        "Root mean square distance of theory's mean predictor from the limit's over the test "
        "split, and the slope of its logarithm against log N through the "
        f"{LARGEST_WIDTHS} largest widths (two, where there are no more), seed by seed. Holds "
        f"where the 95 % interval over seeds lies within {EXPONENT_MARGIN:g} of -1: nearer to it "
        "than to -1/2. Does not hold where it lies beyond; at widths that are not far above P, "
        "that may only say that the limit is not near.",
        [_THEORY, _LIMIT],
        _p3,
    ),
    Test(
        "P4",
        "At finite width the kernel is better aligned with the task: its leading principal "
        "components overlap more with the labels than the limit's.",
        "Largest absolute cosine between the labels of the training inputs and one of the "
        f"{LEADING} principal components with the largest eigenvalues (as many as the paper "
        "shows), at the smallest width minus in the limit with all paths, seed by seed. Holds "
        "where the 95 % interval over seeds lies above 0.",
        [_THEORY, _LIMIT],
        _p4,
    ),
    Test(
        "P5",
        "With strong noise the interplay of paths matters: without the off-diagonal of U the "
        "network is less accurate.",
        "Accuracy of theory at the smallest width minus that with the off-diagonal of U set to 0, "
        "seed by seed. Holds where the 95 % interval over seeds lies above 0. The claim is about "
        "the noisy variant; the tables show the same of all.",
        [_THEORY],
        _p5,
        ["noisy"],
    ),
    Test(
        "P6",
        "In the limit, all paths together are less accurate than the good path alone.",
        "Accuracy of the limit with all paths minus that with the good path, seed by seed. In "
        "the plain variant the claim holds where the 95 % interval over seeds lies below 0; with "
        "strong noise the paper finds the other sign.",
        [_LIMIT, _GOOD_LIMIT],
        functools.partial(_p6, claimed="below"),
        ["plain"],
    ),
    Test(
        "P6",
        "With strong noise, all paths together are more accurate in the limit than the good path "
        "alone.",
        "Accuracy of the limit with all paths minus that with the good path, seed by seed. In "
        "the noisy variant the claim holds where the 95 % interval over seeds lies above 0; "
        "without strong noise the paper finds the other sign.",
        [_LIMIT, _GOOD_LIMIT],
        functools.partial(_p6, claimed="above"),
        ["noisy"],
    ),
)
