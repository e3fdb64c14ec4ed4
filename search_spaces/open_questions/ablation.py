"""Does the order of the paradigms hold with other networks?"""

from search_spaces.base import By, Preset, SearchSpace, where_usual
from search_spaces.open_questions.held import HELD

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
                **_ONE_AT_A_TIME,
                "focus_width": ("same", 0.25, 4),
                "classifier_width": ("same", 0.25, 4),
                "m": (10,),
                "n": (2_000,),
                "architecture": ("perceptron",),
                "batch_size": (64,),
                "epochs": (40,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.05, 0.15)),
                "switch_point": (0.1, 0.3),
                "seed": (0, 1),
                "confirm": tuple(range(100, 106)),
                "train_metrics_size": (1_000,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
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
                **_ONE_AT_A_TIME,
                "task": ("cifar10",),
                "focus_width": ("same", 0.25, 0.5, 2, 4),
                "classifier_width": ("same", 0.25, 0.5, 2, 4),
                "m": (5,),
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
