"""Simulated studies for `benchmarks/calibration.py`, as arrays.

A study has four paradigms (hard, soft, hybrid, lvml) that differ in nothing, so that every verdict
is false and every difference 0. A run is right about an instance, or has it in SAIF, with the
logit base + A + B_i + E_i + sum_b C_b: A of the run, B of its foreground image, E of both, C of
each of its background images, if it has any. A shared part of A belongs to the seed, shared parts
of B and C to all paradigms. Runs choose their option on validation, which shows A with a little
noise, and are tested on all images; two-stage studies draw A anew for their confirming seeds. SAIF
and accuracy are independent.

Some studies have a probit in place of the logit, whose true means have a closed form, runs of two
sorts, or two images with most instances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from analysis.comparison.by_image import Instances, Scores, instances_of, of_instances

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
METRICS = ("saif", "accuracy")
NUM_CLASSES = 4
TUNING_SEEDS = 3
SEED_SHARED = 0.3  # of the variance of A
IMAGE_SHARED = 0.5  # of the variance of B
VALIDATION_SD = 0.05
HELD = 9  # background images of an instance
HEAVIEST = 16  # times as many instances as a usual image; one that has most is not counted so
CLASS_SHARES, CLASS_EFFECTS = (0.8, 0.15, 0.05), (0.25, -0.75, -1.75)

LOST = {"saif": 0.0, "accuracy": 1 / NUM_CLASSES}
"""What a diverged run scores."""

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
        skewed: whether runs have an exponential law, of the same spread.
        learns: chance of a run to learn, of all paradigms or of each; one that does not is never
            right.
        bases: logit of the score of each paradigm, where they differ.
        heavy_images: whether few images have most instances.
        dominant: share of the instances that the first two images have.
        probit: whether scores are probits.
        gap: by how much one run in two, drawn for each by itself, is higher.
        classes: whether 80, 15 and 5 % of the images are of classes that differ in score.
        comparisons: that are decided together.
        backgrounds: background images of the test split; 0: instances have none.
        background_sd: of background images.
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
    skewed: bool = False
    learns: tuple[float, ...] = (1.0,)
    bases: tuple[float, ...] = ()
    heavy_images: bool = False
    dominant: float = 0.0
    probit: bool = False
    gap: float = 0.0
    classes: bool = False
    comparisons: int = 1
    backgrounds: int = 0
    background_sd: float = 0.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """One replicate.

    Attributes:
        instances: what the package makes of those of the test split, N.
        hits: metric -> (P, n, N) what the chosen options' tested runs are right about.
        diverged: (P, n).
        failed: (P, n).
    """

    instances: Instances
    hits: dict[str, NDArray[np.bool_]]
    diverged: NDArray[np.bool_]
    failed: NDArray[np.bool_]


def draw(study: Study, generator: np.random.Generator, metrics: Sequence[str] = METRICS) -> Drawn:
    """Runs of one study."""
    paradigms, n, images = len(study.options), study.seeds, study.images
    weights = 1 + generator.poisson(study.instances - 1, images)
    if study.heavy_images:
        heavy = np.minimum(generator.pareto(1.5, images), HEAVIEST)
        weights = 1 + np.floor(study.instances * heavy).astype(int)
    if study.dominant:
        rest = weights[2:].sum()
        weights[:2] = round(rest * study.dominant / (1 - study.dominant) / 2)
    of_image = np.repeat(np.arange(images), weights)
    held = generator.integers(max(study.backgrounds, 1), size=(weights.sum(), HELD))
    tested = {metric: runs(study, generator, n, (1,) * paradigms) for metric in metrics}
    if max(study.options) > 1:
        # The accuracy of the tuned options is that of the tested runs in a one-stage study.
        count = TUNING_SEEDS if study.two_stage else n
        for place, level in enumerate(runs(study, generator, count, study.options)):
            noise = VALIDATION_SD * generator.standard_normal(level.shape)
            if not study.two_stage:
                chosen = expit(study.base + level + noise).mean(axis=1).argmax()
                tested["accuracy"][place] = level[chosen][None]
    shape = (paradigms, n)
    bases = np.array(study.bases or [study.base] * paradigms)[:, None, None]
    hits = {}
    for metric in metrics:
        image = shared(generator, paradigms, images)
        if study.classes:
            image = image + generator.choice(CLASS_EFFECTS, images, p=CLASS_SHARES)
        residual = study.residual_sd * generator.standard_normal((*shape, images))
        levels = np.concatenate(tested[metric])[:, :, None]
        levels = levels + study.gap * (generator.random(levels.shape) < 0.5)
        logits = (bases + levels + study.image_sd * image[:, None] + residual)[:, :, of_image]
        if study.backgrounds:
            effects = shared(generator, paradigms, study.backgrounds)
            logits += study.background_sd * effects[:, held].sum(axis=2)[:, None]
        chances = ndtr(logits) if study.probit else expit(logits)
        hits[metric] = generator.random(logits.shape, np.float32) < chances
    stuck = generator.random(shape) > np.array(study.learns)[:, None]
    for each in hits.values():
        each[stuck] = False
    images_of = np.column_stack([of_image, held]) if study.backgrounds else of_image[:, None]
    return Drawn(
        instances_of(images_of),
        hits,
        generator.random(shape) < study.diverged,
        generator.random(shape) < study.failed,
    )


def shared(generator: np.random.Generator, paradigms: int, images: int) -> Floats:
    """(P, images) effects of images, in part common to the paradigms."""
    common = generator.standard_normal((1, images))
    own = generator.standard_normal((paradigms, images))
    return math.sqrt(IMAGE_SHARED) * common + math.sqrt(1 - IMAGE_SHARED) * own


def noise(study: Study, generator: np.random.Generator, *shape: int) -> Floats:
    """Draws of unit spread from the law of the runs."""
    if study.skewed:
        return 1 - generator.standard_exponential(shape)
    if study.heavy:
        return generator.standard_t(3, shape) / math.sqrt(3)
    return generator.standard_normal(shape)


def runs(
    study: Study, generator: np.random.Generator, n: int, options: Sequence[int]
) -> list[Floats]:
    """(K, n) effects A of the runs of each paradigm."""
    of_seeds = math.sqrt(SEED_SHARED) * noise(study, generator, 1, n)
    own = math.sqrt(1 - SEED_SHARED)
    return [study.seed_sd * (of_seeds + own * noise(study, generator, k, n)) for k in options]


def scored(drawn: Drawn, metric: str, place: int, seeds: NDArray[np.bool_]) -> Scores:
    """The scores of a paradigm's runs; a diverged one has SAIF 0 and accuracy 1/C throughout."""
    found = drawn.hits[metric][place].astype(float)
    found[drawn.diverged[place]] = LOST[metric]
    return of_instances(found[seeds], drawn.instances)


def true_mean(study: Study) -> dict[str, float]:
    """Metric -> its mean over all seeds and images."""
    if study.probit:
        spread = math.hypot(1, study.seed_sd, study.image_sd, study.residual_sd)
        sorts = (float(ndtr((study.base + gap) / spread)) for gap in (0.0, study.gap))
        return dict.fromkeys(METRICS, sum(sorts) / 2)
    normal = ndtri((np.arange(2_000) + 0.5) / 2_000)
    of_runs = normal
    if study.heavy or study.skewed:  # the sum of two parts of it: by simulation
        generator = np.random.default_rng(0)
        parts = 1 - generator.standard_exponential((2, 1_000_000))
        if study.heavy:
            parts = generator.standard_t(3, (2, 1_000_000)) / math.sqrt(3)
        of_runs = math.sqrt(SEED_SHARED) * parts[0] + math.sqrt(1 - SEED_SHARED) * parts[1]
        of_runs = np.sort(of_runs)[250::500]
    of_backgrounds = math.sqrt(HELD * bool(study.backgrounds)) * study.background_sd
    rest = math.hypot(study.image_sd, study.residual_sd, of_backgrounds) * normal
    effects = zip(CLASS_SHARES, CLASS_EFFECTS, strict=True) if study.classes else [(1.0, 0.0)]
    mean = study.learns[0] * sum(
        share * float(expit(study.base + effect + study.seed_sd * of_runs[:, None] + rest).mean())
        for share, effect in effects
    )
    return {m: mean * (1 - study.diverged) + LOST[m] * study.diverged for m in METRICS}
