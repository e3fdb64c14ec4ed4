"""The paper's claims about comparisons (C1 to C6, C16, C17): do they hold on this data?

The paper says "close to zero" and "often" without numbers, from one seed, so each test here states
what is measured, which threshold decides and why.

All tests read one comparison, cut at equal compute, on the test split, with the option of each
paradigm that validation chose; where a study confirms, its confirming seeds alone. A seed that any
cell of the comparison has and a paradigm lacks, because it failed there, is lost to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from analysis.digest.compare import Comparison
from analysis.digest.limits import barred_options
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
from analysis.rules.rises import (
    FEWEST_POINTS,
    LATEST_START,
    SMALLEST_RISE,
    Rises,
    rises,
)
from analysis.rules.statistics import CONFIDENCE, MIN_SEEDS, ROUNDING, sign_test
from analysis.words import lost_scores
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
_FOCUS, _PREDICTION = 0, 1  # axes of a heat map: a_z and s_y
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
    of_shares = _SHARE_CLAIMS if comparison.modality.chance else ()
    return [
        *(_share_claim(comparison, *each) for each in of_shares),
        _c6(comparison),
        _c16(comparison),
        _c17(comparison),
    ]


def middle_share(heatmap: ArrayLike, axis: int) -> float:
    """Share of the instances whose a_z (axis 0) or s_y (axis 1) lies in [.2, .8).

    Args:
        heatmap: (25,) or (5, 5) shares of the instances, row by row, axis 0 the attention on the
            foreground a_z, axis 1 the score of the true class s_y (paper, section 2.4).
        axis: 0 or 1.

    Returns:
        A fraction of what the map holds, so of the instances whose foreground is known; NaN where
        it holds nothing or a cell is NaN.
    """
    cells = np.asarray(heatmap, dtype=np.float64)
    along = cells.reshape(5, 5).sum(axis=1 - axis)
    total = float(along.sum())
    return float(along[_MIDDLE].sum()) / total if total > 0 else math.nan


# --- the claims


_SHARE_CLAIMS: tuple[tuple[str, str, str, list[tuple[int, Side]]], ...] = (
    # Section 2.4: "The models trained with soft attention gives confident class label
    # predictions (... row sums of the middle 3 rows in Figure 1 (a) are close to zero)".
    ("C1", "Soft attention predicts confidently.", "soft", [(_PREDICTION, "below")]),
    # Section 2.4: "The focus model in the FCAM trained with soft attention loss is often not
    # very confident (... middle 3 columns are non-negligible in Figure 1(a))".
    ("C2", "Soft attention often does not focus confidently.", "soft", [(_FOCUS, "above")]),
    # Section 2.4: "The models trained with hard attention do not give confident class label
    # predictions (... middle 3 rows in Figure 1(b) are non-negligible)".
    ("C3", "Hard attention often does not predict confidently.", "hard", [(_PREDICTION, "above")]),
    # Section 2.4: "The focus model in the FCAM trained with hard attention loss is often
    # confidently wrong or right (... middle 3 columns are close to zero in Figure 1(b))".
    ("C4", "Hard attention focuses confidently, rightly or wrongly.", "hard", [(_FOCUS, "below")]),
    # Section 2.4: "The FCAM models trained with latent variable marginal likelihood have both
    # confident class label predictions and focus scores (... Figure 1(c))".
    (
        "C5",
        "Marginal likelihood (lvml) both predicts and focuses confidently.",
        "lvml",
        [(_PREDICTION, "below"), (_FOCUS, "below")],
    ),
)
"""Name, statement, paradigm, and where the share of each middle of its heat map lies."""


def _c6(comparison: Comparison) -> Claim:
    """Section 2.4: "The top-right number in the heat map ... in the LVML paradigm is often
    noticeably higher than the SA and HA paradigms".
    """
    others = ("soft", "hard")
    return _claim(
        comparison,
        "C6",
        "SAIF of marginal likelihood (lvml) is often noticeably higher than that of soft and of "
        "hard attention.",
        "SAIF of lvml minus that of soft and of hard on common seeds. Holds here where the "
        "verdicts of the paired differences, corrected for their number (Holm), are better for "
        "both, does not hold here where one is worse. The paper says often: one comparison is one "
        "case, so count over several; it gives no number for noticeably. A diverged seed counts "
        "as SAIF 0. A pair that lacks a run, which failed, counts against either verdict.",
        ("lvml", *others),
        lambda lvml, *others: [_saif_higher(comparison, lvml, other) for other in others],
        parts=1,  # Holm corrects them for each other
    )


def _c16(comparison: Comparison) -> Claim:
    """Section 5: "The hybrid approach seems to increase the SAIF performance over soft attention
    without affecting the accuracy" (Table 1, equal compute).
    """
    score = comparison.modality.score
    return _claim(
        comparison,
        "C16",
        f"The hybrid raises SAIF over soft attention and costs at most 1 point of {score}.",
        f"SAIF and {score} of hybrid minus those of soft on common seeds. Holds where the paired "
        f"verdict on SAIF is better and the 95 % interval of the {score} difference lies wholly "
        f"at or above -{100 * ACCURACY_LOSS:g} point, does not hold where SAIF is worse or that "
        "difference wholly below, each at half the level, as there are two parts. The paper gives "
        f"no number for unaffected {score}; one point parts the small losses of its Table 1 from "
        f"the large. A diverged seed counts as {lost_scores(comparison.task)}. A pair that lacks "
        "a run, which failed, counts against either verdict.",
        ("hybrid", "soft"),
        lambda hybrid, soft: [
            _saif_higher(comparison, hybrid, soft),
            _accuracy_kept(comparison, hybrid, soft),
        ],
    )


def _c17(comparison: Comparison) -> Claim:
    """Section 5: "Soft attention provides strong incentives for the focus model to improve at
    initialization but stagnates later on. In the Hard attention paradigm the incentive ... is
    small at initialization but becomes larger once a non-trivial focus model is attained".
    """
    return _claim(
        comparison,
        "C17",
        "Over training, the attention on the foreground rises early and stalls with soft "
        "attention and rises late with hard.",
        "Mean attention on the foreground (a_z) of the test "
        f"{comparison.modality.counted} against what the comparison holds equal, a curve "
        "a seed, from the first evaluation to its largest value. Holds where (1) soft makes half "
        f"of its rise earlier than hard by more than {100 * LEAD:g} % of the cut, or than the "
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
        ("soft", "hard"),
        lambda soft, hard: _rise_findings(comparison, soft, hard),
    )


# --- how they are decided


def _claim(
    comparison: Comparison,
    name: str,
    statement: str,
    test: str,
    paradigms: Sequence[str],
    findings: Callable[..., list[Finding]],
    parts: int | None = None,
) -> Claim:
    """The claim: not run, undecided without a choice or at a look, or decided by the findings.

    Args:
        comparison, name, statement, test: of the claim.
        paradigms: that it speaks of.
        findings: takes the names of those that stand for them here, see `STAND_INS`.
        parts: see `analysis.rules.claim.decided`.
    """
    ran = set(comparison.cells["paradigm"])
    standing = {each: _standing(each, ran) for each in paradigms}
    missing = [paradigm for paradigm in paradigms if standing[paradigm] not in ran]
    if missing:
        return Claim(name, statement, test, "not run", f"no cells of {' and '.join(missing)}")
    chosen = set(comparison.choice["paradigm"])
    if unchosen := [own for own in standing.values() if own not in chosen]:
        claim = Claim(name, statement, test, "undecided", _no_choice(comparison, unchosen))
    elif waiting := [own for own in standing.values() if own in comparison.unconfirmed]:
        reason = f"the chosen option of {' and '.join(waiting)} is not confirmed yet"
        claim = Claim(name, statement, test, "undecided", reason)
    else:
        claim = decided(name, statement, test, findings(*standing.values()), parts=parts)
        if doubt := comparison.looks.of(*standing.values()).doubt:
            measured = f"{claim.measured}; {doubt}" if claim.measured else doubt
            claim = replace(claim, verdict="undecided", measured=measured, why=doubt)
    others = [f"{own} stands for {each}" for each, own in standing.items() if own != each]
    return replace(claim, measured="; ".join([claim.measured, *others]))


def _standing(paradigm: str, ran: Collection[str]) -> str:
    """The paradigm if it ran, else the first that stands for it and did, else the paradigm."""
    candidates = (paradigm, *STAND_INS.get(paradigm, ()))
    return next((name for name in candidates if name in ran), paradigm)


def _no_choice(comparison: Comparison, paradigms: Sequence[str]) -> str:
    """Why these paradigms have no option that can be chosen."""
    rows = barred_options(comparison)
    rows = rows[rows["paradigm"].isin(paradigms)]
    told = rows.groupby("paradigm", sort=False)["why"].agg(" or ".join)
    return "; ".join(f"no option of {name} can be chosen ({why})" for name, why in told.items())


def _share_claim(
    comparison: Comparison,
    name: str,
    statement: str,
    paradigm: str,
    parts: Sequence[tuple[int, Side]],
) -> Claim:
    """A claim about the middle rows or columns of a paradigm's heat map."""
    what = " and ".join(f"{_middle_name(axis)} {side}" for axis, side in parts)
    limit, counted = f"{100 * NEARLY_EMPTY:g} %", comparison.modality.counted
    test = (
        f"Share of the test {counted} in the middle of {paradigm}'s heat map: {what} {limit}. "
        f"{limit} is a sixth of what a uniform map has there: below, the middle is nearly empty, "
        "above, it is not negligible. Holds where the 95 % t interval over seeds lies wholly on "
        "that side, also on the logit scale, does not hold where one lies wholly on the other"
        f"{', each at half the level' if len(parts) > 1 else ''}. The test {counted} are held "
        f"fixed: others would give other shares. A diverged run has no heat map. {LOST}"
    )
    return _claim(
        comparison,
        name,
        statement,
        test,
        (paradigm,),
        lambda own: [_share_finding(comparison, own, axis, side) for axis, side in parts],
    )


def _middle_name(axis: int) -> str:
    return f"{'a_z' if axis == _FOCUS else 's_y'} in [.2, .8)"


def _share_finding(comparison: Comparison, paradigm: str, axis: int, claimed: Side) -> Finding:
    rows = _test_rows(comparison.tested(paradigm), paradigm)
    heatmaps = rows.loc[~rows["diverged"].astype(bool), "heatmap"]
    shares = [_share_of(heatmap, axis) for heatmap in heatmaps]
    lost = len(_seeds(comparison, paradigm)) - len(shares)
    name = f"{paradigm}, {_middle_name(axis)}"
    return side(name, shares, NEARLY_EMPTY, claimed, lost, are_shares=True)


def _seeds(comparison: Comparison, *paradigms: str) -> Collection[int]:
    """The seeds that paradigms should have: those that confirm chosen options, else all."""
    if comparison.staged:
        return comparison.looks.of(*paradigms).seeds
    return comparison.cells["seed"].unique()


def _share_of(heatmap: Any, axis: int) -> float:
    """`middle_share`, NaN where there is no heat map."""
    return math.nan if heatmap is None or np.ndim(heatmap) == 0 else middle_share(heatmap, axis)


def _pair(comparison: Comparison, metric: str, first: str, second: str) -> dict[Any, Any] | None:
    """The row of the paired differences, None where there is none."""
    paired = comparison.paired
    if paired.empty:
        return None
    rows = paired[
        (paired["metric"] == metric) & (paired["first"] == first) & (paired["second"] == second)
    ]
    return None if rows.empty else rows.to_dict("records")[0]


def _saif_higher(comparison: Comparison, first: str, second: str) -> Finding:
    """What the paired verdict on SAIF says about `first` being better."""
    row = _pair(comparison, "saif", first, second)
    name = f"{comparison.names['saif']}, {first} minus {second}"
    if row is None:
        return Finding("", reason=f"{name}: no common seeds")
    is_decided = row["verdict"] in ("better", "worse")
    found = Evidence(row["verdict"] == "better", row["p_holm"] if is_decided else math.nan)
    reason = f" ({row['reason']})" if not is_decided and row["reason"] else ""
    text = f"{name}: {_difference(row)}, {row['verdict']}{reason}"
    return _with_failed(comparison, "saif", first, second, 0.0, int(row["num_pairs"]), found, text)


def _accuracy_kept(comparison: Comparison, first: str, second: str) -> Finding:
    """Whether `first` loses at most `ACCURACY_LOSS` of the accuracy of `second`."""
    row = _pair(comparison, "accuracy", first, second)
    name = f"{comparison.modality.score}, {first} minus {second}"
    if row is None:
        return Finding("", reason=f"{name}: no common seeds")
    text = f"{name}: {_difference(row)}"
    if row["num_pairs"] < MIN_SEEDS:
        return Finding(text, reason=TOO_FEW)
    if pd.isna(row["low"]):
        return Finding("", reason=f"{text}, {row['reason'] or 'whose seeds fall apart'}")
    limit, n = -ACCURACY_LOSS - ROUNDING, int(row["num_pairs"])
    few = np.nanmin([n, row["num_images"], row["num_backgrounds"]])
    p = _p_at(limit, row["low"], row["high"], int(few) - 1)
    found = Evidence(row["low"] + row["high"] >= 2 * limit, p)
    says = "undecided about 1 point"
    if p < 1 - CONFIDENCE:
        says = "loses at most 1 point" if found.so else "loses more than 1 point"
    return _with_failed(comparison, "accuracy", first, second, limit, n, found, f"{text}, {says}")


def _p_at(threshold: float, low: float, high: float, df: int) -> float:
    """Two-sided p value of a threshold by an interval; it is below .05 where that is outside.

    Where the interval is over images, too, the rarest of seeds, images and background images
    stands for its degrees of freedom.
    """
    half = (high - low) / 2
    if half <= 0:
        return 0.0
    t = float(stdtrit(df, (1 + CONFIDENCE) / 2)) * abs((low + high) / 2 - threshold) / half
    return 2 * float(stdtr(df, -t))


def _with_failed(
    comparison: Comparison,
    metric: str,
    first: str,
    second: str,
    threshold: float,
    num_pairs: int,
    found: Evidence,
    text: str,
) -> Finding:
    """The finding on a pair, in which seeds without both runs count against either verdict."""
    total, tested = len(_seeds(comparison, first, second)), comparison.tested(first, second)
    lost = total - num_pairs
    if not lost:
        return Finding(text, [found])
    scores = (
        _test_rows(tested, name).set_index("seed")[metric].astype(np.float64)
        for name in (first, second)
    )
    differences = next(scores).sub(next(scores)).dropna()
    beyond = differences > threshold if found.so else differences < threshold
    p = max(found.p, sign_test(int(beyond.sum()), total))
    return Finding(text + lost_text(lost), [Evidence(found.so, p)])


def _difference(row: dict[Any, Any]) -> str:
    """``+8.2 points (95 % interval +5.0 to +11.4, n=12)``."""
    n = int(row["num_pairs"])
    if pd.isna(row["difference"]):
        return f"not known (n={n})"
    text = f"{100 * row['difference']:+.1f} points "
    if pd.isna(row["low"]) or pd.isna(row["high"]):
        return f"{text}(n={n}, no interval)"
    return f"{text}(95 % interval {100 * row['low']:+.1f} to {100 * row['high']:+.1f}, n={n})"


def _rise_findings(comparison: Comparison, soft_name: str, hard_name: str) -> list[Finding]:
    """The two parts of C17."""
    names = soft_name, hard_name
    tested = comparison.tested(*names)
    alive = [
        set(rows.loc[~rows["diverged"].astype(bool), "seed"])
        for rows in (_test_rows(tested, name) for name in names)
    ]
    seeds = sorted(set.intersection(*alive))
    if not seeds:
        return [Finding("", reason=f"{soft_name} and {hard_name} have no common seeds")]
    evaluations = {name: _test_rows(comparison.evaluations, name) for name in names}
    found = rises(evaluations, seeds, AXES[comparison.axis])
    if isinstance(found, str):
        return [Finding("", reason=found)]
    soft, hard, n = found[soft_name], found[hard_name], len(seeds)
    lost = len(_seeds(comparison, *names)) - n
    flat = int((np.isinf(soft.half) & np.isinf(hard.half)).sum())
    if flat == n:
        curves = f"{n} seeds" if n > 1 else "the one seed"
        nothing = f"neither {soft_name} nor {hard_name} rises within the cut, in {curves}"
        return [Finding("", reason=nothing + lost_text(lost))]
    gap = max(soft.gap, hard.gap)
    coarse = gap > LEAD * (1 + _STEP)
    lead = _lead(soft.half, hard.half)
    least = gap if coarse else LEAD
    # Soft's half is at 0 or later, so hard's own time is the largest lead there could be.
    soon = bool(np.minimum(hard.half, 1.0).mean() <= least)
    earlier = side(
        f"half of the rise at {_when(soft)} of the cut with {soft_name} (rises in "
        f"{soft.rose.sum()} of {counted(n, 'seed')}) and {_when(hard)} with {hard_name} "
        f"({hard.rose.sum()} of {n}), difference",
        lead,
        -least,
        "below",
        lost,
        _signed_percent,
    )
    if flat:
        reason = f"of {flat} neither rises within the cut"
        earlier = replace(earlier, tests=(), reason=reason)
    elif earlier.tests[0].so and 2 * hard.rose.sum() < n:
        earlier = replace(earlier, reason=f"{hard_name} seldom rises within the cut")
    elif (coarse or soon) and not earlier.tests[0].so:
        later = evidence(lead, 0, "below", lost)
        reason = (
            f"the evaluations lie up to {_percent(gap)} of the cut apart"
            if coarse
            else f"{hard_name} makes half of its rise too soon for a lead of {_percent(LEAD)}"
        )
        earlier = replace(earlier, tests=[] if later.so else [later], reason=reason)
    stalls = side(
        f"{soft_name}'s gain in the last half of the cut, as a share of its rise",
        soft.late_gain,
        STALLED,
        "below",
        lost,
        _percent,
    )
    if np.isinf(soft.half).any():
        rose = f"{soft_name} rises in {soft.rose.sum()} of {counted(n, 'seed')}"
        stalls = Finding("", reason=f"{rose}, so whether it stalls is not seen")
    return [earlier, stalls]


def _lead(soft: NDArray[np.float64], hard: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much soft makes half of its rise later than hard, as a share of the cut.

    Args:
        soft, hard: (n,) see `analysis.rules.rises.half_rise`.

    Returns:
        (n,) fractions. A curve that does not rise counts with its half at the cut; NaN where
        neither rises, or one is unknown.
    """
    neither = np.isinf(soft) & np.isinf(hard)
    return np.where(neither, math.nan, np.minimum(soft, 1.0) - np.minimum(hard, 1.0))


def _when(rises: Rises) -> str:
    """Mean time at which the rising curves make half of their rise."""
    return _percent(rises.half[rises.rose].mean()) if rises.rose.any() else "-"


def _percent(share: float) -> str:
    """Per cent without decimals; ``-`` if unknown."""
    return "-" if math.isnan(share) else f"{round(100 * share)} %"


def _signed_percent(share: float) -> str:
    return f"{round(100 * share):+d} %"


def _test_rows(rows: pd.DataFrame, paradigm: str) -> pd.DataFrame:
    return rows[(rows["split"] == "test") & (rows["paradigm"] == paradigm)]
