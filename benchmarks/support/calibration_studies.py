"""Simulated studies for `benchmarks/calibration.py`, as arrays.

A study has four paradigms (hard, soft, hybrid, lvml) that differ in nothing, so that every verdict
is false and every difference 0. A run is right about an instance, or has it in SAIF, with the
logit base + A + B_i + E_i + sum_b C_b: A of the run, B of its foreground image, E of both, C of
each of its background images, if it has any. A shared part of A belongs to the seed, shared parts
of B and C to all paradigms. SAIF and accuracy are independent.

Some studies have a probit in place of the logit, runs of two sorts, images with most instances, or
one stage: one paradigm is tested on the seeds on which its option was chosen, by validation, which
shows A with a little noise. (In two stages the tested runs are new ones, whatever was chosen.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from analysis.comparison.by_image import Instances, Scores, instances_of, of_instances

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
METRICS = ("saif", "accuracy")
NUM_CLASSES = 4
CHOSEN = 2  # the paradigm that has options
SEED_SHARED = 0.3  # of the variance of A
IMAGE_SHARED = 0.5  # of the variance of B
VALIDATION_SD = 0.05
HELD = 9  # background images of an instance
HEAVIEST = 16  # times as many instances as a usual image; one that has most is not counted so
CLASS_SHARES, CLASS_EFFECTS = (0.8, 0.15, 0.05), (0.25, -0.75, -1.75)

LOST = {"saif": 0.0, "accuracy": 1 / NUM_CLASSES}
"""What a diverged run scores."""

Floats = NDArray[np.float64]
Generator = np.random.Generator

LAWS: dict[str, Callable[[Generator, tuple[int, ...]], Floats]] = {
    "normal": lambda generator, shape: generator.standard_normal(shape),
    "t, 3 df": lambda generator, shape: generator.standard_t(3, shape) / math.sqrt(3),
    "exponential": lambda generator, shape: 1 - generator.standard_exponential(shape),
}
"""Of runs, with unit spread."""


@dataclass(frozen=True)
class Study:
    """A study to simulate; spreads are standard deviations of logits.

    Attributes:
        name: of its row.
        seeds: tested seeds.
        options: of one paradigm, chosen in one stage.
        images: foreground images of the test split.
        instances: mean number of instances of an image.
        heavy_images: whether few images have most instances.
        dominant: share of the instances that the first two images have.
        bases: logit of the score of a mean run on a mean image, of all paradigms or of each.
        seed_sd: of runs.
        image_sd: of images.
        residual_sd: of both together.
        law: of the runs, a name of `LAWS`.
        gap: by how much one run in two, drawn for each by itself, is higher.
        learns: chance of a run to learn, of all paradigms or of each; one that does not is never
            right.
        diverged: chance of a run to diverge.
        failed: chance of a run to be missing.
        classes: whether 80, 15 and 5 % of the images are of classes that differ in score.
        backgrounds: background images of the test split; 0: instances have none.
        background_sd: of background images.
        probit: whether scores are probits.
        comparisons: that are decided together.
    """

    name: str
    seeds: int = 6
    options: int = 1
    images: int = 180
    instances: int = 6
    heavy_images: bool = False
    dominant: float = 0.0
    bases: tuple[float, ...] = (1.0,)
    seed_sd: float = 0.3
    image_sd: float = 1.0
    residual_sd: float = 0.5
    law: str = "normal"
    gap: float = 0.0
    learns: tuple[float, ...] = (1.0,)
    diverged: float = 0.0
    failed: float = 0.0
    classes: bool = False
    backgrounds: int = 0
    background_sd: float = 0.0
    probit: bool = False
    comparisons: int = 1

    def chance(self, logits: Floats) -> Floats:
        """To be right, or in SAIF."""
        found: Floats = ndtr(logits) if self.probit else expit(logits)
        return found

    def runs(self, generator: Generator, paradigms: int, n: int) -> Floats:
        """(P, n) effects A."""
        of_seeds, own = (LAWS[self.law](generator, (k, n)) for k in (1, paradigms))
        effects = math.sqrt(SEED_SHARED) * of_seeds + math.sqrt(1 - SEED_SHARED) * own
        higher = generator.random((paradigms, n)) < 0.5
        return self.seed_sd * effects + self.gap * higher


@dataclass(frozen=True, eq=False)
class Drawn:
    """One replicate.

    Attributes:
        instances: what the package makes of those of the test split, N.
        hits: metric -> (P, n, N) what the tested runs are right about.
        diverged: (P, n).
        failed: (P, n).
    """

    instances: Instances
    hits: dict[str, NDArray[np.bool_]]
    diverged: NDArray[np.bool_]
    failed: NDArray[np.bool_]


def draw(study: Study, generator: Generator, metrics: Sequence[str] = METRICS) -> Drawn:
    """Runs of one study."""
    shape = len(PARADIGMS), study.seeds
    of_image = np.repeat(np.arange(study.images), _weights(study, generator))
    held = generator.integers(max(study.backgrounds, 1), size=(len(of_image), HELD))
    learned = generator.random(shape) < np.broadcast_to(study.learns, shape[:1])[:, None]
    bases = np.broadcast_to(study.bases, shape[:1])[:, None]
    hits = {}
    for metric in metrics:
        levels = bases + study.runs(generator, *shape)
        if study.options > 1 and metric == "accuracy":
            tried = study.runs(generator, study.options, study.seeds)
            noise = VALIDATION_SD * generator.standard_normal(tried.shape)
            best = expit(bases[CHOSEN] + tried + noise).mean(axis=1).argmax()
            levels[CHOSEN] = bases[CHOSEN] + tried[best]
        images = study.image_sd * _shared(generator, study.images)
        if study.classes:
            images = images + generator.choice(CLASS_EFFECTS, study.images, p=CLASS_SHARES)
        residual = study.residual_sd * generator.standard_normal((*shape, study.images))
        logits = (levels[:, :, None] + images[:, None] + residual)[:, :, of_image]
        if study.backgrounds:
            effects = study.background_sd * _shared(generator, study.backgrounds)
            logits += effects[:, held].sum(axis=2)[:, None]
        right = generator.random(logits.shape, np.float32) < study.chance(logits)
        hits[metric] = right & learned[:, :, None]
    images_of = np.column_stack([of_image, held]) if study.backgrounds else of_image[:, None]
    lost = (generator.random(shape) < share for share in (study.diverged, study.failed))
    return Drawn(instances_of(images_of), hits, *lost)


def _weights(study: Study, generator: Generator) -> NDArray[np.int64]:
    """Instances of each image."""
    weights = 1 + generator.poisson(study.instances - 1, study.images)
    if study.heavy_images:
        heavy = np.minimum(generator.pareto(1.5, study.images), HEAVIEST)
        weights = 1 + np.floor(study.instances * heavy).astype(int)
    if study.dominant:
        rest = weights[2:].sum()
        weights[:2] = round(rest * study.dominant / (1 - study.dominant) / 2)
    return weights


def _shared(generator: Generator, images: int) -> Floats:
    """(P, images) effects of images, in part common to the paradigms."""
    common, own = (generator.standard_normal((k, images)) for k in (1, len(PARADIGMS)))
    return math.sqrt(IMAGE_SHARED) * common + math.sqrt(1 - IMAGE_SHARED) * own


def scored(drawn: Drawn, metric: str, place: int, seeds: NDArray[np.bool_]) -> Scores:
    """The scores of a paradigm's runs; a diverged one has SAIF 0 and accuracy 1/C throughout."""
    found = drawn.hits[metric][place].astype(float)
    found[drawn.diverged[place]] = LOST[metric]
    return of_instances(found[seeds], drawn.instances)


def true_mean(study: Study) -> dict[str, float]:
    """Metric -> its mean over all seeds and images, of a million of each, within .0005."""
    generator, count = np.random.default_rng(0), 1_000_000
    logits = study.bases[0] + study.runs(generator, 1, count)[0]
    backgrounds = math.sqrt(HELD * bool(study.backgrounds)) * study.background_sd
    rest = math.hypot(study.image_sd, study.residual_sd, backgrounds)
    logits += rest * generator.standard_normal(count)
    if study.classes:
        logits += generator.choice(CLASS_EFFECTS, count, p=CLASS_SHARES)
    mean = study.learns[0] * float(study.chance(logits).mean())
    return {m: mean * (1 - study.diverged) + LOST[m] * study.diverged for m in METRICS}
