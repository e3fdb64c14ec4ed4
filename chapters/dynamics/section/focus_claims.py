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
from analysis.rules.claim import Claim, Evidence, Finding, Side, Verdict, decided
from chapters.dynamics.section.chapter import claim_words
from chapters.dynamics.section.focus import Focus
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

_LAST_FIFTH = 0.8
_HALF = 0.5
_LOSS = "loss_share"

_THRESHOLDS = {
    "near_zero": NEAR_ZERO,
    "flat": FLAT,
    "negligible": NEGLIGIBLE,
    "small_drop": SMALL_DROP,
    "small_incentive": SMALL_INCENTIVE,
    "start": START,
    "small_alpha": SMALL_ALPHA,
    "large_alpha": LARGE_ALPHA,
    "widest_gap": WIDEST_GAP,
}
"""What `claim_words.j2` says of them."""


@dataclass(frozen=True)
class _Declared:
    """A claim, and how it is tested.

    Attributes:
        name: as `Claim` has it; `claim_words.j2` has its words.
        paradigms: paradigms that it needs.
        ranges: (from, to) alpha; all paradigms must have cells in each.
        parts: what speaks for and against it, where they have.
    """

    name: str
    paradigms: Sequence[str]
    ranges: Sequence[tuple[float, float]]
    parts: Callable[[Focus], list[Finding]]

    def why_not(self, focus: Focus) -> tuple[Verdict, str] | None:
        """The verdict without a test, and why; None where it can be tested."""
        if missing := _not_in(focus.cells, self.paradigms):
            return "not run", f"no cells of {missing}"
        if unchosen := _not_in(focus.choice, self.paradigms):
            return "undecided", f"no learning rate of {unchosen} can be chosen"
        lacking = [
            f"{'[' if low else '('}{low:g}, {high:g}{']' if high < BELOW_ONE else ')'}"
            for low, high in self.ranges
            if not within(focus, self.paradigms, low, high)
        ]
        where = " nor in ".join(lacking)
        text = f"{' and '.join(self.paradigms)} have no cells at alpha in {where}"
        return ("not run", text) if lacking else None


def claims(focus: Focus) -> list[Claim]:
    """C7 to C14, in this order, of one setting."""
    (setting,) = focus.settings["setting"]
    found = []
    for declared in _CLAIMS:
        said = declared.name, *claim_words(declared.name, **_THRESHOLDS)
        if untested := declared.why_not(focus):
            found.append(Claim(*said, *untested, setting))
        else:
            claim = decided(*said, declared.parts(focus), setting)
            # Said once, at the first of many.
            measured = claim.measured.replace("[", "[95 % interval ", 1)
            found.append(replace(claim, measured=measured))
    return found


# --- what they measure


def _c7(focus: Focus) -> list[Finding]:
    """Section 3.1: "The soft attention loss eventually goes to zero for moderately large values of
    alpha".
    """
    (soft,) = curves_of(focus, _LOSS, within(focus, ["soft"], LARGE_ALPHA), "soft")
    ends = _ends("soft", soft, "below")
    if all(test.so for test in ends.tests):
        return [ends]
    if soft.too_coarse:
        return [Finding(ends.text), *soft.too_coarse]
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


def _c8(focus: Focus) -> list[Finding]:
    """Section 3.1: "The hard attention and LVML losses flatten at a value above 0 for any alpha <
    1".
    """
    found = []
    for name in ("hard", "lvml"):
        (curves,) = curves_of(focus, _LOSS, within(focus, [name]), name)
        found.append(replace(_ends(name, curves, "above"), role="against"))
        what = f"{name}'s drop in the last fifth of the epochs"
        # A curve that still falls may flatten later: no evidence against the claim.
        flat = curves.beside(what, _late_share(curves), FLAT, "below", role="for")
        found += curves.too_coarse or [flat]
    return found


def _c9(focus: Focus) -> list[Finding]:
    """Section 3.1: "The LVML fixed focus loss curves generally have a steeper decline at
    initialization than the other paradigms, and converges to a lesser loss value than the hard
    attention paradigm".
    """
    alphas = within(focus, PARADIGMS)
    soft, hard, lvml = curves_of(focus, _LOSS, alphas, *PARADIGMS)
    drops = [
        lvml.beside(
            f"drop at the start, lvml minus {name}, mean over alpha {_listed(alphas)}",
            (lvml.first_drop(START) - other.first_drop(START)).mean(axis=0),
            0,
            "above",
            signed_text,
        )
        for name, other in (("soft", soft), ("hard", hard))
    ]
    coarse = soft.too_coarse or hard.too_coarse or lvml.too_coarse
    name, below = "last loss, lvml minus hard", lvml.final - hard.final
    ends = lvml.beside(name, below, 0, "below", signed_text, "against")
    return [*(coarse or drops), ends, _rates(focus)]


def _c10(focus: Focus) -> list[Finding]:
    """Section 3.1: "The difference in the fixed focus loss curves for different alpha values is
    minimal at larger values of alpha in the case of soft attention, but remains significant for
    the other two paradigms".
    """
    alphas = within(focus, PARADIGMS, LARGE_ALPHA, 1.0)
    if len(alphas) < 2:
        return [Finding("", reason=f"alpha {_listed(alphas)} alone has no spread")]
    sides: dict[str, Side] = {"soft": "below", "hard": "above", "lvml": "above"}
    found = []
    for paradigm, claimed in sides.items():
        (curves,) = curves_of(focus, _LOSS, alphas, paradigm)
        name = f"{paradigm}, spread of the last losses over alpha {_listed(alphas)}"
        found.append(curves.beside(name, np.ptp(curves.final, axis=0), NEAR_ZERO, claimed))
    return found


def _c11(focus: Focus) -> list[Finding]:
    """Section 3.1: "In the hard attention paradigm, the flat loss curve at small values of alpha
    indicates the difficulty faced by the classification module to improve".
    """
    alpha = within(focus, PARADIGMS)[0]
    soft, hard, lvml = curves_of(focus, _LOSS, [alpha], *PARADIGMS)
    drop = 1 - hard.final[0]
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
    own = hard.beside("hard's drop", drop, SMALL_DROP, "below", role="against")
    return [*found, own, _rates(focus)]


def _c12(focus: Focus) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the soft attention paradigm diminishes
    with increase in alpha (when considering g for moderately large t), and becomes quite
    negligible as alpha approaches 1".
    """
    alphas = within(focus, ["soft"])
    (soft,) = curves_of(focus, "incentive", alphas, "soft")
    means = soft.mean(_HALF)
    left = ratio(np.abs(means[-1]), means.max(axis=0))
    name = f"soft's incentive at alpha {alphas[-1]:g} as a share of the largest"
    return soft.too_coarse or [
        *soft.steps("soft's incentive", means, "below", NEGLIGIBLE),
        soft.beside(name, left, NEGLIGIBLE, "below"),
    ]


def _c13(focus: Focus) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the hard attention paradigm increases with
    increase in alpha, and remains quite small till very large t for small alpha".
    """
    alphas = within(focus, ["hard"])
    (hard,) = curves_of(focus, "incentive", alphas, "hard")
    small, *_, large = hard.mean(end=_HALF)
    name = (
        f"in the first half of the epochs, that at alpha {alphas[0]:g} as a share of "
        f"{alphas[-1]:g}'s"
    )
    return hard.too_coarse or [
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


def _c14(focus: Focus) -> list[Finding]:
    """Section 3.2: "The focus improvement incentive for the LVML paradigm also diminishes with
    increase in alpha similar to the soft attention paradigm, but the fall in incentive is not
    nearly as steep and remains bounded away from zero even for large values of alpha".
    """
    alphas = within(focus, ["lvml", "soft"])
    (alone,) = curves_of(focus, "incentive", alphas, "lvml")
    lvml, soft = curves_of(focus, "incentive", alphas, "lvml", "soft")
    what = f"the incentive at alpha {alphas[-1]:g} as a share of {alphas[0]:g}'s"
    more = _left(lvml) - _left(soft)
    return (
        alone.too_coarse
        or soft.too_coarse
        or [
            *alone.steps("lvml's incentive", alone.mean(_HALF), "below"),
            lvml.beside(f"{what}, lvml minus soft", more, 0, "above", signed_text),
            alone.beside(f"{what}, lvml", _left(alone), NEGLIGIBLE, "above", role="against"),
        ]
    )


def _left(incentives: Curves) -> Values:
    """(S,) what the largest alpha has of the smallest one's, in the second half of the epochs."""
    small, *_, large = incentives.mean(_HALF)
    return ratio(large, small)


def _ends(paradigm: str, losses: Curves, claimed: Side) -> Finding:
    """Compares the last losses with `NEAR_ZERO`."""
    name = f"{paradigm}'s last loss as a share of log C"
    return losses.beside(name, losses.final, NEAR_ZERO, claimed)


def _late_share(losses: Curves) -> Values:
    """(A, S) share of the drop from log C that the last fifth of the epochs makes."""
    drop = np.maximum(1 - losses.final, NEAR_ZERO)
    return (losses.at(_LAST_FIFTH) - losses.final) / drop


def _rates(focus: Focus) -> Finding:
    """The learning rates, where paradigms differ in them."""
    rates = focus.choice.set_index("paradigm")["lr"]
    said = [f"{name} {rates[name]:g}" for name in PARADIGMS if name in rates]
    return Finding(f"learning rates: {', '.join(said)}" if rates.nunique() > 1 else "")


def _listed(alphas: Sequence[float]) -> str:
    return ", ".join(f"{alpha:g}" for alpha in alphas)


def _not_in(table: pd.DataFrame, paradigms: Sequence[str]) -> str:
    """The paradigms without a row."""
    return " and ".join(name for name in paradigms if name not in set(table["paradigm"]))


_BELOW_ONE = [(0.0, BELOW_ONE)]
_LARGE = [(LARGE_ALPHA, BELOW_ONE)]
_BOTH_ENDS = [(0.0, SMALL_ALPHA), *_LARGE]

_CLAIMS = (
    _Declared("C7", ("soft",), _LARGE, _c7),
    _Declared("C8", ("hard", "lvml"), _BELOW_ONE, _c8),
    _Declared("C9", PARADIGMS, _BELOW_ONE, _c9),
    _Declared("C10", PARADIGMS, _LARGE, _c10),
    _Declared("C11", PARADIGMS, [(0.0, SMALL_DROP)], _c11),
    _Declared("C12", ("soft",), _BOTH_ENDS, _c12),
    _Declared("C13", ("hard",), _BOTH_ENDS, _c13),
    _Declared("C14", ("lvml", "soft"), _BOTH_ENDS, _c14),
)
