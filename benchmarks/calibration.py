"""What verdicts and intervals keep of what they promise, in simulated studies.

    python benchmarks/calibration.py  # the tables of docs/validity.md: half an hour
    python benchmarks/calibration.py --quick  # a hundredth of it, to see that it runs

Studies without any difference, each with new seeds and new images, see
`benchmarks/support/calibration_studies.py`. All go through `crossed_mean`, `holm` and `needed`;
some also as tables through `choose`, `summarise` and `paired_table`, which must agree to 1e-9.
Verdicts on claims are simulated in `benchmarks/support/calibration_claims.py`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from analysis.crossed import CrossedMean, crossed_mean, needed
from analysis.overstated import exaggeration
from analysis.statistics import MIN_SEEDS, holm
from benchmarks.support.calibration_claims import SEEDS, simulate_claims
from benchmarks.support.calibration_studies import (
    METRICS,
    PARADIGMS,
    TUNING_SEEDS,
    Drawn,
    Floats,
    Study,
    at_budget,
    draw,
    shares,
    true_mean,
)

PAIRS = tuple(combinations(range(len(PARADIGMS)), 2))
FAMILY = tuple((metric, pair) for metric in METRICS for pair in PAIRS)
LEVEL = 0.05
AGREEMENT = 1e-9
LARGEST_FOLLOW_UP = 300  # seeds; advice beyond it is counted, not run
LARGEST_TEST = 20_000  # images; likewise


@dataclass(frozen=True, eq=False)
class Verdicts:
    """Numbers of one replicate: of the pairs first, metric by metric, as Holm's family."""

    pairs: list[CrossedMean]
    p_holm: Floats
    decided: NDArray[np.bool_]
    means: dict[str, list[CrossedMean]]


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
    *(Study(f"{n} seeds, heavy tails (t, 3 df)", n, heavy=True) for n in (6, 12)),
    *(Study(f"{n} seeds, a run in 10 fails", n, failed=0.1) for n in (8, 12)),
    Study("12 seeds, scores near 0.97", 12, base=4.0),
    Study("12 seeds, 108 images, scores near 0.97", 12, images=108, instances=9, base=4.0),
)
"""Studies of which every number is promised."""

NOT_PROMISED = (
    *(
        Study(f"{n} seeds, options 1/1/81/1, one stage", n, (1, 1, 81, 1), two_stage=False)
        for n in (6, 12)
    ),
    *(Study(f"{n} seeds, a run in 10 diverges", n, diverged=0.1) for n in (6, 12, 24)),
    Study("6 seeds, 36 images, scores near 0.97", images=36, instances=28, base=4.0),
)
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
    args = parser.parse_args()
    replicates, tables = (20, 2) if args.quick else (args.replicates, args.through_package)
    error = math.sqrt(LEVEL * (1 - LEVEL) / replicates)
    print(f"{replicates} replicates a row; Monte Carlo error {error:.3f} at .05 and at .95\n")
    columns = [f"{what}, {m}" for what in ("mean", "difference") for m in ("SAIF", "accuracy")]
    for studies in (NULL, NOT_PROMISED):
        header("study", "false verdicts", *columns)
        for study in studies:
            row(study.name, *rates(study, replicates))
        print()
    advised = ("told seeds", "median", "power", "told images", "power", "larger yet")
    header("advised by", "difference", *advised)
    for study in PLANNED:
        for name, beforehand in (("named beforehand", True), ("named by the report", False)):
            row(study.name, name, *followed(study, beforehand, replicates))
    print()
    header("seeds", "decided", "overstated by", "`exaggeration`")
    for n in (6, 8, 12, 24):
        found, factor = overstated(n, 10 * replicates)
        row(str(n), f"{found:.3f}", f"{factor:.2f}", f"{exaggeration(n, LEVEL / len(FAMILY)):.2f}")
    print()
    ends = {"false_holds": "falsely holds", "false_refuted": "falsely refuted"}
    header("claim", "lost", *(f"{text}, {n} seeds" for text in ends.values() for n in SEEDS))
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for claim in simulate_claims(replicates, seed=0):
        name = (claim["row"], f"{claim['failures']:.2f}")
        rows.setdefault(name, []).append(claim)
    for name, claims in rows.items():
        row(*name, *(f"{claim[end]:.3f}" for end in ends for claim in claims))
    largest = max(largest_deviation(study, tables) for study in (*NULL, *NOT_PROMISED))
    print(f"\n{tables} replicates a row as tables: numbers agree to {largest:.0e}")
    if not largest < AGREEMENT:
        sys.exit(1)


def rates(study: Study, replicates: int) -> list[str]:
    """Share of studies with a false verdict, and coverage of means and differences."""
    truth = true_mean(study)
    wrong = 0
    covered: dict[tuple[str, str], list[bool]] = {(a, m): [] for a in "mp" for m in METRICS}
    # The intervals of paradigms that had no more options than others would hide a biased choice.
    best_of = [k == max(study.options) for k in study.options]
    for generator in generators(study, replicates):
        found = verdicts(draw(study, generator))
        wrong += bool(found.decided.any())
        for (metric, (second, first)), pair in zip(FAMILY, found.pairs, strict=True):
            if (best_of[first] or best_of[second]) and not math.isnan(pair.low):
                covered["p", metric].append(pair.low <= 0 <= pair.high)
        for metric, means in found.means.items():
            for place, mean in enumerate(means):
                if best_of[place] and not math.isnan(mean.low):
                    covered["m", metric].append(mean.low <= truth[metric] <= mean.high)
    return [f"{wrong / replicates:.3f}", *(f"{np.mean(each):.3f}" for each in covered.values())]


def followed(study: Study, beforehand: bool, replicates: int) -> list[str]:
    """Power of studies of the advised size, where the named difference is the true one."""
    from analysis.comparison.paired import advice

    pair = replace(study, options=(1, 1))
    level = LEVEL / len(FAMILY)
    few = generators(pair, min(replicates, 200))
    usual = float(np.mean([first_pair(pair, generator).standard_error for generator in few]))
    by_seeds: list[bool] = []
    by_images: list[bool] = []
    seeds, larger = [], 0
    for generator in generators(study, replicates):
        seen = first_pair(pair, generator)
        if beforehand:
            effect, found = 3 * usual, needed(seen, 3 * usual, level)
        else:
            effect, found = advice(seen, level)
            if seen.p < level or found.seeds <= study.seeds:
                continue  # decided, or the report names no number
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
    drawn = draw(study, generator, METRICS[:1])
    first, second = drawn.hits[METRICS[0]] / drawn.weights
    return crossed_mean(first - second + effect, drawn.weights)


def overstated(n: int, replicates: int) -> tuple[float, float]:
    """How often a difference of one sd of a run is decided, and by what factor too large."""
    pairs = np.random.default_rng(n).normal(math.sqrt(0.5), 1, (replicates, n))
    means = pairs.mean(axis=1)
    t = means / pairs.std(axis=1, ddof=1) * math.sqrt(n)
    decided = np.abs(t) > stdtrit(n - 1, 1 - LEVEL / len(FAMILY) / 2)
    return float(decided.mean()), float(np.abs(means[decided]).mean() / math.sqrt(0.5))


def generators(study: Study, replicates: int) -> Iterator[np.random.Generator]:
    """One a replicate, the same in every run."""
    for seed in np.random.SeedSequence(list(study.name.encode())).spawn(replicates):
        yield np.random.default_rng(seed)


def verdicts(drawn: Drawn) -> Verdicts:
    """Tests of all pairs and intervals of all means, as the package makes them."""
    scores = {metric: shares(drawn, metric) for metric in METRICS}
    pairs = []
    for metric, (second, first) in FAMILY:
        common = ~(drawn.failed[first] | drawn.failed[second])
        y = scores[metric][first][common] - scores[metric][second][common]
        pairs.append(crossed_mean(y, drawn.weights))
    p_holm, _ = holm(np.nan_to_num([each.p for each in pairs], nan=1.0))
    enough = np.array([each.num_seeds >= MIN_SEEDS for each in pairs])
    means = {
        metric: [
            crossed_mean(scores[metric][place][~drawn.failed[place]], drawn.weights)
            for place in range(len(PARADIGMS))
        ]
        for metric in METRICS
    }
    return Verdicts(pairs, p_holm, enough & (p_holm < LEVEL), means)


def largest_deviation(study: Study, replicates: int) -> float:
    """Largest difference between these numbers and those of the package's own tables."""
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
        expected = [(each.mean, each.low, each.high) for each in found.pairs]
        given = paired[["difference", "low", "high"]].to_numpy(float)
        assert ((paired["verdict"] != "undecided") == found.decided).all()
        p_holm = paired["p_holm"].to_numpy(float)
        gaps = [np.abs(given - expected), np.abs(p_holm - found.p_holm)]
        by_paradigm = summary.set_index("paradigm").loc[list(PARADIGMS)]
        for metric in METRICS:
            columns = [metric, f"{metric}_low", f"{metric}_high"]
            expected = [(each.mean, each.low, each.high) for each in found.means[metric]]
            gaps.append(np.abs(by_paradigm[columns].to_numpy(float) - expected))
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
