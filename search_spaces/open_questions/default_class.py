"""Is what one paradigm is better by more than one class, answered by default?"""

from search_spaces.base import By, Preset, SearchSpace, fresh
from search_spaces.open_questions.usual import DIGITS

SPACE = SearchSpace(
    name="default-class",
    task="digits",
    about="does a lead rest on one class? Pairs and triples of foreground digits",
    presets={
        "quick": Preset(
            about="minutes on two CPU cores",
            axes={
                **DIGITS,
                # The pairs in the usual foreground, and triples that share little with it.
                "foreground": ("3+5", "3+8", "5+8", "3+5+8", "1+4+6", "0+2+9", "2+4+7"),
                "m": (10,),
                "epochs": (60,),
                "paradigm": ("soft", "hard", "lvml"),
                "lr": By(
                    "paradigm",
                    {"soft": (0.01, 0.05, 0.2), "hard": (0.03, 0.1, 0.3)},
                    otherwise=(0.05, 0.15, 0.4),
                ),
                "confirm": fresh(12),
            },
        ),
    },
)
