"""Numbers that the paper prints, to be shown beside measured ones and never mixed with them.

Source: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), Table 1,
"with equal compute time". The paper reports one number a group, without an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from study.door import imported
from study.tasks import modality

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
}
"""Row of mosaics -> paradigm -> (SAIF, accuracy), fractions; chapters have those of others."""


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


@dataclass(frozen=True)
class Published:
    """What the paper printed of comparisons of one modality.

    Attributes:
        sources: task -> the runs behind its rows.
        row: (task, m, architecture) -> the row of Table 1 that matches a comparison.
        paradigms: the paper's, as they are called here.
        differences: (what its cells share, its cells) -> how else they differ from those runs, a
            short phrase each.
    """

    sources: Mapping[str, Source]
    row: Callable[[str, int, str], Row]
    paradigms: tuple[str, ...] = ("hard", "soft", "hybrid", "lvml")
    differences: Callable[[Mapping[str, Any], pd.DataFrame], list[str]] = lambda *_: []


def of(task: str) -> Published:
    """What the paper printed of the modality of a task."""
    found: Published = imported(modality(task).published)
    return found


_OF_SCRIPTS = "the 100 or 150 epochs of the published scripts"

MOSAICS = Published(
    {
        "cifar10": Source("CIFAR-10", 10_000, 100, _OF_SCRIPTS, ("scripts", "paper")),
        "cifar100": Source("CIFAR-100", 50_000, 0, "epochs not stated", ("scripts", "paper")),
    },
    lambda task, m, architecture: Row(task, TABLE_1.get(f"{task.upper()} m={m}", {})),
)


def row_of(task: str, m: int, architecture: str) -> Row:
    """The row of Table 1 that matches a comparison."""
    return of(task).row(task, m, architecture)
