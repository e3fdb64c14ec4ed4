"""The paper's claims on hand-made results: every verdict, and that nothing unknown decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.comparison.attention_rise import SMALLEST_RISE, half_rise
from analysis.comparison.compare import Comparison, compare
from analysis.comparison.paired import SAME_EVERYWHERE
from analysis.comparison.paper.claims import (
    LEAD,
    NEARLY_EMPTY,
    STALLED,
    claims,
    middle_share,
)
from analysis.comparison.report.chapter import Compared
from analysis.page.exports import claim_rows
from analysis.reading import load
from analysis.section.claim import Claim
from analysis.words import METRICS, metric_name
from study.tasks import MOSAICS
from tests.made_up.comparisons import make_cell, make_results, write

NAMES = ["C1", "C2", "C3", "C4", "C5", "C6", "C16", "C17"]
TIMES = np.linspace(0, 1, 11)
JITTER = (-0.02, 0.02, -0.01, 0.01, -0.015, 0.015)
"""Of six seeds; its mean is 0."""

EARLY = np.minimum(0.2 + 4 * TIMES, 0.6)
"""Rises by .4 within the first tenth and stalls: half at .05."""
LATE = np.clip(0.2 + 2 * (TIMES - 0.6), 0.2, 0.8)
"""Rises from .6 on until .9: half at .75."""
STEADY = 0.2 + 0.6 * TIMES
FLAT = np.full(11, 0.2)


def heatmap(middle_focus: float = 0.0, middle_prediction: float = 0.0) -> list[float]:
    """25 shares with these in the middle columns (a_z) and rows (s_y), which do not meet."""
    cells = np.zeros((5, 5))
    cells[1:4, 4] = middle_focus / 3
    cells[4, 1:4] = middle_prediction / 3
    cells[4, 4] = 1 - middle_focus - middle_prediction
    return cells.ravel().tolist()


def pair(
    metric: str,
    first: str,
    second: str,
    verdict: str = "undecided",
    low: float = math.nan,
    high: float = math.nan,
    n: int = 6,
) -> dict[str, Any]:
    """A row of `paired` with what the claims read."""
    return {
        "metric": metric,
        "first": first,
        "second": second,
        "num_pairs": n,
        "num_images": math.nan,
        "difference": (low + high) / 2,
        "low": low,
        "high": high,
        "p_holm": 0.3 if verdict == "undecided" else 0.01,
        "verdict": verdict,
        "reason": "p=0.3 after Holm" if verdict == "undecided" else "",
    }


def options_of(barred: Mapping[str, str]) -> pd.DataFrame:
    rows = [
        {"paradigm": name, "can_be_chosen": True, "num_censored": 0, "num_unswitched": 0}
        | {"num_options": 2}
        | {"validation_accuracy": 0.9, column: math.nan if column.startswith("val") else 1}
        for name, column in barred.items()
    ]
    columns = ["paradigm", "can_be_chosen", "num_censored", "num_unswitched"]
    columns += ["validation_accuracy", "num_options"]
    return pd.DataFrame(rows, columns=columns)


def comparison(
    heatmaps: Mapping[str, Sequence[list[float] | None]] | None = None,
    pairs: Sequence[dict[str, Any]] = (),
    curves: Mapping[str, Sequence[np.ndarray]] | None = None,
    ran: Sequence[str] = ("soft", "hard", "hybrid", "lvml"),
    times: np.ndarray = TIMES,
    threshold: float = 0.8,
    barred: Mapping[str, str] | None = None,
    scores: Mapping[str, Sequence[float]] | None = None,
) -> Comparison:
    """What the claims read of a comparison: None as a heat map is a diverged seed.

    `scores` are SAIF and accuracy of single runs, NaN where it failed. `barred` are paradigms
    without a choice, with the column of their single option that bars it.
    """
    heatmaps = dict(heatmaps or {})
    scores = dict(scores or {})
    for paradigm, each in scores.items():
        heatmaps.setdefault(paradigm, [heatmap()] * len(each))
    for paradigm, each in (curves or {}).items():
        heatmaps.setdefault(paradigm, [heatmap()] * len(each))
    chosen = [
        {
            "split": split,
            "paradigm": paradigm,
            "seed": seed,
            # What other splits say must not matter.
            "heatmap": each if split == "test" else heatmap(0.5, 0.5),
            "diverged": each is None,
            "saif": scores.get(paradigm, {seed: 0.5})[seed],
            "accuracy": scores.get(paradigm, {seed: 0.5})[seed],
        }
        for paradigm, maps in heatmaps.items()
        for seed, each in enumerate(maps)
        for split in ("train", "test")
        if not math.isnan(scores.get(paradigm, {seed: 0.5})[seed])
    ]
    evaluations = [
        {
            "split": split,
            "paradigm": paradigm,
            "seed": seed,
            "budget_fraction": time,
            "compute_flops": int(1_000_000 * time),
            "foreground_attention_mean": value if split == "test" else 0.0,
        }
        for paradigm, each in (curves or {}).items()
        for seed, curve in enumerate(each)
        for time, value in zip(times, curve, strict=True)
        for split in ("train", "test")
    ]
    columns = ["split", "paradigm", "seed", "heatmap", "diverged", "saif", "accuracy"]
    more = ["budget_fraction", "compute_flops", "foreground_attention_mean"]
    shared = {"task": "digits", "comparison_id": "0123456789abcdef"}
    counts = [*map(len, heatmaps.values()), *(each["num_pairs"] for each in pairs), 1]
    ids = [
        shared | {"paradigm": name, "seed": seed, "stage": None}
        for name in ran
        for seed in range(max(counts))
    ]
    made = SimpleNamespace(
        task="digits",
        m=10,
        architecture="mlp",
        axis="flops",
        threshold=threshold,
        modality=MOSAICS,
        metrics=METRICS,
        recorded=False,
        names={name: metric_name(name, threshold) for name in METRICS},
        select="accuracy",
        cells=pd.DataFrame(ids),
        staged=False,
        unconfirmed=[],
        options=options_of(barred or {}),
        choice=pd.DataFrame({"paradigm": [name for name in ran if name not in (barred or {})]}),
        chosen=pd.DataFrame(chosen, columns=columns),
        evaluations=pd.DataFrame(evaluations, columns=[*columns[:3], *more]).sample(
            frac=1, random_state=0
        ),
        paired=pd.DataFrame(pairs, columns=list(pair("saif", "lvml", "soft"))),
    )
    return cast(Comparison, made)


def claim(name: str, of: Comparison) -> Claim:
    (found,) = [each for each in claims(of) if each.name == name]
    return found


def jittered(share: float, axis: str) -> list[list[float] | None]:
    """Six heat maps whose shares in the middle are about `share`."""
    return [heatmap(**{axis: share * (1 + each)}) for each in JITTER]


# --- shares of a heat map


def test_a_middle_share_is_of_one_axis_and_of_what_the_map_holds() -> None:
    cells = (np.arange(25.0) ** 2).reshape(5, 5)
    focus = cells[1:4].sum() / cells.sum()
    prediction = cells[:, 1:4].sum() / cells.sum()
    assert focus != prediction
    for scale in (1.0, 0.5, 1 / cells.sum()):
        assert middle_share(scale * cells, 0) == pytest.approx(focus)
        assert middle_share((scale * cells).ravel(), 1) == pytest.approx(prediction)
    assert middle_share(np.full(25, 1 / 25), 0) == pytest.approx(6 * NEARLY_EMPTY)
    assert math.isnan(middle_share(np.zeros(25), 0))
    assert math.isnan(middle_share([math.nan] * 25, 1))
    with pytest.raises(ValueError, match="25 cells"):
        middle_share(np.zeros(9), 0)


SHARE_CLAIMS = [
    ("C1", "soft", "middle_prediction", "below"),
    ("C2", "soft", "middle_focus", "above"),
    ("C3", "hard", "middle_prediction", "above"),
    ("C4", "hard", "middle_focus", "below"),
    ("C5", "lvml", "middle_prediction", "below"),
    ("C5", "lvml", "middle_focus", "below"),
]


@pytest.mark.parametrize(("name", "paradigm", "axis", "side"), SHARE_CLAIMS)
def test_a_share_claim_is_decided_by_the_side_of_its_interval(
    name: str, paradigm: str, axis: str, side: str
) -> None:
    verdicts = {
        share: claim(name, comparison({paradigm: jittered(share, axis)})).verdict
        for share in (0.03, NEARLY_EMPTY, 0.4)
    }
    few, many = ("holds", "does not hold") if side == "below" else ("does not hold", "holds")
    assert verdicts == {0.03: few, NEARLY_EMPTY: "undecided", 0.4: many}
    other = "middle_focus" if axis == "middle_prediction" else "middle_prediction"
    of_other = claim(name, comparison({paradigm: jittered(0.4, other)})).verdict
    assert of_other == ("does not hold" if name == "C5" else few)


def test_the_numbers_are_those_of_scipys_interval() -> None:
    shares = [0.05, 0.02, 0.08, 0.03, 0.06, 0.04]
    maps = [heatmap(middle_prediction=share) for share in shares]
    low, high = stats.t.interval(0.95, 5, np.mean(shares), stats.sem(shares))
    found = claim("C1", comparison({"soft": maps}))
    assert found.verdict == "holds"
    interval = f"4.7 % (95 % interval {100 * low:.1f} % to {100 * high:.1f} %, n=6)"
    assert interval in found.measured


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_fewer_than_six_seeds_decide_nothing(n: int) -> None:
    maps = {name: [heatmap(0.4, 0.01)] * n for name in ("soft", "hard", "lvml")}
    curves = {"soft": [EARLY] * n, "hard": [LATE] * n}
    pairs = [pair("saif", "lvml", other, n=n) for other in ("soft", "hard")]
    pairs += [pair("saif", "hybrid", "soft", n=n), pair("accuracy", "hybrid", "soft", "", -1, -1)]
    pairs[-1]["num_pairs"] = n
    of = comparison(maps, pairs, curves)
    assert [each.verdict for each in claims(of)] == ["undecided"] * 8
    if n:
        assert f"n={n}" in claim("C1", of).measured
        assert "fewer than 6 seeds" in claim("C1", of).measured


TWELVE = JITTER * 2


@pytest.mark.parametrize(
    ("left", "lost", "verdict"), [(6, 1, "undecided"), (8, 1, "holds"), (10, 2, "holds")]
)
def test_a_lost_seed_counts_against_a_claim(left: int, lost: int, verdict: str) -> None:
    """Of nine seeds one may be lost, of twelve two; of seven none."""
    maps = [heatmap(middle_prediction=0.03 * (1 + each)) for each in TWELVE[:left]]
    diverged = comparison({"soft": [*maps, *[None] * lost]})
    failed = comparison({"soft": maps, "lvml": [heatmap()] * (left + lost)})
    for of in (diverged, failed):
        found = claim("C1", of)
        assert found.verdict == verdict
        assert f"n={left}), {lost} seed{'s' if lost > 1 else ''} lost" in found.measured


def test_a_lost_seed_counts_against_a_refutation() -> None:
    maps = jittered(0.4, "middle_prediction")
    assert claim("C1", comparison({"soft": maps})).verdict == "does not hold"
    assert claim("C1", comparison({"soft": [*maps, None]})).verdict == "undecided"


def test_where_seeds_are_lost_those_left_must_agree() -> None:
    """A mean that is surely below does not decide, since what was lost may be like what is not."""
    shares = [0.09, 0.101, 0.09, 0.08, 0.085, 0.09, 0.08, 0.09]
    maps = [heatmap(middle_prediction=share) for share in shares]
    assert claim("C1", comparison({"soft": maps})).verdict == "holds"
    assert claim("C1", comparison({"soft": [*maps, None]})).verdict == "undecided"


def test_seeds_of_tuning_and_of_options_that_were_chosen_before_are_not_lost() -> None:
    of = comparison({"soft": jittered(0.03, "middle_prediction")})
    tuned = of.cells.assign(seed=of.cells["seed"] + 100, stage="tune")
    before = of.cells.assign(seed=of.cells["seed"] + 200, stage="confirm")
    cells = pd.concat([tuned, before, of.cells.assign(stage="confirm")])
    both = SimpleNamespace(**vars(of) | {"cells": cells, "staged": True})
    assert claim("C1", cast(Comparison, both)) == claim("C1", of)


def test_what_is_not_confirmed_yet_is_not_lost() -> None:
    of = comparison({"soft": jittered(0.03, "middle_prediction")})
    waiting = SimpleNamespace(**vars(of) | {"staged": True, "unconfirmed": ["hybrid"]})
    assert claim("C1", cast(Comparison, waiting)) == claim("C1", of)
    found = claim("C16", cast(Comparison, waiting))
    assert found.verdict == "undecided"
    assert found.measured == "the chosen option of hybrid is not confirmed yet"


def test_a_seed_without_a_known_share_decides_nothing() -> None:
    for unknown in ([math.nan] * 25, [0.0] * 25):
        maps = [*jittered(0.03, "middle_prediction"), unknown]
        found = claim("C1", comparison({"soft": maps}))
        assert found.verdict == "undecided"
        assert "not known in 1 of 7 seeds" in found.measured


def test_what_did_not_run_is_said() -> None:
    of = comparison({"soft": jittered(0.03, "middle_prediction")}, ran=["soft"])
    found = {each.name: (each.verdict, each.measured) for each in claims(of)}
    assert found["C1"][0] == "holds"
    assert found["C3"] == ("not run", "no cells of hard")
    assert found["C6"] == ("not run", "no cells of lvml and hard")
    assert found["C16"] == ("not run", "no cells of hybrid")
    assert found["C17"] == ("not run", "no cells of hard")


def test_a_paradigm_whose_options_were_all_stopped_is_undecided() -> None:
    for each in claims(comparison()):
        assert each.verdict == "undecided"
    assert "no seed, 1 seed lost" in claim("C1", comparison()).measured
    assert "no common seeds" in claim("C17", comparison()).measured


# --- paired differences


@pytest.mark.parametrize(
    ("soft", "hard", "verdict"),
    [
        ("better", "better", "holds"),
        ("better", "undecided", "undecided"),
        ("undecided", "undecided", "undecided"),
        ("better", "worse", "does not hold"),
        ("worse", "undecided", "does not hold"),
    ],
)
def test_c6_follows_the_paired_verdicts(soft: str, hard: str, verdict: str) -> None:
    pairs = [
        pair("saif", "lvml", "soft", soft, 0.05, 0.11),
        pair("saif", "lvml", "hard", hard, 0.02, 0.04),
        pair("accuracy", "lvml", "soft", "worse", -0.2, -0.1),
    ]
    found = claim("C6", comparison(pairs=pairs))
    assert found.verdict == verdict
    assert "+8.0 points (95 % interval +5.0 to +11.0, n=6)" in found.measured
    assert claim("C6", comparison(pairs=pairs[:1])).verdict == (
        "does not hold" if soft == "worse" else "undecided"
    )


@pytest.mark.parametrize(
    ("saif", "low", "high", "verdict"),
    [
        ("better", -0.009, 0.02, "holds"),
        ("better", -0.01, -0.01, "holds"),
        ("better", -0.011, 0.02, "undecided"),
        ("better", -0.03, -0.014, "does not hold"),
        ("better", -0.03, -0.011, "undecided"),  # not at half the level
        ("undecided", -0.005, 0.02, "undecided"),
        ("undecided", -0.03, -0.014, "does not hold"),
        ("worse", -0.005, 0.02, "does not hold"),
        ("better", math.nan, math.nan, "undecided"),
    ],
)
def test_c16_asks_for_saif_and_for_accuracy(
    saif: str, low: float, high: float, verdict: str
) -> None:
    pairs = [
        pair("saif", "hybrid", "soft", saif, 0.05, 0.11),
        pair("accuracy", "hybrid", "soft", "undecided", low, high),
    ]
    assert claim("C16", comparison(pairs=pairs)).verdict == verdict


def test_c16_says_why_an_accuracy_without_an_interval_decides_nothing() -> None:
    same = pair("accuracy", "hybrid", "soft") | {"difference": 0.0, "reason": SAME_EVERYWHERE}
    pairs = [pair("saif", "hybrid", "soft", "better", 0.05, 0.11), same]
    found = claim("C16", comparison(pairs=pairs))
    assert found.verdict == "undecided"
    assert f"+0.0 points (n=6, no interval), {SAME_EVERYWHERE}" in found.measured


@pytest.mark.parametrize("name", ["C6", "C16"])
def test_a_failed_run_counts_against_what_is_paired(name: str) -> None:
    """Its pair is in no row; of nine pairs one may be missing, of seven none."""
    others = ("soft", "hard") if name == "C6" else ("soft",)
    first = "lvml" if name == "C6" else "hybrid"
    for n, verdict in ((8, "holds"), (6, "undecided")):
        pairs = [pair("saif", first, other, "better", 0.05, 0.11, n) for other in others]
        pairs.append(pair("accuracy", first, "soft", "better", 0.0, 0.02, n))
        scores = {first: [0.8] * n + [math.nan]} | {each: [0.7] * (n + 1) for each in others}
        found = claim(name, comparison(pairs=pairs, scores=scores))
        assert found.verdict == verdict, found.measured
        assert "1 seed lost" in found.measured


# --- rises


def test_half_of_a_rise_by_hand() -> None:
    assert half_rise(TIMES, STEADY) == pytest.approx((0.5, 0.5))
    assert half_rise(TIMES, EARLY) == pytest.approx((0.05, 0.0))
    assert half_rise(TIMES, LATE) == pytest.approx((0.75, 1.0))
    # .2 to .8 within the first half, then down by .3: it has risen by .6 and lost half of it.
    falls = np.where(TIMES <= 0.5, 0.2 + 1.2 * TIMES, 0.8 - 0.6 * (TIMES - 0.5))
    assert half_rise(TIMES, falls) == pytest.approx((0.25, -0.5))


def test_what_does_not_rise_has_no_half_within_the_cut_and_no_share() -> None:
    for curve in (FLAT, FLAT[0] - 0.3 * TIMES, 0.2 + 0.98 * SMALLEST_RISE * TIMES):
        half, late_gain = half_rise(TIMES, curve)
        assert half == math.inf
        assert math.isnan(late_gain)
    assert half_rise(TIMES, 0.2 + SMALLEST_RISE * TIMES) == pytest.approx((0.5, 0.5))
    unknown = STEADY.copy()
    unknown[4] = math.nan
    assert np.isnan(half_rise(TIMES, unknown)).all()


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=20),
    st.floats(0.01, 1),
    st.floats(-0.5, 0.5),
)
def test_half_of_a_rise_lies_where_the_curve_has_its_half(
    values: list[float], scale: float, shift: float
) -> None:
    time, curve = np.linspace(0, 1, len(values)), np.array(values)
    half, late = half_rise(time, curve)
    assert 0 <= half <= 1 or half == math.inf
    if curve.max() - curve[0] >= SMALLEST_RISE:
        level = (curve[0] + curve.max()) / 2
        assert np.interp(half, time, curve) == pytest.approx(level, abs=1e-6)
        assert (curve[time < half - 1e-12] < level).all()
        if scale * (curve.max() - curve[0]) >= SMALLEST_RISE:
            moved = half_rise(time, scale * curve + shift)
            assert moved == pytest.approx((half, late), abs=1e-6)


def seeds_of(curve: np.ndarray, n: int = 6) -> list[np.ndarray]:
    """The curve with a little noise in its size and in the pace of its rise."""
    return [
        (curve * (1 + 0.5 * each))
        if np.ptp(curve) == 0
        else np.interp(TIMES ** (1 + each), TIMES, curve) * (1 + 0.5 * each)
        for each in JITTER[:n]
    ]


@pytest.mark.parametrize(
    ("soft", "hard", "verdict"),
    [
        (EARLY, LATE, "holds"),
        (EARLY, STEADY, "holds"),
        (LATE, EARLY, "does not hold"),
        (LATE, LATE, "does not hold"),  # not earlier by a tenth
        (EARLY, EARLY, "undecided"),  # half of hard's rise is too soon for a lead of a tenth
        (STEADY, LATE, "does not hold"),  # earlier, but no stall
        (FLAT, LATE, "does not hold"),
        (FLAT, FLAT, "undecided"),  # nothing was learned
        (EARLY, FLAT, "undecided"),  # hard is not seen to rise
    ],
)
def test_c17_asks_for_an_early_stall_beside_a_late_rise(
    soft: np.ndarray, hard: np.ndarray, verdict: str
) -> None:
    of_each = {"soft": seeds_of(soft), "hard": seeds_of(hard)[::-1]}
    found = claim("C17", comparison(curves=of_each))
    assert found.verdict == verdict, found.measured


def test_c17_holds_where_most_of_hards_curves_rise() -> None:
    for risen, verdict in ((2, "undecided"), (4, "holds")):
        hard = [*seeds_of(LATE)[:risen], *seeds_of(FLAT)[risen:]]
        found = claim("C17", comparison(curves={"soft": seeds_of(EARLY), "hard": hard}))
        assert found.verdict == verdict
        assert f"({risen} of 6)" in found.measured


def test_c17_measures_nothing_where_nothing_rises() -> None:
    nothing = claim("C17", comparison(curves={"soft": seeds_of(FLAT), "hard": seeds_of(FLAT)}))
    assert nothing.measured == "neither soft nor hard rises within the cut, in 6 seeds"
    # One seed of six in which neither rises is not one in which they rise at the same time.
    curves = {name: [*seeds_of(LATE)[:5], FLAT] for name in ("soft", "hard")}
    some = claim("C17", comparison(curves=curves))
    assert some.verdict == "undecided"
    assert "half of the rise at 75 % of the cut with soft (rises in 5 of 6 seeds)" in some.measured
    assert "of 1 neither rises within the cut" in some.measured
    # Where hard alone rises, soft is later, however late it is; it has nothing to stall.
    late = claim("C17", comparison(curves={"soft": seeds_of(FLAT), "hard": seeds_of(LATE)}))
    assert late.verdict == "does not hold"
    assert "at - of the cut with soft (rises in 0 of 6 seeds)" in late.measured
    assert "so whether it stalls is not seen" in late.measured


def test_c17_needs_curves_that_show_a_rise() -> None:
    def verdict(times: np.ndarray) -> tuple[str, str]:
        curves = {
            name: [np.interp(times, TIMES, curve)] * 6
            for name, curve in (("soft", EARLY), ("hard", LATE))
        }
        found = claim("C17", comparison(curves=curves, times=times))
        return found.verdict, found.measured

    assert verdict(np.linspace(0, 1, 5))[0] == "holds"
    assert "4 evaluations" in verdict(np.linspace(0, 1, 4))[1]
    assert "begins at 20 %" in verdict(np.linspace(0.2, 1, 9))[1]
    assert {verdict(np.linspace(*each))[0] for each in ((0, 1, 4), (0.2, 1, 9))} == {"undecided"}


def test_c17_says_nothing_of_what_lies_between_two_evaluations() -> None:
    times = np.linspace(0, 1, 5)
    curves = {
        "soft": [np.interp(times, TIMES, EARLY)] * 6,
        "hard": [np.interp(times, [0, 0.25, 0.5, 1], [0.2, 0.3, 0.6, 0.6])] * 6,
    }
    soft, hard = (half_rise(times, each[0])[0] for each in curves.values())
    assert LEAD < hard - soft < 0.25
    found = claim("C17", comparison(curves=curves, times=times))
    assert found.verdict == "undecided"
    assert "up to 25 % of the cut apart" in found.measured


def test_c17_counts_pairs_with_a_diverged_seed_against_it() -> None:
    soft = [*seeds_of(EARLY), *seeds_of(EARLY, 2)]
    hard = [*seeds_of(LATE), *seeds_of(LATE, 2)]
    short = [np.full(11, math.nan)]
    for n, verdict in ((8, "holds"), (6, "undecided")):
        curves = {"soft": [*soft[:n], *short], "hard": [*hard[:n], LATE]}
        found = claim("C17", comparison({"soft": [*[heatmap()] * n, None]}, curves=curves))
        assert found.verdict == verdict
        assert "1 seed lost" in found.measured
    unknown = claim("C17", comparison(curves=curves))  # the same curve, not diverged
    assert unknown.verdict == "undecided"


def test_a_stall_is_told_from_an_even_rise() -> None:
    # Rises evenly to the middle and then at a fraction of that pace.
    for pace, verdict in ((0.1, "holds"), (0.9, "does not hold")):
        curve = 0.2 + 0.3 * np.minimum(TIMES, 0.5) + 0.3 * pace * np.maximum(TIMES - 0.5, 0)
        _, late = half_rise(TIMES, curve)
        assert late == pytest.approx(pace / (1 + pace))
        assert (late < STALLED) == (verdict == "holds")
        found = claim("C17", comparison(curves={"soft": seeds_of(curve), "hard": seeds_of(LATE)}))
        assert found.verdict == verdict


# --- all of them


def test_texts_are_complete_and_of_one_line() -> None:
    maps = {name: jittered(0.03, "middle_focus") for name in ("soft", "hard", "lvml")}
    curves = {"soft": seeds_of(EARLY), "hard": seeds_of(LATE)}
    of = comparison(maps, [pair("saif", "lvml", "soft", "better", 0.1, 0.2)], curves)
    found = claims(of)
    assert [each.name for each in found] == NAMES
    for each in found:
        assert each.statement.endswith(".")
        assert each.test.endswith(".")
        for text in (each.statement, each.test, each.measured):
            assert text
            assert "\n" not in text
            assert "nan" not in text
    tests = {each.name: each.test for each in claims(comparison())}
    assert tests == {each.name: each.test for each in found}


def test_the_frame_has_a_row_a_comparison_and_claim() -> None:
    frame = claim_rows([Compared(comparison()), Compared(comparison(ran=["soft"]))])
    assert frame["claim"].tolist() == NAMES * 2
    assert set(frame["task"]) == {"digits"}
    assert frame["verdict"].tolist()[8:] == [
        "undecided", "undecided", *["not run"] * 6
    ]  # fmt: skip
    assert frame.columns.tolist() == [
        "task", "m", "architecture", "comparison_id", "axis", "threshold", "claim", "statement",
        "verdict", "measured", "test",
    ]  # fmt: skip


def test_claims_of_a_results_directory(tmp_path: Path) -> None:
    """Synthetic cells hold their mistakes at a_z < .2 and .4 <= s_y < .6; a_z rises evenly."""
    results = make_results(tmp_path)
    saif = {"soft": 0.7, "hard": 0.5, "lvml": 0.97, "hybrid": 0.95}
    for paradigm, score in saif.items():
        for seed, jitter in enumerate(TWELVE[:8]):
            accuracy = 0.9 + jitter / 100 * score
            write(results, make_cell(paradigm, seed=seed), accuracy, score * (1 + jitter / 2))
    write(results, make_cell("soft", seed=8), status="diverged", points=(0.25,), accuracy=0.9)
    (of,) = compare(load(results))
    verdicts = {each.name: each.verdict for each in claims(of)}
    assert verdicts == {
        "C1": "does not hold",
        "C2": "does not hold",
        "C3": "holds",
        "C4": "holds",
        "C5": "holds",
        "C6": "holds",
        "C16": "holds",
        "C17": "undecided",  # four evaluations
    }
    assert "n=8), 1 seed lost" in claim("C1", of).measured


# --- what is said beside


def test_another_threshold_is_said_in_what_was_measured() -> None:
    pairs = [
        pair("saif", "lvml", "soft", "better", 0.1, 0.2),
        pair("saif", "lvml", "hard", "better", 0.1, 0.2),
        pair("saif", "hybrid", "soft", "better", 0.1, 0.2),
        pair("accuracy", "hybrid", "soft", "better", 0.0, 0.02),
    ]
    for threshold, says in ((0.6, True), (0.8, False)):
        of = comparison(pairs=pairs, threshold=threshold)
        for name in ("C6", "C16"):
            assert claim(name, of).verdict == "holds"
            assert ("SAIF at threshold 0.6" in claim(name, of).measured) == says
            assert "accuracy at" not in claim(name, of).measured
        assert set(claim_rows([Compared(of)])["threshold"]) == {threshold}


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("num_unswitched", "no option had switched within the cut"),
        ("num_censored", "every option has a censored seed"),
        ("validation_accuracy", "no option has a known validation accuracy"),
    ],
)
def test_a_paradigm_without_a_choice_leaves_its_claim_undecided(column: str, words: str) -> None:
    found = claim("C16", comparison(barred={"hybrid": column}))
    assert found.verdict == "undecided"
    assert found.measured == f"hybrid: {words}, so none can be chosen"
    assert claim("C6", comparison(barred={"hybrid": column})).measured != found.measured


def test_a_reason_is_said_once() -> None:
    three = [heatmap() for _ in range(3)]
    for of in (comparison({"lvml": three}), comparison(barred={"lvml": "num_censored"})):
        measured = claim("C5", of).measured
        assert len(set(measured.split("; "))) == len(measured.split("; "))
    measured = claim("C5", comparison({"lvml": three})).measured
    assert measured.count("decide nothing") == 1
    assert measured.count("n=3") == 2
