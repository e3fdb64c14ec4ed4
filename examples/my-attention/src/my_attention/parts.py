"""What attention-study gets from here: sparsemax, a network, shapes, and a study of them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from search_spaces.base import Preset, SearchSpace
from study.models.model import Model, Network, initialise
from study.paradigms.paradigm import NO_SAMPLING, Attended, Paradigm, Sampling
from study.parts import register_model, register_paradigm, register_study, register_task
from study.tasks.mosaics.base_images import BaseImages
from study.tasks.mosaics.mosaic_tasks import of_images
from study.tasks.sources.places import Places

SIDE = 12
SHAPES = ("disc", "square", "cross", "ring", "stripes")


@register_paradigm
class Sparsemax(Paradigm):
    """Soft attention whose weights are the point of the simplex nearest to the scores.

    Martins and Astudillo, "From Softmax to Sparsemax" (ICML 2016).
    """

    name = "sparsemax"
    exact = "sparsemax"  # it draws nothing
    mixes = True  # the classifier sees a sum of segments

    def losses(
        self, attended: Attended, labels: Tensor, sampling: Sampling = NO_SAMPLING
    ) -> Tensor:
        logits = attended.classifier(attended.mixture)
        return functional.cross_entropy(logits, labels, reduction="none")

    def probabilities(self, attended: Attended) -> Tensor:
        return attended.classifier(attended.mixture).softmax(dim=1)

    def attend(self, scores: Tensor) -> Tensor:
        """max(f(x_j) - tau, 0), with tau such that they sum to 1."""
        largest_first = scores.sort(dim=1, descending=True).values
        excess = largest_first.cumsum(dim=1) - 1
        rank = torch.arange(1, scores.shape[1] + 1, device=scores.device)
        support = (rank * largest_first > excess).sum(dim=1, keepdim=True).clamp(min=1)
        return (scores - excess.gather(1, support - 1) / support).clamp(min=0)

    def cost(self, focus_flops: int, classifier_flops: int, m: int) -> int:
        """m calls of f and one of g."""
        return m * focus_flops + classifier_flops


@register_model("tiny-convolutions", tasks=("shapes", "digits"))
def tiny_convolutions(
    input_shape: tuple[int, ...],
    num_classes: int,
    width: float,
    seed: int,
    precision: str,
    kernel: int = 3,
) -> Model:
    """One convolution and one linear layer each for focus and classifier."""
    channels, height, wide = input_shape
    filters = max(1, round(8 * width))

    def layers(outputs: int) -> list[nn.Module]:
        return [
            nn.Conv2d(channels, filters, kernel),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(filters * (height - kernel + 1) * (wide - kernel + 1), outputs),
        ]

    with torch.random.fork_rng(devices=[]):
        focus = Network(*layers(1), nn.Flatten(0), precision=precision)
        classifier = Network(*layers(num_classes), precision=precision)
    initialise(focus, 2 * seed)
    initialise(classifier, 2 * seed + 1)
    return Model(focus, classifier)


def draw_shapes(places: Places) -> BaseImages:
    """Noisy pictures of shapes, 200 of each to train on and 60 to test on."""
    rng = np.random.default_rng(0)
    splits = []
    for count in (200, 60):
        images = [_shape(name, rng) for name in SHAPES for _ in range(count)]
        splits += [np.stack(images)[..., None], np.repeat(np.arange(len(SHAPES)), count)]
    return BaseImages.create(*splits, class_names=SHAPES, max_value=255, source="drawn shapes")


def _shape(name: str, rng: np.random.Generator) -> np.ndarray:
    """One picture: (SIDE, SIDE) uint8."""
    row, column = np.mgrid[:SIDE, :SIDE] - rng.uniform(SIDE / 2 - 2, SIDE / 2 + 1, (2, 1, 1))
    size, distance = rng.uniform(2, 4), np.hypot(row, column)
    inside = {
        "disc": distance < size,
        "square": np.maximum(abs(row), abs(column)) < size,
        "cross": np.minimum(abs(row), abs(column)) < size / 3,
        "ring": abs(distance - size) < 0.8,
        "stripes": row % size < size / 2,
    }[name]
    return np.clip(160 * inside + rng.normal(40, 25, inside.shape), 0, 255).astype(np.uint8)


register_task(
    "shapes",
    of_images("shapes", ("disc", "square", "cross"), draw_shapes, SHAPES),
)

STUDY = SearchSpace(
    name="shapes",
    task="shapes",
    about="does sparsemax find the foreground as lvml does?",
    presets={
        "quick": Preset(
            about="minutes on two CPU cores",
            axes={
                "m": (5,),
                "n": (2_000,),
                "architecture": ("tiny-convolutions",),
                "epochs": (10,),
                "paradigm": ("soft", "sparsemax", "hard", "lvml"),
                "lr": (0.01, 0.03, 0.1),
                "seed": (0, 1),
                "confirm": tuple(range(100, 108)),
                "evaluations": (5,),
                "train_metrics_size": (500,),
                "validation_size": (500,),
                "test_size": (1_000,),
            },
        )
    },
)
register_study(STUDY)
