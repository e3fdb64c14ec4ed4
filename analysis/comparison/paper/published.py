"""Numbers that the paper prints, to be shown beside measured ones and never mixed with them.

Source: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), Table 1,
"with equal compute time". The paper reports one number a group, without an interval.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.words import instances, is_text, number
from study.tasks import CAPTIONS, modality

TABLE_1: dict[str, dict[str, tuple[float, float]]] = {
    "CIFAR10 m=5": {
        "hard": (0.378, 0.633),
        "soft": (0.371, 0.753),
        "hybrid": (0.590, 0.766),
        "lvml": (0.620, 0.779),
    },
    "CIFAR10 m=20": {
        "hard": (0.019, 0.421),
        "soft": (0.238, 0.652),
        "hybrid": (0.382, 0.660),
        "lvml": (0.472, 0.710),
    },
    "CIFAR100 m=5": {
        "hard": (0.136, 0.466),
        "soft": (0.792, 0.832),
        "hybrid": (0.832, 0.800),
        "lvml": (0.775, 0.797),
    },
    "CIFAR100 m=20": {
        "hard": (0.017, 0.082),
        "soft": (0.670, 0.722),
        "hybrid": (0.668, 0.710),
        "lvml": (0.665, 0.690),
    },
    "HateXplain-1": {
        "hard": (0.027, 0.543),
        "soft": (0.046, 0.516),
        "hybrid": (0.216, 0.546),
        "lvml": (0.226, 0.546),
    },
    "HateXplain-2": {
        "hard": (0.234, 0.498),
        "soft": (0.092, 0.4963),
        "hybrid": (0.246, 0.490),
        "lvml": (0.192, 0.447),
    },
    "MSCOCO": {
        "hard-running": (0.111, 0.104),
        "soft": (0.232, 0.209),
        "hybrid-running": (0.242, 0.204),
    },
}
"""Row -> paradigm -> (SAIF, accuracy), fractions; of captions (SAIF, Bleu-4).

Hard attention on captions is sampled with a running baseline in the authors' script, also as the
second phase of the hybrid."""

_PARADIGMS = ("hard", "soft", "hybrid", "lvml")

MODELS = {"embedding": 1, "self-attention": 2}
"""Architecture on HateXplain -> which of the paper's two models it is."""


@dataclass(frozen=True)
class Row:
    """The row of Table 1 that matches a comparison.

    Attributes:
        label: of the comparison, in the layout of Table 1: ``cifar10``; of text with the number
            of the paper's model, ``hatexplain (1, embedding)``.
        scores: paradigm -> (SAIF, accuracy), fractions; empty where Table 1 has no such row.
    """

    label: str
    scores: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Source:
    """The runs behind the rows of a task.

    Attributes:
        name: name of the data.
        n: training mosaics, posts or captions.
        epochs: the least that the authors' scripts have of mosaics (the paper names none), the
            most of text; 0: not known.
        epochs_text: the same in words.
        architectures: those of the authors' scripts, and those that the appendix describes.
        batch: None: it is not stated.
    """

    name: str
    n: int
    epochs: int
    epochs_text: str
    architectures: tuple[str, ...]
    batch: int | None = 256


_OF_SCRIPTS = "the 100 or 150 epochs of the published scripts"
SOURCES = {
    "cifar10": Source("CIFAR-10", 10_000, 100, _OF_SCRIPTS, ("scripts", "paper")),
    "cifar100": Source("CIFAR-100", 50_000, 0, "epochs not stated", ("scripts", "paper")),
    "hatexplain": Source("HateXplain", 15_383, 550, "up to 550 epochs", tuple(MODELS)),
    "mscoco": Source(
        name="the 82,783 training images of MSCOCO 2014",
        n=414_113,
        epochs=25,
        epochs_text="25 epochs",
        architectures=("show-attend-tell",),
        batch=None,
    ),
}
"""By task."""

_VOCABULARY = 28_041
_TEST_POSTS = 1_924
_WORDS = 50
"""Of a post; few are longer (docs/hatexplain.md)."""
_REGIONS = 196
_LEAST_COUNT = 5


def paradigms_of(task: str) -> tuple[str, ...]:
    """The paper's paradigms as they are called here; of captions those of its row."""
    return tuple(TABLE_1["MSCOCO"]) if modality(task) is CAPTIONS else _PARADIGMS


def published(task: str, m: int, architecture: str) -> Row:
    """The row of Table 1 for a comparison; of text it is told by the architecture, at any m.

    That of captions is at any m, too.

    The scripts average the logits of a text where the paper's formula averages probabilities, so
    the number of lvml stands for `lvml-logits`, too.
    """
    if modality(task) is CAPTIONS:
        return Row(task, TABLE_1.get(task.upper(), {}))
    if not is_text(task):
        return Row(task, TABLE_1.get(f"{task.upper()} m={m}", {}))
    model = MODELS.get(architecture)
    if model is None:
        return Row(f"{task} ({architecture})", {})
    scores = TABLE_1[f"HateXplain-{model}"]
    return Row(f"{task} ({model}, {architecture})", scores | {"lvml-logits": scores["lvml"]})


def sources_text(tasks: Iterable[str]) -> str:
    """``15,383 training posts of HateXplain and up to 550 epochs; ...`` of tasks with a row."""
    asked = set(tasks)
    return "; ".join(
        f"{source.n:,d} training {instances(task)} of {source.name} and {source.epochs_text}"
        for task, source in SOURCES.items()
        if task in asked
    )


def setting_differences(
    settings: Mapping[str, Any], epochs: float, paradigms: Collection[str], frozen: bool = False
) -> list[str]:
    """How the cells of one comparison differ from the runs behind Table 1.

    Args:
        settings: what they share, as `study.cell.Cell.to_dict` gives it.
        epochs: passes over the training mosaics or posts that a soft cell got; NaN: not known.
        paradigms: paradigms that ran.
        frozen: of captions, whether the encoder is not trained.

    Returns:
        One short phrase a difference; empty where Table 1 has no such task.
    """
    task = settings["task"]
    source = SOURCES.get(task)
    if source is None:
        return []
    texts = []
    if settings["n"] != source.n:
        texts.append(f"n={settings['n']:,d} training {instances(task)}, not {source.n:,d}")
    # A training step never ends exactly on the target.
    if not math.isnan(epochs) and round(epochs) < source.epochs:
        texts.append(f"the compute of {number(epochs)} epochs of soft, not {source.epochs_text}")
    if settings["architecture"] not in source.architectures:
        texts.append(f"the network {settings['architecture']!r}, not the paper's")
    if settings.get("width", 1) != 1:
        texts.append(f"its hidden layers {settings['width']:g} times as wide")
    if source.batch and settings["batch_size"] != source.batch:
        texts.append(f"batch {settings['batch_size']}, not {source.batch}")
    if (precision := settings.get("precision", "float32")) != "float32":
        texts.append(f"networks in {precision}")
    if modality(task) is CAPTIONS:
        return texts + _of_captions(settings, frozen)
    return texts + (_of_text(settings, paradigms) if is_text(task) else [])


def _of_captions(settings: Mapping[str, Any], frozen: bool) -> list[str]:
    texts = []
    if settings["m"] != _REGIONS:
        texts.append(f"{settings['m']} regions an image, not {_REGIONS}")
    if (encoder := settings.get("encoder", "vgg19")) != "vgg19":
        texts.append(f"the encoder {encoder!r}, not VGG19")
    if frozen:
        texts.append("a frozen encoder, not one trained at 1e-5")
    if (least := settings.get("min_count", _LEAST_COUNT)) != _LEAST_COUNT:
        texts.append(f"a vocabulary of words seen {least} times or more, not {_LEAST_COUNT}")
    if settings.get("decoder", {}).get("beam", 1) > 1:
        texts.append(f"beam search over {settings['decoder']['beam']} captions, not the best word")
    return [
        *texts,
        f"{settings['test_size']:,d} test captions of half of the validation images (the "
        "other half chose the options), not all of val2014",
    ]


def _of_text(settings: Mapping[str, Any], paradigms: Collection[str]) -> list[str]:
    texts = []
    if settings["m"] < _WORDS:
        texts.append(f"posts cut at {settings['m']} words")
    if settings["test_size"] < _TEST_POSTS:
        texts.append(f"{settings['test_size']:,d} test posts, not {_TEST_POSTS:,d}")
    if settings.get("label_rule") != "first":
        texts.append("labels by majority, not the first annotator's")
    if (rule := settings.get("rationale_rule")) != "first":
        texts.append(f"rationales by {rule}, not the first annotator's")
    least = settings.get("min_count", 1)
    often = f" that occur {least} times or more" if least > 1 else ""
    texts.append(
        f"a vocabulary of the words{often} in the training split, not of all {_VOCABULARY:,d} in "
        "all splits"
    )
    if (inference := settings.get("inference")) != "soft":
        whose = f"{inference}'s inference" if inference else "each paradigm's own inference"
        texts.append(f"{whose}, not soft's for all")
    if "lvml" in paradigms:
        also = " (lvml-logits does that)" if "lvml-logits" in paradigms else ""
        texts.append(f"lvml by averaged probabilities, not by averaged logits{also}")
    return texts
