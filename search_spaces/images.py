"""Mosaics of images of your own; the foreground is to be named."""

from search_spaces.base import PARADIGMS, By, Preset, SearchSpace, fresh

SPACE = SearchSpace(
    name="images",
    task="images",
    about="mosaics of images of your own: class folders, Parquet (--data-dir, --set foreground)",
    presets={
        "quick": Preset(
            about="a small network on images of 32 x 32 pixels: minutes on two CPU cores",
            axes={
                "m": (5,),
                "n": (2_000,),
                "architecture": ("small",),
                "batch_size": (32,),
                "epochs": (20,),
                "paradigm": PARADIGMS,
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.01, 0.03, 0.06)),
                "switch_point": (0.1, 0.4),
                "seed": (0, 1),
                "confirm": fresh(8),
                "evaluations": (5,),
                "train_metrics_size": (500,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
            },
        ),
        "full": Preset(
            about="the published CIFAR-10 networks, m 5 and 20, 12 fresh seeds; for GPUs",
            axes={
                "m": (5, 20),
                "n": (10_000,),
                "architecture": ("scripts",),
                "batch_size": (256,),
                "epochs": (100,),
                "paradigm": PARADIGMS,
                "lr": (0.002, 0.005, 0.01, 0.02, 0.05, 0.1),
                "switch_point": (0.1, 0.3, 0.5, 0.7, 0.9),
                "seed": (0, 1, 2),
                "confirm": fresh(12),
            },
        ),
    },
)
