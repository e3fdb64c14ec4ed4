"""What presets of several studies have in common."""

from collections.abc import Mapping

from search_spaces.base import PARADIGMS, By, Values, fresh

Axes = Mapping[str, Values | By]

_ON_DIGITS: Axes = {
    "n": (2_000,),
    "architecture": ("perceptron",),
    "batch_size": (64,),
    "train_metrics_size": (1_000,),
}

DIGITS: Axes = {
    **_ON_DIGITS,
    "paradigm": PARADIGMS,
    "seed": (0, 1),
    "validation_size": (1_000,),
    "test_size": (1_000,),
}
"""Of a preset on digits."""

HELD: Axes = {
    **_ON_DIGITS,
    "paradigm": ("soft", "hard", "lvml"),
    "alpha": (0.2, 0.4, 0.6, 0.8, 1.0),
    "budget_unit": ("mosaics",),
    "lr": (0.03,),
    "epochs": (30,),
    "evaluations": (30,),
    "seed": tuple(range(6)),
    "validation_size": (250,),
    "test_size": (250,),
}
"""Of one with attention held on the foreground, as in fixed-focus: claims C7 to C14 need that."""

CIFAR10: Axes = {
    "task": ("cifar10",),
    "n": (10_000,),
    "architecture": ("scripts",),
    "batch_size": (256,),
    "paradigm": PARADIGMS,
    "seed": (0, 1, 2),
    "confirm": fresh(12),
}
"""Of one on CIFAR-10 with the published networks."""
