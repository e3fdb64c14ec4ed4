"""Simulated studies for `benchmarks/calibration.py`, as arrays.

A study has four paradigms (hard, soft, hybrid, lvml) that differ in nothing, so that every verdict
is false and every difference 0. A run is right about an instance, or has it in SAIF, with the
logit base + A + B_i + E_i + sum_b C_b: A of the run, B of its foreground image, E of both, C of
each of its background images, if it has any. A shared part of A belongs to the seed, shared parts
of B and C to all paradigms. SAIF and accuracy are independent. Studies depart from this in what
the attributes of `Study` say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from analysis.digest.scores import Instances, Scores, instances_of

PARADIGMS = ("hard", "soft", "hybrid", "lvml")
METRICS = ("saif", "accuracy")
NUM_CLASSES = 4
CHOSEN = 2
"""Place of the paradigm that has options."""

SEED_SHARED = 0.3  # of the variance of A
IMAGE_SHARED = 0.5  # of the variances of B and C
BACKGROUND_SD = 0.3
VALIDATION_SD = 0.05
HELD = 9  # background images of an instance
HEAVIEST = 16  # times as many instances as a usual image

LOST = {"saif": 0.0, "accuracy": 1 / NUM_CLASSES}
"""What a diverged run scores."""

Floats = NDArray[np.float64]
Generator = np.random.Generator

Law = Callable[[Generator, tuple[int, int]], Floats]

LAWS: dict[str, Law] = {
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
        options: of one paradigm, chosen in one stage: by the validation of the tested runs, which
            shows A with a little noise.
        images: foreground images of the test split.
        instances: mean number of instances of an image.
        heavy_images: whether few images have most instances.
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
        backgrounds: background images of the test split; 0: instances have none.
        probit: whether scores are probits.
        comparisons: that are decided together.
    """

    name: str
    seeds: int
    options: int = 1
    images: int = 180
    instances: int = 6
    heavy_images: bool = False
    bases: tuple[float, ...] = (1.0,)
    seed_sd: float = 0.3
    image_sd: float = 1.0
    residual_sd: float = 0.5
    law: str = "normal"
    gap: float = 0.0
    learns: tuple[float, ...] = (1.0,)
    diverged: float = 0.0
    failed: float = 0.0
    backgrounds: int = 0
    probit: bool = False
    comparisons: int = 1

    def chance(self, logits: Floats) -> Floats:
        """To be right, or in SAIF."""
        found: Floats = ndtr(logits) if self.probit else expit(logits)
        return found

    def runs(self, generator: Generator, paradigms: int, n: int) -> Floats:
        """(P, n) effects A."""
        effects = _in_part_common(generator, LAWS[self.law], SEED_SHARED, (paradigms, n))
        higher = generator.random((paradigms, n)) < 0.5
        return self.seed_sd * effects + self.gap * higher


@dataclass(frozen=True, eq=False)
class Drawn:
    """One replicate.

    Attributes:
        values: metric -> (P, n, N) scores of the tested runs on each instance.
        instances: what the package makes of those of the test split, N.
        failed: (P, n).
    """

    values: dict[str, Floats]
    instances: Instances
    failed: NDArray[np.bool_]

    def scores(self, metric: str, place: int, seeds: NDArray[np.bool_]) -> Scores:
        """Those of a paradigm's runs with some seeds, (n,)."""
        return Scores(self.values[metric][place, seeds], self.instances)


def draw(study: Study, generator: Generator, metrics: Sequence[str] = METRICS) -> Drawn:
    """Runs of one study."""
    shape = len(PARADIGMS), study.seeds
    bases, learns = (np.array(each)[:, None] for each in (study.bases, study.learns))
    of_image = np.repeat(np.arange(study.images), _weights(study, generator))
    held = generator.integers(max(study.backgrounds, 1), size=(len(of_image), HELD))
    learned = generator.random(shape) < learns
    right = {}
    for metric in metrics:
        levels = bases + study.runs(generator, *shape)
        if study.options > 1 and metric == "accuracy":
            levels[CHOSEN] = _best_option(study, generator)
        images = study.image_sd * _of_images(generator, study.images)
        residual = study.residual_sd * generator.standard_normal((*shape, study.images))
        logits = (levels[:, :, None] + images[:, None] + residual)[:, :, of_image]
        if study.backgrounds:
            effects = BACKGROUND_SD * _of_images(generator, study.backgrounds)
            logits += effects[:, held].sum(axis=2)[:, None]
        chances = learned[:, :, None] * study.chance(logits)
        right[metric] = generator.random(logits.shape, np.float32) < chances
    diverged, failed = (generator.random(shape) < each for each in (study.diverged, study.failed))
    values = {m: np.where(diverged[:, :, None], LOST[m], right[m]) for m in metrics}
    images_of = np.column_stack([of_image, held]) if study.backgrounds else of_image[:, None]
    return Drawn(values, instances_of(images_of), failed)


def true_mean(study: Study) -> dict[str, float]:
    """Metric -> its mean over all seeds and images, of a million of each, within .0005."""
    generator, count = np.random.default_rng(0), 1_000_000
    backgrounds = math.sqrt(HELD * bool(study.backgrounds)) * BACKGROUND_SD
    rest = math.hypot(study.image_sd, study.residual_sd, backgrounds)
    logits = study.bases[0] + study.runs(generator, 1, count)[0]
    logits += rest * generator.standard_normal(count)
    mean = study.learns[0] * float(study.chance(logits).mean())
    return {m: mean * (1 - study.diverged) + LOST[m] * study.diverged for m in METRICS}


def _weights(study: Study, generator: Generator) -> NDArray[np.int64]:
    """Instances of each image."""
    weights = 1 + generator.poisson(study.instances - 1, study.images)
    if study.heavy_images:
        heavy = np.minimum(generator.pareto(1.5, study.images), HEAVIEST)
        weights = 1 + np.floor(study.instances * heavy).astype(int)
    return weights


def _best_option(study: Study, generator: Generator) -> Floats:
    """(n,) logits of the runs of the option that validation prefers."""
    tried = study.bases[0] + study.runs(generator, study.options, study.seeds)
    validated = expit(tried + VALIDATION_SD * generator.standard_normal(tried.shape))
    best: Floats = tried[validated.mean(axis=1).argmax()]
    return best


def _of_images(generator: Generator, images: int) -> Floats:
    """(P, images) effects B or C, with unit spread."""
    return _in_part_common(generator, LAWS["normal"], IMAGE_SHARED, (len(PARADIGMS), images))


def _in_part_common(
    generator: Generator, law: Law, shared: float, shape: tuple[int, int]
) -> Floats:
    """Effects with unit spread, of whose variance a part is common to all rows."""
    common, own = law(generator, (1, shape[1])), law(generator, shape)
    return math.sqrt(shared) * common + math.sqrt(1 - shared) * own
