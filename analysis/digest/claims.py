"""The paper's claims about comparisons (C1 to C6, C16, C17): do they hold on this data?

The paper says "close to zero" and "often" without numbers, from one seed, so each test here states
what is measured, which threshold decides and why.

All tests read one comparison, cut at equal compute, on the test split, with the option of each
paradigm that validation chose; where a study confirms, its confirming seeds alone. A seed that any
cell of the comparison has and a paradigm lacks, because it failed there, is lost to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from analysis.digest.compare import Comparison
from analysis.digest.limits import barred_options
from analysis.digest.measures import measures
from analysis.forms import between, percent, points
from analysis.groups import AXES, STAND_INS
from analysis.rules.claim import (
    LOST,
    TOO_FEW,
    Claim,
    Evidence,
    Finding,
    Side,
    decided,
    evidence,
    lost_text,
    side,
)
from analysis.rules.rises import FEWEST_POINTS, LATEST_START, SMALLEST_RISE, rises
from analysis.rules.statistics import CONFIDENCE, LEVEL, MIN_SEEDS, ROUNDING, sign_test
from study.terminal import counted

NEARLY_EMPTY = 0.1
"""Share of the instances below which the three middle rows (or columns) of a heat map are nearly
empty, and above which they are not negligible: a sixth of the 3/5 that a uniform map has there,
and one instance in ten, which a reader of the picture would see."""

ACCURACY_LOSS = 0.01
"""Accuracy, a fraction, that the hybrid may lose "without affecting the accuracy" (section 5). The
paper gives no number; in four of the seven rows of its Table 1 the hybrid loses .5, .6, 1.2 and
3.2 points, so one point parts what is little there from what is not."""

STALLED = 0.25
"""Share of its rise that a stalled curve may still make in the last half of the cut: half of what
a curve that rises evenly makes there."""

LEAD = 0.1
"""Share of the cut by which soft's rise must precede hard's to be early beside a late one: the
distance of the default evaluations, within which a curve is drawn by interpolation."""

_MIDDLE = slice(1, 4)  # the bins of [.2, .8) among 0, .2, .4, .6, .8, 1
_STEP = 0.05  # a step does not end exactly where an evaluation was planned


def claims(comparison: Comparison) -> list[Claim]:
    """C1 to C6, C16 and C17, in this order, of one comparison.

    There is none of recorded runs, nor where no foreground is known; of what is not classified
    only the last three.

    C1 to C5 are about heat maps of classes, in which a score in the lowest row is confidently
    wrong. A word of thousands whose probability is there need not be, nor is a region of hundreds.
    """
    if comparison.recorded or "saif" not in comparison.metrics:
        return []  # they are about the paper's settings, and about where attention looks
    of_shares = OF_SHARES if comparison.modality.chance else ()
    return [claim_of(comparison, each) for each in (*of_shares, *OF_PAIRS)]


# --- how any claim about a comparison is tested


@dataclass(frozen=True)
class Declared:
    """A claim as data: what it says, how it is tested, and what it takes.

    Attributes:
        name: as `Claim` has it.
        statement, test: likewise. Slots are ``{counted}``, what SAIF counts, and measures, as
            ``{accuracy.name}``.
        needs: paradigms.
        findings: measures its parts; called with the comparison and the names of those that stand
            for the paradigms there.
        parts: see `analysis.rules.claim.decided`.
    """

    name: str
    statement: str
    test: str
    needs: Sequence[str]
    findings: Callable[..., Sequence[Finding]]
    parts: int | None = None


def claim_of(comparison: Comparison, declared: Declared) -> Claim:
    """A claim about paradigms of a comparison.

    It is not run where none of a paradigm's cells are there, nor of what stands for it
    (`STAND_INS`), and undecided without a choice, before it is confirmed, and at an interim look.
    """
    ran = {*comparison.cells["paradigm"]}
    standing = {
        each: next((own for own in (each, *STAND_INS.get(each, ())) if own in ran), each)
        for each in declared.needs
    }
    names = [*standing.values()]
    words = {"counted": comparison.modality.counted, **measures(comparison.task)}
    said = declared.name, declared.statement.format_map(words), declared.test.format_map(words)
    if missing := _not_in(comparison.cells, names):
        text = f"no cells of {' and '.join(missing)}"
        return Claim(*said, "not run", text, why=text)
    if why := _no_numbers(comparison, names):
        claim = Claim(*said, "undecided", why, why=why)
    else:
        findings, doubt = declared.findings(comparison, *names), comparison.looks.of(*names).doubt
        claim = decided(*said, findings, parts=declared.parts, doubt=doubt)
    others = [f"{own} stands for {each}" for each, own in standing.items() if own != each]
    return replace(claim, measured="; ".join([claim.measured, *others]))


def _not_in(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in {*table["paradigm"]}]


def _no_numbers(comparison: Comparison, names: Sequence[str]) -> str:
    """Why nothing can be measured of some paradigms; empty: it can."""
    if unchosen := _not_in(comparison.choice, names):
        rows = barred_options(comparison)
        told = rows[rows["paradigm"].isin(unchosen)].groupby("paradigm", sort=False)["why"]
        return "; ".join(
            f"no option of {name} can be chosen ({' or '.join(why)})" for name, why in told
        )
    waiting = " and ".join(_not_in(comparison.summary, names))
    return f"the chosen option of {waiting} is not confirmed yet" if waiting else ""


def _tested(comparison: Comparison, *paradigms: str) -> tuple[pd.DataFrame, int]:
    """The rows on the test split that verdicts on paradigms rest on; of how many seeds.

    These are the seeds that confirm chosen options, or else all, so that some may have no row.
    """
    rows = comparison.tested(*paradigms)
    seeds = (
        comparison.looks.of(*paradigms).seeds if comparison.staged else comparison.cells["seed"]
    )
    return rows[rows["split"] == "test"], len({*seeds})


# --- what the paper's claims measure


def _share(comparison: Comparison, paradigm: str, measure: str, claimed: Side) -> Finding:
    """On which side of `NEARLY_EMPTY` the middle of a paradigm's heat map lies."""
    rows, num_seeds = _tested(comparison, paradigm)
    heatmaps = rows["heatmap"][~rows["diverged"].astype(bool)]
    shares = [middle_share(heatmap, measure) for heatmap in heatmaps]
    lost = num_seeds - len(shares)
    name = f"{paradigm}, {measure} in [.2, .8)"
    return side(name, shares, NEARLY_EMPTY, claimed, lost, are_shares=True)


def middle_share(heatmap: ArrayLike | None, measure: str) -> float:
    """Share of the instances whose a_z or s_y lies in [.2, .8).

    Args:
        heatmap: (25,) shares of the instances, row by row, axis 0 the attention on the foreground
            a_z, axis 1 the score of the true class s_y (paper, section 2.4); None or NaN: there is
            none.
        measure: ``a_z`` or ``s_y``.

    Returns:
        A fraction of what the map holds, so of the instances whose foreground is known; NaN where
        it holds nothing or a cell is NaN.
    """
    cells = np.asarray(heatmap, np.float64)
    if not cells.sum() > 0:
        return math.nan
    shares = cells.reshape(5, 5).sum(axis=1 if measure == "a_z" else 0)
    return float(shares[_MIDDLE].sum() / shares.sum())


def _saif_higher(comparison: Comparison, first: str, second: str) -> Finding:
    """What the paired verdict on SAIF says about `first` being better."""
    row = _pair(comparison, "saif", first, second)
    verdict, reason = row["verdict"], row["reason"]
    found = Evidence(verdict == "better", math.nan if reason else row["p_holm"])
    says = f"{verdict} ({reason})" if reason else verdict
    return _with_lost(comparison, row, 0.0, found, says)


def _accuracy_kept(comparison: Comparison, first: str, second: str) -> Finding:
    """Whether `first` loses at most `ACCURACY_LOSS` of the accuracy of `second`."""
    if "accuracy" not in comparison.metrics:
        return Finding("", reason=f"{comparison.modality.score} is not tested")
    row = _pair(comparison, "accuracy", first, second)
    if row["num_pairs"] < MIN_SEEDS:
        return Finding(row["text"], reason=TOO_FEW)
    if math.isnan(row["low"]):
        return Finding("", reason=f"{row['text']}, {row['reason'] or 'whose seeds fall apart'}")
    limit = -ACCURACY_LOSS - ROUNDING
    found = _beside(limit, row)
    says = "undecided about 1 point"
    if found.p < LEVEL:
        says = "loses at most 1 point" if found.so else "loses more than 1 point"
    return _with_lost(comparison, row, limit, found, says)


def _pair(comparison: Comparison, metric: str, first: str, second: str) -> pd.Series:
    """The row of the paired differences.

    Its `text` is like ``SAIF, lvml minus soft: +8.2 points (95 % interval +5.0 to +11.4, n=12)``.
    """
    is_it = comparison.paired[["metric", "first", "second"]].eq([metric, first, second])
    row = comparison.paired[is_it.all(axis=1)].iloc[0].copy()
    n, ends = f"n={row['num_pairs']}", between(row["low"], row["high"])
    interval = f"{n}, no interval" if ends == "-" else f"95 % interval {ends}, {n}"
    name = f"{comparison.names[metric]}, {first} minus {second}"
    row["text"] = f"{name}: {points(row['difference'])} points ({interval})"
    return row


def _beside(threshold: float, row: pd.Series) -> Evidence:
    """Whether a difference is above a threshold, which its interval holds where p >= .05.

    Where the interval is over images, too, the rarest of seeds, images and background images
    stands for its degrees of freedom.
    """
    df = row[["num_pairs", "num_images", "num_backgrounds"]].astype(float).min() - 1
    half = max((row["high"] - row["low"]) / 2, 1e-300)  # all differences may be the same
    t = stdtrit(df, (1 + CONFIDENCE) / 2) * ((row["low"] + row["high"]) / 2 - threshold) / half
    return Evidence(bool(t >= 0), 2 * float(stdtr(df, -abs(t))))


def _with_lost(
    comparison: Comparison, row: pd.Series, threshold: float, found: Evidence, says: str
) -> Finding:
    """The finding on a pair, in which seeds without both runs count against either verdict."""
    pair = [row["first"], row["second"]]
    rows, num_seeds = _tested(comparison, *pair)
    lost = num_seeds - row["num_pairs"]
    if lost:
        scores = rows.pivot(index="seed", columns="paradigm", values=row["metric"])
        beyond = scores.reindex(columns=pair).astype(float).diff(-1, axis=1)[pair[0]] - threshold
        alike = int((beyond > 0 if found.so else beyond < 0).sum())
        found = replace(found, p=max(found.p, sign_test(alike, num_seeds)))
    return Finding(f"{row['text']}, {says}{lost_text(lost)}", [found])


def _early_and_late(comparison: Comparison, early: str, late: str) -> list[Finding]:
    """Whether a paradigm makes half of its rise earlier than another, and whether it stalls."""
    rows, num_seeds = _tested(comparison, early, late)
    ended = rows[~rows["diverged"].astype(bool)].groupby("seed")["paradigm"].nunique()
    seeds = [*ended.index[ended == 2]]
    if not seeds:
        return [Finding("", reason=f"{early} and {late} have no common seeds")]
    evaluations = comparison.evaluations
    evaluations = evaluations[evaluations["split"] == "test"]
    found = rises(evaluations, [early, late], seeds, AXES[comparison.axis])
    if isinstance(found, str):
        return [Finding("", reason=found)]
    lost = num_seeds - len(seeds)
    is_first = _earlier(found, early, late, lost)
    curves = found.loc[early]
    if curves["half"].eq(math.inf).any():
        rose = np.isfinite(curves["half"]).sum()
        rises_in = f"{early} rises in {rose} of {counted(len(seeds), 'seed')}"
        return [is_first, Finding("", reason=f"{rises_in}, so whether it stalls is not seen")]
    name = f"{early}'s gain in the last half of the cut, as a share of its rise"
    return [is_first, side(name, curves["late_gain"], STALLED, "below", lost, _percent)]


def _earlier(found: pd.DataFrame, early: str, late: str, lost: int) -> Finding:
    """Whether a paradigm makes half of its rise earlier than another by `LEAD`."""
    half, gap = found["half"].unstack(0), found["gap"].max()
    risen = half[np.isfinite(half)]
    when, rose, n = risen.mean(), risen.count(), len(half)
    capped = half.clip(upper=1.0)  # of a curve that does not rise, half is put at the cut
    flat = half.eq(math.inf).all(axis=1)
    lead = (capped[early] - capped[late]).mask(flat)
    is_coarse = gap > LEAD * (1 + _STEP)
    least = gap if is_coarse else LEAD
    name = (
        f"half of the rise at {_percent(when[early])} of the cut with {early} (rises in "
        f"{rose[early]} of {counted(n, 'seed')}) and {_percent(when[late])} with {late} "
        f"({rose[late]} of {n}), difference"
    )
    part = side(name, lead, -least, "below", lost, lambda share: f"{round(100 * share):+d} %")
    is_so = part.tests[0].so
    if flat.any():
        return replace(part, tests=(), reason=f"of {flat.sum()} neither rises within the cut")
    if is_so and 2 * rose[late] < n:
        return replace(part, reason=f"{late} seldom rises within the cut")
    # The early half is at 0 or later, so the late one's time is the largest lead there could be.
    if is_so or not (is_coarse or capped[late].mean() <= least):
        return part
    reason = f"{late} makes half of its rise too soon for a lead of {_percent(LEAD)}"
    if is_coarse:
        reason = f"the evaluations lie up to {_percent(gap)} of the cut apart"
    is_later = evidence(lead, 0, "below", lost)
    return replace(part, tests=[] if is_later.so else [is_later], reason=reason)


def _percent(share: float) -> str:
    return f"{percent(share, 0)} %"


# --- what the paper claims


def _of_shares(name: str, statement: str, paradigm: str, **sides: Side) -> Declared:
    """A claim about the middle rows or columns of a paradigm's heat map: on which side each is."""
    what = " and ".join(f"{measure} in [.2, .8) {claimed}" for measure, claimed in sides.items())
    limit = f"{100 * NEARLY_EMPTY:g} %"
    level = ", each at half the level" if len(sides) > 1 else ""
    return Declared(
        name,
        statement,
        f"Share of the test {{counted}} in the middle of {paradigm}'s heat map: {what} {limit}. "
        f"{limit} is a sixth of what a uniform map has there: below, the middle is nearly empty, "
        "above, it is not negligible. Holds where the 95 % t interval over seeds lies wholly on "
        "that side, also on the logit scale, does not hold where one lies wholly on the other"
        f"{level}. The test {{counted}} are held fixed: others would give other shares. A "
        f"diverged run has no heat map. {LOST}",
        [paradigm],
        lambda comparison, own: [_share(comparison, own, *each) for each in sides.items()],
    )


OF_SHARES = (
    # Section 2.4: "The models trained with soft attention gives confident class label
    # predictions (... row sums of the middle 3 rows in Figure 1 (a) are close to zero)".
    _of_shares("C1", "Soft attention predicts confidently.", "soft", s_y="below"),
    # Section 2.4: "The focus model in the FCAM trained with soft attention loss is often not
    # very confident (... middle 3 columns are non-negligible in Figure 1(a))".
    _of_shares("C2", "Soft attention often does not focus confidently.", "soft", a_z="above"),
    # Section 2.4: "The models trained with hard attention do not give confident class label
    # predictions (... middle 3 rows in Figure 1(b) are non-negligible)".
    _of_shares("C3", "Hard attention often does not predict confidently.", "hard", s_y="above"),
    # Section 2.4: "The focus model in the FCAM trained with hard attention loss is often
    # confidently wrong or right (... middle 3 columns are close to zero in Figure 1(b))".
    _of_shares(
        "C4", "Hard attention focuses confidently, rightly or wrongly.", "hard", a_z="below"
    ),
    # Section 2.4: "The FCAM models trained with latent variable marginal likelihood have both
    # confident class label predictions and focus scores (... Figure 1(c))".
    _of_shares(
        "C5",
        "Marginal likelihood (lvml) both predicts and focuses confidently.",
        "lvml",
        s_y="below",
        a_z="below",
    ),
)

OF_PAIRS = (
    # Section 2.4: "The top-right number in the heat map ... in the LVML paradigm is often
    # noticeably higher than the SA and HA paradigms".
    Declared(
        "C6",
        "SAIF of marginal likelihood (lvml) is often noticeably higher than that of soft and of "
        "hard attention.",
        "SAIF of lvml minus that of soft and of hard on common seeds. Holds here where the "
        "verdicts of the paired differences, corrected for their number (Holm), are better for "
        "both, does not hold here where one is worse. The paper says often: one comparison is one "
        "case, so count over several; it gives no number for noticeably. A diverged seed counts "
        "as SAIF 0. A pair that lacks a run, which failed, counts against either verdict.",
        ["lvml", "soft", "hard"],
        lambda comparison, lvml, *others: [
            _saif_higher(comparison, lvml, each) for each in others
        ],
        parts=1,  # Holm corrects them for each other
    ),
    # Section 5: "The hybrid approach seems to increase the SAIF performance over soft attention
    # without affecting the accuracy" (Table 1, equal compute).
    Declared(
        "C16",
        "The hybrid raises SAIF over soft attention and costs at most 1 point of {accuracy.name}.",
        "SAIF and {accuracy.name} of hybrid minus those of soft on common seeds. Holds where the "
        "paired verdict on SAIF is better and the 95 % interval of the {accuracy.name} difference "
        f"lies wholly at or above -{100 * ACCURACY_LOSS:g} point, does not hold where SAIF is "
        "worse or that difference wholly below, each at half the level, as there are two parts. "
        "The paper gives no number for unaffected {accuracy.name}; one point parts the small "
        "losses of its Table 1 from the large. A diverged seed counts as {saif.lost_text} and "
        "{accuracy.lost_text}. A pair that lacks a run, which failed, counts against either "
        "verdict.",
        ["hybrid", "soft"],
        lambda *of_pair: [_saif_higher(*of_pair), _accuracy_kept(*of_pair)],
    ),
    # Section 5: "Soft attention provides strong incentives for the focus model to improve at
    # initialization but stagnates later on. In the Hard attention paradigm the incentive ... is
    # small at initialization but becomes larger once a non-trivial focus model is attained".
    Declared(
        "C17",
        "Over training, the attention on the foreground rises early and stalls with soft "
        "attention and rises late with hard.",
        "Mean attention on the foreground (a_z) of the test {counted} against what the comparison "
        "holds equal, a curve a seed, from the first evaluation to its largest value. Holds where "
        "(1) soft makes half of its rise earlier than hard by more than "
        f"{100 * LEAD:g} % of the cut, or than the "
        "widest gap between evaluations where that is more, because within a gap curves are drawn "
        "by interpolation: the 95 % t interval of the difference over common seeds lies wholly "
        "beyond; and (2) soft stalls: in the last half of the cut it gains less than "
        f"{100 * STALLED:g} % of its rise (an even rise would gain twice that), the interval "
        "wholly below. Does not hold where one interval lies wholly on the other side (of 0 with "
        "wider gaps, and where hard makes half of its rise so early that no lead could be as "
        f"large). A curve that gains less than {100 * SMALLEST_RISE:g} points does not rise. "
        "Beside one that does, its half is put at the cut, the earliest that it can be; where "
        "neither of a seed rises, or fewer than half of hard's curves do, (1) is undecided. (2) "
        "is undecided where a curve of soft does not rise. Curves need "
        f"{FEWEST_POINTS} evaluations, the first within the first {100 * LATEST_START:g} % of the "
        f"cut. {LOST}",
        ["soft", "hard"],
        _early_and_late,
    ),
)
