"""The measures of a comparison: a row each, from which choice, tests, tables and words follow.

A modality has further ones (`study.tasks.task.Modality.measures`), recorded runs those of their
own.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis.forms import QUANTITIES, SHARES, Unit
from analysis.rules.learning import Scale
from study import tasks
from study.results import ResultsError
from study.tasks import Modality

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

    def scale(self, num_classes: float) -> Scale:
        """What is known of its values, with what a run must exceed to have learned."""
        floor = float(self.lost(num_classes) + self.margin)
        return Scale(floor if math.isfinite(floor) else -math.inf, self.sign, self.is_share)

    @property
    def sign(self) -> int:
        """Times this, more of it is better."""
        return 1 if self.larger_is_better else -1

    @property
    def unit(self) -> Unit:
        """How its values read."""
        return SHARES if self.is_share else QUANTITIES

    @property
    def lost_text(self) -> str:
        """What a diverged cell counts as: ``SAIF 0``, ``accuracy 1/C``, ``loss not known``."""
        if self.of_classes and self.guess:
            return f"{self.name} 1/C"
        return f"{self.name} {'not known' if math.isnan(self.guess) else f'{self.guess:g}'}"

    def at(self, threshold: float | None) -> str:
        """Its name with the threshold of SAIF, where it is not the usual one."""
        usual = self.threshold is None or threshold in (None, self.threshold)
        return self.name if usual else f"{self.name} at threshold {threshold:g}"


def measures(
    task: str, own: Iterable[str] = (), declared: Iterable[str] = ()
) -> dict[str, Measure]:
    """Column -> measure: SAIF, accuracy, those in the column `measures`, then others.

    Args:
        task: name of the task; empty: of mosaics.
        own: measures in the column `measures`, of any cells or of recorded runs; perhaps among
            the usual ones.
        declared: what recorded runs say of theirs, as in the column `declared`.

    Raises:
        ResultsError: they contradict each other.
    """
    return _measures(task, tuple(name for name in own if name not in METRICS), tuple(declared))


def measures_of(rows: pd.DataFrame, own: Iterable[str] = ()) -> dict[str, Measure]:
    """The same of the cells of one comparison.

    Args:
        rows: of cells, at least one, with `task` and perhaps `declared`.
        own: as `measures` takes it.
    """
    declared = rows["declared"].dropna().unique() if "declared" in rows else ()
    return measures(rows["task"].iloc[0], own, declared)


def declared_names(cells: pd.DataFrame) -> pd.Series:
    """Of each cell the names of the measures that recorded runs declare; missing: none."""
    told = {text: [*json.loads(text)["measures"]] for text in cells["declared"].dropna().unique()}
    return cells["declared"].map(told)


def modality_of(rows: pd.DataFrame) -> Modality:
    """The modality of the cells of one comparison, with what their instances are said to be of.

    Args:
        rows: as `measures_of` takes them.
    """
    found = tasks.modality(rows["task"].iloc[0])
    declared = rows["declared"].dropna().unique() if "declared" in rows else ()
    draws = {json.loads(text).get("instances", {}).get("of") for text in declared} - {None, ""}
    return replace(found, draws=" or ".join(sorted(draws))) if draws else found


@functools.cache
def _measures(task: str, own: Sequence[str], declared: Sequence[str]) -> dict[str, Measure]:
    modality, said = tasks.modality(task), _declared(task, declared)
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
        *(said.get(name) or _own(name, task in tasks.TASKS) for name in own),
        said.get("loss", _LOSS),
        Measure("foreground_attention_mean", "attention on the foreground"),
        *(
            Measure(each.column, each.name, each.is_share, each.bounded, guess=each.lost)
            for each in modality.measures
        ),
    ]
    return {each.column: each for each in rows}


_LOSS = Measure("loss", "loss (nats)", False, False, larger_is_better=False)


def _declared(task: str, texts: Sequence[str]) -> dict[str, Measure]:
    """The measures that recorded runs declare."""
    said: dict[str, dict[str, Any]] = {}
    for text in texts:
        for name, of in json.loads(text)["measures"].items():
            if said.setdefault(name, of) != of:
                raise ResultsError(
                    f"runs of {task} were recorded with different words on the measure {name}: "
                    f"{said[name]} and {of}. Record them into a directory of their own."
                )
    return {
        name: Measure(
            name,
            of["words"],
            of["is_share"],
            of["is_share"],
            bits=name,
            larger_is_better=of["larger_is_better"],
            guess=math.nan if of["chance"] is None else of["chance"],
        )
        for name, of in said.items()
    }


def _own(name: str, registered: bool) -> Measure:
    """A measure that a file or package registers for our tasks, or one of recorded runs."""
    if not registered:
        return Measure(name, name.replace("_", " "), bits=name, guess=0.0)
    if name not in tasks.MEASURES:  # its file is not named here
        return Measure(name, name.replace("_", " "), is_share=False, bounded=False)
    own = tasks.MEASURES[name]
    return Measure(
        name, own.name, own.is_share, own.bounded, name, own.larger_is_better, guess=own.lost
    )
