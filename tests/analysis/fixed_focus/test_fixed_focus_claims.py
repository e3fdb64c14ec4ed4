"""Claims C7 to C14 on made-up curves: every verdict, and that nothing unknown decides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.fixed_focus.claims import NEAR_ZERO, SMALL_INCENTIVE, claims
from analysis.fixed_focus.curves import Setting, solution
from analysis.section.claim import Claim
from analysis.statistics import MIN_SEEDS

NAMES = [f"C{number}" for number in range(7, 15)]
PARADIGMS = ("soft", "hard", "lvml")
ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
CLASSES = 4
CHANCE = math.log(CLASSES)
TIMES = np.linspace(0, 1, 11)
JITTER = (-0.02, 0.02, -0.01, 0.01, -0.015, 0.015)
"""Of six seeds; its mean is 0."""

Shape = Callable[[np.ndarray], np.ndarray]
"""Share of training -> loss as a share of log C, or incentive in nats."""

Curves = dict[tuple[str, float], Shape]


def lvml_floor(alpha: float) -> float:
    return -math.log(alpha + (1 - alpha) / CLASSES) / CHANCE


def as_claimed_losses() -> Curves:
    """Soft falls to about 0 from .6 on; hard and lvml flatten near what they cannot get below."""
    ends = {0.2: 0.5, 0.4: 0.1, 0.6: 0.02, 0.8: 0.01, 1.0: 0.005}
    found: Curves = {}
    for alpha, end in ends.items():
        floor = lvml_floor(alpha)
        found["soft", alpha] = lambda t, end=end: end**t
        found["hard", alpha] = lambda t, a=alpha: 1 - a * (1 - np.exp(-8 * t))
        found["lvml", alpha] = lambda t, f=floor: f + (1 - f) * np.exp(-20 * t)
    return found


def as_claimed_incentives() -> Curves:
    late = {
        "soft": {0.2: 0.04, 0.4: 0.01, 0.6: 0.003, 0.8: 0.001, 1.0: 0.0},
        "lvml": {0.2: 0.02, 0.4: 0.012, 0.6: 0.009, 0.8: 0.007, 1.0: 0.0},
    }
    found: Curves = {}
    for name, ends in late.items():
        for alpha, end in ends.items():
            found[name, alpha] = lambda t, end=end: end * np.minimum(1, 5 * t)
    for alpha in ALPHAS:
        rate = 6 * alpha**2 if alpha < 1 else 0
        found["hard", alpha] = lambda t, rate=rate: 0.013 * (1 - np.exp(-rate * t))
    return found


def setting(
    losses: Mapping[tuple[str, float], Shape] | None = None,
    incentives: Mapping[tuple[str, float], Shape] | None = None,
    *,
    jitter: Sequence[float] = JITTER,
    spread: Mapping[tuple[str, float], Sequence[float]] | None = None,
    times: np.ndarray = TIMES,
    without: Sequence[tuple[str, float]] = (),
    diverged: Sequence[tuple[str, float, int]] = (),
    unchosen: Sequence[str] = (),
    rates: Mapping[str, float] | None = None,
) -> Setting:
    """A setting whose curves are as the paper says, but for those given.

    Args:
        losses: of single lines, as shares of log C.
        incentives: of single lines, in nats.
        jitter: a seed each; a curve of a seed ends multiplied by 1 + its own, which is another's
            at another alpha and was a little larger before: so ratios vary over seeds, too.
        spread: other jitters of single lines' losses.
        times: evaluations, as shares of training.
        without: lines that did not run.
        diverged: (paradigm, alpha, seed) that did.
        unchosen: paradigms of which no learning rate can be chosen.
        rates: other learning rates.
    """
    losses = as_claimed_losses() | dict(losses or {})
    incentives = as_claimed_incentives() | dict(incentives or {})
    cells, runs, measured = [], [], []
    for (name, alpha), shape in losses.items():
        own = np.roll((spread or {}).get((name, alpha), jitter), round(5 * alpha))
        for seed, factor in enumerate(own):
            if (name, alpha) in without:
                continue
            lost = (name, alpha, seed) in diverged
            cells.append((name, alpha, seed, "diverged" if lost else "done"))
            if lost or name in unchosen:
                continue
            runs.append((name, alpha, seed))
            curves = CHANCE * shape(times), incentives[name, alpha](times)
            measured.append(np.array(curves) * (1 + factor * (1.1 - 0.1 * times)))
    table = pd.DataFrame(cells, columns=["paradigm", "alpha", "seed", "status"])
    loss, incentive = np.concatenate(measured, axis=1)
    progress = np.tile(times, len(runs))
    found = pd.DataFrame(runs, columns=["paradigm", "alpha", "seed"])
    found = found.loc[found.index.repeat(len(times))].reset_index(drop=True)
    found = found.assign(
        budget_fraction=progress,
        epoch=30 * progress,
        compute_flops=1e6 * progress,
        flow_time=math.nan,
        loss=loss,
        incentive=incentive,
        incentive_slope=100 * incentive,
    ).sample(frac=1, random_state=0)
    ran = [name for name in PARADIGMS if name in set(table["paradigm"]) - set(unchosen)]
    lrs = {name: (rates or {}).get(name, 0.1) for name in ran}
    return Setting(
        id="0123456789abcdef",
        name="digits m=5",
        task="digits",
        m=5,
        n=2_000,
        num_classes=CLASSES,
        shared={},
        cells=table,
        options=pd.DataFrame(),
        choice=pd.DataFrame({"paradigm": list(lrs), "lr": list(lrs.values())}),
        chosen=table[table["paradigm"].isin(ran)],
        runs=found,
        curves=pd.DataFrame(),  # means: claims read single seeds
    )


def by_name(of: Setting) -> dict[str, Claim]:
    return {each.name: each for each in claims(of)}


def claim(name: str, of: Setting) -> Claim:
    return by_name(of)[name]


def slow(t: np.ndarray, floor: float) -> np.ndarray:
    return floor + (1 - floor) * np.exp(-t)


def constant(value: float) -> Shape:
    return lambda t: np.full_like(t, value)


def test_all_hold_where_all_is_as_the_paper_says() -> None:
    found = claims(setting())
    assert {each.name: each.verdict for each in found} == dict.fromkeys(NAMES, "holds")


FAILS: dict[str, list[tuple[Curves, Curves]]] = {
    "C7": [
        ({("soft", 0.8): lambda t: 0.1 + 0.9 * np.exp(-20 * t)}, {}),
        ({("soft", 0.6): constant(1.0)}, {}),
    ],
    "C8": [
        ({("hard", 0.8): lambda t: 0.02**t}, {}),
        ({("lvml", 0.2): lambda t: 0.01**t}, {}),
    ],
    "C9": [
        ({("lvml", a): lambda t, a=a: slow(t, lvml_floor(a)) for a in ALPHAS}, {}),
        ({("lvml", 0.4): lambda t: 0.65 + 0.35 * np.exp(-20 * t)}, {}),
        ({("hard", a): lambda t, a=a: 1 - a + (1 + a) * np.exp(-80 * t) for a in ALPHAS}, {}),
    ],
    "C10": [
        ({("soft", 0.6): lambda t: 0.08**t}, {}),
        ({("hard", a): lambda t: 0.3 + 0.7 * np.exp(-8 * t) for a in (0.6, 0.8, 1.0)}, {}),
        ({("lvml", a): lambda t: 0.3 + 0.7 * np.exp(-8 * t) for a in (0.6, 0.8, 1.0)}, {}),
    ],
    "C11": [
        ({("soft", 0.2): lambda t: 0.9**t}, {}),
        ({("lvml", 0.2): lambda t: 0.9**t}, {}),
        ({("hard", 0.2): lambda t: 0.7**t, ("lvml", 0.2): lambda t: 0.3**t}, {}),
    ],
    "C12": [
        ({}, {("soft", 0.2): constant(0.005)}),
        ({}, {("soft", 0.8): constant(0.006), ("soft", 0.6): constant(0.008)}),
        ({}, {("soft", 0.8): constant(-0.006)}),
    ],
    "C13": [
        ({}, {("hard", 0.6): constant(0.001)}),
        ({}, {("hard", a): constant(0.01 + 0.001 * a) for a in ALPHAS}),
    ],
    "C14": [
        ({}, {("lvml", 0.4): constant(0.03)}),
        ({}, {("soft", 0.8): constant(0.03)}),
        ({}, {("lvml", 0.8): constant(0.001)}),
    ],
}


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in FAILS.items() for case in range(len(cases))]
)
def test_each_part_of_a_claim_can_break_it(name: str, case: int) -> None:
    losses, incentives = FAILS[name][case]
    found = claim(name, setting(losses, incentives))
    assert found.verdict == "does not hold", found.measured


def test_a_soft_loss_that_still_falls_does_not_refute_that_it_eventually_gets_to_zero() -> None:
    falling = claim("C7", setting({("soft", 0.6): lambda t: 0.1**t}))
    assert falling.verdict == "undecided"
    assert claim("C7", setting({("soft", 0.6): lambda t: 1 / (1 + 9 * t)})).verdict == "undecided"
    early = claim("C7", setting({("soft", 0.6): lambda t: 1 - 0.2 * t}))
    assert early.verdict == "undecided"  # little of the loss, but an even fall
    flat = claim("C7", setting({("soft", 0.6): lambda t: 0.1 + 0.9 * np.exp(-9 * t)}))
    assert flat.verdict == "does not hold"


def test_a_curve_that_still_falls_has_not_flattened() -> None:
    found = claim("C8", setting({("hard", 0.6): lambda t: 1 - 0.6 * t}))
    assert found.verdict == "undecided"
    assert claim("C8", setting({("hard", 0.2): constant(1.0)})).verdict == "holds"


def test_what_hard_and_lvml_cannot_get_below_is_not_about_zero() -> None:
    """The threshold parts soft from the others at every alpha and C of the paper."""
    for classes in (3, 10, 20, 50):
        for alpha in (0.2, 0.4, 0.6, 0.8):
            lvml = -math.log(alpha + (1 - alpha) / classes) / math.log(classes)
            assert NEAR_ZERO < lvml < 1 - alpha + 1e-12


def test_hard_incentives_start_in_the_ratio_of_the_alphas() -> None:
    """Theorem 1 from zero weights: so the threshold of C13 lies above it, and below 1."""
    for classes in (3, 20):
        early, late = 1e-6, 1e9
        for time, ratio in ((early, 0.25), (late, 1.0)):
            small, large = (
                solution("hard", classes, [time], alpha)["incentive"].iloc[0]
                for alpha in (0.2, 0.8)
            )
            assert small / large == pytest.approx(ratio, rel=1e-4)
            assert (small / large < SMALL_INCENTIVE) == (time == early)


def test_steps_between_negligible_incentives_are_not_tested() -> None:
    rising = {("soft", 0.6): constant(0.001), ("soft", 0.8): constant(0.002)}
    found = claim("C12", setting({}, rising))
    assert found.verdict == "holds"


def test_alpha_1_and_0_are_left_out() -> None:
    extremes: Curves = {(name, a): constant(0.9) for name in PARADIGMS for a in (0.0, 1.0)}
    incentives: Curves = {(name, a): constant(5.0) for name in PARADIGMS for a in (0.0, 1.0)}
    found = {each.name: each.verdict for each in claims(setting(extremes, incentives))}
    del found["C10"]  # the only one that reads alpha = 1
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize("count", [1, MIN_SEEDS - 1])
def test_few_seeds_decide_nothing(count: int) -> None:
    for losses, incentives in (({}, {}), FAILS["C7"][1], FAILS["C13"][1]):
        for each in claims(setting(losses, incentives, jitter=JITTER[:count])):
            assert each.verdict == "undecided"
            assert f"fewer than {MIN_SEEDS} seeds" in each.measured


def test_an_interval_around_a_threshold_is_undecided() -> None:
    wide = (-0.9, 0.9, -0.9, 0.9, -0.9, 0.9)
    at = {("soft", 0.8): lambda t: np.maximum(NEAR_ZERO, 0.01**t)}
    assert claim("C7", setting(at, spread={("soft", 0.8): wide})).verdict == "undecided"


def test_missing_paradigms_and_alphas_are_not_run() -> None:
    of_no_hard = by_name(setting(without=[("hard", alpha) for alpha in ALPHAS]))
    assert {name: each.verdict for name, each in of_no_hard.items()} == {
        "C7": "holds", "C8": "not run", "C9": "not run", "C10": "not run", "C11": "not run",
        "C12": "holds", "C13": "not run", "C14": "holds",
    }  # fmt: skip
    assert "hard" in of_no_hard["C9"].measured
    only_one = by_name(setting(without=[(name, a) for name in PARADIGMS for a in ALPHAS[:-1]]))
    assert {each.verdict for each in only_one.values()} == {"not run"}
    small = setting(without=[(name, a) for name in PARADIGMS for a in ALPHAS[2:]])
    verdicts = {each.name: each.verdict for each in claims(small)}
    assert verdicts["C8"] == verdicts["C9"] == verdicts["C11"] == "holds"
    assert {verdicts[name] for name in ("C7", "C10", "C12", "C13", "C14")} == {"not run"}


def test_claims_use_the_alphas_that_all_paradigms_have() -> None:
    found = by_name(setting(without=[("hard", 0.2), ("lvml", 0.6)]))
    verdicts = {name: each.verdict for name, each in found.items()}
    # In the population hard's loss drops by up to 40 % of log C at alpha = .4.
    assert verdicts.pop("C11") == "not run"
    assert set(verdicts.values()) == {"holds"}
    assert "alpha 0.4, 0.8:" in found["C9"].measured
    assert "0.4 to 0.8" in found["C14"].measured
    one = claim("C10", setting(without=[(name, a) for name in PARADIGMS for a in (0.6, 1.0)]))
    assert one.verdict == "undecided"  # one alpha has no spread


NINE = (*JITTER, 0.0, 0.005, -0.005)


@pytest.mark.parametrize(("jitter", "verdict"), [(NINE, "holds"), (NINE[:7], "undecided")])
def test_a_lost_seed_counts_against_a_claim(jitter: Sequence[float], verdict: str) -> None:
    """Of nine seeds one may be lost, of seven none."""
    lost = setting(jitter=jitter, diverged=[(name, 0.8, 0) for name in PARADIGMS])
    found = by_name(lost)
    assert found.pop("C11").verdict == "holds"  # of alpha = .2, where none is lost
    assert {each.verdict for each in found.values()} == {verdict}
    assert all("1 seed lost" in each.measured for each in found.values())


def test_a_seed_that_failed_is_lost_like_one_that_diverged() -> None:
    """A failed cell is not recorded: other cells of the setting have its seed."""
    diverged = setting(jitter=NINE, diverged=[("soft", 0.8, 3)])
    gone = (diverged.chosen["paradigm"] == "soft") & (diverged.chosen["status"] == "diverged")
    failed = replace(diverged, cells=diverged.cells[~gone], chosen=diverged.chosen[~gone])
    assert by_name(failed) == by_name(diverged)


def test_a_lost_seed_counts_against_a_refutation() -> None:
    flat = {("soft", 0.8): lambda t: 0.1 + 0.9 * np.exp(-20 * t)}
    for lost, verdict in (([], "does not hold"), ([("soft", 0.8, 3)], "undecided")):
        assert claim("C7", setting(flat, diverged=lost)).verdict == verdict


def test_where_all_seeds_are_lost_nothing_is_decided() -> None:
    all_lost = by_name(setting(diverged=[("soft", 0.8, seed) for seed in range(6)]))
    for name in ("C7", "C9", "C10", "C12", "C14"):
        assert all_lost[name].verdict == "undecided"


@pytest.mark.parametrize(
    ("name", "losses", "incentives"),
    [
        ("C8", {("lvml", 0.2): constant(0.05)}, {}),
        ("C9", {("hard", 0.2): constant(lvml_floor(0.2))}, {}),
        ("C11", {("hard", 0.2): lambda t: 1 - 0.25 * t, ("lvml", 0.2): lambda t: 0.5**t}, {}),
        ("C14", {}, {("lvml", 0.8): constant(0.002), ("soft", 0.8): constant(0.0)}),
    ],
)
def test_what_almost_any_run_shows_is_asked_for_but_is_no_evidence(
    name: str, losses: Curves, incentives: Curves
) -> None:
    """With such a part at its threshold the claim is open, whatever its other parts say."""
    wide = {("hard", 0.2): (-0.04, 0.03, 0.05, -0.05, 0.04, -0.03)} if name == "C9" else {}
    found = claim(name, setting(losses, incentives, spread=wide))
    assert found.verdict == "undecided", found.measured


def test_what_is_not_known_decides_nothing() -> None:
    unknown = {(name, alpha): constant(math.nan) for name in PARADIGMS for alpha in ALPHAS}
    found = by_name(setting({}, unknown))
    for name in ("C12", "C13", "C14"):
        assert found[name].verdict == "undecided"
    assert {found[name].verdict for name in NAMES[:5]} == {"holds"}
    for each in claims(setting(unknown)):
        assert each.verdict == ("holds" if each.name in ("C12", "C13", "C14") else "undecided")


def test_no_incentive_decides_nothing() -> None:
    nothing = {(name, alpha): constant(0.0) for name in PARADIGMS for alpha in ALPHAS}
    found = by_name(setting({}, nothing))
    for name in ("C12", "C13", "C14"):
        assert found[name].verdict == "undecided"


@pytest.mark.parametrize("times", [np.linspace(0.1, 1, 10), np.linspace(0, 1, 5)])
def test_coarse_curves_do_not_show_when(times: np.ndarray) -> None:
    found = by_name(setting(times=times))
    for name in ("C8", "C9", "C12", "C13", "C14"):
        assert found[name].verdict == "undecided"
    for name in ("C7", "C10", "C11"):  # the end is enough
        assert found[name].verdict == "holds"


def test_without_a_learning_rate_nothing_is_decided() -> None:
    found = by_name(setting(unchosen=["hard"]))
    for name in ("C8", "C9", "C10", "C11", "C13"):
        assert found[name].verdict == "undecided"
        assert "no learning rate of hard" in found[name].measured
    assert found["C7"].verdict == found["C12"].verdict == found["C14"].verdict == "holds"
