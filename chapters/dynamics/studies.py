"""The studies of learning dynamics.

Fixed focus (section 3, figures 2 and 3): attention is held at alpha, the classifier trains.

The linear orthogonal setting (section 4): linear models whose trajectory theory gives. Learning
rate times steps is the time of the gradient flow. There are enough mosaics for the loss to be near
its expectation, and momentum is off, so that a cell follows Theorem 2.
"""

from collections.abc import Mapping
from typing import Any

from search_spaces.base import By, Preset, SearchSpace, Values

_ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
_LINEAR = "linear-orthogonal"


def _by_task(linear: Any, others: Any, digits: Any = None) -> By:
    """One value for the linear orthogonal setting and one for all others, maybe but digits."""
    of_digits = {} if digits is None else {"digits": (digits,)}
    return By("task", {_LINEAR: (linear,), **of_digits}, (others,))


_FIXED: Mapping[str, Values | By] = {
    "task": ("cifar10", "cifar100", _LINEAR),
    "alpha": _ALPHAS,
    "m": _by_task(20, 5),
    "num_classes": _by_task(20, None),
    "n": _by_task(5_000, 10_000),
    "architecture": _by_task("linear", "scripts", digits="perceptron"),
    "batch_size": (256,),
    "momentum": _by_task(0.0, 0.9),
    "paradigm": ("soft", "hard", "lvml"),
    "budget_unit": ("mosaics",),
    "epochs": (100,),
    "evaluations": (100,),
    "seed": tuple(range(12)),
    "train_metrics_size": (10_000,),
    "validation_size": (2_000,),
    "test_size": (2_000,),
}

FIXED_FOCUS = SearchSpace(
    name="fixed-focus",
    task="digits",
    about="losses and incentives where attention is held at alpha (section 3)",
    needs=("alpha",),
    presets={
        "quick": Preset(
            about="digits and the linear orthogonal setting; no reproduction of the paper",
            axes={
                **_FIXED,
                "task": ("digits", _LINEAR),
                "architecture": _by_task("linear", "small", digits="perceptron"),
                "n": _by_task(10_000, 1_000, digits=2_000),
                "batch_size": _by_task(250, 32, digits=64),
                "lr": _by_task(2.0, 0.03),
                "epochs": _by_task(25, 15, digits=30),
                "evaluations": _by_task(25, 15, digits=30),
                "seed": tuple(range(6)),
                "train_metrics_size": (1_000,),
                "validation_size": (250,),
                "test_size": (250,),
            },
        ),
        "paper": Preset(
            about="100 epochs and learning rate of the published scripts, 12 seeds",
            axes={**_FIXED, "lr": _by_task(1.0, 0.004)},
        ),
        "tuned": Preset(
            about="as paper, with the learning rates that A.2 chose for each paradigm",
            axes={
                **_FIXED,
                "lr": By(
                    "task",
                    {
                        "cifar10": By("paradigm", {"hard": (0.005,)}, otherwise=(0.01,)),
                        "cifar100": By(
                            "paradigm", {"soft": (0.005,), "hard": (0.001,)}, otherwise=(0.01,)
                        ),
                        _LINEAR: (1.0,),
                    },
                    otherwise=By("paradigm", {"soft": (0.03,), "hard": (0.01,)}, (0.1,)),
                ),
            },
        ),
    },
)

_WHOLE_MODELS: Mapping[str, Values | By] = {
    "architecture": ("linear",),
    "batch_size": (250,),
    "momentum": (0.0,),
    "paradigm": ("soft", "hard", "lvml"),
    "budget_unit": ("mosaics",),
    "train_metrics_size": (2_000,),
    "validation_size": (250,),
    "test_size": (250,),
}

LINEAR_ORTHOGONAL = SearchSpace(
    name="linear-orthogonal",
    task="linear-orthogonal",
    about="linear models on orthogonal vectors beside their closed form (section 4)",
    presets={
        "quick": Preset(
            about="the smaller setting of figure 4; theory alone shows the larger one",
            axes={
                **_WHOLE_MODELS,
                "m": (20,),
                "num_classes": (20,),
                "n": (20_000,),
                "lr": (2.0,),
                "epochs": (12.5,),
                "evaluations": (25,),
                "seed": tuple(range(6)),
            },
        ),
        "paper": Preset(
            about="the two settings of figure 4, 12 seeds, and a small one",
            axes={
                **_WHOLE_MODELS,
                "m": (5, 20, 100),
                "num_classes": By("m", {5: (3,), 100: (1_000,)}, otherwise=(20,)),
                "n": By("m", {100: (50_000,)}, otherwise=(20_000,)),
                "lr": By("m", {5: (0.1,), 100: (20.0,)}, otherwise=(1.0,)),
                "epochs": (100,),
                "evaluations": (100,),
                "seed": tuple(range(12)),
            },
        ),
    },
)
