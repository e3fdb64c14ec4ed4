"""Simulated studies for `benchmarks/calibration.py`: as arrays, and as the package's tables.

A study has four paradigms (hard, soft, hybrid, lvml) that differ in nothing, so that every verdict
is false and every difference 0. A run is right about an instance, or has it in SAIF, with the
logit base + A + B_i + E_i + sum_b C_b: A of the run, B of its foreground image, E of both, C of
each of its background images, if it has any. A shared part of A belongs to the seed, shared parts
of B and C to all paradigms. Runs choose their option on validation, which shows A with a little
noise, and are tested on all images; two-stage studies draw A anew for their confirming seeds. SAIF
and accuracy are independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from analysis.backgrounds import Backgrounds
from analysis.comparison.by_image import Instances, Scores
from study.results import INSTANCES

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
    classes: bool = False
    comparisons: int = 1
    backgrounds: int = 0
    background_sd: float = 0.0


@dataclass(frozen=True, eq=False)
class Drawn:
    """One replicate.

    Attributes:
        base_images: (N, 1 + k) those of each instance, the foreground first.
        instances: what the package makes of them.
        hits: metric -> (P, n, N) what the chosen options' tested runs are right about.
        diverged: (P, n).
        failed: (P, n).
        validation: paradigm -> (K, n) accuracies that choose.
        chosen: the option of each paradigm.
    """

    base_images: NDArray[np.int64]
    instances: Instances
    hits: dict[str, NDArray[np.bool_]]
    diverged: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    validation: list[Floats]
    chosen: list[int]


def draw(study: Study, generator: np.random.Generator, metrics: Sequence[str] = METRICS) -> Drawn:
    """Runs of one study."""
    paradigms, n, images = len(study.options), study.seeds, study.images
    weights = 1 + generator.poisson(study.instances - 1, images)
    if study.heavy_images:
        heavy = np.minimum(generator.pareto(1.5, images), HEAVIEST)
        weights = 1 + np.floor(study.instances * heavy).astype(int)
    of_image = np.repeat(np.arange(images), weights)
    held = generator.integers(max(study.backgrounds, 1), size=(weights.sum(), HELD))
    tested = {metric: runs(study, generator, n, (1,) * paradigms) for metric in metrics}
    validation, chosen = [], [0] * paradigms
    if max(study.options) > 1:
        # The accuracy of the tuned options is that of the tested runs in a one-stage study.
        count = TUNING_SEEDS if study.two_stage else n
        for place, level in enumerate(runs(study, generator, count, study.options)):
            noise = VALIDATION_SD * generator.standard_normal(level.shape)
            validation.append(expit(study.base + level + noise))
            chosen[place] = int(validation[-1].mean(axis=1).argmax())
            if not study.two_stage:
                tested["accuracy"][place] = level[chosen[place]][None]
    shape = (paradigms, n)
    bases = np.array(study.bases or [study.base] * paradigms)[:, None, None]
    hits = {}
    for metric in metrics:
        image = shared(generator, paradigms, images)
        if study.classes:
            image = image + generator.choice(CLASS_EFFECTS, images, p=CLASS_SHARES)
        residual = study.residual_sd * generator.standard_normal((*shape, images))
        levels = np.concatenate(tested[metric])[:, :, None]
        logits = (bases + levels + study.image_sd * image[:, None] + residual)[:, :, of_image]
        if study.backgrounds:
            effects = shared(generator, paradigms, study.backgrounds)
            logits += study.background_sd * effects[:, held].sum(axis=2)[:, None]
        hits[metric] = generator.random(logits.shape, np.float32) < expit(logits)
    stuck = generator.random(shape) > np.array(study.learns)[:, None]
    for each in hits.values():
        each[stuck] = False
    backgrounds = Backgrounds(of_image, held) if study.backgrounds else None
    return Drawn(
        np.column_stack([of_image, held]) if study.backgrounds else of_image[:, None],
        Instances(of_image, weights.astype(float), backgrounds),
        hits,
        generator.random(shape) < study.diverged,
        generator.random(shape) < study.failed,
        validation,
        chosen,
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
    return Scores(found[seeds], drawn.instances)


def true_mean(study: Study) -> dict[str, float]:
    """Metric -> its mean over all seeds and images."""
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


def at_budget(study: Study, drawn: Drawn) -> Any:
    """The runs as rows at a common cut, as `analysis.equal_compute` gives them."""
    import pandas as pd

    tuning, tuned_from, stage = ("tune", 0, "confirm") if study.two_stage else (None, 100, None)
    rows = []
    for place, paradigm in enumerate(PARADIGMS):
        options = drawn.validation[place] if drawn.validation else np.full((1, study.seeds), 0.5)
        if len(options) > 1 or not study.two_stage:
            rows += [
                evaluation(paradigm, k, tuned_from + seed, tuning, "validation", accuracy=accuracy)
                for (k, seed), accuracy in np.ndenumerate(options)
            ]
        for seed in np.flatnonzero(~drawn.failed[place]):
            for split in ("test", "validation") if study.two_stage else ("test",):
                scores = tested_run(drawn, place, seed) if split == "test" else {}
                chosen = drawn.chosen[place]
                rows.append(evaluation(paradigm, chosen, 100 + seed, stage, split, **scores))
    table = pd.DataFrame(rows)
    return table.assign(kind="training", last_saif=table["saif"], last_accuracy=table["accuracy"])


def tested_run(drawn: Drawn, place: int, seed: int) -> dict[str, Any]:
    """The columns of scores of one tested run."""
    if drawn.diverged[place, seed]:
        return {"diverged": True, **LOST}
    right, inside = (drawn.hits[metric][place, seed] for metric in ("accuracy", "saif"))
    bits = right, np.ones_like(right), inside
    names = "instance_right", "instance_known", "instance_saif"
    return {
        "accuracy": right.mean(), "saif": inside.mean(), "num_evaluated": len(right),
        "base_images": drawn.base_images.ravel(), "instances": "drawn",
        **{name: np.packbits(each).tobytes() for name, each in zip(names, bits, strict=True)},
    }  # fmt: skip


def evaluation(
    paradigm: str, option: int, seed: int, stage: str | None, split: str, **columns: Any
) -> dict[str, Any]:
    """One row at the cut."""
    lr = 0.001 * (option + 1)
    return {
        "cell_id": f"{paradigm}-{option}-{seed}", "comparison_id": "0123456789abcdef",
        "task": "digits", "m": 10, "n": 2_000, "num_classes": NUM_CLASSES, "architecture": "mlp",
        "paradigm": paradigm, "schedule": f"{paradigm} lr={lr}", "lr": lr, "last_lr": lr,
        "switch_point": math.nan, "batch_size": 64, "precision": "float32", "seed": int(seed),
        "stage": stage, "status": "done", "diverged": False, "finished_at": "",
        "budget_fraction": 1.0, "budget_amount": 1_000, "budget_unit": "flops", "cut": 1.0,
        "axis": "flops", "compute_flops": 999, "planned_seeds": None, "split": split,
        "saif": 0.5, "accuracy": 0.5, "loss": 0.5, "foreground_attention_mean": 0.5,
        **dict.fromkeys(["num_evaluated", "base_images", *INSTANCES]),
    } | columns  # fmt: skip
