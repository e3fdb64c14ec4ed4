"""The paper's claims about attention paths (P1 to P9): do they hold on this data?

The claims are read off figures 2 and 3 of the paper and its text. It shows one draw of data and
heads, or one network, and names no thresholds, so each test here states what is measured, which
threshold decides and why. All numbers are of the test split; networks are paired by seed.

A network whose saddle point was not found has diverged: its seed is lost to what needs it, as is
one whose cell is missing while other networks of theory (for the claim about sampling, other
sampled ones; of trained networks, any other cell) have it. Where all seeds of a width that a claim
needs are lost, the claim is undecided. Chains that have not converged are not averaged, and leave
the claim about sampling undecided, unless other chains contradict it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.forms import listed, percent, three_decimals
from analysis.rules.claim import LOST, Claim, Finding, Side, decided, inside, side
from chapters.paths.attention_paths import CONVERGED
from chapters.paths.heads.heads_cell import RANDOM, SIMPLE
from chapters.paths.posterior.posterior_cell import LIMIT, SLICE, THEORY
from chapters.paths.section.means import pairs
from chapters.paths.section.networks import (
    ALL,
    GOOD,
    LONGER_CHAINS,
    Vector,
    network_text,
    points_text,
    r_hat_text,
)
from chapters.paths.section.pruned import differences, scored
from chapters.paths.section.settings import LEADING, VARIANTS, Setting
from chapters.paths.section.trained import ON_TEST, Trained

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


@functools.singledispatch
def claims(setting: Setting) -> list[Claim]:
    """P1 to P6, as far as they are about the setting's variant."""
    return [_claim(setting, test) for test in _OF_THEORY if setting.variant in test.variants]


@claims.register
def of_trained(setting: Trained) -> list[Claim]:
    """P7 to P9."""
    return [_claim(setting, test) for test in _OF_TRAINED]


class _Need(NamedTuple):
    """Networks that a claim takes: any of these methods with these paths, and both in words."""

    methods: Sequence[str]
    words: str
    paths: str = ALL


class _Test(NamedTuple):
    """How one claim is tested.

    Attributes:
        name, statement, test: as `Claim` has them.
        needs: networks that it takes, at least one cell of each.
        findings: called with a setting that has seeds of each.
        variants: the variants that the claim is about.
    """

    name: str
    statement: str
    test: str
    needs: Sequence[_Need]
    findings: Callable[[Any], list[Finding]]
    variants: Sequence[str] = VARIANTS


def _claim(setting: Setting, test: _Test) -> Claim:
    said = (test.name, test.statement, f"{test.test} {LOST}")
    if setting.chosen_on_test:
        return Claim(*said, "undecided", ON_TEST, setting.name, ON_TEST)
    for need in test.needs:
        cells, *found = (
            (table["method"].isin(need.methods) & (table["paths"] == need.paths)).any()
            for table in (setting.cells, setting.rows, setting.unconverged)
        )
        if not cells:
            text = f"no cell of {need.words}"
            return Claim(*said, "not run", text, setting.name, text)
        if not any(found):
            text = f"all cells of {need.words} diverged"
            return Claim(*said, "undecided", text, setting.name, text)
    return decided(*said, test.findings(setting), setting.name)


# --- what they measure: theory beside sampling


def _p1(setting: Setting) -> list[Finding]:
    """Figure 2c and e: the samples (black dots) lie on theory's line (blue crosses)."""
    findings = []
    left_out = [
        f"{network_text(row)} seed {row['seed']} (R-hat {r_hat_text(row['r_hat'])})"
        for row in setting.unconverged.to_dict("records")
    ]
    if left_out:
        reason = f"chains that have not converged are left out: {', '.join(left_out)}"
        short = f"chains that have not converged: {LONGER_CHAINS}"
        findings.append(Finding("", (), reason, short))
    for width in setting.widths_of(SLICE):
        both, name = pairs(setting, width), f"{SLICE} N={width:g}"
        lost = setting.num_seeds(SLICE) - len(both)
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
    gains = _by_width(setting, "gain", widths)
    first = _side(setting, f"accuracy at N={widths[0]:g} minus the limit's", gains[:, 0])
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
    distances = _by_width(setting, "distance", widths)
    exponents = _slopes(np.log(widths), np.log(np.where(distances > 0, distances, np.nan)))
    low, high = -1 - EXPONENT_MARGIN, -1 + EXPONENT_MARGIN
    name, lost = f"exponent between N={_listed(widths)}", _lost(setting, distances)
    found = inside(name, exponents, low, high, "{:.2f}".format, lost)
    if not len(distances):
        return [found]
    shares = ", ".join(percent(share) for share in distances.mean(axis=0))
    return [found, Finding(f"distance from the limit there {shares} % of its predictor")]


def _p4(setting: Setting) -> list[Finding]:
    """Figure 2d: the largest overlap at N = 10 (blue) is far above the limit's (orange)."""
    width = setting.widths_of(THEORY)[0]
    both = _both(setting.of(THEORY, width), setting.of(LIMIT), "largest_overlap")
    name = f"largest overlap at N={width:g} minus the limit's"
    found = _side(setting, name, both["first"] - both["second"], form="{:+.3f}".format)
    here, there = map(three_decimals, both.mean(skipna=False))
    return [found, Finding(f"{here} at N={width:g}, {there} in the limit")]


def _p5(setting: Setting) -> list[Finding]:
    """Figure 2e: with strong noise the good and the denoising path together are accurate at small
    width; that their cross kernel does it shows when it is dropped.
    """
    width = setting.widths_of(THEORY)[0]
    rows = setting.of(THEORY, width)
    name = f"accuracy at N={width:g} with minus without the off-diagonal of U"
    accuracies = rows[["accuracy", "accuracy_diagonal"]].mean(skipna=False)
    with_, without = map(percent, accuracies)
    return [
        _side(setting, name, rows["interplay"]),
        Finding(f"{with_} % with, {without} % without"),
    ]


def _p6(setting: Setting, claimed: Side) -> list[Finding]:
    """Figure 2c and e: the limit of all paths (solid red) lies below that of the good one (dashed)
    without strong noise, and above it with.
    """
    both = _both(setting.of(LIMIT), setting.of(LIMIT, paths=GOOD), "accuracy")
    name = "accuracy of the limit with all paths minus with the good one"
    every, good = map(percent, both.mean())
    return [
        _side(setting, name, both["first"] - both["second"], claimed),
        Finding(f"{every} % with all, {good} % with the good one"),
    ]


def _side(
    setting: Setting,
    name: str,
    values: ArrayLike,
    claimed: Side = "above",
    form: Callable[[float], str] = points_text,
) -> Finding:
    """On which side of 0 the values of theory or its limit lie, one a seed."""
    return side(name, values, 0, claimed, _lost(setting, values), form)


def _lost(setting: Setting, values: ArrayLike) -> int:
    """How many seeds of theory and its limit have no such value."""
    return setting.num_seeds(THEORY, LIMIT) - len(np.asarray(values))


def _by_width(setting: Setting, measure: str, widths: Sequence[float]) -> Vector:
    """(seeds, widths) a measure of theory, of the seeds that have it at all of the widths."""
    found = {width: setting.of(THEORY, width)[measure] for width in widths}
    return pd.DataFrame(found).dropna().to_numpy()


def _both(first: pd.DataFrame, second: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A measure of two networks, `first` and `second`, of the seeds of both."""
    values = {"first": first[measure], "second": second[measure]}
    return pd.concat(values, axis="columns", join="inner")


def _slopes(x: Vector, values: Vector) -> Vector:
    """(seeds,) slope of the least-squares line through each row (seeds, len(x)); NaN with NaN."""
    centred = x - np.mean(x)
    return np.asarray(values @ centred / np.sum(centred**2))


def _listed(widths: Sequence[float]) -> str:
    return listed([f"{width:g}" for width in widths])


# --- what they measure: the heads of trained networks


def _p7(setting: Trained) -> list[Finding]:
    """Figure 3e: without a head of low score (blue) little accuracy is lost (red)."""
    name = f"rank correlation of score at N={setting.reference:g} and lost accuracy"
    return [_side(setting, name, scored(setting)["correlation"], form="{:+.2f}".format)]


def _p8(setting: Trained) -> list[Finding]:
    """Figure 3f: accuracy stays high while heads with low scores are removed."""
    return [_against(setting, RANDOM)]


def _p9(setting: Trained) -> list[Finding]:
    """The paper compares with no other score; a simple one would do if it pruned as well."""
    methods = set(setting.cells["method"])
    findings = [_against(setting, name) for name in SIMPLE if name in methods]
    if missing := [name for name in SIMPLE if name not in methods]:
        findings.append(Finding("", reason=f"no cell of {listed(missing)}"))
    return findings


def _against(setting: Trained, other: str) -> Finding:
    values, _ = differences(setting, other)
    name = f"mean accuracy by theory N={setting.reference:g} minus by {other}"
    return _side(setting, name, values)


# --- what they say


_THEORY = _Need([THEORY], "theory")
_SAMPLED = _Need([SLICE], "sampling")
_LIMIT = _Need([LIMIT], "the limit with all paths")
_GOOD_LIMIT = _Need([LIMIT], "the limit with the good path alone", GOOD)

_OF_THEORY = (
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
        [_THEORY],
        _p5,
        ["noisy"],
    ),
    _Test(
        "P6",
        "In the limit, all paths together are less accurate than the good path alone.",
        "Accuracy of the limit with all paths minus that with the good path, seed by seed. In "
        "the plain variant the claim holds where the 95 % interval over seeds lies below 0; with "
        "strong noise the paper finds the other sign.",
        [_LIMIT, _GOOD_LIMIT],
        functools.partial(_p6, claimed="below"),
        ["plain"],
    ),
    _Test(
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

_AREA = (
    "mean accuracy of the trained network without 0, 1, ..., K heads (the area under its curve), "
    "where every layer keeps a head and nothing is trained again"
)

_OF_TRAINED = (
    _Test(
        "P7",
        "Heads with low scores cost less: the higher the score that theory gives a head, the more "
        "accuracy the trained network loses without it.",
        "In every network, Spearman's rank correlation over its heads between theory's score at "
        "the smallest finite width and the accuracy lost on the test split without that head "
        "alone. Holds where the 95 % interval over networks lies above 0.",
        [_THEORY],
        _p7,
    ),
    _Test(
        "P8",
        "Pruning by theory beats random order.",
        f"The {_AREA}: heads removed by increasing score of theory at the smallest finite width, "
        "minus the mean over random orders, network by network. Holds where the 95 % interval "
        "over networks lies above 0. (The table of orders corrects for its six.)",
        [_THEORY, _Need([RANDOM], RANDOM)],
        _p8,
    ),
    _Test(
        "P9",
        "Pruning by theory beats the simple rules.",
        f"The {_AREA}: by theory at the smallest finite width minus by (1) the norm of the "
        "values' weights, (2) the entropy of the attention and (3) the sensitivity of the loss to "
        "a mask of the head (Michel et al. 2019), network by network. Holds where all three 95 % "
        "intervals over networks lie above 0.",
        [_THEORY, _Need(SIMPLE, listed(SIMPLE))],
        _p9,
    ),
)
