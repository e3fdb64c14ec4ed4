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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.groups import PARADIGMS
from analysis.rules.claim import LOST, Claim, Evidence, Finding, Side, Verdict, decided
from chapters.dynamics.section.focus_settings import Setting
from chapters.dynamics.section.measures import (
    BELOW_ONE,
    WIDEST_GAP,
    Curves,
    Values,
    curves_of,
    ratio,
    share_text,
    signed_text,
    within,
)

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

_BELOW_ONE = [(0.0, BELOW_ONE)]
_LARGE = [(LARGE_ALPHA, BELOW_ONE)]
_BOTH_ENDS = [(0.0, SMALL_ALPHA), *_LARGE]
_NEEDS = (
    f"It takes an alpha of at most {SMALL_ALPHA:g} and one from {LARGE_ALPHA:g} up, and curves "
    f"from the start with an evaluation at least every {100 * WIDEST_GAP:g} % of the epochs."
)
_LAST_FIFTH = 0.8
_HALF = 0.5


@dataclass(frozen=True)
class _Declared:
    """A claim, and how it is tested.

    Attributes:
        name, statement, test: as `Claim` has them.
        paradigms: paradigms that it needs.
        ranges: (from, to) alpha; all paradigms must have cells in each.
        parts: what speaks for and against it, where they have.
    """

    name: str
    statement: str
    test: str
    paradigms: Sequence[str]
    ranges: Sequence[tuple[float, float]]
    parts: Callable[[Setting], list[Finding]]

    def of(self, setting: Setting) -> Claim:
        """The claim: not run, undecided without a learning rate, or decided by its parts."""
        paradigms = self.paradigms
        lacking = [
            f"[{low:g}, {high:g}{']' if high < BELOW_ONE else ')'}"
            for low, high in self.ranges
            if not within(setting, paradigms, low, high)
        ]
        said = self.name, self.statement, f"{self.test} {LOST}"
        verdict: Verdict = "not run"
        if missing := _not_in(setting.cells, paradigms):
            text = f"no cells of {missing}"
        elif unchosen := _not_in(setting.choice, paradigms):
            verdict, text = "undecided", f"no learning rate of {unchosen} can be chosen"
        elif lacking:
            where = " nor in ".join(lacking).replace("[0,", "(0,")
            text = f"{' and '.join(paradigms)} have no cells at alpha in {where}"
        else:
            claim = decided(*said, self.parts(setting), setting.name)
            # Said once, at the first of many.
            return replace(claim, measured=claim.measured.replace("[", "[95 % interval ", 1))
        return Claim(*said, verdict, text, setting.name)


def claims(setting: Setting) -> list[Claim]:
    """C7 to C14, in this order, of one setting."""
    return [declared.of(setting) for declared in _CLAIMS]


# --- what they measure


def _c7(setting: Setting) -> list[Finding]:
    """Section 3.1: "The soft attention loss eventually goes to zero for moderately large values of
    alpha".
    """
    (soft,) = _losses(setting, within(setting, ["soft"], LARGE_ALPHA), "soft")
    ends = _ends("soft", soft, "below")
    if all(test.so for test in ends.tests):
        return [ends]
    if soft.too_coarse:
        return [replace(ends, tests=(), reason=soft.too_coarse)]
    before = soft.at(_LAST_FIFTH)
    falling = np.maximum(ratio(before - soft.final, before), _late_share(soft))
    name = "the last fifth of the epochs takes off the loss, or brings of its drop, up to"
    falls = soft.beside(name, falling, FLAT, "below")
    # Only a loss that is above 0 and no longer falls speaks against the claim; NaN: unknown.
    tests = [
        loss if loss.so else Evidence(False, np.maximum(loss.p, flat.p) if flat.so else math.nan)
        for loss, flat in zip(ends.tests, falls.tests, strict=True)
    ]
    return [replace(ends, tests=tests), Finding(falls.text)]


def _c8(setting: Setting) -> list[Finding]:
    """Section 3.1: "The hard attention and LVML losses flatten at a value above 0 for any alpha <
    1".
    """
    found = []
    for name in ("hard", "lvml"):
        (curves,) = _losses(setting, within(setting, [name]), name)
        found.append(replace(_ends(name, curves, "above"), role="against"))
        if curves.too_coarse:
            found.append(Finding("", reason=curves.too_coarse))
            continue
        what = f"{name}'s drop in the last fifth of the epochs"
        flat = curves.beside(what, _late_share(curves), FLAT, "below")
        # A curve that still falls may flatten later: no evidence against the claim.
        found.append(replace(flat, role="for"))
    return found


def _c9(setting: Setting) -> list[Finding]:
    """Section 3.1: "The LVML fixed focus loss curves generally have a steeper decline at
    initialization than the other paradigms, and converges to a lesser loss value than the hard
    attention paradigm".
    """
    alphas = within(setting, PARADIGMS)
    soft, hard, lvml = _losses(setting, alphas, *PARADIGMS)
    if coarse := soft.too_coarse or hard.too_coarse or lvml.too_coarse:
        found = [Finding("", reason=coarse)]
    else:
        found = [
            lvml.beside(
                f"drop at the start, lvml minus {name}, mean over alpha {_listed(alphas)}",
                (lvml.first_drop(START) - other.first_drop(START)).mean(axis=0),
                0,
                "above",
                signed_text,
            )
            for name, other in (("soft", soft), ("hard", hard))
        ]
    below = lvml.final - hard.final
    ends = lvml.beside("last loss, lvml minus hard", below, 0, "below", signed_text)
    return [*found, replace(ends, role="against"), _rates(setting)]


def _c10(setting: Setting) -> list[Finding]:
    """Section 3.1: "The difference in the fixed focus loss curves for different alpha values is
    minimal at larger values of alpha in the case of soft attention, but remains significant for
    the other two paradigms".
    """
    alphas = within(setting, PARADIGMS, LARGE_ALPHA, 1.0)
    if len(alphas) < 2:
        return [Finding("", reason=f"alpha {_listed(alphas)} alone has no spread")]
    sides: dict[str, Side] = {"soft": "below", "hard": "above", "lvml": "above"}
    found = []
    for paradigm, claimed in sides.items():
        (curves,) = _losses(setting, alphas, paradigm)
        name = f"{paradigm}, spread of the last losses over alpha {_listed(alphas)}"
        found.append(curves.beside(name, np.ptp(curves.final, axis=0), NEAR_ZERO, claimed))
    return found


def _c11(setting: Setting) -> list[Finding]:
    """Section 3.1: "In the hard attention paradigm, the flat loss curve at small values of alpha
    indicates the difficulty faced by the classification module to improve".
    """
    alpha = within(setting, PARADIGMS)[0]
    soft, hard, lvml = _losses(setting, [alpha], *PARADIGMS)
    found = [
        hard.beside(
            f"drop at alpha {alpha:g}, hard minus {name}",
            (other.final - hard.final)[0],
            0,
            "below",
            signed_text,
        )
        for name, other in (("soft", soft), ("lvml", lvml))
    ]
    own = hard.beside("hard's drop", 1 - hard.final[0], SMALL_DROP, "below")
    return [*found, replace(own, role="against"), _rates(setting)]


def _c12(setting: Setting) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the soft attention paradigm diminishes
    with increase in alpha (when considering g for moderately large t), and becomes quite
    negligible as alpha approaches 1".
    """
    alphas = within(setting, ["soft"])
    (soft,) = curves_of(setting, "incentive", alphas, "soft")
    if soft.too_coarse:
        return [Finding("", reason=soft.too_coarse)]
    means = soft.mean(_HALF)
    left = ratio(np.abs(means[-1]), means.max(axis=0))
    name = f"soft's incentive at alpha {alphas[-1]:g} as a share of the largest"
    return [
        *soft.steps("soft's incentive", means, "below", NEGLIGIBLE),
        soft.beside(name, left, NEGLIGIBLE, "below"),
    ]


def _c13(setting: Setting) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the hard attention paradigm increases with
    increase in alpha, and remains quite small till very large t for small alpha".
    """
    alphas = within(setting, ["hard"])
    (hard,) = curves_of(setting, "incentive", alphas, "hard")
    if hard.too_coarse:
        return [Finding("", reason=hard.too_coarse)]
    small, *_, large = hard.mean(end=_HALF)
    name = (
        f"in the first half of the epochs, that at alpha {alphas[0]:g} as a share of "
        f"{alphas[-1]:g}'s"
    )
    return [
        *hard.steps("hard's incentive", hard.mean(), "above"),
        hard.beside(name, ratio(small, large), SMALL_INCENTIVE, "below"),
        Finding(_when_no_longer_small(hard)),
    ]


def _when_no_longer_small(hard: Curves) -> str:
    """Until when the mean incentive at small alpha is below `SMALL_INCENTIVE` of that at large."""
    if not hard.values.size:
        return ""
    small, *_, large = hard.values.mean(axis=1)
    reached = (large > 0) & (small >= SMALL_INCENTIVE * large)
    if not reached.any():
        return f"it is always below {share_text(SMALL_INCENTIVE)} of it"
    when = share_text(hard.times[reached.argmax()])
    return f"it has {share_text(SMALL_INCENTIVE)} of it first after {when} of the epochs"


def _c14(setting: Setting) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the LVML paradigm also diminishes with
    increase in alpha similar to the soft attention paradigm, but the fall in incentive is not
    nearly as steep and remains bounded away from zero even for large values of alpha".
    """
    alphas = within(setting, ["lvml", "soft"])
    (alone,) = curves_of(setting, "incentive", alphas, "lvml")
    lvml, soft = curves_of(setting, "incentive", alphas, "lvml", "soft")
    if coarse := alone.too_coarse or soft.too_coarse:
        return [Finding("", reason=coarse)]
    what = f"the incentive at alpha {alphas[-1]:g} as a share of {alphas[0]:g}'s"
    more = _left(lvml) - _left(soft)
    bounded = alone.beside(f"{what}, lvml", _left(alone), NEGLIGIBLE, "above")
    return [
        *alone.steps("lvml's incentive", alone.mean(_HALF), "below"),
        lvml.beside(f"{what}, lvml minus soft", more, 0, "above", signed_text),
        replace(bounded, role="against"),
    ]


def _left(incentives: Curves) -> Values:
    """(S,) what the largest alpha has of the smallest one's, in the second half of the epochs."""
    small, *_, large = incentives.mean(_HALF)
    return ratio(large, small)


def _losses(setting: Setting, alphas: Sequence[float], *paradigms: str) -> list[Curves]:
    """As shares of log C, the loss, in nats, of a classifier that knows nothing."""
    return curves_of(setting, "loss", alphas, *paradigms, unit=math.log(setting.num_classes))


def _ends(paradigm: str, losses: Curves, claimed: Side) -> Finding:
    """Compares the last losses with `NEAR_ZERO`."""
    name = f"{paradigm}'s last loss as a share of log C"
    return losses.beside(name, losses.final, NEAR_ZERO, claimed)


def _late_share(losses: Curves) -> Values:
    """(A, S) share of the drop from log C that the last fifth of the epochs makes."""
    drop = np.maximum(1 - losses.final, NEAR_ZERO)
    return (losses.at(_LAST_FIFTH) - losses.final) / drop


def _rates(setting: Setting) -> Finding:
    """The learning rates, where paradigms differ in them."""
    rates = setting.choice.set_index("paradigm")["lr"]
    if rates.nunique() < 2:
        return Finding("")
    said = [f"{name} {rates[name]:g}" for name in PARADIGMS if name in rates]
    return Finding(f"learning rates: {', '.join(said)}")


def _listed(alphas: Sequence[float]) -> str:
    return ", ".join(f"{alpha:g}" for alpha in alphas)


def _not_in(table: pd.DataFrame, paradigms: Sequence[str]) -> str:
    """The paradigms without a row."""
    return " and ".join(name for name in paradigms if name not in set(table["paradigm"]))


_CLAIMS = (
    _Declared(
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
        _LARGE,
        _c7,
    ),
    _Declared(
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
    _Declared(
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
    _Declared(
        "C10",
        "Fixed focus: the losses at different large alpha come together for soft only.",
        "Largest minus smallest loss at the end of training among the alphas in "
        f"[{LARGE_ALPHA:g}, 1], at least two, a number a seed, as a share of log C. Holds where "
        f"the interval of soft lies below {share_text(NEAR_ZERO)}, which C7 takes for about 0, "
        "and those of hard and lvml above; does not hold where one lies on the other side. What "
        "hard and lvml cannot get below in the population differs by more than that between .6 "
        "and 1, so that once they are near it, soft alone decides.",
        PARADIGMS,
        _LARGE,
        _c10,
    ),
    _Declared(
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
    _Declared(
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
    _Declared(
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
    _Declared(
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
