"""What verdicts and intervals keep of what they promise, in simulated studies.

    python benchmarks/calibration.py  # the tables of docs/validity.md: a quarter of an hour
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
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from analysis.digest.measures import measures
from analysis.digest.pairs import decided, of_pair
from analysis.rules.crossed import CrossedMean, crossed_mean, needed_seeds
from analysis.rules.learning import seed_mean
from analysis.rules.stages import Looks, Run
from analysis.rules.statistics import LEVEL
from benchmarks.support.calibration_claims import KEPT, NOT_KEPT, Border, falsely_decided
from benchmarks.support.calibration_studies import (
    CHOSEN,
    METRICS,
    NUM_CLASSES,
    PARADIGMS,
    Drawn,
    Generator,
    Study,
    draw,
    true_mean,
)
from benchmarks.support.measure import table
from study.terminal.command import DONE, guarded
from study.terminal.options import positive

PAIRS = tuple(combinations(range(len(PARADIGMS)), 2))
FAMILY = tuple(product(METRICS, PAIRS))
SCALES = {metric: measures("digits")[metric].scale(NUM_CLASSES) for metric in METRICS}

LARGEST_FOLLOW_UP = 300  # seeds; advice beyond it is counted, not run

RATES = (
    "false verdicts",
    *(f"{what}, {metric}" for what in ("mean", "difference") for metric in METRICS),
    "pairs apart",
)


def studies(seeds: Iterable[int], what: str = "", **fields: Any) -> list[Study]:
    """A study of each number of seeds, which its name tells with what else there is to it."""
    return [Study(f"{n} seeds{what}", n, **fields) for n in seeds]


OF_README = {"images": 108, "instances": 18}
RUNS_ALONE = {"image_sd": 0.0, "residual_sd": 0.0}  # images do not matter

PROMISED = [
    *studies((6, 12)),
    *studies([6], ", seeds hardly differ", seed_sd=0.05),
    *studies([12], ", few images have most instances", heavy_images=True),
    *studies([6], ", heavy tails (t, 3 df)", law="t, 3 df"),
    *studies([6], ", skewed (exponential)", law="exponential"),
    *studies([8], ", a run in 10 fails", failed=0.1),
    *studies([6], ", 36 images, scores near 0.97", images=36, instances=28, bases=(4.0,)),
    *studies([6], ", images alike, 16 comparisons", comparisons=16, image_sd=0.0),
    *studies([6], ", 108 images, 251 backgrounds that matter much", backgrounds=251, **OF_README),
    *studies([12], ", 108 images, 6 backgrounds that matter much", backgrounds=6, **OF_README),
    *studies([12], ", probit", probit=True),
    *studies([12], ", probit, 6 images", probit=True, images=6, instances=180),
]
"""Studies of which every number is promised."""

NOT_PROMISED = [
    *studies([6], ", options 1/1/81/1, one stage", options=81),
    *studies([12], ", a run in 10 diverges", diverged=0.1),
    *studies([12], ", each learns with chance 0.5", learns=(0.5,)),
    *studies(
        (6, 12), ", .81 beside .90 with chance .9, else 0", **RUNS_ALONE, seed_sd=0.1,
        bases=(1.45, 1.45, 1.45, 2.2), learns=(1.0, 1.0, 1.0, 0.9),
    ),
    *studies(
        [6], ", two sorts of runs .3 apart", **RUNS_ALONE, seed_sd=0.05,
        probit=True, bases=(0.25,), gap=1.03,
    ),
    *studies([12], ", probit, 3 images", probit=True, images=3, instances=360),
]  # fmt: skip
"""Corners where some number is not kept."""

LOOKED = {
    "12 planned, looks at 6 and 12": (6, 12),
    "12 planned, a look at each from 6 on": range(6, 13),
    "24 planned, a look at each from 6 on": range(6, 25),
}
"""Name -> numbers of seeds at which a study is looked at; the last is planned."""

ADVISED = [
    *studies([6], ", images alike", image_sd=0.0),
    *studies((6, 12)),
    *studies((6, 12), ", 60 images", images=60, instances=18),
    *studies([12], ", images differ much", image_sd=3.0),
]


def main() -> int:
    """Prints the tables; the exit status is 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=positive, default=2_000)
    parser.add_argument(
        "--quick", dest="replicates", action="store_const", const=20, help="20 replicates"
    )
    replicates = parser.parse_args().replicates
    error = math.sqrt(LEVEL * (1 - LEVEL) / replicates)
    print(f"{replicates} replicates a row; Monte Carlo error {error:.3f} at .05 and at .95")
    of_rates = ("study", *RATES)
    of_looks = ("false verdicts at any look", "as reported", "were each look to decide")
    of_advice = ("advised by", "advised", "more, or none", "power", "median")
    falsely = ("holds", "is refuted")
    of_claims = ("claim", *(f"falsely {end}, {n} seeds" for n in (6, 12) for end in falsely))
    with ProcessPoolExecutor() as pool:
        for head, row, settings in (
            (of_rates, rates, PROMISED),
            (of_rates, rates, NOT_PROMISED),
            (of_looks, looked, [*LOOKED]),
            (of_advice, followed, ADVISED),
            (of_claims, claimed, [*KEPT, *NOT_KEPT]),
        ):
            print()
            table(head, pool.map(functools.partial(row, replicates), settings))
    return DONE


def generators(name: str, replicates: int) -> Iterator[Generator]:
    """One a replicate of what has this name, the same in every run."""
    for seed in np.random.SeedSequence(list(name.encode())).spawn(replicates):
        yield np.random.default_rng(seed)


def judged(comparisons: list[Drawn], seeds: int) -> list[dict[str, Any]]:
    """All pairs of comparisons that are decided together, by their first seeds, with verdicts."""
    tests = []
    for drawn, (metric, places) in product(comparisons, FAMILY):
        common = ~drawn.failed[[*places]].any(axis=0)
        common[seeds:] = False
        first, second = (drawn.scores(metric, place, common) for place in reversed(places))
        pair = {"metric": metric, "places": places}
        tests.append(pair | of_pair(first, second, SCALES[metric]))
    return decided(tests)


def decides(pairs: Iterable[dict[str, Any]]) -> bool:
    """Whether any pair has a verdict."""
    return any(pair["verdict"] != "undecided" for pair in pairs)


def rates(replicates: int, study: Study) -> list[str]:
    """False verdicts, coverage of means and differences, pairs apart, as shares."""
    truth = true_mean(study)
    # The intervals of paradigms that had no more options than others would hide a biased choice.
    places = {CHOSEN} if study.options > 1 else {*range(len(PARADIGMS))}
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for generator in generators(study.name, replicates):
        comparisons = [draw(study, generator) for _ in range(study.comparisons)]
        pairs = judged(comparisons, study.seeds)
        found["false verdicts"].append(decides(pairs))
        for pair in pairs:
            found["pairs apart"].append("p_learned" in pair)
            if places & {*pair["places"]}:
                found[f"difference, {pair['metric']}"] += covered(pair["low"], 0, pair["high"])
        for drawn, metric, place in product(comparisons, METRICS, places):
            of = drawn.scores(metric, place, ~drawn.failed[place])
            mean = seed_mean(of.mean(), of.by_seed, SCALES[metric])
            found[f"mean, {metric}"] += covered(mean.low, truth[metric], mean.high)
    return [study.name, *shown(share(found[column]) for column in RATES)]


def looked(replicates: int, name: str) -> list[str]:
    """Shares of studies with a false verdict at any look: by our rule, and without it."""
    looks = LOOKED[name]
    planned = max(looks)
    study = Study(name, planned, image_sd=0.0)
    reported, every = [], []
    for generator in generators(name, replicates):
        drawn = draw(study, generator)
        false = [n for n in looks if decides(judged([drawn], n))]
        ended = [Run("", seed, planned, False, False, "soft") for seed in range(planned)]
        runs = (ended[:n] for n in false)
        reported.append(any(not Looks(each).of("soft").doubt for each in runs))
        every.append(bool(false))
    return [name, *shown([share(reported), share(every)])]


def followed(replicates: int, study: Study) -> list[str]:
    """Power of studies of the advised size, if the far end of the interval is the difference."""
    level = LEVEL / len(FAMILY)
    advised, found, larger = [], [], 0
    for generator in generators(study.name, replicates):
        seen = first_pair(study, generator)
        if seen.p < level:
            continue  # decided, so the report names no number
        far = max(seen.low, seen.high, key=abs)
        seeds = needed_seeds(seen, far, level)
        if seeds > LARGEST_FOLLOW_UP:
            larger += 1
            continue
        advised.append(seeds)
        again = first_pair(replace(study, seeds=int(seeds)), generator, far)
        found.append(again.p < level)
    shares = (len(advised) / replicates, larger / replicates, share(found))
    return [study.name, *shown(shares), f"{np.median(advised or math.nan):.0f}"]


def first_pair(study: Study, generator: Generator, effect: float = 0.0) -> CrossedMean:
    """The test of one metric and pair, whose true difference is `effect`."""
    drawn, every = draw(study, generator, METRICS[:1]), np.ones(study.seeds, bool)
    first, second = (drawn.scores(METRICS[0], place, every) for place in PAIRS[0])
    return crossed_mean((first - second).shares + effect, drawn.instances.weights)


def claimed(replicates: int, border: Border) -> list[str]:
    """How often a claim is falsely decided."""
    found = (falsely_decided(border, n, replicates) for n in (6, 12))
    return [border.name, *shown(rate for both in found for rate in both)]


def covered(low: float, truth: float, high: float) -> list[bool]:
    """Whether an interval contains the truth; empty: there is none."""
    return [] if math.isnan(low) else [low <= truth <= high]


def share(of: list[bool]) -> float:
    """How many are so; NaN of none."""
    return sum(of) / len(of) if of else math.nan


def shown(shares: Iterable[float]) -> list[str]:
    """Cells of a table; what is not known is a dash."""
    return ["-" if math.isnan(each) else f"{each:.3f}" for each in shares]


if __name__ == "__main__":
    sys.exit(guarded("calibration", main, "stopped"))
