"""What a study declares: its axes and presets.

An axis is a tuple of values, or `By(...)` if the values depend on another axis. A preset may
declare the axes of the study's kind, see `study.kinds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = tuple[Any, ...]

PARADIGMS = ("soft", "hard", "lvml", "hybrid")
"""Those of the paper."""


@dataclass(frozen=True)
class By:
    """Values of an axis that depend on the value of another one.

    Args:
        axis: the other axis.
        values: its value -> the values of this axis, which may depend on a further one.
        otherwise: for values of the other axis that are not listed.
    """

    axis: str
    values: Mapping[Any, Values | By]
    otherwise: Values | By


def fresh(count: int) -> Values:
    """So many seeds that confirm; none of them tunes."""
    return tuple(range(100, 100 + count))


def where_usual(values: Values, usual: Mapping[str, Any]) -> Values | By:
    """The values of an axis where others have their usual ones, elsewhere the first value alone.

    So a grid varies one axis at a time instead of all together.

    Args:
        values: of the axis, the usual one first.
        usual: other axis -> its usual value.
    """
    found: Values | By = values
    for axis, value in usual.items():
        found = By(axis, {value: found}, otherwise=values[:1])
    return found


@dataclass(frozen=True)
class Preset:
    """A named choice of all axes.

    Args:
        about: one line, shown by `--help` and above the results.
        axes: axis name -> its values.
    """

    about: str
    axes: Mapping[str, Values | By]


@dataclass(frozen=True)
class SearchSpace:
    """A study.

    Args:
        name: as typed on the command line.
        task: name in `study.tasks`; the first one if the study declares several by the axis
            `task`.
        about: one line, shown by `--help`.
        presets: name -> preset.
        kind: of its cells, a name of `study.kinds.KINDS`.
        needs: axes that are never none.
    """

    name: str
    task: str
    about: str
    presets: Mapping[str, Preset]
    kind: str = "training"
    needs: tuple[str, ...] = ()
