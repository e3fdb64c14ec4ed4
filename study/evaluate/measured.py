"""Measures of one's own: of all outputs of a model on a split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from study.door import imported
from study.errors import RequestError
from study.tasks.task import Measure, Outputs

Gathered = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Of a part, in the order of `study.tasks.task.Outputs`."""


def measured(
    measures: Iterable[Measure], outputs: Outputs
) -> tuple[dict[str, float], dict[str, NDArray[np.bool_]]]:
    """The values of measures, and what is true or false of each instance.

    Args:
        measures: each with a place of its function.
        outputs: of all of a split.

    Returns:
        Column -> number, without those that are not finite; column -> (n,) bool.

    Raises:
        RequestError: a function gives something else.
    """
    values, flags = {}, {}
    for measure in measures:
        found = np.asarray(imported(measure.of)(outputs))
        of_each = found.shape == outputs.labels.shape
        if not (found.dtype.kind in "bfiu" and (of_each or found.shape == ())):
            raise RequestError(
                f"the measure {measure.column} must be a number, or of each of the "
                f"{len(outputs.labels)} inputs a number or whether something is true; got "
                f"{found.dtype} of shape {found.shape}."
            )
        if found.dtype.kind == "b" and of_each:
            flags[measure.column] = found
        value = float(found.mean())
        if np.isfinite(value):
            values[measure.column] = value
    return values, flags


def outputs_of(parts: Sequence[Gathered]) -> Outputs:
    """All parts of a split, which differ in m, as one."""
    widest = max(foreground.shape[1] for _, _, _, foreground, _ in parts)
    columns: list[NDArray[Any]] = []
    for name, column in zip(Outputs._fields, zip(*parts, strict=True), strict=True):
        wide = name in ("attention", "foreground", "mask")
        padded = [
            np.pad(each.cpu().numpy(), ((0, 0), (0, widest - each.shape[1])))
            if wide
            else each.cpu().numpy()
            for each in column
        ]
        columns.append(np.concatenate(padded))
    return Outputs(*columns)
