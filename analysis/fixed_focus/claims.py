"""The paper's claims about a fixed focus (C7 to C14): do they hold on this data?

The claims are read off figures 2 and 3 of the paper (sections 3.1 and 3.2), which show one seed
and name no numbers, so each test here states what is measured, which threshold decides and why.
Losses and incentives are those of the train split, as in the paper. A test reads one setting; it
leaves out alpha = 0, and alpha = 1 but for C10: there the three losses are one, and the incentive
is 0 by definition.

A run that diverged has no curve. Parts that almost any run has must be so, too, but are no
evidence for a claim: it holds by its other parts.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.fixed_focus.curves import Setting, chance_loss
from analysis.fixed_focus.measures import (
    WIDEST_GAP,
    Curves,
    beside,
    beside_each,
    curves_of,
    on_common_seeds,
    ratio,
    share_text,
    signed_text,
    steps,
    too_coarse,
    within,
)
from analysis.groups import PARADIGMS
from analysis.section.claim import LOST, Claim, Evidence, Finding, Side, decided

NEAR_ZERO = 0.05
"""Share of log C, the loss of a classifier that knows nothing, below which a loss is about 0 and
above which it is not. What hard and lvml cannot get below in the population lies above it at every
alpha of the paper: at alpha = .8 and C = 3, 10 and 50 that is 20 % for hard and 13, 9 and 6 % for
lvml."""

FLAT = 0.1
"""Share of its whole drop that a flat curve makes at most in the last fifth of the epochs: half of
what a curve that falls evenly makes there. Also the share of its height that a curve which does
not go to 0 loses there at most: half of what a fall as 1/t takes off, which is soft's for large t
in the linear orthogonal setting."""

NEGLIGIBLE = 0.1
"""Share of an incentive that is negligible beside it: what drives the focus is then weaker by an
order of magnitude. Soft must fall below it (C12) and lvml stay above (C14)."""

SMALL_DROP = 0.25
"""Share of log C by which a loss drops at most if its curve is almost flat. In the population
hard's drop is at most alpha log C, so alpha has to be no larger."""

SMALL_INCENTIVE = 0.5
"""Share of hard's incentive at large alpha below which that at small alpha is small. At the start
of training the two are in the ratio of the alphas (1/4 for .2 and .8: each is proportional to
alpha t in the linear orthogonal setting), and both tend to log C, so the ratio tends to 1: a
threshold has to lie between."""

START = 0.05
"""Share of the epochs that is the beginning of training."""

SMALL_ALPHA, LARGE_ALPHA = 0.4, 0.6
"""A small alpha is at most the first, a (moderately) large one at least the second."""

_BELOW_ONE = [(0.0, 1.0)]
_BOTH_ENDS = [(0.0, SMALL_ALPHA), (LARGE_ALPHA, 1.0)]
_NEEDS = (
    f"It takes an alpha of at most {SMALL_ALPHA:g} and one from {LARGE_ALPHA:g} up, and curves "
    f"from the start with an evaluation at least every {100 * WIDEST_GAP:g} % of the epochs."
)
_LAST_FIFTH = 0.8
_LATE = "{}'s drop in the last fifth of the epochs"
_HALF = 0.5


def claims(setting: Setting) -> list[Claim]:
    """C7 to C14, in this order, of one setting."""
    return [_claim(setting, test) for test in _TESTS]


@dataclass(frozen=True)
class _Test:
    """How one claim is tested.

    Attributes:
        name, statement, test: as `Claim` has them.
        paradigms: paradigms that it needs.
        ranges: (from, to) alpha, 1 left out; all paradigms must have cells in each.
        findings: called where they have.
    """

    name: str
    statement: str
    test: str
    paradigms: Sequence[str]
    ranges: Sequence[tuple[float, float]]
    findings: Callable[[Setting], list[Finding]]


# --- what they measure


def _c7(setting: Setting) -> list[Finding]:
    """Section 3.1: "The soft attention loss eventually goes to zero for moderately large values of
    alpha".
    """
    curves = curves_of(setting, "soft", "loss", within(setting, ("soft",), LARGE_ALPHA))
    losses = _losses(setting, "soft", curves, "below")
    if all(test.so for test in losses.tests):
        return [losses]
    if coarse := too_coarse(curves):
        return [replace(losses, tests=(), reason=coarse)]
    falling = {}
    for alpha in curves.alphas:
        before = curves.at(alpha, _LAST_FIFTH)
        off = ratio(before - curves.final(alpha), before)
        falling[alpha] = np.maximum(off, _late_share(setting, curves, alpha))
    name = "the last fifth of the epochs takes off the loss, or brings of its drop, up to"
    falls = beside_each(name, falling, FLAT, "below", curves.lost)
    # Only a loss that is above 0 and no longer falls speaks against the claim.
    tests = [
        loss if loss.so else Evidence(False, max(loss.p, flat.p) if flat.so else math.nan)
        for loss, flat in zip(losses.tests, falls.tests, strict=True)
    ]
    return [replace(losses, tests=tests), Finding(falls.text)]


def _c8(setting: Setting) -> list[Finding]:
    """Section 3.1: "The hard attention and LVML losses flatten at a value above 0 for any alpha <
    1".
    """
    return [each for name in ("hard", "lvml") for each in _flattens(setting, name)]


def _flattens(setting: Setting, paradigm: str) -> list[Finding]:
    curves = curves_of(setting, paradigm, "loss", within(setting, (paradigm,)))
    ends = replace(_losses(setting, paradigm, curves, "above"), role="against")
    if coarse := too_coarse(curves):
        return [ends, Finding("", reason=coarse)]
    late = {alpha: _late_share(setting, curves, alpha) for alpha in curves.alphas}
    flat = beside_each(_LATE.format(paradigm), late, FLAT, "below", curves.lost)
    # A curve that still falls may flatten later: no evidence against the claim.
    return [ends, replace(flat, role="for")]


def _late_share(setting: Setting, curves: Curves, alpha: float) -> np.ndarray:
    """(seeds,) share of the drop from log C that the last fifth of the epochs makes."""
    chance, final = chance_loss(setting), curves.final(alpha)
    drop = np.maximum(chance - final, NEAR_ZERO * chance)
    return (curves.at(alpha, _LAST_FIFTH) - final) / drop


def _c9(setting: Setting) -> list[Finding]:
    """Section 3.1: "The LVML fixed focus loss curves generally have a steeper decline at
    initialization than the other paradigms, and converges to a lesser loss value than the hard
    attention paradigm".
    """
    alphas = within(setting, PARADIGMS)
    curves = on_common_seeds(
        {name: curves_of(setting, name, "loss", alphas) for name in PARADIGMS}
    )
    chance = chance_loss(setting)
    findings = []
    coarse = next((text for each in curves.values() if (text := too_coarse(each))), "")
    for other in ("soft", "hard"):
        if coarse:
            findings.append(Finding("", reason=coarse))
            break
        leads = [
            curves["lvml"].first_drop(alpha, START) - curves[other].first_drop(alpha, START)
            for alpha in alphas
        ]
        name = f"drop at the start, lvml minus {other}, mean over alpha {_listed(alphas)}"
        lead = np.mean(leads, axis=0) / chance
        findings.append(beside(name, lead, 0, "above", curves["lvml"].lost, signed_text))
    below = {
        alpha: (curves["lvml"].final(alpha) - curves["hard"].final(alpha)) / chance
        for alpha in alphas
    }
    name, lost = "last loss, lvml minus hard", curves["lvml"].lost
    ends = beside_each(name, below, 0, "below", lost, signed_text)
    return [*findings, replace(ends, role="against"), Finding(_rates(setting))]


def _c10(setting: Setting) -> list[Finding]:
    """Section 3.1: "The difference in the fixed focus loss curves for different alpha values is
    minimal at larger values of alpha in the case of soft attention, but remains significant for
    the other two paradigms".
    """
    alphas = within(setting, PARADIGMS, LARGE_ALPHA, with_one=True)
    if len(alphas) < 2:
        return [Finding("", reason=f"alpha {_listed(alphas)} alone has no spread")]
    findings = []
    sides: dict[str, Side] = {"soft": "below", "hard": "above", "lvml": "above"}
    for paradigm, claimed in sides.items():
        curves = curves_of(setting, paradigm, "loss", alphas)
        spread = np.ptp([curves.final(alpha) for alpha in alphas], axis=0) / chance_loss(setting)
        name = f"{paradigm}, spread of the last losses over alpha {_listed(alphas)}"
        findings.append(beside(name, spread, NEAR_ZERO, claimed, curves.lost))
    return findings


def _c11(setting: Setting) -> list[Finding]:
    """Section 3.1: "In the hard attention paradigm, the flat loss curve at small values of alpha
    indicates the difficulty faced by the classification module to improve".
    """
    alpha = within(setting, PARADIGMS)[0]
    curves = on_common_seeds(
        {name: curves_of(setting, name, "loss", [alpha]) for name in PARADIGMS}
    )
    drop = {name: 1 - each.final(alpha) / chance_loss(setting) for name, each in curves.items()}
    findings = []
    for other in ("soft", "lvml"):
        name = f"drop at alpha {alpha:g}, hard minus {other}"
        difference = drop["hard"] - drop[other]
        findings.append(beside(name, difference, 0, "below", curves["hard"].lost, signed_text))
    own = beside("hard's drop", drop["hard"], SMALL_DROP, "below", curves["hard"].lost)
    return [*findings, replace(own, role="against"), Finding(_rates(setting))]


def _c12(setting: Setting) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the soft attention paradigm diminishes
    with increase in alpha (when considering g for moderately large t), and becomes quite
    negligible as alpha approaches 1".
    """
    curves = curves_of(setting, "soft", "incentive", within(setting, ("soft",)))
    if coarse := too_coarse(curves):
        return [Finding("", reason=coarse)]
    means = {alpha: curves.mean(alpha, _HALF) for alpha in curves.alphas}
    falls = steps("soft's incentive", means, "below", curves.lost, NEGLIGIBLE)
    largest = np.max([*means.values()], axis=0)
    left = ratio(np.abs(means[curves.alphas[-1]]), largest)
    name = f"soft's incentive at alpha {curves.alphas[-1]:g} as a share of the largest"
    return [*falls, beside(name, left, NEGLIGIBLE, "below", curves.lost)]


def _c13(setting: Setting) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the hard attention paradigm increases with
    increase in alpha, and remains quite small till very large t for small alpha".
    """
    curves = curves_of(setting, "hard", "incentive", within(setting, ("hard",)))
    if coarse := too_coarse(curves):
        return [Finding("", reason=coarse)]
    means = {alpha: curves.mean(alpha) for alpha in curves.alphas}
    rises = steps("hard's incentive", means, "above", curves.lost)
    small, large = curves.alphas[0], curves.alphas[-1]
    share = ratio(curves.mean(small, end=_HALF), curves.mean(large, end=_HALF))
    name = f"in the first half of the epochs, that at alpha {small:g} as a share of {large:g}'s"
    early = beside(name, share, SMALL_INCENTIVE, "below", curves.lost)
    return [*rises, early, Finding(_when_no_longer_small(curves, small, large))]


def _when_no_longer_small(curves: Curves, small: float, large: float) -> str:
    """Until when the mean incentive at small alpha is below `SMALL_INCENTIVE` of that at large."""
    low, high = curves.of[small].mean(), curves.of[large].mean()
    reached = (high > 0) & (low >= SMALL_INCENTIVE * high)
    if low.empty:
        return ""
    if not reached.any():
        return f"it is always below {share_text(SMALL_INCENTIVE)} of it"
    when = share_text(reached.index.to_numpy(np.float64)[reached.to_numpy().argmax()])
    return f"it has {share_text(SMALL_INCENTIVE)} of it first after {when} of the epochs"


def _c14(setting: Setting) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the LVML paradigm also diminishes with
    increase in alpha similar to the soft attention paradigm, but the fall in incentive is not
    nearly as steep and remains bounded away from zero even for large values of alpha".
    """
    alphas = within(setting, ("lvml", "soft"))
    small, large = alphas[0], alphas[-1]
    own = curves_of(setting, "lvml", "incentive", alphas)
    both = on_common_seeds(
        {n: curves_of(setting, n, "incentive", alphas) for n in ("lvml", "soft")}
    )
    if coarse := too_coarse(own) or too_coarse(both["soft"]):
        return [Finding("", reason=coarse)]
    means = {alpha: own.mean(alpha, _HALF) for alpha in alphas}
    left = {
        name: ratio(each.mean(large, _HALF), each.mean(small, _HALF))
        for name, each in both.items()
    }
    what = f"the incentive at alpha {large:g} as a share of {small:g}'s"
    difference = left["lvml"] - left["soft"]
    share = ratio(means[large], means[small])
    bounded = beside(f"{what}, lvml", share, NEGLIGIBLE, "above", own.lost)
    return [
        *steps("lvml's incentive", means, "below", own.lost),
        beside(f"{what}, lvml minus soft", difference, 0, "above", both["lvml"].lost, signed_text),
        replace(bounded, role="against"),
    ]


_TESTS = (
    _Test(
        "C7",
        "Fixed focus: soft's loss goes to about 0 at moderately large alpha.",
        f"Soft's loss at the end of training at every alpha in [{LARGE_ALPHA:g}, 1), as a share "
        "of log C, the loss of a classifier that knows nothing. Holds where all 95 % intervals "
        f"over seeds lie below {share_text(NEAR_ZERO)}: so much of what there is to learn is not "
        "learned. Does not hold where one lies above and that curve no longer falls towards 0: "
        f"the last fifth of the epochs takes less than {share_text(FLAT)} off the loss (a fall as "
        f"1/t takes twice that) and brings less than {share_text(FLAT)} of its whole drop from "
        "log C (an even fall brings twice that). One that still falls is undecided, because the "
        "paper says eventually.",
        ("soft",),
        [(LARGE_ALPHA, 1.0)],
        _c7,
    ),
    _Test(
        "C8",
        "Fixed focus: the losses of hard and lvml flatten above 0 at any alpha < 1.",
        "(1) Hard's and lvml's loss at the end of training at every alpha < 1, as a share of log "
        "C; (2) what share of its whole drop, log C minus the last loss, the last fifth of the "
        f"epochs brings (a drop below {share_text(NEAR_ZERO)} of log C counts as so much, so that "
        "a curve without one is flat). Holds where all intervals of (2) lie below "
        f"{share_text(FLAT)}, half of what an even fall brings. Does not hold where a loss of (1) "
        f"lies below {share_text(NEAR_ZERO)}, where C7 says about 0; one that still falls is "
        "undecided. (1) must be so, too, but is no evidence for the claim: in the population no "
        "classifier gets below (1 - alpha) log C with hard, nor below -log(alpha + (1 - alpha)/C) "
        "with lvml, so that almost any run is above, but one that knows its training mosaics by "
        "heart. To hold says no more than that training was long enough to flatten.",
        ("hard", "lvml"),
        _BELOW_ONE,
        _c8,
    ),
    _Test(
        "C9",
        "Fixed focus: lvml's loss declines steepest at the start and ends below hard's.",
        "(1) The drop of the loss from the start to the first evaluation at or after "
        f"{share_text(START)} of the epochs, lvml's minus soft's and lvml's minus hard's at the "
        "same seed and alpha, as a share of log C, mean over alpha < 1 because the paper says "
        "generally. (2) The last loss, lvml's minus hard's, at every alpha < 1. Holds where the "
        "intervals of (1) lie above 0, does not hold where one lies below, or one of (2) above. "
        "Each paradigm has its own learning rate, as in the paper. From zero weights "
        "the three population losses set out equally fast, so (1) depends on how long the "
        "beginning is. (2) must be so, too, but is no evidence for the claim: lvml's loss is "
        "never above hard's of the same classifier (Jensen), so that it could hardly be otherwise "
        "once both have converged.",
        PARADIGMS,
        _BELOW_ONE,
        _c9,
    ),
    _Test(
        "C10",
        "Fixed focus: the losses at different large alpha come together for soft only.",
        "Largest minus smallest loss at the end of training among the alphas in "
        f"[{LARGE_ALPHA:g}, 1], at least two, a number a seed, as a share of log C. Holds where "
        f"the interval of soft lies below {share_text(NEAR_ZERO)}, which C7 takes for about 0, "
        "and those of hard and lvml above; does not hold where one lies on the other side. What "
        "hard and lvml cannot get below in the population differs by more than that between .6 "
        "and 1, so that once they are near it, soft alone decides.",
        PARADIGMS,
        [(LARGE_ALPHA, 1.0)],
        _c10,
    ),
    _Test(
        "C11",
        "Fixed focus: hard's loss curve is flat at small alpha.",
        "The whole drop of the loss, log C minus the last loss, at the smallest alpha, at most "
        f"{SMALL_DROP:g}, as a share of log C. Holds where (1) hard's minus soft's and hard's "
        "minus lvml's at the same seed lie below 0; does not hold where one lies above, or (2) "
        f"hard's own lies above {share_text(SMALL_DROP)}. (2) must be so, too, but is no "
        "evidence for the claim: in the population hard's drop is at most alpha log C, so that "
        "at alpha = .2 it could hardly be otherwise. The comparison with the others decides.",
        PARADIGMS,
        [(0.0, SMALL_DROP)],
        _c11,
    ),
    _Test(
        "C12",
        "Fixed focus: soft's incentive falls with alpha to about 0.",
        "Soft's incentive, mean over the second half of the epochs (the paper: for moderately "
        "large t), at every alpha < 1. Holds where (1) each step to the next larger alpha lies "
        f"below 0, unless both its ends are below {share_text(NEGLIGIBLE)} of the largest; and "
        "(2) the incentive at the largest alpha, by its size, lies below "
        f"{share_text(NEGLIGIBLE)} of the largest: weaker by an order of magnitude. Does not hold "
        f"where one interval lies on the other side. {_NEEDS}",
        ("soft",),
        _BOTH_ENDS,
        _c12,
    ),
    _Test(
        "C13",
        "Fixed focus: hard's incentive grows with alpha and is small at small alpha until late.",
        "Hard's incentive at every alpha < 1. Holds where (1) its mean over all epochs rises with "
        "each step to the next larger alpha; and (2) its mean over the first half of the epochs "
        f"at the smallest alpha is below {share_text(SMALL_INCENTIVE)} of that at the largest. "
        "Does not hold where one interval lies on the other side. In the linear orthogonal "
        "setting the ratio in (2) is that of the alphas when training starts (.25 for .2 and .8) "
        "and goes to 1, since both incentives tend to .01 log C: so (2) depends on how long "
        "training is, and late is the second half of the epochs that were run. " + _NEEDS,
        ("hard",),
        _BOTH_ENDS,
        _c13,
    ),
    _Test(
        "C14",
        "Fixed focus: lvml's incentive falls with alpha, less than soft's, and not to 0.",
        "lvml's incentive, mean over the second half of the epochs, at every alpha < 1. Holds "
        "where (1) each step to the next larger alpha lies below 0; and (2) the share that the "
        "largest alpha has of the incentive at the smallest is larger than soft's, on the same "
        "seeds. Does not hold where one interval lies on the other side, or (3) that share lies "
        f"below {share_text(NEGLIGIBLE)}, where C12 says about 0. (3) must be so, too, but "
        "is no evidence for the claim: in the linear orthogonal setting the share goes to "
        "(.2 + .8/C) / (.8 + .2/C) for alpha .2 and .8, which is .54 at C = 3 and .27 at C = 50, "
        "so that it could hardly be otherwise after long training. "
        f"{_NEEDS}",
        ("lvml", "soft"),
        _BOTH_ENDS,
        _c14,
    ),
)


# --- how they are decided


def _claim(setting: Setting, test: _Test) -> Claim:
    """The claim: not run, undecided without a learning rate, or decided by the findings."""
    said = test.name, test.statement, f"{test.test} {LOST}"
    unmeasured = functools.partial(Claim, *said)
    paradigms = test.paradigms
    ran = set(setting.cells["paradigm"])
    if missing := [paradigm for paradigm in paradigms if paradigm not in ran]:
        return unmeasured("not run", f"no cells of {' and '.join(missing)}", setting.name)
    chosen = set(setting.choice["paradigm"])
    if unchosen := [paradigm for paradigm in paradigms if paradigm not in chosen]:
        text = f"no learning rate of {' and '.join(unchosen)} can be chosen"
        return unmeasured("undecided", text, setting.name)
    lacking = [
        f"[{low:g}, {high:g}{']' if high < 1 else ')'}"
        for low, high in test.ranges
        if not within(setting, paradigms, low, high)
    ]
    if lacking:
        text = f"{' and '.join(paradigms)} have no cells at alpha in {' nor in '.join(lacking)}"
        return unmeasured("not run", text.replace("[0,", "(0,"), setting.name)
    findings = test.findings(setting)
    claim = decided(*said, findings, setting.name)
    # Said once, at the first of many.
    return replace(claim, measured=claim.measured.replace("[", "[95 % interval ", 1))


def _losses(setting: Setting, paradigm: str, curves: Curves, claimed: Side) -> Finding:
    """Compares the last losses with `NEAR_ZERO`."""
    chance = chance_loss(setting)
    shares = {alpha: curves.final(alpha) / chance for alpha in curves.alphas}
    name = f"{paradigm}'s last loss as a share of log C"
    return beside_each(name, shares, NEAR_ZERO, claimed, curves.lost)


def _rates(setting: Setting) -> str:
    """The learning rates, where paradigms differ in them."""
    rates = dict(zip(setting.choice["paradigm"], setting.choice["lr"], strict=True))
    if len(set(rates.values())) < 2:
        return ""
    return "learning rates: " + ", ".join(f"{n} {rates[n]:g}" for n in PARADIGMS if n in rates)


def _listed(alphas: Sequence[float]) -> str:
    return ", ".join(f"{alpha:g}" for alpha in alphas)
