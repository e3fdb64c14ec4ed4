"""Does the order of the paradigms hold with other networks?"""

from search_spaces.base import By, Preset, SearchSpace, fresh, where_usual
from search_spaces.open_questions.usual import CIFAR10, DIGITS, HELD

_WIDTHS = {"focus_width": "same", "classifier_width": "same"}

_ONE_AT_A_TIME = {
    "depth": where_usual((0, -1, 1), _WIDTHS),
    "normalisation": where_usual((None, "batch", "layer", "group"), {**_WIDTHS, "depth": 0}),
    "activation": where_usual(
        ("relu", "tanh", "gelu"), {**_WIDTHS, "depth": 0, "normalisation": None}
    ),
}
"""Around the named architecture; the widths of focus and classifier are a full grid."""

SPACE = SearchSpace(
    name="ablation",
    task="digits",
    about="other networks: widths of focus and classifier, depth, normalisation, activation",
    presets={
        "quick": Preset(
            about="digits, widths of 1/4, 1 and 4: 16 networks",
            axes={
                **DIGITS,
                **_ONE_AT_A_TIME,
                "focus_width": ("same", 0.25, 4),
                "classifier_width": ("same", 0.25, 4),
                "m": (10,),
                "epochs": (40,),
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.05, 0.15)),
                "switch_point": (0.1, 0.3),
                "confirm": fresh(6),
            },
        ),
        "held": Preset(
            about="digits, attention held on the foreground: claims C7 to C14",
            axes={
                **_ONE_AT_A_TIME,
                **HELD,
                "classifier_width": ("same", 0.25, 4),
                "m": (10,),
            },
        ),
        "paper": Preset(
            about="CIFAR-10, widths of 1/4 to 4: 32 networks, 12 fresh seeds",
            axes={
                **CIFAR10,
                **_ONE_AT_A_TIME,
                "focus_width": ("same", 0.25, 0.5, 2, 4),
                "classifier_width": ("same", 0.25, 0.5, 2, 4),
                "m": (5,),
                "epochs": (100,),
                "lr": (0.005, 0.01, 0.02, 0.05),
                "switch_point": (0.3, 0.6),
            },
        ),
    },
)
