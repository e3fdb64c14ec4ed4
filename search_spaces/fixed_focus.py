"""Fixed focus (section 3, figures 2 and 3): attention is held at alpha, the classifier trains."""

from collections.abc import Mapping

from search_spaces.base import By, Preset, SearchSpace, Values

_ALPHAS = (0.2, 0.4, 0.6, 0.8, 1.0)
_LINEAR = "linear-orthogonal"
_PAPER: Mapping[str, Values | By] = {
    "task": ("cifar10", "cifar100", _LINEAR),
    "alpha": _ALPHAS,
    "m": By("task", {_LINEAR: (20,)}, otherwise=(5,)),
    "num_classes": By("task", {_LINEAR: (20,)}, otherwise=(None,)),
    "n": By("task", {_LINEAR: (5_000,)}, otherwise=(10_000,)),
    "architecture": By("task", {_LINEAR: ("linear",), "digits": ("perceptron",)}, ("scripts",)),
    "batch_size": (256,),
    "momentum": By("task", {_LINEAR: (0.0,)}, otherwise=(0.9,)),
    "paradigm": ("soft", "hard", "lvml"),
    "budget_unit": ("mosaics",),
    "epochs": (100,),
    "evaluations": (100,),
    "seed": tuple(range(12)),
    "train_metrics_size": (10_000,),
    "validation_size": (2_000,),
    "test_size": (2_000,),
}

SPACE = SearchSpace(
    name="fixed-focus",
    task="digits",
    about="losses and incentives where attention is held at alpha (section 3)",
    needs=("alpha",),
    presets={
        "quick": Preset(
            about="digits and the linear orthogonal setting; no reproduction of the paper",
            axes={
                **_PAPER,
                "task": ("digits", _LINEAR),
                "architecture": By(
                    "task", {_LINEAR: ("linear",), "digits": ("perceptron",)}, ("small",)
                ),
                "n": By("task", {_LINEAR: (10_000,), "digits": (2_000,)}, otherwise=(1_000,)),
                "batch_size": By("task", {_LINEAR: (250,), "digits": (64,)}, otherwise=(32,)),
                "lr": By("task", {_LINEAR: (2.0,)}, otherwise=(0.03,)),
                "epochs": By("task", {_LINEAR: (25,), "digits": (30,)}, otherwise=(15,)),
                "evaluations": By("task", {_LINEAR: (25,), "digits": (30,)}, otherwise=(15,)),
                "seed": tuple(range(6)),
                "train_metrics_size": (1_000,),
                "validation_size": (250,),
                "test_size": (250,),
            },
        ),
        "paper": Preset(
            about="100 epochs and learning rate of the published scripts, 12 seeds",
            axes={**_PAPER, "lr": By("task", {_LINEAR: (1.0,)}, otherwise=(0.004,))},
        ),
        "tuned": Preset(
            about="as paper, with the learning rates that A.2 chose for each paradigm",
            axes={
                **_PAPER,
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
