"""What verdicts and intervals keep of what they promise, in simulated studies.

    python benchmarks/calibration.py  # the tables of docs/validity.md: half an hour
    python benchmarks/calibration.py --resample results  # coverage in the study of the README
    python benchmarks/calibration.py --quick  # a hundredth of it, to see that it runs

Studies without any difference, each with new seeds, images and backgrounds, see
`benchmarks/support/calibration_studies.py`. All go through `crossed_mean`, `holm` and `needed`;
some also as tables through `choose`, `summarise` and `paired_table`, which must agree to 1e-9.
Verdicts on claims are simulated in `benchmarks/support/calibration_claims.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, combinations, repeat
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from analysis.comparison.paired import decided, of_pair
from analysis.crossed import CrossedMean, crossed_mean, needed
from analysis.learning import guess, share_mean
from benchmarks.support.calibration_claims import ROWS, SEEDS, UNSEEN, simulate_claims
from benchmarks.support.calibration_resampled import resampled
from benchmarks.support.calibration_studies import (
    METRICS,
    NUM_CLASSES,
    PARADIGMS,
    TUNING_SEEDS,
    Drawn,
    Study,
    at_budget,
    draw,
    scored,
    true_mean,
)

STEADY, HIGHER = 1.45, 2.20
"""Logits of .81 and .90."""

PAIRS = tuple(combinations(range(len(PARADIGMS)), 2))
FAMILY = tuple((metric, pair) for metric in METRICS for pair in PAIRS)
LEVEL = 0.05
LOOKS = (6, 12, 18, 24)
FLOORS = {metric: guess("digits", metric, NUM_CLASSES) for metric in METRICS}

AGREEMENT = 1e-9
LARGEST_FOLLOW_UP = 300  # seeds; advice beyond it is counted, not run
LARGEST_TEST = 20_000  # images; likewise


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Numbers of one replicate: of the pairs, metric by metric, and of the means."""

    pairs: list[dict[str, Any]]
    means: dict[str, list[CrossedMean]]


MIXED = tuple(
    Study(f"{n} seeds, each learns with chance {chance:g}", n, learns=(chance,))
    for chance in (0.9, 0.8, 0.5, 0.15)
    for n in (6, 12)
)
NULL = (
    *(Study(f"{n} seeds", n) for n in (6, 8, 12, 24)),
    *(
        Study(f"{n} seeds, options 1/1/81/1, tuned on {TUNING_SEEDS} others", n, (1, 1, 81, 1))
        for n in (6, 12)
    ),
    *(Study(f"{n} seeds, images alike", n, image_sd=0.0) for n in (6, 12)),
    *(Study(f"{n} seeds, images differ much", n, image_sd=3.0) for n in (6, 24)),
    *(Study(f"{n} seeds, seeds hardly differ", n, seed_sd=0.05) for n in (6, 24)),
    Study("6 seeds, 36 images", images=36, instances=28),
    Study("12 seeds, 36 images", 12, images=36, instances=28),
    Study("6 seeds, 1000 images", images=1_000),
    Study("12 seeds, few images have most instances", 12, heavy_images=True),
    Study("12 seeds, classes of 80, 15 and 5 %", 12, classes=True),
    *(Study(f"{n} seeds, heavy tails (t, 3 df)", n, heavy=True) for n in (6, 12)),
    *(Study(f"{n} seeds, skewed (exponential)", n, skewed=True) for n in (6, 12)),
    *(Study(f"{n} seeds, a run in 10 fails", n, failed=0.1) for n in (8, 12)),
    Study("12 seeds, scores near 0.97", 12, base=4.0),
    Study("12 seeds, 108 images, scores near 0.97", 12, images=108, instances=9, base=4.0),
    Study("6 seeds, 36 images, scores near 0.97", images=36, instances=28, base=4.0),
    Study("12 seeds, scores near 0.03", 12, base=-4.0),
    *(
        Study(f"6 seeds, images alike, {k} comparisons", image_sd=0.0, comparisons=k)
        for k in (6, 16)
    ),
    *(
        Study(
            f"{n} seeds, 108 images, {count} backgrounds that {how}", n, images=108, instances=18,
            backgrounds=count, background_sd=sd, base=base,
        )
        for n, count, how, sd, base in (
            (12, 251, "do not matter", 0.0, 1.0), (12, 251, "matter little", 0.1, 1.0),
            (12, 251, "matter much", 0.3, 1.0), (6, 251, "matter much", 0.3, 1.0),
            (12, 25, "matter much", 0.3, 1.0), (12, 5, "matter much", 0.3, 1.0),
            (12, 251, "matter much, scores near 0.97", 0.3, 4.0),
        )
    ),
)  # fmt: skip
"""Studies of which every number is promised."""

NOT_PROMISED = (
    *(
        Study(f"{n} seeds, options 1/1/81/1, one stage", n, (1, 1, 81, 1), two_stage=False)
        for n in (6, 12)
    ),
    *(Study(f"{n} seeds, a run in 10 diverges", n, diverged=0.1) for n in (6, 12, 24)),
    *MIXED,
    *(
        Study(
            f"{n} seeds, .81 beside .90 with chance .9, else 0", n, image_sd=0.0,
            residual_sd=0.0, seed_sd=0.1, learns=(1.0, 1.0, 1.0, 0.9),
            bases=(STEADY, STEADY, STEADY, HIGHER),
        )
        for n in (6, 8, 12)
    ),
)  # fmt: skip
"""Corners where some number is not kept."""

PLANNED = (
    Study("6 seeds, images alike", image_sd=0.0),
    Study("6 seeds"),
    Study("12 seeds", 12),
    Study("12 seeds, images differ much", 12, image_sd=3.0),
)


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--through-package", type=int, default=100, metavar="REPLICATES")
    parser.add_argument("--quick", action="store_true", help="20 replicates, 2 as tables")
    parser.add_argument("--resample", metavar="RESULTS", help="coverage in a study's own runs")
    args = parser.parse_args()
    if args.resample:
        header("study", "of", "SAIF", "accuracy")
        for setting, what, *found in resampled(args.resample, args.replicates):
            row(setting, what, *(f"{each:.3f}" for each in found))
        return
    replicates, tables = (20, 2) if args.quick else (args.replicates, args.through_package)
    error = math.sqrt(LEVEL * (1 - LEVEL) / replicates)
    print(f"{replicates} replicates a row; Monte Carlo error {error:.3f} at .05 and at .95\n")
    columns = [f"{what}, {m}" for what in ("mean", "difference") for m in ("SAIF", "accuracy")]
    for studies in (NULL, NOT_PROMISED):
        header("study", "false verdicts", *columns, "pairs apart")
        with ProcessPoolExecutor() as pool:
            rows_of = pool.map(rates, studies, repeat(replicates))
            for study, numbers in zip(studies, rows_of, strict=True):
                row(study.name, *numbers)
        print()
    looks = f"{looked(replicates):.3f}"
    print(f"False verdicts at any of the looks {LOOKS}, were later seeds counted: {looks}\n")
    advised = ("told seeds", "median", "power", "told images", "power", "larger yet")
    header("advised by", "difference", *advised)
    for study in PLANNED:
        for name, beforehand in (("named beforehand", True), ("far end of the interval", False)):
            row(study.name, name, *followed(study, beforehand, replicates))
    print()
    header("seeds", "1 sd decided", "overstated by", "2 sd decided", "overstated by")
    for n in (6, 8, 12, 24):
        row(str(n), *(text for sds in (1, 2) for text in overstated(n, sds, 10 * replicates)))
    print()
    ends = {"false_holds": "falsely holds", "false_refuted": "falsely refuted"}
    header("claim", "lost", *(f"{text}, {n} seeds" for text in ends.values() for n in SEEDS))
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for claim in simulate_claims(replicates, seed=0, laws=(*ROWS, UNSEEN)):
        name = (claim["row"], f"{claim['failures']:.2f}")
        rows.setdefault(name, []).append(claim)
    for name, claims in rows.items():
        row(*name, *(f"{claim[end]:.3f}" for end in ends for claim in claims))
    by_table = (study for study in (*NULL, *NOT_PROMISED) if study.comparisons == 1)
    with ProcessPoolExecutor() as pool:
        largest = max(pool.map(largest_deviation, by_table, repeat(tables)))
    print(f"\n{tables} replicates a row as tables: numbers agree to {largest:.0e}")
    if not largest < AGREEMENT:
        sys.exit(1)


def rates(study: Study, replicates: int) -> list[str]:
    """Share of studies with a false verdict, coverage of means and differences, pairs apart."""
    truth = true_mean(study)
    wrong, apart = 0, 0.0
    covered: dict[tuple[str, str], list[bool]] = {(a, m): [] for a in "mp" for m in METRICS}
    # The intervals of paradigms that had no more options than others would hide a biased choice.
    best_of = [k == max(study.options) for k in study.options]
    for generator in generators(study, replicates):
        drawn = [draw(study, generator) for _ in range(study.comparisons)]
        found = [verdicts(each) for each in drawn]
        wrong += any(
            is_decided(row) for row in decided([*chain(*(each.pairs for each in found))], LEVEL)[0]
        )
        apart += float(np.mean(["learned" in row for each in found for row in each.pairs]))
        for each in found:
            for (metric, (second, first)), pair in zip(FAMILY, each.pairs, strict=True):
                if (best_of[first] or best_of[second]) and not math.isnan(pair["low"]):
                    covered["p", metric].append(pair["low"] <= 0 <= pair["high"])
            for metric, means in each.means.items():
                for place, mean in enumerate(means):
                    if best_of[place] and not math.isnan(mean.low):
                        covered["m", metric].append(mean.low <= truth[metric] <= mean.high)
    shares = (f"{np.mean(each):.3f}" if each else "-" for each in covered.values())
    return [f"{wrong / replicates:.3f}", *shares, f"{apart / replicates:.2f}"]


def is_decided(row: dict[str, Any]) -> bool:
    """Whether a row has a verdict."""
    return bool(row["verdict"] != "undecided")


def looked(replicates: int) -> float:
    """Share of studies with a false verdict at any look, each with all seeds that there are."""
    study = Study("looks", LOOKS[-1], image_sd=0.0)
    found = (draw(study, generator) for generator in generators(study, replicates))
    wrong = (
        any(is_decided(row) for n in LOOKS for row in decided([*pairs(drawn, n)], LEVEL)[0])
        for drawn in found
    )
    return float(np.mean([*wrong]))


def followed(study: Study, beforehand: bool, replicates: int) -> list[str]:
    """Power of studies of the advised size, where the named difference is the true one."""
    pair = replace(study, options=(1, 1))
    level = LEVEL / len(FAMILY)
    few = generators(pair, min(replicates, 200))
    usual = float(np.mean([first_pair(pair, generator).standard_error for generator in few]))
    by_seeds: list[bool] = []
    by_images: list[bool] = []
    seeds, larger = [], 0
    for generator in generators(study, replicates):
        seen = first_pair(pair, generator)
        effect = 3 * usual if beforehand else max(seen.low, seen.high, key=abs)
        found = needed(seen, effect, level)
        if not beforehand and seen.p < level:
            continue  # decided, so the report names no number
        if found.seeds <= LARGEST_FOLLOW_UP:
            again = replace(pair, seeds=int(found.seeds))
            by_seeds.append(first_pair(again, generator, effect).p < level)
            seeds.append(found.seeds)
        elif found.seeds == math.inf and found.images <= LARGEST_TEST:
            again = replace(pair, images=int(found.images))
            by_images.append(first_pair(again, generator, effect).p < level)
        else:
            larger += 1
    return [
        f"{len(by_seeds) / replicates:.2f}",
        f"{np.median(seeds):.0f}" if seeds else "-",
        f"{np.mean(by_seeds):.3f}" if seeds else "-",
        f"{len(by_images) / replicates:.2f}",
        f"{np.mean(by_images):.3f}" if by_images else "-",
        f"{larger / replicates:.2f}",
    ]


def first_pair(study: Study, generator: np.random.Generator, effect: float = 0.0) -> CrossedMean:
    """The test of one metric and pair, whose true difference is `effect`."""
    drawn, every = draw(study, generator, METRICS[:1]), np.ones(study.seeds, bool)
    first, second = (scored(drawn, METRICS[0], place, every) for place in (0, 1))
    return crossed_mean((first - second).shares + effect, first.weights)


def overstated(n: int, sds: float, replicates: int) -> list[str]:
    """How often a difference of some sds of a run is decided, and by what factor too large."""
    true = sds * math.sqrt(0.5)  # in standard deviations of the pairs
    pairs = np.random.default_rng(n).normal(true, 1, (replicates, n))
    means = pairs.mean(axis=1)
    t = means / pairs.std(axis=1, ddof=1) * math.sqrt(n)
    found = np.abs(t) > stdtrit(n - 1, 1 - LEVEL / len(FAMILY) / 2)
    return [f"{found.mean():.3f}", f"{np.abs(means[found]).mean() / true:.2f}"]


def generators(study: Study, replicates: int) -> Iterator[np.random.Generator]:
    """One a replicate, the same in every run."""
    for seed in np.random.SeedSequence(list(study.name.encode())).spawn(replicates):
        yield np.random.default_rng(seed)


def verdicts(drawn: Drawn) -> Verdicts:
    """Tests of all pairs and intervals of all means, as the package makes them."""
    means = {}
    for metric in METRICS:
        means[metric] = []
        for place, failed in enumerate(drawn.failed):
            found = scored(drawn, metric, place, ~failed)
            means[metric].append(
                share_mean(
                    found.shares,
                    found.weights,
                    FLOORS[metric],
                    backgrounds=found.of_backgrounds,
                )
            )
    rows, _ = decided([*pairs(drawn, drawn.failed.shape[1])], LEVEL)
    return Verdicts(rows, means)


def pairs(drawn: Drawn, seeds: int) -> Iterator[dict[str, Any]]:
    """The tests of a comparison with its first seeds, metric by metric."""
    for metric, (second, first) in FAMILY:
        common = ~(drawn.failed[first] | drawn.failed[second])
        common[seeds:] = False
        sides = (scored(drawn, metric, place, common) for place in (first, second))
        names = {"metric": metric, "first": PARADIGMS[first], "second": PARADIGMS[second]}
        yield names | of_pair(*sides, FLOORS[metric])


def largest_deviation(study: Study, replicates: int) -> float:
    """Largest difference between these numbers and those of the package's own tables."""
    import pandas as pd

    from analysis.comparison.choice import choose, summarise
    from analysis.comparison.paired import paired_table

    largest = 0.0
    for generator in generators(study, replicates):
        drawn = draw(study, generator)
        table = at_budget(study, drawn)
        choice = choose(table)
        paired, summary = paired_table(table, choice), summarise(table, choice)
        found = verdicts(drawn)
        names = [(PARADIGMS[first], PARADIGMS[second]) for second, first in PAIRS]
        assert list(zip(paired["first"], paired["second"], strict=True)) == 2 * names
        numbers = ["difference", "low", "high", "background_se", "p_holm", "p_signs"]
        expected = pd.DataFrame(found.pairs)
        assert paired["verdict"].tolist() == expected["verdict"].tolist()
        gaps = [np.abs(paired[numbers].to_numpy(float) - expected[numbers].to_numpy(float))]
        by_paradigm = summary.set_index("paradigm").loc[list(PARADIGMS)]
        for metric in METRICS:
            columns = [metric, f"{metric}_low", f"{metric}_high"]
            means = [(each.mean, each.low, each.high) for each in found.means[metric]]
            gaps.append(np.abs(by_paradigm[columns].to_numpy(float) - means))
        largest = max(largest, *(float(np.nan_to_num(gap).max()) for gap in gaps))
    return largest


def header(*names: str) -> None:
    """Prints the head of a Markdown table."""
    row(*names)
    row("---", *("---:" for _ in names[1:]))


def row(*cells: str) -> None:
    """Prints a row of a Markdown table."""
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
