"""What verdicts and intervals keep of what they promise, in simulated studies.

    python benchmarks/calibration.py  # the tables of docs/validity.md: half an hour
    python benchmarks/calibration.py --resample results  # coverage in the study of the README
    python benchmarks/calibration.py --quick  # a hundredth of it, to see that it runs

Studies without any difference, each with new seeds, images and backgrounds, see
`benchmarks/support/calibration_studies.py`, decided by the functions that make the package's
tables. Verdicts on claims are simulated in `benchmarks/support/calibration_claims.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import combinations, cycle, groupby, product, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from analysis.comparison.by_image import Scores, instances_of, of_instances
from analysis.comparison.paired import decided, of_pair
from analysis.comparison.stages import Looks, Run
from analysis.crossed import CrossedMean, crossed_mean, needed_seeds
from analysis.learning import guess, share_mean
from analysis.statistics import LEVEL
from benchmarks.support.calibration_claims import NOT_KEPT, ROWS, SEEDS, simulate_claims
from benchmarks.support.calibration_resampled import resampled
from benchmarks.support.calibration_studies import (
    METRICS,
    NUM_CLASSES,
    PARADIGMS,
    TUNING_SEEDS,
    Drawn,
    Study,
    draw,
    scored,
    true_mean,
)
from benchmarks.support.measure import positive, table
from study.terminal.command import DONE, guarded

STEADY, HIGHER = 1.45, 2.20
"""Logits of .81 and .90."""

PAIRS = tuple(combinations(range(len(PARADIGMS)), 2))
FAMILY = tuple((metric, pair) for metric in METRICS for pair in PAIRS)
FLOORS = {metric: guess("digits", metric, NUM_CLASSES) for metric in METRICS}

LARGEST_FOLLOW_UP = 300  # seeds; advice beyond it is counted, not run


def each(seeds: Iterable[int], what: str = "", **fields: Any) -> list[Study]:
    """A study of each number of seeds, which its name tells with what else there is to it."""
    return [Study(f"{n} seeds{what}", n, **fields) for n in seeds]


def backgrounds(n: int, count: int, base: float = 1.0) -> Study:
    """A study of the README's size, of so many background images."""
    more = ", scores near 0.97" if base > 1 else ""
    return Study(
        f"{n} seeds, 108 images, {count} backgrounds that matter much{more}", n, images=108,
        instances=18, backgrounds=count, background_sd=0.3, base=base,
    )  # fmt: skip


OPTIONS = (1, 1, 81, 1)
ALIKE = {"image_sd": 0.0}
STEADY_BESIDE_HIGHER: dict[str, Any] = {
    "image_sd": 0.0, "residual_sd": 0.0, "seed_sd": 0.1, "learns": (1.0, 1.0, 1.0, 0.9),
    "bases": (STEADY, STEADY, STEADY, HIGHER),
}  # fmt: skip

TWO_SORTS: dict[str, Any] = {
    "probit": True, "gap": 1.03, "base": 0.25, "seed_sd": 0.05, "image_sd": 0.0,
    "residual_sd": 0.0,
}  # fmt: skip
"""Half of the runs at .60, the others at .90."""

LOOKED = {
    "12 planned, looks at 6 and 12": (12, (6, 12)),
    "12 planned, a look at each from 6 on": (12, range(6, 13)),
    "24 planned, a look at each from 6 on": (24, range(6, 25)),
}
"""Of a study -> seeds without which there is no verdict, and those at which it is looked at."""

NULL = [
    *each((6, 12, 24)),
    *each([12], f", options 1/1/81/1, tuned on {TUNING_SEEDS} others", options=OPTIONS),
    *each([6], ", seeds hardly differ", seed_sd=0.05),
    *each([6], ", 36 images", images=36, instances=28),
    *each([12], ", few images have most instances", heavy_images=True),
    *each([12], ", classes of 80, 15 and 5 %", classes=True),
    *each([6], ", heavy tails (t, 3 df)", heavy=True),
    *each([6], ", skewed (exponential)", skewed=True),
    *each([8], ", a run in 10 fails", failed=0.1),
    *each([12], ", 108 images, scores near 0.97", images=108, instances=9, base=4.0),
    *each([6], ", 36 images, scores near 0.97", images=36, instances=28, base=4.0),
    *each([12], ", scores near 0.03", base=-4.0),
    *each([6], ", images alike, 16 comparisons", comparisons=16, **ALIKE),
    *map(backgrounds, (12, 6, 12, 12), (251, 251, 25, 6)),
    backgrounds(12, 251, base=4.0),
    *each((6, 12), ", probit", probit=True),
    *each((6, 12), ", probit, 6 images", probit=True, images=6, instances=180),
    *each([6], ", 60 images, skewed (exponential)", images=60, skewed=True),
]
"""Studies of which every number is promised."""

NOT_PROMISED = [
    *each((6, 12), ", options 1/1/81/1, one stage", options=OPTIONS, two_stage=False),
    *each((6, 12), ", a run in 10 diverges", diverged=0.1),
    *each([12], ", each learns with chance 0.9", learns=(0.9,)),
    *each([12], ", each learns with chance 0.8", learns=(0.8,)),
    *each([12], ", each learns with chance 0.5", learns=(0.5,)),
    *each((6, 8, 12), ", .81 beside .90 with chance .9, else 0", **STEADY_BESIDE_HIGHER),
    *each((6, 12), ", two sorts of runs .3 apart", **TWO_SORTS),
    *each([12], ", probit, 3 images", probit=True, images=3, instances=360),
    *each([12], ", probit, 2 of 60 images have 0.8", probit=True, images=60, dominant=0.8),
    *each([12], ", probit, 2 of 60 images have 0.5", probit=True, images=60, dominant=0.5),
]
"""Corners where some number is not kept."""

PLANNED = [
    *each([6], ", images alike", **ALIKE),
    *each((6, 12)),
    *each((6, 12), ", 60 images", images=60, instances=18),
    *each([12], ", images differ much", image_sd=3.0),
]


def main() -> int:
    """Prints the tables; the exit status is 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=positive, default=2_000)
    parser.add_argument("--quick", action="store_true", help="20 replicates")
    parser.add_argument("--resample", metavar="RESULTS", help="coverage in a study's own runs")
    args = parser.parse_args()
    if args.resample:
        table(("study", "of", "SAIF", "accuracy"), resampled(args.resample, args.replicates))
        return DONE
    replicates = 20 if args.quick else args.replicates
    error = math.sqrt(LEVEL * (1 - LEVEL) / replicates)
    print(f"{replicates} replicates a row; Monte Carlo error {error:.3f} at .05 and at .95\n")
    columns = [f"{what}, {m}" for what in ("mean", "difference") for m in ("SAIF", "accuracy")]
    with ProcessPoolExecutor() as pool:
        for studies in (NULL, NOT_PROMISED):
            found = pool.map(rates, studies, repeat(replicates))
            table(("study", "false verdicts", *columns, "pairs apart"), found)
            print()
        again = [*pool.map(looked, LOOKED, repeat(replicates))]
        again += pool.map(options_added, (2, 4), repeat(replicates))
        table(("false verdicts at any look", "as reported", "were each look to decide"), again)
        print()
        differences = {"named beforehand": True, "far end of the interval": False}
        plans = [*product(PLANNED, differences.values())]
        found = pool.map(followed, *zip(*plans, strict=True), repeat(replicates))
        named = ((study.name, *cells) for (study, _), cells in zip(plans, found, strict=True))
        names = cycle(differences)
        table(
            ("advised by", "difference", "told", "median", "power", "more, or none"),
            ((study, next(names), *cells) for study, *cells in named),
        )
        print()
    table(
        ("seeds", "1 sd decided", "overstated by", "2 sd decided", "overstated by"),
        ((str(n), *overstated(n, 10 * replicates)) for n in (6, 8, 12, 24)),
    )
    print()
    table(
        ("seeds at .90 beside seeds at .60, decided", "6 seeds", "12 seeds"),
        (
            (f"{stray or 'none'} of the lower at .10", *found_apart(stray, replicates))
            for stray in (0, 1, 2)
        ),
    )
    print()
    counts = (f"{n} seeds, {what}" for n in (6, 12) for what in ("not seen", "covered"))
    table(
        ("seeds at .60 and at .90, as many on average", *counts),
        ((f"each within {sd:.2f}", *two_sorts(sd, replicates)) for sd in (0.02, 0.05, 0.08)),
    )
    print()
    claims = simulate_claims(replicates, seed=0, laws=(*ROWS, *NOT_KEPT))
    ends = {"false_holds": "falsely holds", "false_refuted": "falsely refuted"}
    table(
        ("claim", "lost", *(f"{text}, {n} seeds" for text in ends.values() for n in SEEDS)),
        (
            (name, f"{lost:.2f}", *(f"{claim[end]:.3f}" for end in ends for claim in same))
            for (name, lost), group in groupby(claims, itemgetter("row", "failures"))
            for same in ([*group],)
        ),
    )
    return DONE


def rates(study: Study, replicates: int) -> list[str]:
    """Its name; false verdicts, coverage of means and differences, pairs apart, as shares."""
    truth = true_mean(study)
    wrong, apart = 0, []
    covered: dict[tuple[str, str], list[bool]] = {(a, m): [] for a in "mp" for m in METRICS}
    # The intervals of paradigms that had no more options than others would hide a biased choice.
    best_of = [k == max(study.options) for k in study.options]
    for generator in generators(study, replicates):
        drawn = [draw(study, generator) for _ in range(study.comparisons)]
        tests = [pair for one in drawn for pair in pairs(one, study.seeds)]
        wrong += has_verdict(tests)
        apart += ["p_learned" in pair for pair in tests]
        for (metric, places), pair in zip(cycle(FAMILY), tests):
            if any(best_of[place] for place in places) and not math.isnan(pair["low"]):
                covered["p", metric].append(pair["low"] <= 0 <= pair["high"])
        for one, metric, place in product(drawn, METRICS, np.flatnonzero(best_of)):
            found = scored(one, metric, place, ~one.failed[place])
            mean = share_mean(
                found.shares, found.weights, FLOORS[metric], backgrounds=found.of_backgrounds
            )
            if not math.isnan(mean.low):
                covered["m", metric].append(mean.low <= truth[metric] <= mean.high)
    shares = (f"{np.mean(times):.3f}" if times else "-" for times in covered.values())
    return [study.name, f"{wrong / replicates:.3f}", *shares, f"{np.mean(apart):.2f}"]


def has_verdict(tests: Iterable[dict[str, Any]]) -> bool:
    """Whether any of tests that are decided together has a verdict."""
    return any(row["verdict"] != "undecided" for row in decided([*tests])[0])


def looked(name: str, replicates: int) -> list[str]:
    """Shares of studies with a false verdict at any look: by our rule, and without it."""
    planned, looks = LOOKED[name]
    study = Study(name, max(looks), image_sd=0.0)
    reported = every = 0
    for generator in generators(study, replicates):
        drawn = draw(study, generator)
        false = [n for n in looks if has_verdict(pairs(drawn, n))]
        runs = {n: dict.fromkeys(range(n), Run("", planned)) for n in looks}
        every += bool(false)
        reported += any(not Looks({"soft": runs[n]}).of("soft").doubt for n in false)
    return [name, f"{reported / replicates:.3f}", f"{every / replicates:.3f}"]


def options_added(rounds: int, replicates: int) -> list[str]:
    """The same of studies that add options, round by round, and confirm them on the same seeds.

    Scores are normal: of the seed, its run of an option, images, and what is left.
    """
    name, n, images, paradigms = f"options added in {rounds} rounds", 12, 60, len(PARADIGMS)
    instances = instances_of(np.arange(images)[:, None])
    reported = every = 0
    for generator in generators(Study(name), replicates):
        shape, normal = (len(METRICS), paradigms, n), generator.standard_normal
        of_seeds, of_images = normal((*shape[:1], 1, n)), normal((*shape[:2], 1, images))
        verdicts, counted, first = False, False, np.ones(paradigms, bool)
        values = np.zeros((*shape, images))
        for tried in range(1, rounds + 1):
            # The best of all options is a new one as often as there are new ones.
            changed = generator.random(paradigms) < 1 / tried
            new = of_seeds[..., None] + 1.5 * normal((*shape, 1)) + normal((*shape, images))
            values = np.where(changed[:, None, None], 0.02 * (new + of_images), values)
            first = first & (~changed | (tried == 1))
            tests = []
            for metric, (second, other) in FAMILY:
                sides = (values[METRICS.index(metric), place] for place in (other, second))
                scores = (of_instances(each, instances) for each in sides)
                tests.append({"metric": metric} | of_pair(*scores))
            verdicts = verdicts or has_verdict(tests)
            spent = {PARADIGMS[place]: frozenset(range(n)) for place in np.flatnonzero(~first)}
            runs = {name: dict.fromkeys(range(n), Run("", n)) for name in PARADIGMS}
            looks = Looks(runs, spent)
            for test, (_, places) in zip(tests, FAMILY, strict=True):
                doubt = looks.of(*(PARADIGMS[place] for place in places)).doubt
                test["lacks"] = [*filter(None, [doubt])]
            counted = counted or has_verdict(tests)
        reported, every = reported + counted, every + verdicts
    return [name, f"{reported / replicates:.3f}", f"{every / replicates:.3f}"]


def found_apart(stray: int, replicates: int) -> Iterator[str]:
    """How often .90 is told from .60 of which some seeds are at .10, by the tests of a family."""
    for n in (6, 12):
        found = 0
        for generator in generators(Study(f"{stray} strays of {n}"), replicates):
            low = np.where(np.arange(n) < stray, 0.1, 0.6)
            high, low = (m + 0.02 * generator.standard_normal(n) for m in (np.full(n, 0.9), low))
            test = {"metric": "saif"} | of_pair(Scores(high[:, None]), Scores(low[:, None]))
            nothing = test | {"p": math.nan}
            found += has_verdict([test, *[nothing] * (len(FAMILY) - 1)])
        yield f"{found / replicates:.2f}"


def two_sorts(sd: float, replicates: int) -> Iterator[str]:
    """How often two sorts of seeds that both learned are taken for one, and its mean is covered.

    Args:
        sd: standard deviation of each sort.
        replicates: studies.
    """
    for n in (6, 12):
        covered = []
        for generator in generators(Study(f"two sorts within {sd}, {n}"), replicates):
            sort = generator.random(n) < 0.5
            found = share_mean(0.6 + 0.3 * sort + sd * generator.standard_normal(n))
            if not math.isnan(found.low):
                covered.append(found.low <= 0.75 <= found.high)
        yield f"{len(covered) / replicates:.2f}"
        yield f"{np.mean(covered):.2f}" if covered else "-"


def followed(study: Study, beforehand: bool, replicates: int) -> list[str]:
    """Power of studies of the advised size, where the named difference is the true one."""
    pair = replace(study, options=(1, 1))
    level = LEVEL / len(FAMILY)
    few = generators(pair, min(replicates, 200))
    usual = float(np.mean([first_pair(pair, generator).standard_error for generator in few]))
    decided_again: list[bool] = []
    advised, larger = [], 0
    for generator in generators(study, replicates):
        seen = first_pair(pair, generator)
        effect = 3 * usual if beforehand else max(seen.low, seen.high, key=abs)
        if not beforehand and seen.p < level:
            continue  # decided, so the report names no number
        seeds = needed_seeds(seen, effect, level)
        if seeds <= LARGEST_FOLLOW_UP:
            again = replace(pair, seeds=int(seeds))
            decided_again.append(first_pair(again, generator, effect).p < level)
            advised.append(seeds)
        else:
            larger += 1
    if not advised:
        return ["0.00", "-", "-", f"{larger / replicates:.2f}"]
    told = f"{len(advised) / replicates:.2f}"
    power = f"{np.mean(decided_again):.3f}"
    return [told, f"{np.median(advised):.0f}", power, f"{larger / replicates:.2f}"]


def first_pair(study: Study, generator: np.random.Generator, effect: float = 0.0) -> CrossedMean:
    """The test of one metric and pair, whose true difference is `effect`."""
    drawn, every = draw(study, generator, METRICS[:1]), np.ones(study.seeds, bool)
    first, second = (scored(drawn, METRICS[0], place, every) for place in (0, 1))
    return crossed_mean((first - second).shares + effect, first.weights)


def overstated(n: int, replicates: int) -> Iterator[str]:
    """How often a difference of 1 and of 2 sds of a run is decided, and how much too large."""
    for sds in (1, 2):
        true = sds * math.sqrt(0.5)  # in standard deviations of the pairs
        drawn = np.random.default_rng(n).normal(true, 1, (replicates, n))
        means = drawn.mean(axis=1)
        t = means / drawn.std(axis=1, ddof=1) * math.sqrt(n)
        found = np.abs(t) > stdtrit(n - 1, 1 - LEVEL / len(FAMILY) / 2)
        yield f"{found.mean():.3f}"
        yield f"{np.abs(means[found]).mean() / true:.2f}"


def generators(study: Study, replicates: int) -> Iterator[np.random.Generator]:
    """One a replicate, the same in every run."""
    for seed in np.random.SeedSequence(list(study.name.encode())).spawn(replicates):
        yield np.random.default_rng(seed)


def pairs(drawn: Drawn, seeds: int) -> Iterator[dict[str, Any]]:
    """The tests of a comparison with its first seeds, metric by metric."""
    for metric, (second, first) in FAMILY:
        common = ~(drawn.failed[first] | drawn.failed[second])
        common[seeds:] = False
        sides = (scored(drawn, metric, place, common) for place in (first, second))
        names = {"metric": metric, "first": PARADIGMS[first], "second": PARADIGMS[second]}
        yield names | of_pair(*sides, FLOORS[metric])


if __name__ == "__main__":
    sys.exit(guarded("calibration", main, "stopped"))
