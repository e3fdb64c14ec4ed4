"""Mosaics of windows of time series, such as the bundled JapaneseVowels, or data of your own."""

from search_spaces.base import By, Preset, SearchSpace

SERIES = SearchSpace(
    name="series",
    task="series",
    about="mosaics of windows of time series, bundled or your own .ts files (1-D convolutions)",
    presets={
        "quick": Preset(
            about="minutes on two CPU cores",
            axes={
                "m": (10,),
                "n": (2_000,),
                "architecture": ("conv1d",),
                "batch_size": (64,),
                "epochs": (20,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                # Above these, soft and lvml fail on some seeds.
                "lr": By("paradigm", {"lvml": (0.02, 0.05, 0.1)}, otherwise=(0.01, 0.02, 0.04)),
                "switch_point": (0.05, 0.3, 0.95),
                "seed": (0, 1),
                "confirm": tuple(range(100, 112)),
                "train_metrics_size": (1_000,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
            },
        ),
        "full": Preset(
            about="m 5 and 20, a wider grid, 12 fresh seeds",
            axes={
                "m": (5, 20),
                "n": (10_000,),
                "architecture": ("conv1d",),
                "batch_size": (256,),
                "epochs": (100,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                "lr": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
                "switch_point": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "seed": (0, 1, 2),
                "confirm": tuple(range(100, 112)),
                "train_metrics_size": (2_000,),
                "validation_size": (2_000,),
                "test_size": (10_000,),
            },
        ),
    },
)
