"""What is said of the measures of recorded runs: direction, chance, whether they are shares."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from study.results import ResultsError, as_seen

Measures = str | Sequence[str] | Mapping[str, Mapping[str, Any]]

LOSS = "loss"
"""A column that every table may have, and that is a measure where it is named as one."""

_USUAL = ("accuracy", "saif")

_FOR_EXAMPLE = "measures={{'{}': {{'is_share': False, 'larger_is_better': False}}}}"


class Told(NamedTuple):
    """What is said of a measure, by the names of `study.parts.register_measure`.

    Attributes:
        words: its name for people.
        larger_is_better: whether more of it is better.
        chance: what a guess gives, as which a diverged run counts; None: not known.
        is_share: whether it is a fraction in [0, 1].
    """

    words: str
    larger_is_better: bool
    chance: float | None
    is_share: bool

    def hint(self, name: str) -> str:
        """Behind the rule that a value does not fit."""
        return f". {_which_way(name)}"


def told_of(measures: Measures | None) -> dict[str, Told]:
    """Name -> what is said of it, or is usual: a share, of which more is better.

    Args:
        measures: as `chapters.recorded.recorder.record` takes them; of accuracy and SAIF all is
            known, so that naming them says nothing.

    Raises:
        ResultsError: it says something else, or does not say which way is better.
    """
    if isinstance(measures, str):
        measures = [measures]
    if not isinstance(measures, Mapping):
        measures = {name: {} for name in measures or () if name}
    if not all(isinstance(name, str) for name in measures):
        raise ResultsError(f"measures are names of columns, got {[*measures]}.")
    told = {as_seen(name): said for name, said in measures.items()}
    return {name: _told(name, said) for name, said in told.items() if said or name not in _USUAL}


def as_text(told: Mapping[str, Told], instances: Mapping[str, str]) -> str | None:
    """The column `declared` of a run; None: nothing is said.

    Args:
        told: of its measures.
        instances: see `chapters.recorded.each_instance.instances_of`.
    """
    if not told and not instances:
        return None
    found: dict[str, Any] = {"measures": {name: each._asdict() for name, each in told.items()}}
    return json.dumps(found | ({"instances": instances} if instances else {}), sort_keys=True)


def measured(names: Collection[Any], measures: Measures | None) -> dict[str, Told]:
    """What is said of the measures of a table that has these columns.

    Where it has a loss alone, that is its measure.
    """
    told = told_of(measures)
    others = told or {*_USUAL}.intersection(names)
    return told if others or LOSS not in names else told_of([LOSS])


def _told(name: str, said: Any) -> Told:
    usual: dict[str, Any] = {
        "words": name.replace("_", " "),
        "larger_is_better": None,
        "chance": None,
        "is_share": True,
    }
    if name == LOSS:
        usual |= {"words": "loss (nats)", "larger_is_better": False, "is_share": False}
    found = {**usual, **said} if isinstance(said, Mapping) else {}
    chance, share, larger = map(found.get, ("chance", "is_share", "larger_is_better"))
    least, most = (0, 1) if share else (-sys.float_info.max, sys.float_info.max)
    if (
        found.keys() != usual.keys()
        or not isinstance(share, bool)
        or not (larger is None or isinstance(larger, bool))
        or not (chance is None or (isinstance(chance, Real) and least <= float(chance) <= most))
    ):
        raise ResultsError(
            f"of the measure {name} may be said words, larger_is_better (True or False), chance "
            f"(a value that it can have), is_share (True or False), got {said!r}, as in "
            f"{_FOR_EXAMPLE.format(name)}."
        )
    if not share and larger is None:
        raise ResultsError(f"{name} is no share. {_which_way(name)}.")
    if chance is None and share and larger is not False:
        chance = 0  # as of SAIF
    known = None if chance is None else float(chance)
    return Told(str(found["words"] or usual["words"]), larger is not False, known, share)


def _which_way(name: str) -> str:
    return "Say of a measure that is no fraction which way is better: " + _FOR_EXAMPLE.format(name)
