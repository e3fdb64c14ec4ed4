"""The linear orthogonal setting (section 4): linear models whose trajectory theory gives.

Learning rate times steps is the time of the gradient flow. There are enough mosaics for the loss
to be near its expectation, and momentum is off, so that a cell follows Theorem 2.
"""

from collections.abc import Mapping

from search_spaces.base import By, Preset, SearchSpace, Values

_COMMON: Mapping[str, Values | By] = {
    "architecture": ("linear",),
    "batch_size": (250,),
    "momentum": (0.0,),
    "paradigm": ("soft", "hard", "lvml"),
    "budget_unit": ("mosaics",),
    "train_metrics_size": (2_000,),
    "validation_size": (250,),
    "test_size": (250,),
}

SPACE = SearchSpace(
    name="linear-orthogonal",
    task="linear-orthogonal",
    about="linear models on orthogonal vectors beside their closed form (section 4)",
    presets={
        "quick": Preset(
            about="the smaller setting of figure 4; theory alone shows the larger one",
            axes={
                **_COMMON,
                "m": (20,),
                "num_classes": (20,),
                "n": (20_000,),
                "lr": (2.0,),
                "epochs": (12.5,),
                "evaluations": (25,),
                "seed": tuple(range(6)),
            },
        ),
        "paper": Preset(
            about="the two settings of figure 4, 12 seeds, and a small one",
            axes={
                **_COMMON,
                "m": (5, 20, 100),
                "num_classes": By("m", {5: (3,), 100: (1_000,)}, otherwise=(20,)),
                "n": By("m", {100: (50_000,)}, otherwise=(20_000,)),
                "lr": By("m", {5: (0.1,), 100: (20.0,)}, otherwise=(1.0,)),
                "epochs": (100,),
                "evaluations": (100,),
                "seed": tuple(range(12)),
            },
        ),
    },
)
