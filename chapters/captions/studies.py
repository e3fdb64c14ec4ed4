"""MSCOCO: captions whose decoder attends anew to the image for every word (section 5, A.4)."""

from collections.abc import Mapping

from search_spaces.base import By, Preset, SearchSpace, Values

_HYBRIDS = ("hybrid-running", "hybrid-sampled")
_FROM_SOFT = ("soft", *_HYBRIDS)
_PAPER: Mapping[str, Values | By] = {
    "m": (196,),
    "n": ("all",),
    "architecture": ("show-attend-tell",),
    "encoder": ("vgg19",),
    "encoder_lr": (1e-5,),
    "batch_size": (32,),
    "epochs": (25,),
    "paradigm": ("soft", "hard-running", "hybrid-running", "hard-sampled", "hybrid-sampled"),
    "lr": By("paradigm", dict.fromkeys(_FROM_SOFT, (1e-3,)), otherwise=(1e-4,)),
    "hard_lr": (1e-4,),
    "drop_at": By("paradigm", dict.fromkeys(_FROM_SOFT, (0.24,)), otherwise=(0.4,)),
    "hard_drop_at": (0.4,),
    "teacher_forcing": By("paradigm", dict.fromkeys(_FROM_SOFT, (1.0,)), otherwise=(0.7,)),
    "hard_teacher_forcing": (0.7,),
    "switch_point": (0.5,),
    "seed": (0, 1, 2),
    "confirm": tuple(range(100, 112)),
    "train_metrics_size": (2_000,),
    "validation_size": ("all",),
    "test_size": ("all",),
}

MSCOCO = SearchSpace(
    name="mscoco",
    task="mscoco",
    about="captions of MSCOCO: attention to regions of the image, word by word (section 5, A.4)",
    presets={
        "quick": Preset(
            about="a small decoder on a frozen encoder that ships in a package: a try-out",
            axes={
                **_PAPER,
                "m": (49,),
                "encoder": ("lite0",),
                "encoder_lr": (None,),
                "min_count": (2,),
                "embedding": (128,),
                "attention": (64,),
                "hidden": (128,),
                "batch_size": (16,),
                "epochs": (10,),
                "paradigm": ("soft", "hard-sampled", "hybrid-sampled"),
                "lr": (0.001, 0.003, 0.01),
                "hard_lr": ("same",),
                "drop_at": (None,),
                "hard_drop_at": ("same",),
                "teacher_forcing": (1.0,),
                "hard_teacher_forcing": ("same",),
                "seed": (0, 1),
                "evaluations": (4,),
                "train_metrics_size": (100,),
            },
        ),
        "paper": Preset(
            about="the schedule of A.4, 12 fresh seeds, on GPUs: compare with Table 1",
            axes=_PAPER,
        ),
    },
)
