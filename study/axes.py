"""The axes of a grid: what each means, how its values are typed, and its default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search_spaces import By, SearchSpace, Values
from study import models
from study.cell import PARADIGMS, PRECISIONS, SPLIT_SCHEMES
from study.errors import RequestError, unknown

SAME = "same"
"""Value of `hard_lr`: the learning rate of the first phase."""

LARGEST_RANGE = 1_000_000


def _number(text: str) -> float:
    return float(text)


def _number_or_same(text: str) -> float | str:
    return SAME if text == SAME else float(text)


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Args:
        about: meaning and unit, shown by `--help`.
        parse: one typed value -> value; raises ValueError.
        default: where a preset does not declare the axis; empty: it must.
        expects: what a value is, for error messages.
    """

    about: str
    parse: Callable[[str], Any]
    default: Values = ()
    expects: str = "a whole number"


AXES: Mapping[str, Axis] = {
    "seed": Axis("seeds; 0-11 is a range", int),
    "m": Axis("segments a mosaic", int),
    "n": Axis("training mosaics", int),
    "paradigm": Axis("soft, hard, lvml, hybrid, hard-sampled", str, expects="a name"),
    "lr": Axis("learning rate (of a hybrid: its soft phase)", _number, expects="a number"),
    "hard_lr": Axis(
        "learning rate of a hybrid's hard phase, or same",
        _number_or_same,
        (SAME,),
        "a number or same",
    ),
    "switch_point": Axis(
        "budget fraction at which a hybrid turns hard", _number, (0.5,), "a number"
    ),
    "epochs": Axis("the budget: FLOPs of that many epochs of soft", _number, expects="a number"),
    "architecture": Axis("network of focus and classifier", str, expects="a name"),
    "width": Axis("factor on the network's hidden widths", _number, (1.0,), "a number"),
    "batch_size": Axis("mosaics a step", int, (256,)),
    "precision": Axis("float32, or bfloat16", str, ("float32",), "a name"),
    "momentum": Axis("of SGD", _number, (0.9,), "a number"),
    "split": Axis("disjoint, or shared-base as in the scripts", str, ("disjoint",), "a name"),
    "evaluations": Axis("evaluations after the first, evenly spaced in compute", int, (10,)),
    "train_metrics_size": Axis("training mosaics that train metrics are taken on", int, (2_000,)),
    "validation_size": Axis("validation mosaics", int, (2_000,)),
    "test_size": Axis("test mosaics", int, (10_000,)),
}


def choices(axis: str, task: str) -> Sequence[str] | None:
    """The valid names of an axis of names, None for numbers."""
    return {
        "paradigm": (*PARADIGMS, "hybrid"),
        "architecture": models.names(task),
        "split": SPLIT_SCHEMES,
        "precision": PRECISIONS,
    }.get(axis)


def resolve(space: SearchSpace, preset: str, assignments: Sequence[str]) -> dict[str, Values | By]:
    """All axes of a study: the preset's, overridden by ``axis=v1,v2`` texts.

    Raises:
        RequestError: unknown preset, axis or name (with the nearest), or a value of another kind;
            or the preset itself declares an unknown axis.
    """
    if preset not in space.presets:
        raise unknown(f"preset of {space.name}", preset, space.presets)
    declared = space.presets[preset].axes
    for name in declared:
        if name not in AXES:
            raise unknown(f"axis in preset {preset} of {space.name}", name, AXES)
    axes: dict[str, Values | By] = {
        name: declared.get(name, axis.default) for name, axis in AXES.items()
    }
    seen = set()
    for text in assignments:
        name, equals, values = text.partition("=")
        if not equals:
            raise RequestError(f"--set takes axis=value[,value...], got {text!r}.")
        if name not in AXES:
            raise unknown("axis", name, AXES)
        if name in seen:
            raise RequestError(f"--set names the axis {name} twice; write {name}=v1,v2 once.")
        seen.add(name)
        axes[name] = _parse_values(name, values, space.task)
    return axes


def values_at(axis: Values | By, name: str, point: Mapping[str, Any]) -> Values:
    """The values of an axis where the other axes have those of a point.

    Raises:
        RequestError: there is none.
    """
    values = axis.values.get(point[axis.axis], axis.otherwise) if isinstance(axis, By) else axis
    if not values:
        raise RequestError(f"no value for the axis {name}. Give one with --set {name}=VALUE.")
    return values


def _parse_values(name: str, text: str, task: str) -> Values:
    axis, names = AXES[name], choices(name, task)
    values: list[Any] = []
    for part in text.split(","):
        part = part.strip()
        span = re.fullmatch(r"(\d+)-(\d+)", part)
        if axis.parse is int and span:
            first, last = int(span[1]), int(span[2])
            if not first <= last < first + LARGEST_RANGE:
                raise RequestError(
                    f"--set {name}={text}: a range runs upwards and has at most "
                    f"{LARGEST_RANGE:,} values, got {part!r}."
                )
            values.extend(range(first, last + 1))
            continue
        if names is not None and part not in names:
            raise unknown(name, part, names)
        try:
            values.append(axis.parse(part))
        except ValueError:
            raise RequestError(
                f"--set {name}={text}: {name} takes {axis.expects}, got {part!r}."
            ) from None
    return tuple(dict.fromkeys(values))
