"""The studies of texts: HateXplain (A.3), and texts of your own."""

from collections.abc import Mapping

from search_spaces.base import By, Preset, SearchSpace, Values

_RATES = (0.5, 0.3, 0.1, 0.05, 0.01)
_TEXTS: Mapping[str, Values] = {
    "m": (64,),
    "n": ("all",),
    "architecture": ("embedding", "self-attention"),
    "paradigm": ("soft", "hard", "lvml", "hybrid"),
    "validation_size": ("all",),
    "test_size": ("all",),
}
_TRY_OUT: Mapping[str, Values] = {
    "switch_point": (0.4,),
    "seed": (0, 1),
    "confirm": tuple(range(100, 108)),
    "evaluations": (5,),
    "train_metrics_size": (1_000,),
}
_POSTS: Mapping[str, Values | By] = {
    **_TEXTS,
    "batch_size": (256,),
    "epochs": (550,),  # our choice: the most in the published scripts; the paper names none
    "lr": By("paradigm", {"hybrid": (0.1,)}, otherwise=_RATES),
    "hard_lr": (0.01,),
    "switch_point": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "seed": (0, 1, 2),
    "confirm": tuple(range(100, 112)),
    "train_metrics_size": (2_000,),
}

HATEXPLAIN = SearchSpace(
    name="hatexplain",
    task="hatexplain",
    about="posts with rationales: the segments are words, in two models (section 5, A.3)",
    presets={
        "quick": Preset(
            about="few epochs of small batches: a try-out, no reproduction of the paper",
            axes={
                **_POSTS,
                "min_count": (3,),
                "batch_size": (64,),
                "epochs": (2,),
                "lr": (0.03, 0.1),
                "hard_lr": ("same",),
                **_TRY_OUT,
            },
        ),
        "paper": Preset(
            about="the published rates, our 550 epochs, 12 fresh seeds: compare with Table 1",
            axes=_POSTS,
        ),
        "scripts": Preset(
            about="as paper, with labels, rationales, lvml and inference of the published scripts",
            axes={
                **_POSTS,
                "label_rule": ("first",),
                "rationale_rule": ("first",),
                "paradigm": ("soft", "hard", "lvml-logits", "hybrid"),
                "inference": ("soft",),
            },
        ),
    },
)

TEXTS = SearchSpace(
    name="texts",
    task="texts",
    about="texts of your own or of the Hub (--data-dir), with or without rationales",
    presets={
        "quick": Preset(
            about="10 epochs of small batches: minutes on two CPU cores for 2,000 texts",
            axes={
                **_TEXTS,
                "batch_size": (32,),
                "epochs": (10,),
                "lr": (0.01, 0.03, 0.1),
                **_TRY_OUT,
            },
        ),
        "full": Preset(
            about="a wider grid for 100 epochs, 12 fresh seeds",
            axes={
                **_TEXTS,
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
