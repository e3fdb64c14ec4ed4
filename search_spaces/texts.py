"""Texts of your own: the segments are words, the foreground the words of the rationale."""

from collections.abc import Mapping

from search_spaces.base import Preset, SearchSpace, Values

_COMMON: Mapping[str, Values] = {
    "m": (64,),
    "n": ("all",),
    "architecture": ("embedding", "self-attention"),
    "paradigm": ("soft", "hard", "lvml", "hybrid"),
    "validation_size": ("all",),
    "test_size": ("all",),
}

SPACE = SearchSpace(
    name="texts",
    task="texts",
    about="texts of your own or of the Hub (--data-dir), with or without rationales",
    presets={
        "quick": Preset(
            about="10 epochs of small batches: minutes on two CPU cores for 2,000 texts",
            axes={
                **_COMMON,
                "batch_size": (32,),
                "epochs": (10,),
                "lr": (0.01, 0.03, 0.1),
                "switch_point": (0.4,),
                "seed": (0, 1),
                "confirm": tuple(range(100, 108)),
                "evaluations": (5,),
                "train_metrics_size": (1_000,),
            },
        ),
        "full": Preset(
            about="a wider grid for 100 epochs, 12 fresh seeds",
            axes={
                **_COMMON,
                "batch_size": (64,),
                "epochs": (100,),
                "lr": (0.01, 0.03, 0.1, 0.3),
                "switch_point": (0.1, 0.3, 0.5, 0.7, 0.9),
                "seed": (0, 1, 2),
                "confirm": tuple(range(100, 112)),
                "train_metrics_size": (2_000,),
            },
        ),
    },
)
