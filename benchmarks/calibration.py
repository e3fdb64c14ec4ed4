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
import functools
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import combinations, groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

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
    CHOSEN,
    METRICS,
    NUM_CLASSES,
    PARADIGMS,
    Drawn,
    Study,
    draw,
    scored,
    true_mean,
)
from benchmarks.support.measure import table
from study.terminal.command import DONE, guarded
from study.terminal.options import positive

STEADY, HIGHER = 1.45, 2.20
"""Logits of .81 and .90."""

PAIRS = tuple(combinations(range(len(PARADIGMS)), 2))
FAMILY = tuple(product(METRICS, PAIRS))
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
        instances=18, backgrounds=count, background_sd=0.3, bases=(base,),
    )  # fmt: skip


ALIKE = {"image_sd": 0.0}
STEADY_BESIDE_HIGHER: dict[str, Any] = {
    "image_sd": 0.0, "residual_sd": 0.0, "seed_sd": 0.1, "learns": (1.0, 1.0, 1.0, 0.9),
    "bases": (STEADY, STEADY, STEADY, HIGHER),
}  # fmt: skip

TWO_SORTS: dict[str, Any] = {
    "probit": True, "gap": 1.03, "bases": (0.25,), "seed_sd": 0.05, "image_sd": 0.0,
    "residual_sd": 0.0,
}  # fmt: skip
"""Half of the runs at .60, the others at .90."""

NULL = [
    *each((6, 12, 24)),
    *each([6], ", seeds hardly differ", seed_sd=0.05),
    *each([6], ", 36 images", images=36, instances=28),
    *each([12], ", few images have most instances", heavy_images=True),
    *each([12], ", classes of 80, 15 and 5 %", classes=True),
    *each([6], ", heavy tails (t, 3 df)", law="t, 3 df"),
    *each([6], ", skewed (exponential)", law="exponential"),
    *each([8], ", a run in 10 fails", failed=0.1),
    *each([12], ", 108 images, scores near 0.97", images=108, instances=9, bases=(4.0,)),
    *each([6], ", 36 images, scores near 0.97", images=36, instances=28, bases=(4.0,)),
    *each([12], ", scores near 0.03", bases=(-4.0,)),
    *each([6], ", images alike, 16 comparisons", comparisons=16, **ALIKE),
    *map(backgrounds, (12, 6, 12, 12), (251, 251, 25, 6)),
    backgrounds(12, 251, base=4.0),
    *each((6, 12), ", probit", probit=True),
    *each((6, 12), ", probit, 6 images", probit=True, images=6, instances=180),
    *each([6], ", 60 images, skewed (exponential)", images=60, law="exponential"),
]
"""Studies of which every number is promised."""

NOT_PROMISED = [
    *each((6, 12), ", options 1/1/81/1, one stage", options=81),
    *each((6, 12), ", a run in 10 diverges", diverged=0.1),
    *(
        study
        for chance in (0.9, 0.8, 0.5)
        for study in each([12], f", each learns with chance {chance}", learns=(chance,))
    ),
    *each((6, 8, 12), ", .81 beside .90 with chance .9, else 0", **STEADY_BESIDE_HIGHER),
    *each((6, 12), ", two sorts of runs .3 apart", **TWO_SORTS),
    *each([12], ", probit, 3 images", probit=True, images=3, instances=360),
    *each([12], ", probit, 2 of 60 images have 0.8", probit=True, images=60, dominant=0.8),
    *each([12], ", probit, 2 of 60 images have 0.5", probit=True, images=60, dominant=0.5),
]
"""Corners where some number is not kept."""

LOOKED = {
    "12 planned, looks at 6 and 12": (12, (6, 12)),
    "12 planned, a look at each from 6 on": (12, range(6, 13)),
    "24 planned, a look at each from 6 on": (24, range(6, 25)),
}
"""Of a study -> seeds without which there is no verdict, and those at which it is looked at."""

ROUNDS = {f"options added in {rounds} rounds": rounds for rounds in (2, 4)}

PLANNED = [
    *each([6], ", images alike", **ALIKE),
    *each((6, 12)),
    *each((6, 12), ", 60 images", images=60, instances=18),
    *each([12], ", images differ much", image_sd=3.0),
]
BEFOREHAND, FAR_END = "named beforehand", "far end of the interval"

COVERED = [f"{what}, {m}" for what in ("mean", "difference") for m in ("SAIF", "accuracy")]
ENDS = {"false_holds": "falsely holds", "false_refuted": "falsely refuted"}


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
    of_rates = ("study", "false verdicts", *COVERED, "pairs apart")
    of_looks = ("false verdicts at any look", "as reported", "were each look to decide")
    of_advice = ("advised by", "difference", "told", "median", "power", "more, or none")
    of_strays = ("seeds at .90 beside seeds at .60, decided", "6 seeds", "12 seeds")
    counts = (f"{n} seeds, {what}" for n in SEEDS for what in ("not seen", "covered"))
    of_sorts = ("seeds at .60 and at .90, as many on average", *counts)
    of_claims = ("claim", "lost", *(f"{end}, {n} seeds" for end in ENDS.values() for n in SEEDS))
    with ProcessPoolExecutor() as pool:
        for head, row, settings in (
            (of_rates, rates, NULL),
            (of_rates, rates, NOT_PROMISED),
            (of_looks, looked, [*LOOKED]),
            (of_looks, options_added, [*ROUNDS]),
            (of_advice, followed, [*product(PLANNED, (BEFOREHAND, FAR_END))]),
            (of_strays, found_apart, (0, 1, 2)),
            (of_sorts, two_sorts, (0.02, 0.05, 0.08)),
        ):
            table(head, pool.map(functools.partial(row, replicates), settings))
            print()
    table(of_claims, claims(replicates))
    return DONE


def shown(shares: Iterable[float], digits: int = 3) -> list[str]:
    """Cells of a table; what is not known is a dash."""
    return ["-" if math.isnan(share) else f"{share:.{digits}f}" for share in shares]


def rates(replicates: int, study: Study) -> list[str]:
    """False verdicts, coverage of means and differences, pairs apart, as shares."""
    truth = true_mean(study)
    wrong, apart = 0, []
    covered: defaultdict[tuple[str, str], list[bool]] = defaultdict(list)
    # The intervals of paradigms that had no more options than others would hide a biased choice.
    places = [CHOSEN] if study.options > 1 else range(len(PARADIGMS))
    for generator in generators(study.name, replicates):
        drawn = [draw(study, generator) for _ in range(study.comparisons)]
        tests = [pair for one in drawn for pair in pairs(one, study.seeds)]
        wrong += has_verdict(tests)
        apart += ["p_learned" in pair for pair in tests]
        for pair in tests:
            if {*pair["places"]} & {*places} and not math.isnan(pair["low"]):
                covered["difference", pair["metric"]].append(pair["low"] <= 0 <= pair["high"])
        for one, metric, place in product(drawn, METRICS, places):
            found = scored(one, metric, place, ~one.failed[place])
            mean = share_mean(
                found.shares, found.weights, FLOORS[metric], backgrounds=found.of_backgrounds
            )
            if not math.isnan(mean.low):
                covered["mean", metric].append(mean.low <= truth[metric] <= mean.high)
    kept = [covered[key] for key in product(("mean", "difference"), METRICS)]
    shares = [float(np.mean(times)) if times else math.nan for times in kept]
    return [study.name, *shown([wrong / replicates, *shares]), f"{np.mean(apart):.2f}"]


def has_verdict(tests: Iterable[dict[str, Any]]) -> bool:
    """Whether any of tests that are decided together has a verdict."""
    return any(row["verdict"] != "undecided" for row in decided([*tests])[0])


def looked(replicates: int, name: str) -> list[str]:
    """Shares of studies with a false verdict at any look: by our rule, and without it."""
    planned, looks = LOOKED[name]
    study = Study(name, max(looks), image_sd=0.0)
    reported = every = 0
    for generator in generators(name, replicates):
        drawn = draw(study, generator)
        false = [n for n in looks if has_verdict(pairs(drawn, n))]
        every += bool(false)
        reported += any(not Looks(runs_of(["soft"], n, planned)).of("soft").doubt for n in false)
    return [name, *shown([reported / replicates, every / replicates])]


def runs_of(paradigms: Iterable[str], n: int, planned: int) -> dict[str, dict[int, Run]]:
    """The runs of n seeds of paradigms, which planned so many."""
    return {name: dict.fromkeys(range(n), Run("", planned)) for name in paradigms}


def options_added(replicates: int, name: str) -> list[str]:
    """As `looked`: studies add options, round by round, and confirm them on the same seeds.

    Scores are normal: of the seed, its run of an option, images, and what is left.
    """
    n, images, paradigms = 12, 60, len(PARADIGMS)
    instances = instances_of(np.arange(images)[:, None])
    reported = every = 0
    for generator in generators(name, replicates):
        normal = generator.standard_normal
        fixed = normal((2, 1, n, 1)), normal((2, paradigms, 1, images))
        values = np.zeros((2, paradigms, n, images))
        again = np.zeros(paradigms, bool)  # has an option that is not its first one
        seen = counted = False
        for tried in range(1, 1 + ROUNDS[name]):
            # The best of all options is a new one as often as there are new ones.
            new = generator.random(paradigms) < 1 / tried
            again |= new & (tried > 1)
            of_run = 1.5 * normal((2, paradigms, n, 1)) + normal(values.shape)
            values = np.where(new[:, None, None], 0.02 * (sum(fixed) + of_run), values)
            spent = {PARADIGMS[place]: frozenset(range(n)) for place in np.flatnonzero(again)}
            looks = Looks(runs_of(PARADIGMS, n, n), spent)
            tests, doubted = [], []
            for metric, (second, first) in FAMILY:
                of_metric = values[METRICS.index(metric)]
                sides = (of_instances(of_metric[place], instances) for place in (first, second))
                doubt = looks.of(PARADIGMS[second], PARADIGMS[first]).doubt
                tests.append({"metric": metric} | of_pair(*sides))
                doubted.append(tests[-1] | {"lacks": [doubt] if doubt else []})
            seen, counted = seen or has_verdict(tests), counted or has_verdict(doubted)
        reported, every = reported + counted, every + seen
    return [name, *shown([reported / replicates, every / replicates])]


def followed(replicates: int, setting: tuple[Study, str]) -> list[str]:
    """Power of studies of the advised size, where the named difference is the true one."""
    study, named = setting
    level = LEVEL / len(FAMILY)
    few = generators(study.name, min(replicates, 200))
    usual = float(np.mean([first_pair(study, generator).standard_error for generator in few]))
    advised, decided_again, larger = [], [], 0
    for generator in generators(study.name, replicates):
        seen = first_pair(study, generator)
        effect = 3 * usual if named == BEFOREHAND else max(seen.low, seen.high, key=abs)
        if named == FAR_END and seen.p < level:
            continue  # decided, so the report names no number
        seeds = needed_seeds(seen, effect, level)
        if seeds <= LARGEST_FOLLOW_UP:
            again = replace(study, seeds=int(seeds))
            decided_again.append(first_pair(again, generator, effect).p < level)
            advised.append(seeds)
        else:
            larger += 1
    told, more = shown([len(advised) / replicates, larger / replicates], 2)
    if not advised:
        return [study.name, named, told, "-", "-", more]
    power = f"{np.mean(decided_again):.3f}"
    return [study.name, named, told, f"{np.median(advised):.0f}", power, more]


def first_pair(study: Study, generator: np.random.Generator, effect: float = 0.0) -> CrossedMean:
    """The test of one metric and pair, whose true difference is `effect`."""
    drawn, every = draw(study, generator, METRICS[:1]), np.ones(study.seeds, bool)
    first, second = (scored(drawn, METRICS[0], place, every) for place in (0, 1))
    return crossed_mean((first - second).shares + effect, first.weights)


def found_apart(replicates: int, stray: int) -> list[str]:
    """How often .90 is told from .60 of which some seeds are at .10, by the tests of a family."""
    shares = []
    for n in SEEDS:
        found = 0
        for generator in generators(f"{stray} strays of {n}", replicates):
            means = np.full(n, 0.9), np.where(np.arange(n) < stray, 0.1, 0.6)
            sides = (Scores((m + 0.02 * generator.standard_normal(n))[:, None]) for m in means)
            test = {"metric": "saif"} | of_pair(*sides)
            nothing = test | {"p": math.nan}
            found += has_verdict([test, *[nothing] * (len(FAMILY) - 1)])
        shares.append(found / replicates)
    return [f"{stray or 'none'} of the lower at .10", *shown(shares, 2)]


def two_sorts(replicates: int, sd: float) -> list[str]:
    """How often two sorts of seeds that both learned are taken for one, and its mean is covered.

    Args:
        replicates: studies.
        sd: standard deviation of each sort.
    """
    shares = []
    for n in SEEDS:
        covered = []
        for generator in generators(f"two sorts within {sd}, {n}", replicates):
            sort = generator.random(n) < 0.5
            found = share_mean(0.6 + 0.3 * sort + sd * generator.standard_normal(n))
            if not math.isnan(found.low):
                covered.append(found.low <= 0.75 <= found.high)
        shares += [len(covered) / replicates, float(np.mean(covered)) if covered else math.nan]
    return [f"each within {sd:.2f}", *shown(shares, 2)]


def claims(replicates: int) -> Iterator[list[str]]:
    """How often claims are falsely decided."""
    found = simulate_claims(replicates, seed=0, laws=(*ROWS, *NOT_KEPT))
    for (name, lost), group in groupby(found, itemgetter("row", "failures")):
        same = [*group]
        yield [name, f"{lost:.2f}", *shown(claim[end] for end in ENDS for claim in same)]


def generators(name: str, replicates: int) -> Iterator[np.random.Generator]:
    """One a replicate of what has this name, the same in every run."""
    for seed in np.random.SeedSequence(list(name.encode())).spawn(replicates):
        yield np.random.default_rng(seed)


def pairs(drawn: Drawn, seeds: int) -> Iterator[dict[str, Any]]:
    """The tests of a comparison with its first seeds, metric by metric."""
    for metric, places in FAMILY:
        common = ~drawn.failed[[*places]].any(axis=0)
        common[seeds:] = False
        first, second = (scored(drawn, metric, place, common) for place in reversed(places))
        yield {"metric": metric, "places": places} | of_pair(first, second, FLOORS[metric])


if __name__ == "__main__":
    sys.exit(guarded("calibration", main, "stopped"))
