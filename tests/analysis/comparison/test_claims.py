"""The paper's claims on hand-made results: every verdict, and that nothing unknown decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.attention_rise import SMALLEST_RISE, half_rise
from analysis.comparison.compare import Comparison
from analysis.comparison.paired import SAME_EVERYWHERE
from analysis.comparison.paper.claims import (
    LEAD,
    NEARLY_EMPTY,
    claims,
    middle_share,
)
from analysis.section.claim import Claim
from analysis.words import METRICS, metric_name
from study.tasks import MOSAICS

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
        "num_backgrounds": math.nan,
        "above": math.nan,
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
        tested=pd.DataFrame(chosen, columns=columns),
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


@pytest.mark.parametrize("n", [0, 1, 5])
def test_fewer_than_six_seeds_decide_nothing(n: int) -> None:
    maps = {name: [heatmap(0.4, 0.01)] * n for name in ("soft", "hard", "lvml")}
    curves = {"soft": [EARLY] * n, "hard": [LATE] * n}
    pairs = [pair("saif", "lvml", other, n=n) for other in ("soft", "hard")]
    pairs += [pair("saif", "hybrid", "soft", n=n), pair("accuracy", "hybrid", "soft", "", -1, -1)]
    pairs[-1]["num_pairs"] = n
    of = comparison(maps, pairs, curves)
    assert [each.verdict for each in claims(of)] == ["undecided"] * 8


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
        assert f"{lost} seed" in found.measured


def test_a_lost_seed_counts_against_a_refutation() -> None:
    maps = jittered(0.4, "middle_prediction")
    assert claim("C1", comparison({"soft": maps})).verdict == "does not hold"
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
    assert "hybrid is not confirmed yet" in found.measured


def test_a_seed_without_a_known_share_decides_nothing() -> None:
    for unknown in ([math.nan] * 25, [0.0] * 25):
        maps = [*jittered(0.03, "middle_prediction"), unknown]
        assert claim("C1", comparison({"soft": maps})).verdict == "undecided"


BETTER = [
    pair(metric, first, second, "better", 0.1, 0.2)
    for metric, first, second in (
        ("saif", "lvml", "soft"),
        ("saif", "lvml", "hard"),
        ("saif", "hybrid", "soft"),
        ("accuracy", "hybrid", "soft"),
    )
]
SAME = pair("accuracy", "hybrid", "soft") | {"difference": 0.0, "reason": SAME_EVERYWHERE}


@pytest.mark.parametrize(
    ("of", "name", "verdict", "fact"),
    [
        (comparison(ran=["soft"]), "C3", "not run", "no cells of hard"),
        (comparison(ran=["soft"]), "C6", "not run", "no cells of lvml and hard"),
        (comparison(), "C1", "undecided", "1 seed lost"),  # all options were stopped
        (comparison(), "C17", "undecided", "no common seeds"),
        (comparison(barred={"hybrid": "num_unswitched"}), "C16", "undecided", "switched"),
        (comparison(barred={"hybrid": "num_censored"}), "C16", "undecided", "censored"),
        (comparison(barred={"hybrid": "validation_accuracy"}), "C16", "undecided", "validation"),
        (comparison(pairs=[*BETTER[:3], SAME]), "C16", "undecided", SAME_EVERYWHERE),
        (comparison(pairs=BETTER, threshold=0.6), "C6", "holds", "threshold 0.6"),
        (comparison(pairs=BETTER, threshold=0.6), "C16", "holds", "threshold 0.6"),
    ],
)
def test_what_stands_behind_a_verdict_is_named(
    of: Comparison, name: str, verdict: str, fact: str
) -> None:
    found = claim(name, of)
    assert found.verdict == verdict
    assert fact in found.measured


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
    assert claim("C6", comparison(pairs=pairs)).verdict == verdict
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


def test_a_seed_in_which_neither_rises_is_not_one_in_which_they_rise_together() -> None:
    curves = {name: [*seeds_of(LATE)[:5], FLAT] for name in ("soft", "hard")}
    assert claim("C17", comparison(curves=curves)).verdict == "undecided"


def test_c17_needs_curves_that_show_a_rise() -> None:
    for start, number, verdict in ((0, 5, "holds"), (0, 4, "undecided"), (0.2, 9, "undecided")):
        times = np.linspace(start, 1, number)
        curves = {
            name: [np.interp(times, TIMES, curve)] * 6
            for name, curve in (("soft", EARLY), ("hard", LATE))
        }
        assert claim("C17", comparison(curves=curves, times=times)).verdict == verdict


def test_c17_says_nothing_of_what_lies_between_two_evaluations() -> None:
    times = np.linspace(0, 1, 5)
    curves = {
        "soft": [np.interp(times, TIMES, EARLY)] * 6,
        "hard": [np.interp(times, [0, 0.25, 0.5, 1], [0.2, 0.3, 0.6, 0.6])] * 6,
    }
    soft, hard = (half_rise(times, each[0])[0] for each in curves.values())
    assert LEAD < hard - soft < 0.25
    assert claim("C17", comparison(curves=curves, times=times)).verdict == "undecided"


def test_c17_counts_pairs_with_a_diverged_seed_against_it() -> None:
    soft = [*seeds_of(EARLY), *seeds_of(EARLY, 2)]
    hard = [*seeds_of(LATE), *seeds_of(LATE, 2)]
    short = [np.full(11, math.nan)]
    for n, verdict in ((8, "holds"), (6, "undecided")):
        curves = {"soft": [*soft[:n], *short], "hard": [*hard[:n], LATE]}
        found = claim("C17", comparison({"soft": [*[heatmap()] * n, None]}, curves=curves))
        assert found.verdict == verdict
    unknown = claim("C17", comparison(curves=curves))  # the same curve, not diverged
    assert unknown.verdict == "undecided"
