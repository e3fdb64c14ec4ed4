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

_NONE_IS_NAMED = (
    "Say of a measure that is no fraction which way is better: measures={{'{name}': "
    "{{'is_share': False, 'larger_is_better': False}}}}."
)


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
        return f". {_NONE_IS_NAMED.format(name=name)[:-1]}"


def told_of(measures: Measures | None) -> dict[str, Told]:
    """Name -> what is said of it, or is usual: a share, of which more is better.

    Args:
        measures: as `chapters.recorded.recorder.record` takes them.

    Raises:
        ResultsError: it says something else, or does not say which way is better.
    """
    if measures is None or isinstance(measures, str):
        measures = [measures] if measures else []
    if not isinstance(measures, Mapping):
        measures = {name: {} for name in measures}
    told = {as_seen(name): said for name, said in measures.items()}
    for name in _USUAL:
        if told.pop(name, None):
            raise ResultsError(f"{name} is known to be a share: say nothing of it in measures.")
    return {name: _told(name, said) for name, said in told.items()}


def as_text(told: Mapping[str, Told], draws: str | None) -> str | None:
    """The column `declared` of a run; None: all is usual.

    Args:
        told: of its measures.
        draws: what its instances are of, in the plural; None: not known.
    """
    usual = {name: _told(name, {}) for name in told if name != LOSS}
    if told == usual and draws is None:
        return None
    found: dict[str, Any] = {"measures": {name: each._asdict() for name, each in told.items()}}
    return json.dumps(found | ({"instances": draws} if draws else {}), sort_keys=True)


def measured(names: Collection[Any], measures: Measures | None) -> dict[str, Told]:
    """What is said of the measures of a table that has these columns.

    Where it has a loss alone, that is its measure.
    """
    told = told_of(measures)
    others = told or {*_USUAL}.intersection(names)
    return told if others or LOSS not in names else told_of([LOSS])


def _told(name: str, said: Any) -> Told:
    is_loss = name == LOSS
    usual: dict[str, Any] = {
        "words": "loss (nats)" if is_loss else name.replace("_", " "),
        "larger_is_better": False if is_loss else None,
        "chance": None,
        "is_share": not is_loss,
    }
    if not isinstance(said, Mapping) or {*said} - {*usual}:
        raise ResultsError(
            f"of the measure {name} may be said {', '.join(usual)}, got {said!r}, as in "
            f"measures={{'{name}': {{'is_share': False, 'larger_is_better': False}}}}."
        )
    found = {**usual, **said}
    share, larger, chance = (found[each] for each in ("is_share", "larger_is_better", "chance"))
    if not isinstance(share, bool) or not (larger is None or isinstance(larger, bool)):
        raise ResultsError(f"is_share and larger_is_better of {name} are True or False.")
    if not share and larger is None:
        raise ResultsError(f"{name} is no share. {_NONE_IS_NAMED.format(name=name)}")
    larger = larger is not False
    if chance is None and share and larger:
        chance = 0.0  # as of SAIF
    least, most = (0, 1) if share else (-sys.float_info.max, sys.float_info.max)
    if chance is not None and not (isinstance(chance, Real) and least <= float(chance) <= most):
        raise ResultsError(f"the chance of {name} is a value that it can have, got {chance!r}.")
    return Told(str(found["words"]), larger, None if chance is None else float(chance), share)
