"""Mosaics of several foreground segments, of the label's class and of others."""

from search_spaces.base import By, Preset, SearchSpace
from search_spaces.open_questions.held import HELD

SPACE = SearchSpace(
    name="foregrounds",
    task="digits",
    about="several foreground segments: 1, 2, 4 of the label's class, without and with one of "
    "another class",
    presets={
        "quick": Preset(
            about="digits: minutes on two CPU cores",
            axes={
                "foregrounds": (1, 2, 4),
                "distractors": (0, 1),
                "m": (12,),
                "n": (2_000,),
                "architecture": ("perceptron",),
                "batch_size": (64,),
                "epochs": (60,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.05, 0.15)),
                "switch_point": (0.1, 0.3),
                "seed": (0, 1),
                "confirm": tuple(range(100, 108)),
                "train_metrics_size": (1_000,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
            },
        ),
        "held": Preset(
            about="digits, attention held on the foreground: claims C7 to C14",
            axes={**HELD, "foregrounds": (1, 2, 4), "distractors": (0, 1), "m": (12,)},
        ),
        "paper": Preset(
            about="CIFAR-10 with the published networks, 12 fresh seeds",
            axes={
                "task": ("cifar10",),
                "foregrounds": (1, 2, 4),
                "distractors": (0, 1, 2),
                "m": (8, 20),
                "n": (10_000,),
                "architecture": ("scripts",),
                "batch_size": (256,),
                "epochs": (100,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                "lr": (0.005, 0.01, 0.02, 0.05),
                "switch_point": (0.3, 0.6),
                "seed": (0, 1, 2),
                "confirm": tuple(range(100, 112)),
            },
        ),
    },
)
