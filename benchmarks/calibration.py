"""What verdicts and intervals keep of what they promise, in simulated studies.

    python benchmarks/calibration.py  # the tables of docs/validity.md: about 25 minutes, one core
    python benchmarks/calibration.py --quick  # a hundredth of it, to see that it runs

A simulated study has four paradigms (hard, soft, hybrid, lvml) that differ in nothing, so that
every verdict is false and every difference 0. The share of the instances of image i that a run is
right about, or that are in SAIF, is binomial with logit = base + A + B_i + E_i: A of the run, B of
the image, E of both together. A shared part of A belongs to the seed, a shared part of B to all
paradigms. Runs choose their option on validation, which shows A with a little noise, and are
tested on all images; two-stage studies draw A anew for their confirming seeds. SAIF and accuracy
are drawn independently. New seeds and new images are drawn in each replicate.

Every replicate goes through `crossed_mean`, `holm` and `needed`; some also as tables through
`choose`, `summarise` and `paired_table`, which must agree to 1e-9.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, stdtrit

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a file, without an installation

from analysis.crossed import CrossedMean, crossed_mean, exaggeration, needed
from analysis.statistics import MIN_SEEDS, holm

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
METRICS = ("saif", "accuracy")
NUM_CLASSES = 4
PAIRS = tuple(combinations(range(len(PARADIGMS)), 2))
FAMILY = tuple((metric, pair) for metric in METRICS for pair in PAIRS)
LEVEL = 0.05
TUNING_SEEDS = 3
SEED_SHARED = 0.3  # of the variance of A
IMAGE_SHARED = 0.5  # of the variance of B
VALIDATION_SD = 0.05
AGREEMENT = 1e-9
LARGEST_FOLLOW_UP = 300  # seeds; advice beyond it is counted, not run

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Study:
    """A study to simulate; spreads are standard deviations of logits.

    Attributes:
        name: of its row.
        seeds: tested seeds.
        options: options of each paradigm.
        two_stage: whether fresh seeds are tested; else options are chosen on the tested ones.
        images: foreground images of the test split.
        instances: mean number of instances of an image.
        base: logit of the score of a mean run on a mean image.
        seed_sd: of runs.
        image_sd: of images.
        residual_sd: of both together.
        heavy: whether runs have Student's t with 3 degrees of freedom, of the same spread.
        diverged: chance of a run to diverge.
        failed: chance of a run to be missing.
    """

    name: str
    seeds: int = 6
    options: tuple[int, ...] = (1, 1, 1, 1)
    two_stage: bool = True
    images: int = 180
    instances: int = 6
    base: float = 1.0
    seed_sd: float = 0.3
    image_sd: float = 1.0
    residual_sd: float = 0.5
    heavy: bool = False
    diverged: float = 0.0
    failed: float = 0.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """One replicate.

    Attributes:
        weights: (I,) instances of each image.
        hits: metric -> (P, n, I) counts of the chosen options' tested runs.
        diverged: (P, n).
        failed: (P, n).
        validation: paradigm -> (K, n) accuracies that choose.
        chosen: the option of each paradigm.
    """

    weights: NDArray[np.int64]
    hits: dict[str, NDArray[np.int64]]
    diverged: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    validation: list[Floats]
    chosen: list[int]


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
    header("study", "false verdicts", *(f"{a} of {m}" for a in ("mean", "pair") for m in METRICS))
    for study in (*NULL, *NOT_PROMISED):
        row(study.name, *rates(study, replicates))
    print()
    header("advised by", "effect", "power", "median seeds", "by images", "larger yet")
    for study in PLANNED:
        for effect in ("three standard errors", "far end of the interval"):
            row(study.name, effect, *followed(study, effect[0] == "t", replicates))
    print()
    header("seeds", "decided", "overstated by", "`exaggeration`")
    for n in (6, 8, 12, 24):
        found, factor = overstated(n, 10 * replicates)
        row(str(n), f"{found:.3f}", f"{factor:.2f}", f"{exaggeration(n):.2f}")
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
    """Power of studies of the advised size, where the named effect is the true one."""
    pair = replace(study, options=(1, 1))
    level = LEVEL / len(FAMILY)
    usual = np.mean([first_pair(pair, g).standard_error for g in generators(pair, 200)])
    found, seeds, by_images, larger = [], [], 0, 0
    for generator in generators(study, replicates):
        seen = first_pair(pair, generator)
        effect = 3 * usual if beforehand else max(abs(seen.low), abs(seen.high))
        advice = needed(seen, float(effect), level)
        seeds.append(advice.seeds)
        if advice.seeds <= LARGEST_FOLLOW_UP:
            again = replace(pair, seeds=int(advice.seeds))
        elif advice.seeds == math.inf and advice.images < 100 * study.images:
            again = replace(pair, images=int(advice.images))
            by_images += 1
        else:
            larger += 1
            continue
        found.append(first_pair(again, generator, float(effect)).p < level)
    return [
        f"{np.mean(found):.3f}",
        f"{np.quantile(seeds, 0.5, method='nearest'):.0f}",
        f"{by_images / replicates:.2f}",
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


def draw(study: Study, generator: np.random.Generator, metrics: Sequence[str] = METRICS) -> Drawn:
    """Runs of one study."""
    paradigms, n, images = len(study.options), study.seeds, study.images
    weights = 1 + generator.poisson(study.instances - 1, images)
    validation, chosen, levels = [], [], []
    tested = {metric: runs(study, generator, n, (1,) * paradigms) for metric in metrics}
    if max(study.options) > 1:
        # The accuracy of the tuned options is that of the tested runs in a one-stage study.
        count = TUNING_SEEDS if study.two_stage else n
        tuned = runs(study, generator, count, study.options)
        for place, level in enumerate(tuned):
            noise = VALIDATION_SD * generator.standard_normal(level.shape)
            validation.append(expit(study.base + level + noise))
            chosen.append(int(validation[-1].mean(axis=1).argmax()))
            if not study.two_stage:
                tested["accuracy"][place] = level[chosen[-1]][None]
    else:
        chosen = [0] * paradigms
    shape = (paradigms, n)
    hits = {}
    for metric in metrics:
        common = generator.standard_normal((1, images))
        own = generator.standard_normal((paradigms, images))
        image = math.sqrt(IMAGE_SHARED) * common + math.sqrt(1 - IMAGE_SHARED) * own
        levels = np.concatenate(tested[metric])[:, :, None]
        residual = study.residual_sd * generator.standard_normal((*shape, images))
        score = expit(study.base + levels + study.image_sd * image[:, None] + residual)
        hits[metric] = generator.binomial(weights, score)
    return Drawn(
        weights,
        hits,
        generator.random(shape) < study.diverged,
        generator.random(shape) < study.failed,
        validation,
        chosen,
    )


def runs(
    study: Study, generator: np.random.Generator, n: int, options: Sequence[int]
) -> list[Floats]:
    """(K, n) effects A of the runs of each paradigm."""

    def noise(*shape: int) -> Floats:
        if study.heavy:
            return generator.standard_t(3, shape) / math.sqrt(3)
        return generator.standard_normal(shape)

    of_seeds = math.sqrt(SEED_SHARED) * noise(1, n)
    return [study.seed_sd * (of_seeds + math.sqrt(1 - SEED_SHARED) * noise(k, n)) for k in options]


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


def shares(drawn: Drawn, metric: str) -> Floats:
    """(P, n, I) shares; a diverged run has SAIF 0 and accuracy 1/C on every image."""
    found = drawn.hits[metric] / drawn.weights
    found[drawn.diverged] = 0.0 if metric == "saif" else 1 / NUM_CLASSES
    return found


def true_mean(study: Study) -> dict[str, float]:
    """Metric -> its mean over all seeds and images."""
    middles = (np.arange(2_000) + 0.5) / 2_000
    if study.heavy:  # the sum of two parts of it: by simulation
        parts = np.random.default_rng(0).standard_t(3, (2, 1_000_000)) / math.sqrt(3)
        of_runs = math.sqrt(SEED_SHARED) * parts[0] + math.sqrt(1 - SEED_SHARED) * parts[1]
        of_runs = np.sort(of_runs)[250::500]
    else:
        of_runs = ndtri(middles)
    rest = math.hypot(study.image_sd, study.residual_sd) * ndtri(middles)
    mean = float(expit(study.base + study.seed_sd * of_runs[:, None] + rest).mean())
    lost = {"saif": 0.0, "accuracy": 1 / NUM_CLASSES}
    return {m: mean * (1 - study.diverged) + lost[m] * study.diverged for m in METRICS}


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


def at_budget(study: Study, drawn: Drawn) -> Any:
    """The runs as rows at a common cut, as `analysis.equal_compute` gives them."""
    import pandas as pd

    stage = "confirm" if study.two_stage else None
    rows = []
    for place, paradigm in enumerate(PARADIGMS):
        options = drawn.validation[place] if drawn.validation else np.full((1, study.seeds), 0.5)
        option = drawn.chosen[place]
        if study.two_stage and len(options) > 1:
            for k, accuracies in enumerate(options):
                rows += [
                    evaluation(paradigm, k, seed, "tune", "validation", accuracy=float(accuracy))
                    for seed, accuracy in enumerate(accuracies)
                ]
        elif not study.two_stage:
            rows += [
                evaluation(paradigm, k, 100 + seed, stage, "validation", accuracy=float(accuracy))
                for k, accuracies in enumerate(options)
                for seed, accuracy in enumerate(accuracies)
            ]
        for seed in range(study.seeds):
            if drawn.failed[place, seed]:
                continue
            test = tested_run(drawn, place, seed)
            rows.append(evaluation(paradigm, option, 100 + seed, stage, "test", **test))
            if study.two_stage:
                rows.append(evaluation(paradigm, option, 100 + seed, stage, "validation"))
    return pd.DataFrame(rows)


def tested_run(drawn: Drawn, place: int, seed: int) -> dict[str, Any]:
    """The columns of scores of one tested run."""
    right, inside = (drawn.hits[metric][place, seed] for metric in ("accuracy", "saif"))
    total = drawn.weights.sum()
    if drawn.diverged[place, seed]:
        return {"diverged": True, "accuracy": 1 / NUM_CLASSES, "saif": 0.0}
    return {
        "accuracy": right.sum() / total,
        "saif": inside.sum() / total,
        "image_count": drawn.weights,
        "image_right": right,
        "image_known": drawn.weights,
        "image_saif": inside,
    }


def evaluation(
    paradigm: str, option: int, seed: int, stage: str | None, split: str, **columns: Any
) -> dict[str, Any]:
    """One row at the cut."""
    lr = 0.001 * (option + 1)
    return {
        "cell_id": f"{paradigm}-{option}-{seed}",
        "comparison_id": "0123456789abcdef",
        "task": "digits",
        "m": 10,
        "paradigm": paradigm,
        "schedule": f"{paradigm} lr={lr}",
        "lr": lr,
        "last_lr": lr,
        "switch_point": math.nan,
        "seed": seed,
        "stage": stage,
        "status": "done",
        "diverged": False,
        "budget_fraction": 1.0,
        "n": 2_000,
        "architecture": "mlp",
        "batch_size": 64,
        "precision": "float32",
        "budget_amount": 1_000,
        "budget_unit": "flops",
        "cut": 1.0,
        "axis": "flops",
        "compute_flops": 999,
        "foreground_attention_mean": 0.5,
        "split": split,
        "saif": 0.5,
        "accuracy": 0.5,
        "loss": 0.5,
        "image_count": None,
        "image_right": None,
        "image_known": None,
        "image_saif": None,
    } | columns


def header(*names: str) -> None:
    """Prints the head of a Markdown table."""
    row(*names)
    row("---", *("---:" for _ in names[1:]))


def row(*cells: str) -> None:
    """Prints a row of a Markdown table."""
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
