"""Mosaics of scikit-learn's 8 x 8 digits: three are foreground, the rest is background."""

from search_spaces.base import PARADIGMS, By, Preset, SearchSpace, fresh

SPACE = SearchSpace(
    name="digits",
    task="digits",
    about="mosaics of bundled 8 x 8 digits; needs no download",
    presets={
        "quick": Preset(
            about="minutes on two CPU cores",
            axes={
                # Of 3, 5 and 8, the usual ones, a lead is nearly all one class, the 8
                # (docs/open-questions.md); of these, less so.
                "foreground": ("2+4+7",),
                "m": (10,),
                "n": (2_000,),
                "architecture": ("perceptron",),
                "batch_size": (64,),
                "epochs": (60,),
                "paradigm": PARADIGMS,
                # Wide enough that the best option of nearly any two seeds lies inside.
                "lr": By(
                    "paradigm",
                    {
                        "soft": (0.003, 0.01, 0.05),
                        "hard": (0.003, 0.01, 0.1),
                        "lvml": (0.05, 0.15, 0.4),
                    },
                    otherwise=(0.003, 0.03, 0.3),
                ),
                "switch_point": (0.05, 0.3, 0.95),
                "seed": (0, 1),
                "confirm": fresh(12),
                "train_metrics_size": (1_000,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
            },
        ),
        "paper": Preset(
            about="the grid of the CIFAR-10 study on digits, 12 fresh seeds",
            axes={
                "foreground": ("2+4+7",),
                "m": (5, 20),
                "n": (10_000,),
                "architecture": ("perceptron",),
                "batch_size": (256,),
                "epochs": (100,),
                "paradigm": PARADIGMS,
                "lr": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
                "switch_point": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "seed": (0, 1, 2),
                "confirm": fresh(12),
            },
        ),
    },
)
