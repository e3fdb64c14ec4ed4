"""Ten times the budget: does a paradigm stay what it is when it is trained long?"""

from search_spaces.base import By, Preset, SearchSpace

SPACE = SearchSpace(
    name="long",
    task="digits",
    about="ten times the usual budget: does SAIF drift, does accuracy fall, does it over-fit?",
    presets={
        "quick": Preset(
            about="digits for 600 epochs of soft, evaluated at the usual 60, too",
            axes={
                "m": (10,),
                "n": (2_000,),
                "architecture": ("perceptron",),
                "batch_size": (64,),
                "epochs": (600,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                # Chosen for the whole budget, so lower than those of `digits`, too.
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.02, 0.1)),
                "switch_point": (0.03, 0.3),
                "seed": (0, 1),
                "confirm": tuple(range(100, 112)),
                "evaluations": (20,),
                "train_metrics_size": (1_000,),
                "validation_size": (1_000,),
                "test_size": (1_000,),
            },
        ),
        "paper": Preset(
            about="CIFAR-10 with the published networks for 1,000 epochs of soft",
            axes={
                "task": ("cifar10",),
                "m": (5, 20),
                "n": (10_000,),
                "architecture": ("scripts",),
                "batch_size": (256,),
                "epochs": (1_000,),
                "paradigm": ("soft", "hard", "lvml", "hybrid"),
                "lr": (0.002, 0.01, 0.05),
                "switch_point": (0.03, 0.3),
                "seed": (0, 1, 2),
                "confirm": tuple(range(100, 112)),
                "evaluations": (20,),
            },
        ),
    },
)
