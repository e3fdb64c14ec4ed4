"""A claim of the paper, and how measurements decide it.

Sources: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), claims C1
to C17, and "Dissecting the Interplay of Attention Paths in a Statistical Mechanics Theory of
Transformers" (arXiv 2405.15926), claims P1 to P9; they are numbered as in the project's
specifications.

A claim has parts, each a number a seed beside a threshold. It *holds* where every part lies on the
claimed side: the two-sided t test over seeds has p < .05, so its 95 % interval is wholly there;
of shares that on the logit scale, too, as shares near 0 or 1 are skewed. It *does not hold* where
one part lies on the other side with p < .05 / k: any of the k parts that can refute it might do so
by chance (Bonferroni), while to hold needs all of them at once and no correction. Else it is
*undecided*, as with fewer than `MIN_SEEDS` seeds or an unknown number, and *not run* where what it
is about has no cells. Where seeds fall apart (`analysis.rules.learning`) onto both sides of a
threshold it is undecided, too: no t test holds for a mean of two laws.

A *lost* seed, which diverged or failed, has no number. What it would have shown is unknown, and it
may have been lost for just that, so it counts against either verdict: besides the t test of the
others, a sign test of all seeds must reject, in which the lost ones lie on the other side. It
bounds false verdicts whatever the reason for a loss, as no t test of the others does. Six to eight
seeds may lose none, nine to eleven one, twelve to fourteen two. Nothing bounds how many runs would
be lost beyond those seen: of six, none is lost in 38 % of the studies where 15 % of all runs are.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit, stdtr

from analysis.rules.learning import apart
from analysis.rules.statistics import CONFIDENCE, LEVEL, MIN_SEEDS, ROUNDING, sign_test, t_interval
from study.terminal import counted

Verdict = Literal["holds", "does not hold", "undecided", "not run"]

Side = Literal["below", "above"]
"""Side of a threshold."""

Role = Literal["both", "for", "against"]
"""How a part counts: ``against``, where almost any run has it, so that it must be so, too, but
makes no claim hold; ``for``, where the opposite is no evidence against the claim."""

TOO_FEW = f"fewer than {MIN_SEEDS} seeds decide nothing"

OPEN = "its tests leave it open"
"""Why a claim is undecided where no part of it names another reason."""

LOST = "A lost seed counts against either verdict."
"""What every test says of seeds without a number; see `RULES`."""

RULES = (
    "A claim holds where every part lies on the claimed side: the t test over seeds has p < "
    f"{LEVEL:g}, so that the {100 * CONFIDENCE:g} % interval is wholly there, and of shares also "
    "that on the logit scale. It does not hold where one part lies on the other side "
    f"with p < {LEVEL:g} over the number of parts that can refute it (Bonferroni). A seed that "
    "others of the comparison have is lost to what has no result of it, because it diverged, "
    "failed or was not run. Where any is, a sign test of all seeds must decide the same, in which "
    "lost ones lie on the other side: six to eight seeds may lose none, nine to eleven one, "
    "twelve to fourteen two. A seed that no cell has is not seen. Seeds that fall apart onto both "
    "sides of a threshold decide nothing."
)
"""How all claims are decided, for a report."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what the data says.

    Attributes:
        name: C1 to C17, P1 to P9.
        statement: the claim, in our words.
        test: what is measured, which threshold decides and why; the same for all data.
        verdict: holds, does not hold, undecided or not run.
        measured: one line with the numbers, intervals and n.
        setting: where it was tested, e.g. ``digits m=5``; empty: there is only one.
        why: why it is undecided or was not run, in a short clause for the terminal.
    """

    name: str
    statement: str
    test: str
    verdict: Verdict
    measured: str
    setting: str = ""
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    """What one test says.

    Attributes:
        so: whether what was measured lies on the claimed side.
        p: two-sided p value of the hypothesis that it lies at the threshold; NaN: unknown.
        why: why it is not sure, where something else than p says so.
    """

    so: bool
    p: float
    why: str = ""


@dataclass(frozen=True)
class Finding:
    """One part of a claim, at one or several places; without tests, only shown.

    Attributes:
        text: its numbers.
        tests: those that decide, which must all say so for the claim to hold.
        reason: why the claim cannot hold, whatever the tests say; empty: it can.
        short: the same in a short clause.
        role: how the tests count.
    """

    text: str
    tests: Sequence[Evidence] = ()
    reason: str = ""
    short: str = ""
    role: Role = "both"


def decided(
    name: str,
    statement: str,
    test: str,
    findings: Sequence[Finding],
    setting: str = "",
    parts: int | None = None,
    doubt: str = "",
) -> Claim:
    """The claim, decided by all of its parts.

    Args:
        name, statement, test, setting: as `Claim` has them.
        findings: its parts.
        parts: k of Bonferroni; by default the number of tests that can refute the claim. Fewer
            where their p values are already corrected for each other.
        doubt: why no verdict may follow from what was measured, as from an interim look.
    """
    tests = [(test, part.role) for part in findings for test in part.tests]
    opposed = [test for test, role in tests if role != "for"]
    level = LEVEL / (parts or max(len(opposed), 1))
    reasons = [*(part.reason for part in findings), doubt]
    verdict: Verdict = "undecided"
    if not doubt and any(not test.so and test.p < level for test in opposed):
        verdict = "does not hold"
    elif not any(reasons) and any(role != "against" for _, role in tests):
        verdict = "holds" if all(test.so and test.p < LEVEL for test, _ in tests) else verdict
    why = ""
    if verdict == "undecided":
        named = ((part.short or part.reason, *(e.why for e in part.tests)) for part in findings)
        why = next(filter(None, [doubt, *itertools.chain(*named)]), OPEN)
    said = dict.fromkeys([*(part.text for part in findings), *reasons])
    return Claim(name, statement, test, verdict, "; ".join(filter(None, said)), setting, why)


def evidence(
    values: ArrayLike, threshold: float, claimed: Side, lost: int = 0, are_shares: bool = False
) -> Evidence:
    """On which side of a threshold the mean over seeds lies, and how sure that is.

    Args:
        values: (n,) one number a seed.
        threshold: in the unit of `values`.
        claimed: the claimed side.
        lost: further seeds, whose number is not known.
        are_shares: whether values lie within 0 and 1 by what they are.

    Returns:
        p is that of the t test, so below 1 - confidence where the t interval lies wholly on one
        side; of shares no smaller than on the logit scale, see
        `analysis.rules.statistics.on_logit_scale`. With lost seeds it is no smaller than that of
        the sign test of all of them; where values do not vary, and so say nothing about their
        spread, it is that. NaN with fewer than `MIN_SEEDS` values, or an unknown one, or where
        seeds fall apart (`analysis.rules.learning`) onto both sides: how far off a mean of two
        laws is, no seed at hand may show.
    """
    array = np.asarray(values, np.float64)
    n, (mean, *_) = len(array), t_interval(array)
    so = mean < threshold if claimed == "below" else mean > threshold
    if n < MIN_SEEDS:
        return Evidence(so, math.nan, TOO_FEW)
    if math.isnan(mean):
        return Evidence(so, math.nan, "a number is not known")
    alike = int((array < threshold if mean < threshold else array > threshold).sum())
    falls_apart = apart(array) is not None
    if falls_apart and alike < n:
        return Evidence(so, math.nan, "its seeds fall apart")
    by_signs = sign_test(alike, n + lost)
    if falls_apart or np.ptp(array) <= ROUNDING * max(abs(mean), abs(threshold)):
        return Evidence(so, by_signs)
    distances = [mean - threshold]
    if are_shares:
        distances.append(float(logit(mean) - logit(threshold)) * mean * (1 - mean))
    standard_error = array.std(ddof=1) / math.sqrt(n)
    p = 2 * stdtr(n - 1, -np.abs(distances) / standard_error)
    p = np.maximum(p, by_signs if lost else 0)
    on_logits = "on the logit scale its interval holds the threshold"
    return Evidence(so, float(p.max()), on_logits if p[0] < LEVEL <= p[-1] else "")


def between(values: ArrayLike, low: float, high: float, lost: int = 0) -> Evidence:
    """Whether the mean over seeds lies between two thresholds; see `evidence`."""
    sides = evidence(values, low, "above", lost), evidence(values, high, "below", lost)
    return max(sides, key=lambda each: (not each.so, math.isnan(each.p), each.p))


def side(
    name: str,
    values: ArrayLike,
    threshold: float,
    claimed: Side,
    lost: int = 0,
    form: Callable[[float], str] = lambda share: f"{round(100 * share, 1) + 0.0:.1f} %",
    are_shares: bool = False,
) -> Finding:
    """Tests on which side of a threshold the mean over seeds lies.

    Args:
        name: what was measured.
        values, threshold, claimed, lost, are_shares: see `evidence`.
        form: formats a value.
    """
    return _finding(
        name, values, evidence(values, threshold, claimed, lost, are_shares), lost, form
    )


def inside(
    name: str,
    values: ArrayLike,
    low: float,
    high: float,
    form: Callable[[float], str],
    lost: int = 0,
) -> Finding:
    """Tests whether the mean over seeds lies between two thresholds; arguments as of `side`."""
    return _finding(name, values, between(values, low, high, lost), lost, form)


def _finding(
    name: str, values: ArrayLike, test: Evidence, lost: int, form: Callable[[float], str]
) -> Finding:
    array = np.asarray(values, np.float64)
    n, unknown = len(array), int(np.isnan(array).sum())
    mean, low, high = t_interval(array)
    if not n:
        said = "no seed"
    elif unknown:
        said = f"not known in {unknown} of {counted(n, 'seed')}"
    elif n == 1:
        said = f"{form(mean)} (n=1, no interval)"
    elif apart(array) is not None:
        said = f"{form(mean)} (n={n}, which fall apart: no interval)"
    else:
        said = f"{form(mean)} (95 % interval {form(low)} to {form(high)}, n={n})"
    reason = TOO_FEW if n < MIN_SEEDS else ""
    return Finding(f"{name}: {said}{lost_text(lost)}", [test], reason)


def lost_text(lost: int) -> str:
    """Says how many seeds are lost, if any."""
    return f", {counted(lost, 'seed')} lost" if lost else ""


_VERBS: dict[Verdict, tuple[str, str]] = {
    "holds": ("holds", "hold"),
    "does not hold": ("does not hold", "do not hold"),
    "undecided": ("is undecided", "are undecided"),
    "not run": ("was not run", "were not run"),
}


def tallied(claims: Sequence[Claim]) -> str:
    """``Of 12 tests of the paper's claims, 5 hold (C7, C8), 2 ...``; empty without a claim.

    By number, as settings may have other claims than the first; with its settings where they
    differ in the verdict: ``(C7 in digits m=5 and in digits m=20; C8)``.
    """
    settings: dict[tuple[str, str], list[str]] = {}
    for claim in sorted(claims, key=lambda claim: (len(claim.name), claim.name)):
        settings.setdefault((claim.verdict, claim.name), []).append(claim.setting)
    verdicts = Counter(name for _, name in settings)
    parts = []
    for verdict, verbs in _VERBS.items():
        mine = {name: where for (own, name), where in settings.items() if own == verdict}
        names = [
            f"{name} in {' and in '.join(where)}" if verdicts[name] > 1 else name
            for name, where in mine.items()
        ]
        told = ("; " if [*mine] != names else ", ").join(names)
        if mine:
            parts.append(f"{counted(sum(map(len, mine.values())), *verbs)} ({told})")
    tests = counted(len(claims), "test")
    return f"Of {tests} of the paper's claims, {', '.join(parts)}." if claims else ""
