"""Attention held on the foreground, as in fixed-focus: what claims C7 to C14 are judged on."""

from collections.abc import Mapping

from search_spaces.base import By, Values

HELD: Mapping[str, Values | By] = {
    "paradigm": ("soft", "hard", "lvml"),
    "alpha": (0.2, 0.4, 0.6, 0.8, 1.0),
    "budget_unit": ("mosaics",),
    "n": (2_000,),
    "architecture": ("perceptron",),
    "batch_size": (64,),
    "lr": (0.03,),
    "epochs": (30,),
    "evaluations": (30,),
    "seed": tuple(range(6)),
    "train_metrics_size": (1_000,),
    "validation_size": (250,),
    "test_size": (250,),
}
"""Axes of a preset on digits."""
