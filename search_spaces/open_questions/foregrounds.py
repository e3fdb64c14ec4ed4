"""Mosaics of several foreground segments, of the label's class and of others."""

from search_spaces.base import By, Preset, SearchSpace, fresh
from search_spaces.open_questions.usual import CIFAR10, DIGITS, HELD

SPACE = SearchSpace(
    name="foregrounds",
    task="digits",
    about="several foreground segments: 1, 2, 4 of the label's class, without and with one of "
    "another class",
    presets={
        "quick": Preset(
            about="digits: minutes on two CPU cores",
            axes={
                **DIGITS,
                "foregrounds": (1, 2, 4),
                "distractors": (0, 1),
                "m": (12,),
                "epochs": (60,),
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.05, 0.15)),
                "switch_point": (0.1, 0.3),
                "confirm": fresh(8),
            },
        ),
        "held": Preset(
            about="digits, attention held on the foreground: claims C7 to C14",
            axes={**HELD, "foregrounds": (1, 2, 4), "distractors": (0, 1), "m": (12,)},
        ),
        "paper": Preset(
            about="CIFAR-10 with the published networks, 12 fresh seeds",
            axes={
                **CIFAR10,
                "foregrounds": (1, 2, 4),
                "distractors": (0, 1, 2),
                "m": (8, 20),
                "epochs": (100,),
                "lr": (0.005, 0.01, 0.02, 0.05),
                "switch_point": (0.3, 0.6),
            },
        ),
    },
)
