"""The measures of a comparison: a row each, from which choice, tests, tables and words follow.

A modality has further ones (`study.tasks.task.Modality.measures`), recorded runs those of their
own.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from study import tasks

METRICS = ("saif", "accuracy")
"""The two columns by which paradigms are compared; recorded runs may have others."""


@dataclass(frozen=True)
class Measure:
    """A column of the evaluations.

    Attributes:
        column: its name there.
        name: for people.
        is_share: whether it is a fraction, which people read in per cent.
        bounded: whether it is in [0, 1].
        bits: what is recorded of each instance, whose mean it is (`analysis.digest.scores.flags`);
            empty: nothing.
        larger_is_better: whether a paradigm is better that has more of it.
        guess: what a guess gives, as which a diverged cell counts; NaN: it is not known.
        of_classes: whether that is of one class alone, 1/C.
        margin: a run that is further above a guess has learned; infinite: nothing is known of it.
        threshold: the usual one of SAIF; None: it has none.
    """

    column: str
    name: str
    is_share: bool = True
    bounded: bool = True
    bits: str = ""
    larger_is_better: bool = True
    guess: float = math.nan
    of_classes: bool = False
    margin: float = math.inf
    threshold: float | None = None

    def lost(self, num_classes: Any) -> Any:
        """What a diverged cell counts as.

        Args:
            num_classes: C, a number or an array.
        """
        return self.guess / num_classes if self.of_classes else self.guess

    def floor(self, num_classes: float) -> float:
        """What a run must exceed to have learned; -inf where that is not known."""
        floor = float(self.lost(num_classes) + self.margin)
        return floor if math.isfinite(floor) else -math.inf

    @property
    def lost_text(self) -> str:
        """What a diverged cell counts as: ``SAIF 0``, ``accuracy 1/C``."""
        return f"{self.name} {'1/C' if self.of_classes and self.guess else 0}"

    def at(self, threshold: float | None) -> str:
        """Its name with the threshold of SAIF, where it is not the usual one."""
        usual = self.threshold is None or threshold in (None, self.threshold)
        return self.name if usual else f"{self.name} at threshold {threshold:g}"


def measures(task: str, own: Iterable[str] = ()) -> dict[str, Measure]:
    """Column -> measure: SAIF, accuracy, those in the column `measures`, then others.

    Args:
        task: name of the task; empty: of mosaics.
        own: measures in the column `measures`, of any cells or of recorded runs; perhaps among
            the usual ones.
    """
    return _measures(task, tuple(name for name in own if name not in METRICS))


@functools.cache
def _measures(task: str, own: Sequence[str]) -> dict[str, Measure]:
    modality = tasks.modality(task)
    rows = [
        Measure(
            "saif",
            "SAIF",
            bits="saif",
            guess=0.0,
            margin=modality.margin,
            threshold=modality.saif_threshold,
        ),
        Measure(
            "accuracy",
            modality.score,
            bits="right",
            guess=float(modality.chance),
            of_classes=True,
            margin=modality.margin,
        ),
        *(_own(name, task in tasks.TASKS) for name in own),
        Measure("loss", "loss (nats)", is_share=False, bounded=False),
        Measure("foreground_attention_mean", "attention on the foreground"),
        *(
            Measure(each.column, each.name, each.is_share, each.bounded, guess=each.lost)
            for each in modality.measures
        ),
    ]
    return {each.column: each for each in rows}


def _own(name: str, registered: bool) -> Measure:
    """A measure that a file or package registers for our tasks, or one of recorded runs."""
    if not registered:
        return Measure(name, name.replace("_", " "), guess=0.0)
    if name not in tasks.MEASURES:  # its file is not named here
        return Measure(name, name.replace("_", " "), is_share=False, bounded=False)
    own = tasks.MEASURES[name]
    return Measure(
        name, own.name, own.is_share, own.bounded, name, own.larger_is_better, guess=own.lost
    )
