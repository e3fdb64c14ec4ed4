"""Ten times the budget: does a paradigm stay what it is when it is trained long?"""

from search_spaces.base import By, Preset, SearchSpace, fresh
from search_spaces.open_questions.usual import CIFAR10, DIGITS

SPACE = SearchSpace(
    name="long",
    task="digits",
    about="ten times the usual budget: does SAIF drift, does accuracy fall, does it over-fit?",
    presets={
        "quick": Preset(
            about="digits for 600 epochs of soft, evaluated at the usual 60, too",
            axes={
                **DIGITS,
                "m": (10,),
                "epochs": (600,),
                # Chosen for the whole budget, so lower than those of `digits`, too.
                "lr": By("paradigm", {"hybrid": (0.03,)}, otherwise=(0.02, 0.1)),
                "switch_point": (0.03, 0.3),
                "confirm": fresh(12),
                "evaluations": (20,),
            },
        ),
        "paper": Preset(
            about="CIFAR-10 with the published networks for 1,000 epochs of soft",
            axes={
                **CIFAR10,
                "m": (5, 20),
                "epochs": (1_000,),
                "lr": (0.002, 0.01, 0.05),
                "switch_point": (0.03, 0.3),
                "evaluations": (20,),
            },
        ),
    },
)
