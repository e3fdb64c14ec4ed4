"""Numbers that the paper prints, to be shown beside measured ones and never mixed with them.

Source: "On the Learning Dynamics of Attention Networks" (arXiv 2307.13421, ECAI 2023), Table 1,
"with equal compute time". The paper reports one number a group, without an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.words import instances, number
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


def sources_text(tasks: Iterable[str]) -> str:
    """``15,383 training posts of HateXplain and up to 550 epochs; ...`` of tasks with a row."""
    asked = {*tasks}
    known = {task: source for name in asked for task, source in of(name).sources.items()}
    return "; ".join(
        f"{source.n:,d} training {instances(task)} of {source.name} and {source.epochs_text}"
        for task, source in sorted(known.items())
        if task in asked
    )


def setting_differences(
    settings: Mapping[str, Any], epochs: float, cells: pd.DataFrame
) -> list[str]:
    """How the cells of one comparison differ from the runs behind Table 1.

    Args:
        settings: what they share, as `study.cell.Cell.to_dict` gives it.
        epochs: passes over the training mosaics or posts that a soft cell got; NaN: not known.
        cells: that ran.

    Returns:
        One short phrase a difference; empty where Table 1 has no such task.
    """
    task = settings["task"]
    own = of(task)
    source = own.sources.get(task)
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
    return texts + own.differences(settings, cells)
