"""CIFAR-100 mosaics: the 50 animal and people classes are foreground (scripts, A.2)."""

from search_spaces.base import PARADIGMS, By, Preset, SearchSpace, fresh

_SOFT_RATES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_HARD_RATES = (0.0005, 0.001, 0.002, 0.005, 0.007, 0.01, 0.02, 0.05, 0.1, 0.2)
_LVML_RATES = (0.0005, 0.001, 0.002, 0.004, 0.01, 0.02, 0.05, 0.1, 0.2)

SPACE = SearchSpace(
    name="cifar100",
    task="cifar100",
    about="CIFAR-100 mosaics (foreground: the 50 animal and people classes)",
    presets={
        "quick": Preset(
            about="a small network and few mosaics: a try-out, no reproduction of the paper",
            axes={
                "m": (5,),
                "n": (10_000,),
                "architecture": ("small",),
                "batch_size": (32,),
                "epochs": (8,),
                "paradigm": PARADIGMS,
                "lr": (0.01, 0.03),
                "switch_point": (0.4,),
                "seed": (0, 1),
                "confirm": fresh(6),
                "evaluations": (5,),
                "train_metrics_size": (1_000,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
            },
        ),
        "paper": Preset(
            about="the published rates, our 100 epochs, 12 fresh seeds: compare with Table 1",
            axes={
                "m": (5, 20),
                "n": (50_000,),
                "architecture": ("scripts",),
                "batch_size": (256,),
                "epochs": (100,),
                "paradigm": PARADIGMS,
                "lr": By(
                    "paradigm",
                    {
                        "soft": _SOFT_RATES,
                        "lvml": _LVML_RATES,
                        "hybrid": (0.0025, 0.005, 0.01),
                    },
                    otherwise=_HARD_RATES,
                ),
                # Half, one and two times the paper's choice for hard: .001 at m=5, .007 at m=20.
                "hard_lr": By(
                    "m",
                    {5: (0.0005, 0.001, 0.002), 20: (0.0035, 0.007, 0.014)},
                    otherwise=(0.0005, 0.001, 0.002),
                ),
                "switch_point": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
                "seed": (0, 1, 2),
                "confirm": fresh(12),
            },
        ),
    },
)
