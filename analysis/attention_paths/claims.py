"""The paper's claims about attention paths (P1 to P6): do they hold on this data?

The claims are read off figure 2 of the paper and its text. It shows one draw of data and heads
and names no thresholds, so each test here states what is measured, which threshold decides and
why. All numbers are of the test split; networks are paired by seed.

A network whose saddle point was not found has diverged: its seed is lost to what needs it, as is
one whose cell failed while other networks of theory (for the claim about sampling, other sampled
ones) have it. Where all seeds of a width that a claim needs are lost, the claim is undecided.
Chains that have not converged are not averaged, and leave the claim about sampling undecided,
unless other chains contradict it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.attention_paths.agreement import pairs
from analysis.attention_paths.measures import LEADING
from analysis.attention_paths.networks import ALL, GOOD, LIMIT, SLICE, THEORY, Vector
from analysis.attention_paths.settings import CONVERGED, VARIANTS, Setting
from analysis.attention_paths.words import (
    LONGER_CHAINS,
    network_text,
    points_text,
    r_hat_text,
)
from analysis.section.claim import LOST, Claim, Finding, Side, decided, inside, side
from analysis.words import listed, percent, three_decimals

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
    """P1 to P6, in this order, as far as they are about the setting's variant."""
    return [_claim(setting, test) for test in _TESTS if setting.variant in test.variants]


class _Need(NamedTuple):
    """Networks that a claim takes: their method, their paths, and both in words."""

    method: str
    paths: str
    words: str


class _Test(NamedTuple):
    """How one claim is tested.

    Attributes:
        name, statement, test: as `Claim` has them.
        variants: the variants that the claim is about.
        needs: networks that it takes, at least one cell of each.
        findings: called where there are seeds of each.
    """

    name: str
    statement: str
    test: str
    variants: Sequence[str]
    needs: Sequence[_Need]
    findings: Callable[[Setting], list[Finding]]


def _claim(setting: Setting, test: _Test) -> Claim:
    said = (test.name, test.statement, f"{test.test} {LOST}")
    for need in test.needs:
        cells, *found = (
            table[(table["method"] == need.method) & (table["paths"] == need.paths)]
            for table in (setting.cells, setting.rows, setting.unconverged)
        )
        if cells.empty:
            text = f"no cell of {need.words}"
            return Claim(*said, "not run", text, setting.name, text)
        if all(table.empty for table in found):
            text = f"all cells of {need.words} diverged"
            return Claim(*said, "undecided", text, setting.name, text)
    return decided(*said, test.findings(setting), setting.name)


# --- what they measure


def _p1(setting: Setting) -> list[Finding]:
    """Figure 2c and e: the samples (black dots) lie on theory's line (blue crosses)."""
    findings, num_seeds = [], _num_seeds(setting, [SLICE])
    for width in setting.sampled_widths:
        both = pairs(setting, width)
        lost = num_seeds - len(both)
        name = f"{SLICE} N={width:g}"
        error, difference = both["predictor_error"], both["accuracy_difference"]
        findings += [
            side(f"{name}, error of the mean predictor", error, PREDICTOR_ERROR, "below", lost),
            inside(
                f"{name}, accuracy of theory minus sampled",
                difference, -ACCURACY_ERROR, ACCURACY_ERROR, points_text, lost,
            ),
        ]  # fmt: skip
    left_out = [
        f"{network_text(row)} seed {row['seed']} (R-hat {r_hat_text(row['r_hat'])})"
        for row in setting.unconverged.to_dict("records")
    ]
    if left_out:
        reason = f"chains that have not converged are left out: {', '.join(left_out)}"
        short = f"chains that have not converged: {LONGER_CHAINS}"
        findings.insert(0, Finding("", (), reason, short))
    return findings


def _p2(setting: Setting) -> list[Finding]:
    """Figure 2c and e: accuracy is above the limit's (red line) and falls towards it with N."""
    widths = _widths(setting)
    gains = _by_width(setting, "gain", widths)
    lost = _num_seeds(setting) - len(gains)
    name = f"accuracy at N={widths[0]:g} minus the limit's"
    first = side(name, gains[:, 0], 0, "above", lost, points_text)
    if len(widths) < 2:
        return [first, Finding("", reason="one width has no trend")]
    name = f"change of the gain for ten times the width, N={_listed(widths)}"
    slopes = _slopes(np.log10(widths), gains)
    return [first, side(name, slopes, 0, "below", lost, points_text)]


def _p3(setting: Setting) -> list[Finding]:
    """Figure 2c and e: theory's line tends to the limit's. The expansion of theory in 1/N, derived
    for this project, begins with U - I of order 1/N.
    """
    widths = _widths(setting)[-LARGEST_WIDTHS:]
    if len(widths) < 2:
        return [Finding("", reason="one width has no exponent")]
    distances = _by_width(setting, "distance", widths)
    exponents = _slopes(np.log(widths), np.log(np.where(distances > 0, distances, np.nan)))
    low, high = -1 - EXPONENT_MARGIN, -1 + EXPONENT_MARGIN
    name, lost = f"exponent between N={_listed(widths)}", _num_seeds(setting) - len(distances)
    found = inside(name, exponents, low, high, "{:.2f}".format, lost)
    if not len(distances):
        return [found]
    shares = ", ".join(percent(share) for share in distances.mean(axis=0))
    return [found, Finding(f"distance from the limit there {shares} % of its predictor")]


def _p4(setting: Setting) -> list[Finding]:
    """Figure 2d: the largest overlap at N = 10 (blue) is far above the limit's (orange)."""
    width = _widths(setting)[0]
    mine, limit = _paired(setting.of(THEORY, width), setting.of(LIMIT), "largest_overlap")
    name = f"largest overlap at N={width:g} minus the limit's"
    lost = _num_seeds(setting) - len(mine)
    found = side(name, mine - limit, 0, "above", lost, "{:+.3f}".format)
    here, there = (three_decimals(each.mean(skipna=False)) for each in (mine, limit))
    return [found, Finding(f"{here} at N={width:g}, {there} in the limit")]


def _p5(setting: Setting) -> list[Finding]:
    """Figure 2e: with strong noise the good and the denoising path together are accurate at small
    width; that their cross kernel does it shows when it is dropped.
    """
    width = _widths(setting)[0]
    rows = setting.of(THEORY, width)
    name = f"accuracy at N={width:g} with minus without the off-diagonal of U"
    lost = _num_seeds(setting) - len(rows)
    found = side(name, rows["interplay"], 0, "above", lost, points_text)
    measures = ("accuracy", "accuracy_diagonal")
    with_, without = (percent(rows[each].mean(skipna=False)) for each in measures)
    return [found, Finding(f"{with_} % with, {without} % without")]


def _p6(setting: Setting, claimed: Side) -> list[Finding]:
    """Figure 2c and e: the limit of all paths (solid red) lies below that of the good one (dashed)
    without strong noise, and above it with.
    """
    every, good = _paired(setting.of(LIMIT), setting.of(LIMIT, paths=GOOD), "accuracy")
    name = "accuracy of the limit with all paths minus with the good one"
    lost = _num_seeds(setting) - len(every)
    found = side(name, every - good, 0, claimed, lost, points_text)
    values = f"{percent(every.mean())} % with all, {percent(good.mean())} % with the good one"
    return [found, Finding(values)]


def _widths(setting: Setting) -> list[float]:
    """The widths of theory, rising, with those at which every seed diverged."""
    cells = setting.cells[(setting.cells["method"] == THEORY) & (setting.cells["paths"] == ALL)]
    return [float(width) for width in cells["network_width"].unique()]


def _by_width(setting: Setting, measure: str, widths: Sequence[float]) -> Vector:
    """(seeds, widths) a measure of theory, of the seeds that have it at all of the widths."""
    found = {width: setting.of(THEORY, width)[measure] for width in widths}
    return pd.DataFrame(found).dropna().to_numpy()


def _paired(
    first: pd.DataFrame, second: pd.DataFrame, measure: str
) -> tuple[pd.Series, pd.Series]:
    """A measure of two networks, of the seeds of both."""
    seeds = first.index.intersection(second.index)
    return first.loc[seeds, measure], second.loc[seeds, measure]


def _slopes(x: Vector, values: Vector) -> Vector:
    """(seeds,) slope of the least-squares line through each row (seeds, len(x)); NaN with NaN."""
    centred = x - np.mean(x)
    return np.asarray(values @ centred / np.sum(centred**2))


def _num_seeds(setting: Setting, methods: Sequence[str] = (THEORY, LIMIT)) -> int:
    """How many seeds the networks of these methods have."""
    return int(setting.cells.loc[setting.cells["method"].isin(methods), "seed"].nunique())


def _listed(widths: Sequence[float]) -> str:
    return listed([f"{width:g}" for width in widths])


# --- what they say


_THEORY = _Need(THEORY, ALL, "theory")
_SAMPLED = _Need(SLICE, ALL, "sampling")
_LIMIT = _Need(LIMIT, ALL, "the limit with all paths")
_GOOD_LIMIT = _Need(LIMIT, GOOD, "the limit with the good path alone")

_TESTS = (
    _Test(
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
        VARIANTS,
        [_THEORY, _SAMPLED],
        _p1,
    ),
    _Test(
        "P2",
        "At finite width the network is more accurate than in the limit of infinite width, and "
        "the gain falls as the width grows.",
        "Accuracy of theory minus that of the limit with all paths, seed by seed: (1) at the "
        "smallest width; (2) the slope of a straight line through all widths against log N. Holds "
        "where the 95 % interval over seeds of (1) lies above 0 and that of (2) below.",
        VARIANTS,
        [_THEORY, _LIMIT],
        _p2,
    ),
    _Test(
        "P3",
        "With growing width the network tends to its limit as 1/N.",
        "Root mean square distance of theory's mean predictor from the limit's over the test "
        "split, and the slope of its logarithm against log N through the "
        f"{LARGEST_WIDTHS} largest widths (two, where there are no more), seed by seed. Holds "
        f"where the 95 % interval over seeds lies within {EXPONENT_MARGIN:g} of -1: nearer to it "
        "than to -1/2. Does not hold where it lies beyond; at widths that are not far above P, "
        "that may only say that the limit is not near.",
        VARIANTS,
        [_THEORY, _LIMIT],
        _p3,
    ),
    _Test(
        "P4",
        "At finite width the kernel is better aligned with the task: its leading principal "
        "components overlap more with the labels than the limit's.",
        "Largest absolute cosine between the labels of the training inputs and one of the "
        f"{LEADING} principal components with the largest eigenvalues (as many as the paper "
        "shows), at the smallest width minus in the limit with all paths, seed by seed. Holds "
        "where the 95 % interval over seeds lies above 0.",
        VARIANTS,
        [_THEORY, _LIMIT],
        _p4,
    ),
    _Test(
        "P5",
        "With strong noise the interplay of paths matters: without the off-diagonal of U the "
        "network is less accurate.",
        "Accuracy of theory at the smallest width minus that with the off-diagonal of U set to 0, "
        "seed by seed. Holds where the 95 % interval over seeds lies above 0. The claim is about "
        "the noisy variant; the tables show the same of all.",
        ("noisy",),
        [_THEORY],
        _p5,
    ),
    _Test(
        "P6",
        "In the limit, all paths together are less accurate than the good path alone.",
        "Accuracy of the limit with all paths minus that with the good path, seed by seed. In "
        "the plain variant the claim holds where the 95 % interval over seeds lies below 0; with "
        "strong noise the paper finds the other sign.",
        ("plain",),
        [_LIMIT, _GOOD_LIMIT],
        functools.partial(_p6, claimed="below"),
    ),
    _Test(
        "P6",
        "With strong noise, all paths together are more accurate in the limit than the good path "
        "alone.",
        "Accuracy of the limit with all paths minus that with the good path, seed by seed. In "
        "the noisy variant the claim holds where the 95 % interval over seeds lies above 0; "
        "without strong noise the paper finds the other sign.",
        ("noisy",),
        [_LIMIT, _GOOD_LIMIT],
        functools.partial(_p6, claimed="above"),
    ),
)
