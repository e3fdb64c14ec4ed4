"""How cost and quality of every paradigm change with the number of segments, m = 4 to 4,096."""

from search_spaces.base import By, Preset, SearchSpace, fresh
from search_spaces.open_questions.usual import HELD

_POWERS_OF_FOUR = (4, 16, 64, 256, 1_024, 4_096)
_PARADIGMS = (
    "soft", "hard", "hard-sampled", "lvml", "lvml-sampled", "hybrid", "hybrid-sampled",
)  # fmt: skip
_FEW = {1_024: (200,), 4_096: (200,)}
"""Inputs of an evaluation, where they take longer than their training."""

SPACE = SearchSpace(
    name="scaling",
    task="digits",
    about="4 to 4,096 segments, with paradigms that see all of them or some samples",
    presets={
        "quick": Preset(
            about="digits at one learning rate: fewer epochs where a mosaic is large",
            axes={
                "m": _POWERS_OF_FOUR,
                "n": (2_000,),
                "architecture": ("perceptron",),
                "batch_size": (32,),
                "epochs": By("m", {1_024: (0.5,), 4_096: (0.25,)}, otherwise=(60,)),
                "paradigm": _PARADIGMS,
                "lr": (0.03,),
                "switch_point": (0.3,),
                "seed": (0,),
                "confirm": fresh(6),
                "evaluations": By("m", {1_024: (2,), 4_096: (2,)}, otherwise=(5,)),
                "train_metrics_size": By("m", _FEW, otherwise=(500,)),
                "validation_size": By("m", _FEW, otherwise=(500,)),
                "test_size": By("m", _FEW, otherwise=(1_000,)),
            },
        ),
        "held": Preset(
            about="digits, attention held on the foreground: claims C7 to C14",
            axes={**HELD, "m": (4, 16, 64)},
        ),
        "plateau": Preset(
            about="digits at one learning rate, evaluated often: how much sooner lvml learns",
            axes={
                "foreground": ("3+5", "3+5+8", "3+5+8+9+0+2"),
                "background": ("1+4+6+7",),
                "m": (5, 20, 80),
                "n": (2_000,),
                "architecture": ("perceptron",),
                "batch_size": (32,),
                "budget_unit": ("mosaics",),
                "epochs": By("m", {80: (30,)}, otherwise=(20,)),
                "paradigm": ("soft", "hard", "lvml"),
                "lr": (0.01,),
                "seed": tuple(range(6)),
                "evaluations": (40,),
                "train_metrics_size": (500,),
                "validation_size": (100,),
                "test_size": (100,),
            },
        ),
        "paper": Preset(
            about="CIFAR-10 with the published networks, 12 fresh seeds; for GPUs",
            axes={
                "task": ("cifar10",),
                "m": _POWERS_OF_FOUR,
                "n": (10_000,),
                "architecture": ("scripts",),
                "batch_size": (64,),
                "epochs": (100,),
                "paradigm": _PARADIGMS,
                "lr": (0.005, 0.01, 0.02),
                "switch_point": (0.3, 0.6),
                "seed": (0, 1, 2),
                "confirm": fresh(12),
            },
        ),
    },
)
